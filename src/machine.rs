//! What a machine is, as far as it decides which schedule is the fastest: its
//! caches, and what lines and steps take there.
//!
//! Knows the system's files and what was measured on machines of a kind. Knows
//! nothing of calls; no result depends on it.

mod rates;

use std::fmt;
use std::sync::OnceLock;

pub(crate) use rates::Rates;

/// The caches of a machine, and typical rates: what schedules are chosen by. No
/// result depends on it.
///
/// # Examples
///
/// ```
/// use ndscatter::{Execution, Machine};
///
/// let here = Machine::detected();
/// println!("{here}");
/// // As if this ran where the last cache has 480 MiB.
/// let [first, second, _] = here.caches();
/// let there = Machine::with_caches([first, second, 480 << 20]);
/// let execution = Execution::new().machine(&there);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    caches: [u64; 3],
    pub(crate) rates: Rates,
}

/// Of a common server, where the system does not tell.
const TYPICAL: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];

/// Of a cache that others use as well, what is left for one array.
const OWN_PART: f64 = 0.8;

/// Bytes that a translation buffer of the second level reaches, 1536 pages of 4 KiB
/// each, as on Intel's since Skylake; AMD's Zen 4 has twice as many.
const PAGE_REACH: f64 = (1536 * 4096) as f64;

/// Bytes of memory for which a page table has one.
const PAGED_BY_BYTE: f64 = 512.0;

impl Machine {
    /// This one, found out once: from the system's files on Linux, else that of a
    /// common server.
    pub fn detected() -> &'static Self {
        static DETECTED: OnceLock<Machine> = OnceLock::new();
        DETECTED.get_or_init(|| Self::with_caches(detect().unwrap_or(TYPICAL)))
    }

    /// One with first, second and last caches of so many bytes, as one core sees
    /// them. Sizes that do not ascend are taken as if they did.
    pub fn with_caches(bytes: [u64; 3]) -> Self {
        let [first, second, last] = bytes;
        let first = first.max(1);
        let second = second.max(first);
        Self {
            caches: [first, second, last.max(second)],
            rates: Rates::TYPICAL,
        }
    }

    /// Bytes of the first, second and last cache.
    pub fn caches(&self) -> [u64; 3] {
        self.caches
    }

    /// How many bytes stay in each level when they are gone through again and
    /// again by so many who share the last cache; all in the last one, which is memory.
    pub(crate) fn levels(&self, sharers: f64) -> [f64; 4] {
        #[expect(clippy::cast_precision_loss, reason = "sizes to compare with")]
        let [first, second, last] = self.caches.map(|bytes| bytes as f64);
        [
            first,
            second * OWN_PART,
            last * OWN_PART / sharers,
            f64::INFINITY,
        ]
    }

    /// Bytes whose pages are found without a walk through the page table.
    pub(crate) fn page_reach(&self) -> f64 {
        PAGE_REACH
    }

    /// Bytes whose page table lies in the second cache.
    pub(crate) fn page_table_reach(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a size to compare with")]
        let second = self.caches[1] as f64;
        second * PAGED_BY_BYTE
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, last] = self.caches.map(|bytes| bytes >> 10);
        write!(f, "caches of {first}, {second} and {last} KiB")
    }
}

/// The system's files on the caches of the first processor: what each holds, its
/// level and its size. Written out, as a name that is put together takes memory, which
/// may be refused.
#[cfg(all(target_os = "linux", not(miri)))]
macro_rules! cache_files {
    ($($index:literal)*) => {
        [$([
            concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/type"),
            concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/level"),
            concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/size"),
        ]),*]
    };
}

/// The data caches of the first processor.
#[cfg(all(target_os = "linux", not(miri)))]
fn detect() -> Option<[u64; 3]> {
    let mut caches = [0; 3];
    for [holds, level, size] in cache_files!(0 1 2 3 4) {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        let Some(holds) = read(holds, &mut first) else {
            break;
        };
        if holds == "Instruction" {
            continue;
        }
        let level: usize = read(level, &mut first)?.parse().ok()?;
        let slot = caches.get_mut(level.checked_sub(1)?.min(2))?;
        *slot = bytes(read(size, &mut second)?)?;
    }
    let [first, second, last] = caches;
    (first > 0).then_some([first, second.max(first), last.max(second).max(first)])
}

/// The short text of a file. Takes no memory: the standard library has the names of
/// such files on the stack.
#[cfg(all(target_os = "linux", not(miri)))]
fn read<'b>(path: &str, buffer: &'b mut [u8; 32]) -> Option<&'b str> {
    use std::io::Read;

    let len = std::fs::File::open(path).ok()?.read(buffer).ok()?;
    Some(std::str::from_utf8(&buffer[..len]).ok()?.trim())
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn detect() -> Option<[u64; 3]> {
    None
}

/// A size as the system writes it: `1024K`.
#[cfg(any(test, all(target_os = "linux", not(miri))))]
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

#[cfg(test)]
mod tests {
    use super::{Machine, bytes};

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("32K", Some(32 << 10)),
            ("480M", Some(480 << 20)),
            ("512", Some(512)),
            ("K", None),
            ("1T", None),
            ("-1K", None),
            ("", None),
            ("99999999999999G", None),
        ] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn levels_ascend() {
        for machine in [
            Machine::detected().clone(),
            Machine::with_caches([0, 0, 0]),
            Machine::with_caches([9 << 20, 1 << 10, 2]),
        ] {
            let levels = machine.levels(1.0);
            assert!(levels[0] > 0.0, "{machine}");
            let caches = machine.caches();
            assert!(caches.is_sorted(), "{machine}");
        }
    }
}
