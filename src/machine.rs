//! What a machine is, as far as it decides which schedule is the fastest: its
//! caches, and what lines and steps take there.
//!
//! Knows the system's files and what was measured on machines of a kind. Knows
//! nothing of calls; no result depends on it.

mod detection;
mod file;
mod measurement;
mod rates;
mod variants;
mod vendor;

use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};

pub use file::MachineError;
pub(crate) use rates::Rates;
pub(crate) use variants::Variants;
pub(crate) use vendor::Vendor;

/// The caches of a machine, and what lines and steps take there: what schedules are
/// chosen by. No result depends on it.
///
/// Calls go by [`Machine::current`]: the caches that the system tells of, and rates that
/// are typical of its vendor's machines, fitted to those that were recorded. Where a
/// machine differs, its own can be [measured](Self::measure) once,
/// [written](Self::write) to a file, and that file named in the environment variable
/// `NDSCATTER_MACHINE`, or [read](Self::read) and [set](Self::set_current) by the program.
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
    vendor: Vendor,
    pub(crate) rates: Rates,
    pub(crate) variants: Variants,
}

/// Names the file of the machine that calls go by.
const VARIABLE: &str = "NDSCATTER_MACHINE";

/// Those that were set, each once, as calls in flight may go by any of them; the
/// last one is what calls go by.
static SET: RwLock<Vec<&'static Machine>> = RwLock::new(Vec::new());

/// Of a common server, where the system does not tell.
const TYPICAL: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];

/// Of a cache that others use as well, what is left for one array.
const OWN_PART: f64 = 0.8;

/// Bytes whose pages are found without a walk through the page table: what a translation buffer
/// of the second level reaches, 1536 pages of 4 KiB each, as on Intel's since Skylake; AMD's
/// Zen 4 has twice as many.
pub(crate) const PAGE_REACH: f64 = (1536 * 4096) as f64;

/// Bytes of memory for which a page table has one.
const PAGED_BY_BYTE: f64 = 512.0;

impl Machine {
    /// This one, found out once: from the system's files on Linux, else that of a
    /// common server.
    pub fn detected() -> &'static Self {
        static DETECTED: OnceLock<Machine> = OnceLock::new();
        DETECTED.get_or_init(|| Self::with_caches(detection::detect().unwrap_or(TYPICAL)))
    }

    /// The one that calls go by which [name](crate::Execution::machine) none: that of
    /// [`set_current`](Self::set_current), else that of
    /// [`from_environment`](Self::from_environment), else what was
    /// [`detected`](Self::detected).
    pub fn current() -> &'static Self {
        let set = SET.read().unwrap_or_else(PoisonError::into_inner);
        let last = set.last().copied();
        drop(set);
        last.unwrap_or_else(|| match Self::from_environment() {
            Some(Ok(machine)) => machine,
            _ => Self::detected(),
        })
    }

    /// The one in the file that the environment variable `NDSCATTER_MACHINE` names; the
    /// variable and the file are read once. `None` where it is not set; where the file
    /// cannot be used, calls go by what was [`detected`](Self::detected), and
    /// explanations say why.
    pub fn from_environment() -> Option<&'static Result<Self, MachineError>> {
        static NAMED: OnceLock<Option<Result<Machine, MachineError>>> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var_os(VARIABLE).map(Machine::read));
        named.as_ref()
    }

    /// From now on calls of this process go by it. Meant for the beginning: each
    /// machine that was ever set stays in memory, once.
    pub fn set_current(self) {
        let mut set = SET.write().unwrap_or_else(PoisonError::into_inner);
        let before = set.iter().position(|machine| **machine == self);
        let machine = match before {
            Some(number) => set.remove(number),
            None => Box::leak(Box::new(self)),
        };
        set.push(machine);
    }

    /// This one, with rates by what lines take it, in at most some 50 milliseconds on one
    /// core that should have nothing else to do, and 8 MiB of memory. No call does this
    /// by itself. Lines are written, read and copied in each cache and in memory; what
    /// schedules take is scaled by it. Where a machine was disturbed meanwhile, choices
    /// are worse, and no result is wrong.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use ndscatter::Machine;
    ///
    /// // Once, when a server is set up.
    /// Machine::measure().write("/etc/ndscatter-machine")?;
    /// // Whenever it starts; or `NDSCATTER_MACHINE=/etc/ndscatter-machine`.
    /// Machine::read("/etc/ndscatter-machine")?.set_current();
    /// # Ok::<(), ndscatter::MachineError>(())
    /// ```
    pub fn measure() -> Self {
        let mut machine = Self::detected().clone();
        if let Some(rates) = measurement::rates(machine.caches, machine.vendor) {
            machine.rates = rates;
        }
        machine
    }

    /// One with first, second and last caches of so many bytes, as one core sees
    /// them. Sizes that do not ascend are taken as if they did. What else there is of it
    /// is typical of machines of the vendor of this one.
    pub fn with_caches(bytes: [u64; 3]) -> Self {
        Self::of(Vendor::here(), bytes)
    }

    /// The same of another vendor.
    pub(crate) fn of(vendor: Vendor, bytes: [u64; 3]) -> Self {
        let [first, second, last] = bytes;
        let first = first.max(1);
        let second = second.max(first);
        Self {
            caches: [first, second, last.max(second)],
            vendor,
            rates: Rates::of(vendor),
            variants: Variants::of(vendor),
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
        let rates = match self.rates == Rates::of(self.vendor) {
            true => "typical rates",
            false => "rates of its own",
        };
        write!(f, "caches of {first}, {second} and {last} KiB, {rates}")?;
        match self.variants == Variants::of(self.vendor) {
            true => Ok(()),
            false => f.write_str(", kernels of its own"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;

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
