//! The properties of a machine that determine which schedule is the fastest: cache sizes, and the
//! costs (rates) of cache lines and of the steps of a schedule.
//!
//! The module knows the system's files about caches, and what was measured on machines of each
//! vendor. It does not know calls. These properties never change the result of a call.

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

/// The cache sizes of a machine, and its rates: the costs of cache lines and instructions on the
/// machine. These numbers determine which schedule a call uses. They never change the result of a
/// call.
///
/// By default, calls use [`Machine::current`]. If no machine was set, this machine has the cache
/// sizes that the system reports, and the typical rates of its processor's vendor. The typical
/// rates were fitted to machines that were measured.
///
/// If your machine differs from those machines, [measure](Self::measure) it once and
/// [write](Self::write) the result to a file. Then set the environment variable `NDSCATTER_MACHINE`
/// to the path of the file. Instead, a program can [read](Self::read) the file and
/// [set](Self::set_current) the machine.
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

/// Name of the environment variable that has the path of the machine file.
const VARIABLE: &str = "NDSCATTER_MACHINE";

/// The machines that [`Machine::set_current`] has set in this process. Equal machines occur once.
/// The last machine of the list is the current one. Earlier machines stay in the list because
/// running calls may use them.
static SET: RwLock<Vec<&'static Machine>> = RwLock::new(Vec::new());

/// Bytes of the first-level, second-level and last-level cache of a common server, for systems that
/// do not report caches.
const TYPICAL_CACHES: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];

/// Fraction of the second-level or last-level cache that one array can use. Other data uses the
/// rest.
const USABLE_FRACTION: f64 = 0.8;

/// Bytes of memory that the processor can access without a walk through the page table. The value
/// is 1536 pages of 4 KiB: the second-level translation buffer of Intel's Skylake has 1536 entries.
/// AMD's Zen 4 has twice as many, but the constant is the same for all machines.
pub(crate) const PAGE_REACH: f64 = (1536 * 4096) as f64;

/// Bytes of memory that one byte of the page table describes.
const BYTES_PER_TABLE_BYTE: f64 = 512.0;

impl Machine {
    /// Returns the description of this machine, which is detected once per process. On Linux the
    /// cache sizes come from the system's files. If the system does not report the sizes, they are
    /// those of a common server. The rates are the typical rates of the processor's vendor.
    pub fn detected() -> &'static Self {
        static DETECTED: OnceLock<Machine> = OnceLock::new();
        DETECTED.get_or_init(|| Self::with_caches(detection::detect().unwrap_or(TYPICAL_CACHES)))
    }

    /// Returns the machine that calls use if [`Execution::machine`](crate::Execution::machine) does
    /// not name a machine. This is the machine that [`set_current`](Self::set_current) has set
    /// last. If none was set, it is the machine of [`from_environment`](Self::from_environment). If
    /// that has no machine, it is the [`detected`](Self::detected) machine.
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
    /// the error of reading the file. The variable and the file are read once per process, when
    /// they are first needed. Returns `None` if the variable is not set.
    ///
    /// If the file cannot be read or is invalid, [`current`](Self::current) does not use it, and
    /// explanations of calls contain the error.
    pub fn from_environment() -> Option<&'static Result<Self, MachineError>> {
        static NAMED: OnceLock<Option<Result<Machine, MachineError>>> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var_os(VARIABLE).map(Machine::read));
        named.as_ref()
    }

    /// Makes this machine the [`current`](Self::current) machine of the process.
    ///
    /// Every machine that was set stays in memory until the process ends. So call this function at
    /// the start of a program, not for each call. Setting an equal machine again needs no further
    /// memory.
    pub fn set_current(self) {
        let mut set = SET.write().unwrap_or_else(PoisonError::into_inner);
        let before = set.iter().position(|machine| **machine == self);
        let machine = match before {
            Some(number) => set.remove(number),
            None => Box::leak(Box::new(self)),
        };
        set.push(machine);
    }

    /// Measures this machine now, and returns the [`detected`](Self::detected) machine with rates
    /// from the measurement.
    ///
    /// The measurement reads, writes and copies cache lines in each cache level and in memory. It
    /// then adapts a part of the typical rates to the measured costs. The measurement takes at most
    /// about 50 milliseconds on one core, and 8 MiB of memory. The core should have no other work.
    /// If other work disturbs the measurement, calls may choose slower schedules, but their results
    /// stay correct. Scatters and gathers never start a measurement.
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

    /// Returns a machine with the given cache sizes in bytes: first-level, second-level and
    /// last-level cache of one core. If a level is smaller than the previous level, it gets the
    /// size of the previous level. The rates are the typical rates of the vendor of the processor
    /// that runs the program.
    pub fn with_caches(bytes: [u64; 3]) -> Self {
        Self::of(Vendor::here(), bytes)
    }

    /// Returns a machine with the given cache sizes, as [`Self::with_caches`] does, and the typical
    /// rates of `vendor`.
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

    /// Returns, for each cache level, the bytes of data that one worker can keep there while it
    /// accesses this data repeatedly. `sharers` workers divide the last-level cache equally. The
    /// last entry is infinite: it is for memory.
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

    /// Returns the bytes of memory whose page table is as large as the second-level cache.
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
