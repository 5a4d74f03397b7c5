//! Sizes that the choice of a schedule, the workload, the division of a schedule, the walk
//! over windows and the path of small calls depend on.
//!
//! `docs/notes/2026-11-22-thresholds.md` gives the measurement behind each number, and says
//! which numbers are arguments without a measurement.

/// Bytes below which no schedule is chosen. A call that touches fewer bytes ends before a
/// choice is worth its cost.
pub(super) const SMALL_CALL_BYTES: usize = 512 << 10;

/// Windows of a call from which on a kept plan's sample of destinations is inspected. Such
/// a call costs about 5 microseconds, and the inspection costs 0.3. With at least
/// `WINDOWS_PER_DESTINATION` windows for each destination, the call moves only the last one.
pub(super) const MANY_WINDOWS: usize = 1024;
pub(super) const WINDOWS_PER_DESTINATION: usize = 64;

/// Fraction of ordered windows that begin in the cache line of the previous window, from which
/// on no window is prefetched. Windows that begin 48 bytes apart reach this fraction. So do
/// windows that mostly repeat.
pub(super) const DENSE: f64 = 0.25;

/// Bytes that a copy of data touches, from which on all workers share the copy although one
/// worker applies the updates. A sleeping worker begins about 30 microseconds late.
pub(super) const PARALLEL_BYTES: usize = 12 << 20;

/// Bytes of a window, for each worker, from which on the grouped schedule cuts windows into
/// columns. With few destinations and many duplicates, a call mostly reads updates. Workers
/// that divide narrower rows among them read no faster.
pub(super) const WIDE_BYTES: usize = 1024;

/// Number of workers from which on partitions are never enlarged to read updates in order
/// (`PAGED_BYTES`).
pub(super) const READING_PARTS: usize = 4;

/// Bytes of a window from which on a scatter streams windows, if they are beyond the caches.
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;

/// Ratio of the output's bytes to the bytes of the updates, from which on windows count as
/// beyond the caches. Such a call out of place copies data and writes windows by streaming
/// stores. For unordered updates, that is faster than finding last writes.
pub(super) const SPARSE: usize = 4;

/// Fewest bytes of a piece of work, and most pieces of a task. A worker that begins late, or
/// shares its core, then delays the others by one piece instead of its part of the call.
/// Eight pieces had no measurable cost. With sixteen, assignments of rows took up to 1.04 of
/// the time (a Xeon, Skylake).
pub(super) const PIECE_BYTES: usize = 256 * 1024;
pub(super) const MOST_PIECES: usize = 8;

/// Bytes from which on a run of a gather's result is streamed.
pub(super) const STREAMED_RUN_BYTES: usize = 1024;

/// Most bytes of scratch memory for detecting duplicates before windows are streamed: a
/// bitmap, or a sort of 32768 tuples.
pub(super) const STREAMED_DETECTION_BYTES: usize = 512 * 1024;

/// Bytes of the output that one partition covers: half of a common second-level cache.
pub(super) const PARTITION_BYTES: u64 = 512 * 1024;

/// Bytes of updates above which partitions are large, to read updates in their order. Two
/// other conditions apply. A window must have at least `READ_THROUGH_BYTES` bytes. Updates
/// must have at least `UPDATES_OF_REGION` times the bytes of their region of the output.
///
/// The page table of such updates has 8 bytes for each 4 KiB, and exceeds a second-level
/// cache. The page table of a partition with half of `PAGED_BYTES` fits. This was measured
/// with sums of rows, 2 GiB of updates and two workers. Large partitions took 0.6 to 0.8 of
/// the serial time. Partitions of half a cache took 1.1 to 1.5 of it.
pub(super) const PAGED_BYTES: u64 = 512 << 20;
pub(super) const READ_THROUGH_BYTES: usize = 256;
pub(super) const UPDATES_OF_REGION: u64 = 4;

/// Most bytes of a worker's private copy of all windows: half of a common second-level cache
/// for single elements (`PRIVATE_BYTES`), all of it for rows (`PRIVATE_ROW_BYTES`).
pub(super) const PRIVATE_BYTES: u64 = 512 * 1024;
pub(super) const PRIVATE_ROW_BYTES: u64 = 1024 * 1024;
