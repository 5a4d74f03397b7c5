//! The properties of a machine that decide which schedule is the fastest: cache sizes, and the
//! cost of cache lines and steps.
//!
//! The module knows the system's files and what was measured on machines of each vendor. It does
//! not know calls. No result depends on these properties.

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

/// The cache sizes of a machine, and the cost of cache lines and instructions on the machine. These
/// numbers determine the choice of schedules. They change no result.
///
/// Calls use [`Machine::current`]. By default, the current machine has the cache sizes that the
/// system reports, and rates that are typical of machines of its vendor. The typical rates are
/// fitted to measured machines.
///
/// If your machine differs from the measured machines, [measure](Self::measure) it once and
/// [write](Self::write) the result to a file. Then name the file in the environment variable
/// `NDSCATTER_MACHINE`. A program can also [read](Self::read) the file and [set](Self::set_current)
/// the machine itself.
///
/// # Examples
///
/// ```
/// use ndscatter::{Execution, Machine};
///
/// let here = Machine::detected();
/// println!("{here}");
/// // Choose schedules as on a machine whose last cache has 480 MiB.
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

/// Environment variable with the path of the machine file.
const VARIABLE: &str = "NDSCATTER_MACHINE";

/// The machine descriptions ([`Machine`]: cache sizes, rates, variants) that were set for the
/// process, each once. Scatters and gathers use the last description of the list. Earlier
/// descriptions stay in the list because running calls may use them.
static SET: RwLock<Vec<&'static Machine>> = RwLock::new(Vec::new());

/// Bytes of the caches of a common server, for systems that do not report caches.
const TYPICAL_CACHES: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];

/// Fraction of a cache that one array can use if other data uses the cache too.
const USABLE_FRACTION: f64 = 0.8;

/// Bytes of memory that the processor accesses without a walk through the page table. The
/// second-level translation buffer of Intel since Skylake has 1536 pages of 4 KiB. AMD's Zen 4 has
/// twice as many.
pub(crate) const PAGE_REACH: f64 = (1536 * 4096) as f64;

/// Bytes of memory per byte of its page table.
const BYTES_PER_TABLE_BYTE: f64 = 512.0;

impl Machine {
    /// Returns this machine, which is detected once per process. On Linux the cache sizes come from
    /// the system's files. Elsewhere they are the cache sizes of a common server.
    pub fn detected() -> &'static Self {
        static DETECTED: OnceLock<Machine> = OnceLock::new();
        DETECTED.get_or_init(|| Self::with_caches(detection::detect().unwrap_or(TYPICAL_CACHES)))
    }

    /// Returns the machine that calls use if [`Execution::machine`](crate::Execution::machine) does
    /// not name a machine. The result is the machine of [`set_current`](Self::set_current), or else
    /// of [`from_environment`](Self::from_environment), or else the machine of
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

    /// Returns the machine in the file that the environment variable `NDSCATTER_MACHINE` names, or
    /// the error of reading it. The variable and the file are read once. Returns `None` if the
    /// variable is not set.
    ///
    /// If the file cannot be used, calls use the [`detected`](Self::detected) machine, and
    /// explanations contain the error.
    pub fn from_environment() -> Option<&'static Result<Self, MachineError>> {
        static NAMED: OnceLock<Option<Result<Machine, MachineError>>> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var_os(VARIABLE).map(Machine::read));
        named.as_ref()
    }

    /// Makes later calls of the process use this machine.
    ///
    /// Call this function at the start of a program: every machine that was set stays in memory. A
    /// machine that is set again takes no more memory.
    pub fn set_current(self) {
        let mut set = SET.write().unwrap_or_else(PoisonError::into_inner);
        let before = set.iter().position(|machine| **machine == self);
        let machine = match before {
            Some(number) => set.remove(number),
            None => Box::leak(Box::new(self)),
        };
        set.push(machine);
    }

    /// Returns this machine with rates that are measured now.
    ///
    /// The measurement reads, writes and copies cache lines in each cache and in memory. It scales
    /// the typical rates by the results. The measurement takes at most about 50 milliseconds on one
    /// core and 8 MiB of memory. The core should have no other work. If other work disturbs the
    /// measurement, choices of schedules are worse, and no result is wrong. Calls never measure on
    /// their own.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use ndscatter::Machine;
    ///
    /// // Once, when a server is set up.
    /// Machine::measure().write("/etc/ndscatter-machine")?;
    /// // Whenever the server starts. Or set `NDSCATTER_MACHINE=/etc/ndscatter-machine`.
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

    /// Returns a machine with the given cache sizes in bytes, as one core sees them: first level,
    /// second level, last level. A size that is smaller than the size before it is replaced by that
    /// size. The rates are typical of machines of this machine's vendor.
    pub fn with_caches(bytes: [u64; 3]) -> Self {
        Self::of(Vendor::here(), bytes)
    }

    /// Returns a machine of `vendor` with the given cache sizes, as [`Self::with_caches`].
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

    /// Returns the bytes of the first-level, second-level and last-level cache.
    pub fn caches(&self) -> [u64; 3] {
        self.caches
    }

    /// Returns the bytes that stay in each level if `sharers` workers, which share the last-level
    /// cache, access them again and again. The last entry is memory, which is unlimited.
    pub(crate) fn levels(&self, sharers: f64) -> [f64; 4] {
        #[expect(clippy::cast_precision_loss, reason = "approximate sizes")]
        let [first, second, last] = self.caches.map(|bytes| bytes as f64);
        [
            first,
            second * USABLE_FRACTION,
            last * USABLE_FRACTION / sharers,
            f64::INFINITY,
        ]
    }

    /// Returns the bytes of memory whose page table fits in the second-level cache.
    pub(crate) fn page_table_reach(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an approximate size")]
        let second = self.caches[1] as f64;
        second * BYTES_PER_TABLE_BYTE
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
