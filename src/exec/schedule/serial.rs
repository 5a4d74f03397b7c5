//! The serial schedule: one worker applies all windows in the order of the tuples. A call out of
//! place first copies data to the output. If this copy is large, it is divided among all workers.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct Serial;

impl Scheduler for Serial {
    fn gathers(&self) -> bool {
        true
    }

    /// The serial schedule applies to every transfer.
    fn divide(&self, _: &Workload<'_>, _: usize) -> Result<Division, Reason> {
        Ok(Division::Whole)
    }
}
