//! Sizes that schedules, the walk over windows and the small-call path go by.
//!
//! Every number here has a name and a unit; `docs/notes/2026-11-22-thresholds.md` says which of
//! them are measured, which are arguments, and which measurements speak against
//! one. The choice, the workload, the schedules' own divisions, the walk over
//! windows and the small-call path read them.

/// Calls that touch fewer bytes than this are over before a choice is worth
/// making.
pub(super) const SMALL_CALL_BYTES: usize = 512 << 10;

/// Windows of a call from which on a kept plan's sample of destinations is inspected. Such
/// a call takes about 5 microseconds, and the inspection takes 0.3. With at least
/// `WINDOWS_PER_DESTINATION` windows for each destination, the call moves only the last one.
pub(super) const MANY_WINDOWS: usize = 1024;
pub(super) const WINDOWS_PER_DESTINATION: usize = 64;

/// Share of ordered windows that begin in the cache line of the previous window, from which
/// on no window is prefetched. Windows that begin 48 bytes apart reach this share. So do
/// windows that mostly repeat.
pub(super) const DENSE: f64 = 0.25;

/// Bytes that a copy of data touches, from which on all workers share the copy although one
/// worker applies the updates. A sleeping worker begins about 30 microseconds late.
pub(super) const PARALLEL_BYTES: usize = 12 << 20;

/// Where few destinations have many duplicates, a call mostly reads updates. Workers that
/// divide each row among them read no faster, unless rows have `WIDE_BYTES` or there are
/// `READING_PARTS` workers.
pub(super) const WIDE_BYTES: usize = 1024;
pub(super) const READING_PARTS: usize = 4;

/// Bytes of a window from which on an out-of-place call streams windows if it streams data.
/// Streaming is faster than finding last writes where updates are unordered and the output
/// is at least `SPARSE` times as large as they are.
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;
pub(super) const SPARSE: usize = 4;

/// Fewest bytes of a piece of work, and most pieces of a task. A worker that begins late, or
/// shares its core, then delays the others by one piece instead of its part of the call.
/// Eight pieces had no measurable cost. With sixteen, assignments of rows took up to 1.04 of
/// the time (a Xeon, Skylake).
pub(super) const PIECE_BYTES: usize = 256 * 1024;
pub(super) const MOST_PIECES: usize = 8;

/// Runs of a gather's result of at least this many bytes are streamed.
pub(super) const STREAMED_RUN_BYTES: usize = 1024;

/// Most bytes for looking for duplicates before windows are streamed: a bitmap,
/// or a sort of 32768 tuples.
pub(super) const STREAMED_DETECTION_BYTES: usize = 512 * 1024;

/// Bytes of the output that one partition covers: half of a common
/// second-level cache.
pub(super) const PARTITION_BYTES: u64 = 512 * 1024;

/// Updates of more bytes than this, in windows of at least so many, and so many
/// times those of the region that they are for, are read through in few
/// partitions. Their page table, 8 bytes for 4 KiB, outgrows a second-level
/// cache; that of half as many bytes of a partition does not. Sums of rows with
/// 2 GiB of updates, two workers: 0.6 to 0.8 of the serial time so,
/// 1.1 to 1.5 in partitions of half a cache.
pub(super) const PAGED_BYTES: u64 = 512 << 20;
pub(super) const READ_THROUGH_BYTES: usize = 256;
pub(super) const UPDATES_OF_REGION: u64 = 4;

/// Largest copy that a worker makes of all windows: half of a common second-level
/// cache of single elements, all of it of rows.
pub(super) const PRIVATE_BYTES: u64 = 512 * 1024;
pub(super) const PRIVATE_ROW_BYTES: u64 = 1024 * 1024;
