//! Divisions: the ways to divide a transfer into tasks.
//!
//! A [`Division`] states which part of a transfer is cut, and into how many parts. A division cuts
//! a transfer into [tiles](super::tile). One task runs each tile. This module knows numbers of
//! parts. This module does not know plans, memory or threads.

use std::fmt;

/// The way in which the work of a transfer is divided among tasks. Each variant names what is cut
/// into parts, for example the repetitions. Everything that a variant does not name stays whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// One task runs the whole transfer.
    Whole,
    /// Parts of the repetitions.
    Repetitions { parts: usize },
    /// Parts of the list of tuples. `cut` states where the list may be cut.
    Tuples { parts: usize, cut: Cut },
    /// Parts of every window.
    Columns { parts: usize },
    /// Ranges of destination numbers, combined with parts of the repetitions. A task applies the
    /// tuples of one of `parts` ranges of destination numbers in one of `repetitions` parts of the
    /// repetitions.
    Destinations { repetitions: usize, parts: usize },
    /// Parts of the list of tuples sorted by destination, combined with parts of the repetitions
    /// and parts of every window (columns). All tuples of one destination are in one part of the
    /// sorted list.
    Sorted {
        repetitions: usize,
        parts: usize,
        columns: usize,
    },
    /// Ranges of `1 << shift` destination numbers. There are at most `parts` tasks. A task that has
    /// finished one range takes another range, until all ranges are taken.
    Partitions { parts: usize, shift: u32 },
    /// Parts of the list of tuples. There is one task for each part. The task combines the updates
    /// of its part in a private copy of all windows of the output. When the private copies are
    /// merged, each task merges one of `parts` ranges of destination numbers.
    Copies { parts: usize },
}

/// Where a list of tuples may be cut into parts. Two parts of the list then never write the same
/// window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before any tuple. All tuples of a scatter have distinct destinations, or the call is a
    /// gather, in which each tuple writes a separate window of the output.
    Anywhere,
    /// Between two tuples of different destinations. Destination numbers never decrease along the
    /// list, so all tuples of one destination are adjacent.
    BetweenDestinations,
    /// Between strands. Strands are equally long parts of the list. The shape of the index tensor
    /// alone proves that two strands share no destination.
    BetweenStrands,
}

impl Division {
    /// Returns the number of tasks that the pool runs for this division.
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

    /// Returns this division with `pieces` times as many parts. Tasks take the parts one by one.
    /// Only parts of the repetitions, the tuples or the sorted tuples become smaller. All other
    /// divisions are returned unchanged. For example, in the schedule by destination, more ranges
    /// would require more passes over all tuples.
    pub(crate) fn finer(mut self, pieces: usize) -> Self {
        if let Self::Repetitions { parts }
        | Self::Tuples { parts, .. }
        | Self::Sorted { parts, .. } = &mut self
        {
            *parts *= pieces;
        }
        self
    }

    /// Whether the division cuts windows into columns.
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
