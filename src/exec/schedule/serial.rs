//! One worker applies all windows, in the order of tuples. A large copy of data
//! is shared out before.

use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::transfer::Transfer;
use super::super::workload::Workload;
use super::scheduler::{Reason, Scheduler, Stop};

pub(super) struct Serial;

impl Scheduler for Serial {
    fn gathers(&self) -> bool {
        true
    }

    /// Always.
    fn divide(&self, _: &Workload<'_>, _: usize) -> Result<Division, Reason> {
        Ok(Division::Whole)
    }

    fn run(
        &self,
        transfer: &Transfer<'_>,
        work: &Workload<'_>,
        division: Division,
        workers: &Workers<'_>,
    ) -> Result<(), Stop> {
        Ok(transfer.run_tiles(work, division, workers)?)
    }
}
