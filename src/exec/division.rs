//! The ways in which a transfer can be divided into tasks.
//!
//! Knows numbers of parts. Knows nothing of plans, memory or threads: a
//! division becomes [tiles](super::tile) when it is held against a transfer.

use std::fmt;

/// How the work of a transfer is divided. Each task has one part of what the
/// variant names, and all of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// One task has everything.
    Whole,
    /// Parts of the repetitions.
    Repetitions { parts: usize },
    /// Parts of the list of tuples.
    Tuples { parts: usize, cut: Cut },
    /// Columns of every window.
    Columns { parts: usize },
    /// Ranges of destination numbers, in parts of the repetitions.
    Destinations { repetitions: usize, parts: usize },
    /// Parts of a list of tuples that is sorted by destination, cut between
    /// destinations.
    Sorted {
        repetitions: usize,
        parts: usize,
        columns: usize,
    },
    /// Ranges of `1 << shift` destination numbers. As many tasks as there are
    /// parts take the next range when they are done with one.
    Partitions { parts: usize, shift: u32 },
    /// Parts of the list of tuples, each combined in a copy of all windows;
    /// then ranges of destination numbers, in which copies are merged.
    Copies { parts: usize },
}

/// Where a list of tuples may be cut, so that parts share no destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Anywhere: destinations are distinct, or tuples are what is written.
    Anywhere,
    /// Between tuples of different destinations, in a list that is ordered by
    /// destination.
    BetweenDestinations,
    /// Between strands: equal stretches of the list that share no destination
    /// by the shape of the list alone.
    BetweenStrands,
}

impl Division {
    /// Number of tasks that a pool is given.
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

    /// The same in so many times as many parts, for tasks to take one by one, where that
    /// takes no more work in all: not where each goes through all tuples.
    pub(crate) fn finer(mut self, pieces: usize) -> Self {
        match &mut self {
            Self::Repetitions { parts }
            | Self::Tuples { parts, .. }
            | Self::Sorted { parts, .. } => {
                *parts *= pieces;
            }
            _ => {}
        }
        self
    }

    /// Whether windows are cut into columns.
    pub(crate) fn cuts_windows(self) -> bool {
        match self {
            Self::Columns { .. } => true,
            Self::Sorted { columns, .. } => columns > 1,
            _ => false,
        }
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
