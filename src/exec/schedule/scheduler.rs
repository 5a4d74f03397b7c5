//! The trait of all schedules, and the types that its functions return.
//!
//! Knows divisions, preparations and reasons. Knows no single schedule.

use std::fmt;

use super::super::division::Division;
use super::super::transfer::Divided;
use super::super::workload::{Streaming, Workload};
use crate::error::ScatterError;

/// A way to divide transfers into tasks. Every schedule gives the bits of the sequential reference
/// loop.
pub(super) trait Scheduler: Sync {
    /// Whether the schedule divides gathers too.
    fn gathers(&self) -> bool {
        false
    }

    /// Returns how this schedule divides a transfer among `parts` workers. Otherwise returns the
    /// reason why this schedule cannot run the transfer, or would not give the bits of the
    /// sequential reference loop. Reads only the sample of the list of tuples, no other tuple.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason>;

    /// Returns what [`Self::run`] computes before its first write.
    fn preparation(&self, work: &Workload<'_>, _division: Division) -> Preparation {
        Preparation::of_streaming(work)
    }

    /// Prepares and runs the schedule. Writes the whole result, unless it returns a [`Stop`].
    /// The default applies the windows of each tile in the order of its tuples.
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        Ok(divided.run_tiles()?)
    }
}

/// The step of a schedule before the first write, and the maximum bytes of memory that the step
/// needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub(crate) step: Step,
    pub(crate) bytes: usize,
}

/// A step before the first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Detects duplicates. If there are duplicates, windows are not streamed.
    DetectToStream,
    /// Detects duplicates. If there are duplicates, the schedule does not run.
    DetectDuplicates,
    /// Finds the last tuple of each destination by a sort.
    FindLastWrites,
    /// Sorts tuples by destination.
    Sort,
    /// Sorts tuples, stably, into ranges of destinations.
    Partition,
    /// Takes scratch memory for private copies.
    TakeCopies,
}

impl Preparation {
    pub(super) const NOTHING: Self = Self::new(Step::Nothing, 0);

    pub(super) const fn new(step: Step, bytes: usize) -> Self {
        Self { step, bytes }
    }

    /// Returns the preparation of a schedule that writes windows in the order of tuples. Such a
    /// schedule may have to detect duplicates before it streams.
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

/// The reason why a schedule is not taken, as a short clause for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(in super::super) &'static str);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The reason why a schedule did not run.
#[derive(Debug)]
pub(in super::super) enum Stop {
    /// Two tuples have one destination. Nothing is written.
    Duplicates,
    /// An allocation failed. Nothing is written.
    OutOfMemory(ScatterError),
    /// The call has failed. No other schedule is tried.
    Failed(ScatterError),
}

impl Stop {
    /// Converts an error before the first write of a schedule. After a failed allocation, the next
    /// schedule is tried.
    pub(super) fn unprepared(error: ScatterError) -> Self {
        match error {
            ScatterError::OutOfMemory { .. } => Self::OutOfMemory(error),
            error => Self::Failed(error),
        }
    }
}

impl From<ScatterError> for Stop {
    /// Converts an error that may come after the first write. No other schedule is tried, because
    /// it would apply updates twice.
    fn from(error: ScatterError) -> Self {
        Self::Failed(error)
    }
}
