//! Names of the schedules, which divide the work of a scatter or a gather among workers.

use crate::names::named;

/// A way to divide the work of a scatter or a gather among workers.
///
/// All schedules give results with the same bits. The crate chooses a schedule for each call. For
/// tests and measurements, a caller can force a schedule
/// ([`Execution::force_schedule`](crate::Execution::force_schedule)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// One worker applies all updates in the order of the tuples. If `data` is large, all workers
    /// first copy `data` to the output.
    Serial,
    /// Each worker applies all tuples of some repetitions (positions along the leading axes).
    ByBatch,
    /// Each worker applies a part of the list of tuples. A scatter must meet one of three
    /// conditions. All destinations are distinct, or no destination number is less than the
    /// preceding number, or the shape of the list gives parts that share no destination.
    ByTuple,
    /// The crate first finds the last tuple of each destination. The crate then moves the updates
    /// of these last tuples only. This schedule requires
    /// [`Reduction::None`](crate::Reduction::None).
    LastWrite,
    /// Each worker applies all tuples, in order, to some columns of every window. (A window is the
    /// slice of a tensor that one tuple addresses.)
    ByColumn,
    /// Each worker applies the tuples of a range of destinations. The worker finds these tuples by
    /// reading the whole list.
    ByDestination,
    /// The crate first sorts the tuples into ranges of destinations, with a stable sort. Each
    /// range is then applied by one worker.
    ByPartition,
    /// The crate first sorts the tuples by destination, with a stable sort. A worker then combines
    /// all updates of one destination while the window of this destination is in the cache.
    Grouped,
    /// Each worker combines the updates of consecutive tuples in a private copy of all windows (the
    /// slices of the output that tuples can address). The copies are then merged with the output,
    /// in the order of the tuples. This schedule requires a reduction for which the merged result
    /// has the same bits as the result of the sequential loop. This condition holds for a sum,
    /// difference, product, minimum or maximum of integers, and for a minimum or maximum of floats.
    Private,
}

named! { Schedule, "schedule":
    Serial => "serial",
    ByBatch => "by batch",
    ByTuple => "by tuple",
    LastWrite => "last write",
    ByColumn => "by column",
    ByDestination => "by destination",
    ByPartition => "by partition",
    Grouped => "grouped",
    Private => "private",
}
