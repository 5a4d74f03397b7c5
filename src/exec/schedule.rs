//! The schedules, each in a file of its own: when it keeps the bits, how it
//! divides a transfer, what it prepares and how it runs.
//!
//! A schedule is added by its file, its line in [`of`], and its name in
//! [`Schedule`]; which calls it is worth is [`choice`](super::choice)'s affair.

mod by_batch;
mod by_column;
mod by_destination;
mod by_partition;
mod by_tuple;
mod grouped;
mod last_write;
mod private;
mod scheduler;
mod serial;

use self::scheduler::{Preparation, Scheduler};
use super::division::Division;
use super::transfer::Divided;
use super::workload::{Direction, Workload};
use crate::schedule::Schedule;

pub(super) use self::by_partition::{partitions, shift as partition_shift};
pub(crate) use self::scheduler::Reason;
pub(super) use self::scheduler::{Step, Stop};

/// The one list of schedules.
fn of(schedule: Schedule) -> &'static dyn Scheduler {
    match schedule {
        Schedule::Serial => &serial::Serial,
        Schedule::ByBatch => &by_batch::ByBatch,
        Schedule::ByTuple => &by_tuple::ByTuple,
        Schedule::LastWrite => &last_write::LastWrite,
        Schedule::ByColumn => &by_column::ByColumn,
        Schedule::ByDestination => &by_destination::ByDestination,
        Schedule::ByPartition => &by_partition::ByPartition,
        Schedule::Grouped => &grouped::Grouped,
        Schedule::Private => &private::PrivateCopies,
    }
}

/// A schedule with its division of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) schedule: Schedule,
    pub(crate) division: Division,
    pub(crate) preparation: Preparation,
}

impl Candidate {
    /// What the schedule makes of a transfer, for so many workers.
    pub(super) fn new(
        schedule: Schedule,
        work: &Workload<'_>,
        parts: usize,
    ) -> Result<Self, Reason> {
        use Schedule::{ByBatch, ByColumn, ByTuple, Serial};
        let gathers = matches!(schedule, Serial | ByBatch | ByTuple | ByColumn);
        if work.direction == Direction::Gather && !gathers {
            return Err(Reason("gathers write each window once, in order"));
        }
        let scheduler = of(schedule);
        let division = scheduler.divide(work, parts)?;
        Ok(Self {
            schedule,
            division,
            preparation: scheduler.preparation(work, division),
        })
    }

    /// Prepares and runs it, and multiplies the output where that is left to do.
    pub(super) fn run(&self, undivided: &Divided<'_, '_>) -> Result<(), Stop> {
        let divided = Divided {
            division: self.division,
            ..*undivided
        };
        of(self.schedule).run(&divided)?;
        Ok(divided.multiply_after()?)
    }
}
