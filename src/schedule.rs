//! Names of the schedules, the ways to divide a scatter among workers.

use crate::names::named;

/// A way to divide the work of a scatter among workers.
///
/// All schedules give the same bits. The crate chooses a schedule for each call. A caller can
/// force a schedule for tests and measurements
/// ([`Execution::force_schedule`](crate::Execution::force_schedule)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// One worker applies all updates in the order of the tuples. If `data` is large, all workers
    /// first copy `data` to the output.
    Serial,
    /// Each worker takes some repetitions of the leading axes.
    ByBatch,
    /// Each worker takes some tuples. One of three conditions must hold: destinations are
    /// distinct, no destination number is less than the previous one, or the shape of the
    /// list makes its parts share no destination.
    ByTuple,
    /// The crate first finds the last tuple of each destination, and then moves the updates
    /// of these tuples only. This schedule requires [`Reduction::None`](crate::Reduction::None).
    LastWrite,
    /// Each worker takes a part of every window, and applies all tuples in order.
    ByColumn,
    /// Each worker takes a range of destinations, and selects its tuples from the whole list.
    ByDestination,
    /// The crate first sorts the tuples, stably, into ranges of destinations. One worker then
    /// applies each range.
    ByPartition,
    /// The crate first sorts the tuples, stably, by destination. A worker then combines all
    /// updates of one destination while the window of this destination is in the cache.
    Grouped,
    /// Each worker combines consecutive tuples in a private copy, and the copies are merged in
    /// order. This schedule requires that merging keeps the bits.
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
