//! One worker applies all windows, in the order of tuples. A large copy of data
//! is shared out before.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct Serial;

impl Scheduler for Serial {
    /// Always.
    fn divide(&self, _: &Workload<'_>, _: usize) -> Result<Division, Reason> {
        Ok(Division::Whole)
    }
}
