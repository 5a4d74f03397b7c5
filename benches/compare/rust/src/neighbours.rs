//! Measures the CPU time of other processes. Load on one core slows down parallel contenders
//! much more than serial ones, so ratios are not valid under load.

use std::fs::read_to_string;
use std::ops::Range;

/// Ticks of the kernel's clock since the machine started, summed over all cores.
pub(crate) struct Ticks {
    all: u64,
    busy: u64,
    /// Ticks of this process.
    own: u64,
}

impl Ticks {
    /// Reads the ticks from the files of Linux. Returns `None` on other systems.
    pub(crate) fn now() -> Option<Self> {
        let machine = read_to_string("/proc/stat").ok()?;
        let first_line = machine.lines().next()?;
        // User, nice, system, idle, I/O wait, two kinds of interrupts, and time that the host gave
        // to other machines. These fields include the time of all later fields.
        let ticks = fields(first_line, 1..9)?;
        let all: u64 = ticks.iter().sum();

        let process = read_to_string("/proc/self/stat").ok()?;
        let after_name = process.rsplit_once(')')?.1;
        Some(Self {
            all,
            busy: all - ticks[3] - ticks[4],
            own: fields(after_name, 11..13)?.iter().sum(),
        })
    }

    /// Returns the share of all CPU time that other processes used since `start`.
    pub(crate) fn others_since(&self, start: &Self) -> f64 {
        let own = self.own - start.own;
        let others = (self.busy - start.busy).saturating_sub(own);
        others as f64 / (self.all - start.all).max(1) as f64
    }
}

fn fields(line: &str, which: Range<usize>) -> Option<Vec<u64>> {
    let fields: Vec<_> = line.split_whitespace().collect();
    (fields.get(which)?.iter())
        .map(|field| field.parse().ok())
        .collect()
}
