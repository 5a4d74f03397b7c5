//! Each worker has a range of destinations, and picks its tuples out of all of
//! them, in order.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct ByDestination;

impl Scheduler for ByDestination {
    /// Slices of different numbers share no element. Out of place each range copies
    /// its data. To share windows out by columns as well took up to 2.4 times as
    /// long where destinations fall into several ranges: each worker then reads all
    /// tuples, and parts of rows.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.tuples == 0 {
            return Err(Reason("there are no tuples"));
        }
        // Tasks keep the positions of their tuples in 32 bits.
        if u32::try_from(work.tuples).is_err() {
            return Err(Reason("there are too many tuples"));
        }
        let slices = usize::try_from(work.slices).unwrap_or(usize::MAX);
        Ok(Division::Destinations {
            repetitions: 1,
            parts: parts.clamp(1, slices.max(1)),
        })
    }
}
