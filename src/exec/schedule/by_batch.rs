//! The schedule by batch: each worker takes some repetitions, and applies all tuples of the list in
//! each of them, in order.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct ByBatch;

impl Scheduler for ByBatch {
    fn gathers(&self) -> bool {
        true
    }

    /// Repetitions share no element.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.repetitions <= 1 {
            return Err(Reason("there is one repetition"));
        }
        Ok(Division::Repetitions {
            parts: parts.min(work.repetitions),
        })
    }
}
