//! The names of the ways to divide a scatter among workers.

use crate::names::named;

/// How the work of a scatter is divided among workers.
///
/// All give the same bits. The crate chooses one for each call; forcing one is
/// meant for tests and measurements
/// ([`Execution::force_schedule`](crate::Execution::force_schedule)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// One worker applies all updates, in the order of the tuples. A large copy
    /// of data is shared out before.
    Serial,
    /// Each worker takes some repetitions of the leading axes.
    ByBatch,
    /// Each worker takes some tuples. Only where destinations are distinct, where
    /// none is less than the one before, or where parts of the list share no
    /// destination by its shape.
    ByTuple,
    /// The last tuple of each destination is found first, and only those are
    /// moved. Only without a reduction.
    LastWrite,
    /// Each worker takes a part of every window, and all tuples in order.
    ByColumn,
    /// Each worker takes a range of destinations and picks its tuples out of
    /// all of them.
    ByDestination,
    /// Tuples are first sorted, in order, into ranges of destinations; each
    /// range is then one worker's.
    ByPartition,
    /// Tuples are first sorted, in order, by destination; each destination's
    /// updates are then combined one after another while its window stays
    /// close.
    Grouped,
    /// Each worker combines consecutive tuples in a copy of its own, and the
    /// copies are combined in order. Only where that keeps the bits.
    Private,
}

named! { Schedule, "schedule":
    Serial => "serial",
    ByBatch => "by batch" | "by_batch",
    ByTuple => "by tuple" | "by_tuple",
    LastWrite => "last write" | "last_write",
    ByColumn => "by column" | "by_column",
    ByDestination => "by destination" | "by_destination",
    ByPartition => "by partition" | "by_partition",
    Grouped => "grouped",
    Private => "private",
}
