//! Each worker has a range of destinations, and picks its tuples out of all of
//! them, in order.

use super::super::division::Division;
use super::super::thresholds::COLUMN_BYTES;
use super::super::workload::Workload;
use super::scheduler::{Reason, Scheduler};

pub(super) struct ByDestination;

impl Scheduler for ByDestination {
    /// Slices of different numbers share no element. Columns as wide as they
    /// should be, and ranges of destinations for the workers that are left: out
    /// of place ranges alone, of which each copies its data.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.tuples == 0 {
            return Err(Reason("there are no tuples"));
        }
        // Tasks keep the positions of their tuples in 32 bits.
        if u32::try_from(work.tuples).is_err() {
            return Err(Reason("there are too many tuples"));
        }
        let columns = if work.in_place {
            (work.window_bytes() / COLUMN_BYTES)
                .clamp(1, parts)
                .min(work.columns)
        } else {
            1
        };
        let slices = usize::try_from(work.slices).unwrap_or(usize::MAX);
        Ok(Division::Destinations {
            repetitions: 1,
            ranges: (parts / columns).clamp(1, slices.max(1)),
            columns,
        })
    }
}
