//! What a schedule is: its trait, and what it says of itself.
//!
//! Knows divisions, preparations and reasons. Knows no schedule.

use std::fmt;

use super::super::division::Division;
use super::super::transfer::Divided;
use super::super::workload::{Streaming, Workload};
use crate::error::ScatterError;

/// A way to divide transfers into tasks that gives the bits of the sequential
/// loop.
pub(super) trait Scheduler: Sync {
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

    /// Prepares and runs it. Unless it [stops](Stop), all is written. By itself
    /// tile by tile, each in the order of its tuples.
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        Ok(divided.run_tiles()?)
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
    pub(super) const NOTHING: Self = Self::new(Step::Nothing, 0);

    pub(super) const fn new(step: Step, bytes: usize) -> Self {
        Self { step, bytes }
    }

    /// That of windows which are written in the order of tuples.
    pub(super) fn of_streaming(work: &Workload<'_>) -> Self {
        match work.streaming() {
            Streaming::IfDistinct => Self::new(Step::LookToStream, work.detection_bytes),
            Streaming::Never | Streaming::Always => Self::NOTHING,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none",
            Self::LookToStream => "detects duplicates, for streaming stores",
            Self::LookForDuplicates => "detects duplicates",
            Self::FindLastWrites => "finds the last writes",
            Self::Sort => "sorts tuples by destination",
            Self::Partition => "sorts tuples into partitions",
            Self::TakeCopies => "allocates private copies",
        })
    }
}

/// Why a schedule is not taken, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(in super::super) &'static str);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Why a schedule did not run.
#[derive(Debug)]
pub(in super::super) enum Stop {
    /// Two tuples have one destination. Nothing is written.
    Duplicates,
    /// An allocation failed. Nothing is written.
    OutOfMemory(ScatterError),
    /// The call has failed.
    Failed(ScatterError),
}

impl Stop {
    /// That of an error before the first write.
    pub(super) fn unprepared(error: ScatterError) -> Self {
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
