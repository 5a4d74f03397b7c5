//! The schedules. The file of a schedule checks whether the schedule gives the bits of the
//! sequential reference loop. The file also divides a transfer, prepares data and runs the
//! schedule.
//!
//! A new schedule requires a file, a line in [`of`], a variant of [`Schedule`], and a cost in the
//! [cost model](super::cost). A schedule that can also run gathers implements
//! [`Scheduler::gathers`]. The file of a schedule does not state for which calls the schedule is
//! fast. Instead, [`choice`](super::choice) compares the predicted costs of the schedules.

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

/// Returns the implementation of `schedule`. This function contains the only list of
/// implementations.
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

/// A schedule that can run one given transfer. The candidate also has the division of the transfer
/// into tasks, and the preparation that the schedule needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) schedule: Schedule,
    pub(crate) division: Division,
    pub(crate) preparation: Preparation,
}

impl Candidate {
    /// Divides the transfer `work` by `schedule` for `parts` workers. Returns the reason if
    /// `schedule` cannot run this transfer.
    pub(super) fn new(
        schedule: Schedule,
        work: &Workload<'_>,
        parts: usize,
    ) -> Result<Self, Reason> {
        let scheduler = of(schedule);
        if work.direction == Direction::Gather && !scheduler.gathers() {
            return Err(Reason("gathers write each window once, in order"));
        }
        let division = scheduler.divide(work, parts)?;
        Ok(Self {
            schedule,
            division,
            preparation: scheduler.preparation(work, division),
        })
    }

    /// Prepares and runs the schedule. Then multiplies the output by the operation's factor, if the
    /// operation requires this and the tasks have not multiplied already.
    pub(super) fn run(&self, undivided: &Divided<'_, '_>) -> Result<(), Stop> {
        let divided = Divided {
            division: self.division,
            ..*undivided
        };
        of(self.schedule).run(&divided)?;
        Ok(divided.multiply_after()?)
    }
}
