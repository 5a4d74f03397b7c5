//! Divisions: the ways to divide a transfer into tasks.
//!
//! A [`Division`] states which part of a transfer is cut, and into how many parts. Applied to a
//! transfer, a division gives one [tile](super::tile) per task: the part of the transfer that the
//! task runs. This module knows numbers of parts. This module does not know plans, memory or
//! threads.

use std::fmt;

/// The way in which the work of a transfer is divided. A variant names what is cut into parts.
/// Each task has one of these parts. Everything else is not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// One task has the whole transfer.
    Whole,
    /// Parts of the repetitions.
    Repetitions { parts: usize },
    /// Parts of the list of tuples.
    Tuples { parts: usize, cut: Cut },
    /// Parts of every window.
    Columns { parts: usize },
    /// Ranges of destination numbers, combined with parts of the repetitions. A task has one range
    /// of destinations in one part of the repetitions.
    Destinations { repetitions: usize, parts: usize },
    /// Parts of the list of tuples sorted by destination, combined with parts of the repetitions
    /// and parts of every window (columns). The list is cut between destinations.
    Sorted {
        repetitions: usize,
        parts: usize,
        columns: usize,
    },
    /// Ranges of `1 << shift` destination numbers. A task takes the next range when it has
    /// finished a range. There are at most `parts` tasks.
    Partitions { parts: usize, shift: u32 },
    /// Parts of the list of tuples, each combined in a private copy of all windows. The copies
    /// are then merged in `parts` ranges of destination numbers.
    Copies { parts: usize },
}

/// The places at which a list of tuples may be cut. Two parts of a list that is cut at these places
/// share no destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before any tuple. Either all tuples of a scatter have distinct destinations, or the call is
    /// a gather: each tuple of a gather writes a separate window of the output.
    Anywhere,
    /// Between tuples of different destinations. The list is in ascending order of
    /// destinations.
    BetweenDestinations,
    /// Between strands, which are equally long parts of the list. The shape of the index tensor
    /// alone proves that strands share no destination.
    BetweenStrands,
}

impl Division {
    /// Returns the number of tasks for the pool.
    pub(crate) fn tasks(self) -> usize {
        match self {
            Self::Whole => 1,
            Self::Repetitions { parts }
            | Self::Tuples { parts, .. }
            | Self::Columns { parts }
            | Self::Partitions { parts, .. }
            | Self::Copies { parts } => parts,
            Self::Destinations { repetitions, parts } => repetitions * parts,
            Self::Sorted {
                repetitions,
                parts,
                columns,
            } => repetitions * parts * columns,
        }
    }

    /// Returns the same division with `pieces` times the number of parts, which tasks take one
    /// by one. A division whose total work would increase stays as it is. For example, each
    /// range of destinations requires a pass over all tuples.
    pub(crate) fn finer(mut self, pieces: usize) -> Self {
        if let Self::Repetitions { parts }
        | Self::Tuples { parts, .. }
        | Self::Sorted { parts, .. } = &mut self
        {
            *parts *= pieces;
        }
        self
    }

    /// Whether windows are cut into columns.
    pub(crate) fn cuts_windows(self) -> bool {
        matches!(
            self,
            Self::Columns { .. } | Self::Sorted { columns: 2.., .. }
        )
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Whole => f.write_str("one task has all the work"),
            Self::Repetitions { parts } => write!(f, "{parts} parts of the repetitions"),
            Self::Tuples { parts, cut } => {
                write!(f, "{parts} parts of the tuples, cut {cut}")
            }
            Self::Columns { parts } => write!(f, "{parts} parts of every window"),
            Self::Destinations { repetitions, parts } => write!(
                f,
                "{repetitions} parts of the repetitions x {parts} ranges of destinations"
            ),
            Self::Sorted {
                repetitions,
                parts,
                columns,
            } => write!(
                f,
                "{repetitions} parts of the repetitions x {parts} of the sorted tuples x {columns} of every window"
            ),
            Self::Partitions { parts, shift } => write!(
                f,
                "ranges of {} destinations, {parts} at a time",
                1_u64 << shift
            ),
            Self::Copies { parts } => write!(f, "{parts} private copies"),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anywhere => "anywhere",
            Self::BetweenDestinations => "between destinations",
            Self::BetweenStrands => "between strands",
        })
    }
}
