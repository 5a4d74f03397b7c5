//! Thresholds that decide how a transfer is divided and how its windows are written.
//!
//! For each threshold, `docs/notes/2026-11-22-thresholds.md` gives a measurement, or says that the
//! number was chosen without a measurement.

/// Bytes below which a call usually runs serially: choosing a schedule would cost more time than a
/// better schedule saves. `Sizes::are_small` says which bytes count.
pub(super) const SMALL_CALL_BYTES: usize = 512 << 10;

/// Minimum number of windows at which a small assignment by a kept plan inspects the plan's sample
/// of destinations. A call with this number of windows costs about 5 microseconds, and the
/// inspection costs 0.3 microseconds.
pub(super) const MANY_WINDOWS: usize = 1024;
/// Minimum estimated number of tuples per destination at which a small call that inspects the
/// sample chooses a schedule, instead of running serially. A schedule that moves only the last
/// window of each destination is then faster.
pub(super) const WINDOWS_PER_DESTINATION: usize = 64;

/// Fraction of windows that begin in the cache line of the previous window. From this fraction on,
/// a scatter with ascending destinations prefetches no window. Windows that begin 48 bytes apart
/// reach this fraction. Windows that mostly have the destination of the previous window reach it
/// too.
pub(super) const DENSE: f64 = 0.25;

/// Minimum bytes at which all workers copy data to the output, even if one worker then applies the
/// updates. Each copied byte counts twice, as read and as written. A sleeping worker begins about
/// 30 microseconds late.
pub(super) const PARALLEL_BYTES: usize = 12 << 20;

/// Minimum bytes of a window, divided by the number of workers, at which the grouped schedule cuts
/// windows into columns. A call with few destinations and many duplicates mostly reads updates. If
/// windows are narrower, cutting them among several workers does not make these reads faster.
pub(super) const WIDE_BYTES: usize = 1024;

/// Number of workers from which on partitions are not enlarged (see [`PAGED_BYTES`]).
pub(super) const READING_PARTS: usize = 4;

/// Minimum bytes of a window that a scatter in the order of tuples writes by streaming stores. The
/// windows of the call must also count as outside the caches (see [`SPARSE`]).
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;

/// Minimum ratio of the bytes of the output to the bytes of the updates, for a large scatter whose
/// updates replace the existing values. From this ratio on, the windows of the scatter count as
/// outside the caches. A large scatter out of place then copies data and writes windows by
/// streaming stores. For unordered updates, this is faster than finding last writes.
pub(super) const SPARSE: usize = 4;

/// Minimum bytes of a piece, if the work of a task is cut into several pieces. Workers take pieces
/// one by one. A worker that begins late, or shares its core, then delays the end of the call by
/// the time of one piece, instead of the time of a whole task.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// Maximum number of pieces per task. Eight pieces per task had no measurable cost. With sixteen,
/// assignments of rows took up to 1.04 times the time of uncut tasks (a Xeon, Skylake).
pub(super) const MOST_PIECES: usize = 8;

/// Minimum bytes of a run (innermost loop of a window) that a gather writes by streaming stores.
pub(super) const STREAMED_RUN_BYTES: usize = 1024;

/// Maximum bytes of scratch memory for detecting duplicate destinations before a scatter writes
/// windows by streaming stores. The memory is for a bitmap, or for a sort of 32768 tuples. If the
/// detection needs more memory, the scatter writes windows by plain stores.
pub(super) const STREAMED_DETECTION_BYTES: usize = 512 * 1024;

/// Intended bytes of the output region of one partition of rows: half of a second-level cache of
/// 1 MiB, a typical size. A partition of single elements has half of these bytes.
pub(super) const PARTITION_BYTES: u64 = 512 * 1024;

/// Minimum number of tuples of a partition for each cache line of its output region, at which the
/// region is prefetched in ascending order while the previous partition is applied.
pub(super) const FETCHED_TUPLES: usize = 3;

/// Number of tuples that are applied between two steps of the prefetch of the next partition's
/// region, if the region of the current partition was prefetched. If the region of the current
/// partition was not prefetched, the number is eight times as large. The number was chosen without
/// a measurement.
pub(super) const FETCHING_TUPLES: usize = 128;

/// Bytes of updates above which partitions are enlarged, so that workers read updates in the order
/// of the tuples. Partitions are enlarged only if three other conditions hold. A window has at
/// least `READ_THROUGH_BYTES` bytes. The updates have at least `UPDATES_OF_REGION` times the bytes
/// of the output region that they are written to. The call has fewer than `READING_PARTS` workers.
///
/// A page table has 8 bytes for each page of 4 KiB. The page table of more than `PAGED_BYTES` of
/// updates is larger than a second-level cache. An enlarged partition covers at most about half of
/// `PAGED_BYTES` of the output, and the page table of this region fits in the cache. Measured with
/// sums of rows, 2 GiB of updates and two workers: enlarged partitions took 0.6 to 0.8 of the
/// serial time. Partitions of half a second-level cache took 1.1 to 1.5 of the serial time.
pub(super) const PAGED_BYTES: u64 = 512 << 20;
pub(super) const READ_THROUGH_BYTES: usize = 256;
pub(super) const UPDATES_OF_REGION: u64 = 4;

/// Maximum bytes of a worker's private copy, which has one window for each destination number. If
/// windows are single elements, the maximum is `PRIVATE_BYTES`: half of a second-level cache of
/// 1 MiB, a typical size. For longer windows, the maximum is `PRIVATE_ROW_BYTES`: the whole cache.
pub(super) const PRIVATE_BYTES: u64 = 512 * 1024;
pub(super) const PRIVATE_ROW_BYTES: u64 = 1024 * 1024;
