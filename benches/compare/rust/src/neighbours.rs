//! How much of the machine others use. A busy neighbour takes a core from the
//! parallel contenders and hardly anything from the serial ones: ratios found
//! beside one are not to be believed.

use std::fs::read_to_string;
use std::ops::Range;

/// Ticks of the kernel's clock, over all cores, since the machine started.
pub(crate) struct Ticks {
    all: u64,
    busy: u64,
    /// Those of this process.
    own: u64,
}

impl Ticks {
    /// Nothing where the kernel does not tell as Linux does.
    pub(crate) fn now() -> Option<Self> {
        let machine = read_to_string("/proc/stat").ok()?;
        let first_line = machine.lines().next()?;
        // User, nice, system, idle, waiting for a disk, two kinds of
        // interrupts, and what the host gave to other machines; what follows
        // is counted among these.
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

    /// The share of the machine that others have used since.
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
