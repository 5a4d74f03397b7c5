//! Sizes that the choice of a schedule, the workload, the division of a schedule, the walk
//! over windows and the path of small calls depend on.
//!
//! `docs/notes/2026-11-22-thresholds.md` gives the measurement behind each number, and says
//! which numbers are arguments without a measurement.

/// Bytes below which a call runs serially without a choice of a schedule. A call that touches
/// fewer bytes ends before the choice is worth its cost.
pub(super) const SMALL_CALL_BYTES: usize = 512 << 10;

/// Minimum number of windows in a small call of a kept plan that inspects the plan's sample of
/// destinations. A call with this number of windows costs about 5 microseconds, and the inspection
/// costs 0.3 microseconds.
pub(super) const MANY_WINDOWS: usize = 1024;
/// Minimum number of windows per destination at which such a call moves only the last window of
/// each destination.
pub(super) const WINDOWS_PER_DESTINATION: usize = 64;

/// Fraction of windows that begin in the cache line of the previous window. The destinations are
/// in ascending order. From this fraction on, no window is prefetched. Windows that begin 48 bytes
/// apart reach this fraction. Windows that mostly repeat the previous window reach it too.
pub(super) const DENSE: f64 = 0.25;

/// Minimum bytes that a copy of data reads and writes for a copy by all workers, if one worker
/// applies the updates. A sleeping worker begins about 30 microseconds late.
pub(super) const PARALLEL_BYTES: usize = 12 << 20;

/// Minimum bytes of a window per worker at which the grouped schedule cuts windows into columns.
/// A call with few destinations and many duplicates mostly reads updates. Cutting narrower windows
/// among several workers does not make these reads faster.
pub(super) const WIDE_BYTES: usize = 1024;

/// Minimum number of workers at which partitions are never enlarged to read updates in order (see
/// [`PAGED_BYTES`]).
pub(super) const READING_PARTS: usize = 4;

/// Minimum bytes of a window that a scatter writes by streaming stores. The windows must also be
/// beyond the caches: the windows of the call are large in total and are not in a cache.
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;

/// Minimum ratio of the output's bytes to the bytes of the updates at which windows count as
/// beyond the caches. A call out of place with at least this ratio copies data and writes windows
/// by streaming stores. For unordered updates, this is faster than finding last writes.
pub(super) const SPARSE: usize = 4;

/// Minimum bytes of a piece of work. The work of a task is cut into pieces, which workers take one
/// by one. A worker that begins late, or shares its core, then delays the other workers by one
/// piece instead of its part of the call.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// Maximum number of pieces per task. Eight pieces had no measurable cost. With sixteen pieces,
/// assignments of rows took up to 1.04 of the time without pieces (a Xeon, Skylake).
pub(super) const MOST_PIECES: usize = 8;

/// Minimum bytes of a run of a gather's result that is written by streaming stores.
pub(super) const STREAMED_RUN_BYTES: usize = 1024;

/// Maximum bytes of scratch memory for detecting duplicate destinations before windows are written
/// by streaming stores. The memory is for a bitmap, or for a sort of 32768 tuples.
pub(super) const STREAMED_DETECTION_BYTES: usize = 512 * 1024;

/// Bytes of the output that one partition of rows covers: half of a second-level cache of 1 MiB, a
/// typical size. A partition of single elements covers half of these bytes.
pub(super) const PARTITION_BYTES: u64 = 512 * 1024;

/// Minimum number of tuples for each cache line of a partition's region at which the region is
/// prefetched in order, before the partition is applied.
pub(super) const FETCHED_TUPLES: usize = 3;

/// Number of tuples that are applied between two steps of the prefetch of the next region, if the
/// region of these tuples was prefetched. The number is an argument, not a measurement.
pub(super) const FETCHING_TUPLES: usize = 128;

/// Bytes of updates above which partitions are enlarged, so that workers read updates in the order
/// of the tuples. Two other conditions apply. A window must have at least `READ_THROUGH_BYTES`
/// bytes. The updates must have at least `UPDATES_OF_REGION` times the bytes of the output region
/// that they are written to.
///
/// A page table has 8 bytes for each 4 KiB. The page table of more than `PAGED_BYTES` of updates
/// exceeds a second-level cache. An enlarged partition covers at most about half of `PAGED_BYTES`
/// of the output, and the page table of this region fits in the cache. Measured with sums of rows,
/// 2 GiB of updates and two workers: enlarged partitions took 0.6 to 0.8 of the serial time, and
/// partitions of half a cache took 1.1 to 1.5 of the serial time.
pub(super) const PAGED_BYTES: u64 = 512 << 20;
pub(super) const READ_THROUGH_BYTES: usize = 256;
pub(super) const UPDATES_OF_REGION: u64 = 4;

/// Maximum bytes of a worker's private copy of all windows. For windows of single elements
/// (`PRIVATE_BYTES`), the maximum is half of a second-level cache of 1 MiB, a typical size. For
/// rows (`PRIVATE_ROW_BYTES`), the maximum is the whole cache.
pub(super) const PRIVATE_BYTES: u64 = 512 * 1024;
pub(super) const PRIVATE_ROW_BYTES: u64 = 1024 * 1024;
