//! The schedule by destination: each worker takes a range of destinations, and selects the tuples
//! of its range from the whole list, in order.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct ByDestination;

impl Scheduler for ByDestination {
    /// Divides the destination numbers into ranges, one for each task. Slices with different
    /// destination numbers share no element. Out of place, the task of each range usually also
    /// copies the data of the range (`fused_copy`).
    ///
    /// A task applies whole windows. Windows are not cut into columns (parts of every window),
    /// because each worker would then read all tuples and parts of rows. Calls with several ranges
    /// of destinations took up to 2.4 times as long with columns as without.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.tuples == 0 {
            return Err(Reason("there are no tuples"));
        }
        // Tasks store the positions of their tuples as 32-bit numbers.
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
