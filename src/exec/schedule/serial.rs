//! The serial schedule: one worker applies all windows in the order of the tuples. If the
//! copy of data is large, all workers share the copy before.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct Serial;

impl Scheduler for Serial {
    /// The serial schedule applies to every transfer.
    fn divide(&self, _: &Workload<'_>, _: usize) -> Result<Division, Reason> {
        Ok(Division::Whole)
    }
}
