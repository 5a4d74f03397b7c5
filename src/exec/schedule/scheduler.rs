//! The trait of all schedules, and the types that its functions return.
//!
//! This module knows divisions, preparations and reasons. This module does not know any particular
//! schedule.

use std::fmt;

use super::super::division::Division;
use super::super::transfer::Divided;
use super::super::workload::{Streaming, Workload};
use crate::error::ScatterError;

/// A way to divide transfers into tasks. Every schedule gives the bits of the sequential reference
/// loop.
pub(super) trait Scheduler: Sync {
    /// Whether the schedule can run gathers in addition to scatters.
    fn gathers(&self) -> bool {
        false
    }

    /// Returns how this schedule divides a transfer among `parts` workers. Returns a [`Reason`] if
    /// this schedule cannot run the transfer, or would not give the bits of the sequential
    /// reference loop. The function reads no tuples of the list, except for a sample of the tuples.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason>;

    /// Returns the step that [`Self::run`] runs before its first write, and the memory for this
    /// step.
    fn preparation(&self, work: &Workload<'_>, _division: Division) -> Preparation {
        Preparation::of_streaming(work)
    }

    /// Prepares and runs the schedule. If the function succeeds, it has written the whole result.
    /// The default implementation applies the windows of each tile in the order of the tile's
    /// tuples.
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        Ok(divided.run_tiles()?)
    }
}

/// The step that a schedule runs before its first write, and the maximum bytes of memory that the
/// step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub(crate) step: Step,
    pub(crate) bytes: usize,
}

/// A step that a schedule runs before its first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Detects duplicates. If there are duplicates, the schedule writes windows without streaming
    /// stores.
    DetectToStream,
    /// Detects duplicates. If there are duplicates, the schedule does not run.
    DetectDuplicates,
    /// Sorts tuples to find the last tuple of each destination.
    FindLastWrites,
    /// Sorts tuples by destination.
    Sort,
    /// Sorts tuples into ranges of destinations. The tuples of a range keep their order.
    Partition,
    /// Gets scratch memory for private copies of the output's windows: from a cache of scratch
    /// buffers, or by an allocation.
    TakeCopies,
}

impl Preparation {
    pub(super) const NOTHING: Self = Self::new(Step::Nothing, 0);

    pub(super) const fn new(step: Step, bytes: usize) -> Self {
        Self { step, bytes }
    }

    /// Returns the preparation of a schedule that writes windows in the order of tuples. If
    /// streaming stores are allowed only without duplicates, the preparation detects duplicates.
    pub(super) fn of_streaming(work: &Workload<'_>) -> Self {
        match work.streaming() {
            Streaming::IfDistinct => Self::new(Step::DetectToStream, work.detection_bytes),
            Streaming::Never | Streaming::Always => Self::NOTHING,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none",
            Self::DetectToStream => "detects duplicates, for streaming stores",
            Self::DetectDuplicates => "detects duplicates",
            Self::FindLastWrites => "finds the last writes",
            Self::Sort => "sorts tuples by destination",
            Self::Partition => "sorts tuples into partitions",
            Self::TakeCopies => "allocates private copies",
        })
    }
}

/// The reason why a schedule is not used for a transfer, as a short clause for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(in super::super) &'static str);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The reason why a schedule did not complete.
#[derive(Debug)]
pub(in super::super) enum Stop {
    /// At least two tuples have the same destination. The schedule has written nothing.
    Duplicates,
    /// An allocation failed. The schedule has written nothing.
    OutOfMemory(ScatterError),
    /// The call has failed. No other schedule is tried.
    Failed(ScatterError),
}

impl Stop {
    /// Converts an error that occurred before the first write of a schedule. If the error is a
    /// failed allocation, the next candidate schedule is tried.
    pub(super) fn unprepared(error: ScatterError) -> Self {
        match error {
            ScatterError::OutOfMemory { .. } => Self::OutOfMemory(error),
            error => Self::Failed(error),
        }
    }
}

impl From<ScatterError> for Stop {
    /// Converts an error that may have occurred after the first write of a schedule. No other
    /// schedule is tried, because another schedule could apply some updates a second time.
    fn from(error: ScatterError) -> Self {
        Self::Failed(error)
    }
}
