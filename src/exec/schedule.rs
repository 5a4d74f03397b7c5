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
mod serial;

use std::fmt;

use super::division::Division;
use super::tasks::Workers;
use super::transfer::Transfer;
use super::workload::{Direction, Streaming, Workload};
use crate::error::ScatterError;
use crate::schedule::Schedule;

pub(super) use by_partition::shift as partition_shift;

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

/// A way to divide transfers into tasks that gives the bits of the sequential
/// loop.
trait Scheduler: Sync {
    /// Whether it serves gathers as well.
    fn gathers(&self) -> bool {
        false
    }

    /// The division among so many workers, or why it does not apply or would not
    /// keep the bits. Looks at no tuple but those of the sample.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason>;

    /// What has to be worked out before the first write.
    fn preparation(&self, work: &Workload<'_>, division: Division) -> Preparation {
        let _ = division;
        Preparation::of_streaming(work)
    }

    /// Prepares and runs it. Unless it [stops](Stop), all is written.
    fn run(
        &self,
        transfer: &Transfer<'_>,
        work: &Workload<'_>,
        division: Division,
        workers: &Workers<'_>,
    ) -> Result<(), Stop>;
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

    /// Prepares and runs it.
    pub(super) fn run(
        &self,
        transfer: &Transfer<'_>,
        work: &Workload<'_>,
        workers: &Workers<'_>,
    ) -> Result<(), Stop> {
        of(self.schedule).run(transfer, work, self.division, workers)
    }
}

/// What a schedule works out before the first write, and the bytes of memory
/// that it takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub(crate) step: Step,
    pub(crate) bytes: usize,
}

/// A step before the first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Looks for duplicates; if there are any, windows are not streamed.
    LookToStream,
    /// Looks for duplicates; if there are any, the schedule is not run.
    LookForDuplicates,
    /// Sorts out the last tuple of each destination.
    FindLastWrites,
    /// Sorts tuples by destination.
    Sort,
    /// Sorts tuples into ranges of destinations.
    Partition,
    /// Takes memory for private copies.
    TakeCopies,
}

impl Preparation {
    const NOTHING: Self = Self {
        step: Step::Nothing,
        bytes: 0,
    };

    /// That of windows which are written in the order of tuples.
    fn of_streaming(work: &Workload<'_>) -> Self {
        match work.streaming() {
            Streaming::IfDistinct => Self {
                step: Step::LookToStream,
                bytes: work.looking_bytes,
            },
            Streaming::Never | Streaming::Always => Self::NOTHING,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing to prepare",
            Self::LookToStream => "looks for duplicates, to stream",
            Self::LookForDuplicates => "looks for duplicates",
            Self::FindLastWrites => "finds the last writes",
            Self::Sort => "sorts tuples by destination",
            Self::Partition => "sorts tuples into partitions",
            Self::TakeCopies => "takes private copies",
        })
    }
}

/// Why a schedule is not taken, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(super) &'static str);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Why a schedule did not run.
#[derive(Debug)]
pub(super) enum Stop {
    /// Two tuples have one destination. Nothing is written.
    Duplicates,
    /// An allocation failed. Nothing is written.
    OutOfMemory(ScatterError),
    /// The call has failed.
    Failed(ScatterError),
}

impl Stop {
    /// That of an error before the first write.
    fn unprepared(error: ScatterError) -> Self {
        match error {
            ScatterError::OutOfMemory { .. } => Self::OutOfMemory(error),
            error => Self::Failed(error),
        }
    }
}

impl From<ScatterError> for Stop {
    fn from(error: ScatterError) -> Self {
        Self::Failed(error)
    }
}
