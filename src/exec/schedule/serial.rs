//! The serial schedule: one worker applies all windows in the order of the tuples. A call out of
//! place first copies data to the output. If the copy of data is large, all workers share the work
//! of copying.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct Serial;

impl Scheduler for Serial {
    fn gathers(&self) -> bool {
        true
    }

    /// Always returns a division with one task. If an operation must process all updates of one
    /// destination together, `choice::choose` does not try the serial schedule.
    fn divide(&self, _: &Workload<'_>, _: usize) -> Result<Division, Reason> {
        Ok(Division::Whole)
    }
}
