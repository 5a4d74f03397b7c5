//! The sizes that decide between schedules.
//!
//! Every number here has a name and a unit; `docs/notes/2026-11-22-thresholds.md` says which of
//! them are measured, which are arguments, and which measurements speak against
//! one. The choice, the workload, the schedules' own divisions, the walk over
//! windows and the small-call path read them.

use std::ops::RangeInclusive;

/// Calls that touch fewer bytes than this are over before a choice is worth
/// making.
pub(super) const SMALL_CALL_BYTES: usize = 2 << 20;

/// Calls that touch fewer bytes than this
/// ([`Workload::touched_bytes`](super::workload::Workload::touched_bytes))
/// stay on the calling thread: a worker that sleeps begins some 30
/// microseconds late, at each step of a schedule.
pub(super) const PARALLEL_BYTES: usize = 12 << 20;

/// Tuples a destination, on average, that make groups: with more, a serial
/// loop was as fast or faster.
pub(super) const GROUP_TUPLES: RangeInclusive<u64> = 2..=16;

/// Out of place, where so many times as much is copied as is then touched,
/// workers that have ranges of destinations may all look at every tuple.
pub(super) const MOSTLY_COPIED: usize = 32;

/// Where few destinations have many duplicates, all that is left to do is to
/// read updates. Workers that share the rows of updates among them read them no
/// faster, unless rows are this wide or there are so many workers.
pub(super) const WIDE_BYTES: usize = 1024;
pub(super) const READING_PARTS: usize = 4;

/// Outputs of at least this many bytes are written with streaming stores where
/// no later step of the call touches them: they would push out of the caches
/// what is there.
pub(super) const STREAM_BYTES: usize = 16 << 20;

/// Out of place, windows of so many bytes are streamed where data was; that
/// beats finding last writes where updates come in no order and are at most
/// this part of the output.
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;
pub(super) const SPARSE: usize = 4;

/// Runs of a gather's result of at least this many bytes are streamed.
pub(super) const STREAMED_RUN_BYTES: usize = 1024;

/// Most bytes for looking for duplicates before windows are streamed: a bitmap,
/// or a sort of 32768 tuples.
pub(super) const STREAMED_DETECTION_BYTES: usize = 512 * 1024;

/// Windows of at least this many bytes may be worth finding last writes first,
/// and what must be saved by it for each tuple: with one worker, with several,
/// and where there are few destinations to sort tuples by.
pub(super) const LAST_WRITE_WINDOW_BYTES: usize = 64;
pub(super) const SAVED_BYTES_ALONE: u64 = 160;
pub(super) const SAVED_BYTES: u64 = 128;
pub(super) const SAVED_BYTES_FEW: u64 = 48;

/// Most destinations that are few, and fewest tuples for each.
pub(super) const FEW_DESTINATIONS: u64 = 16 * 1024;
pub(super) const FEW_DESTINATIONS_TUPLES: u64 = 4;

/// Out of place last writes are worth finding where there are as many bytes of
/// output for each tuple, and windows are not single elements: else, sorting
/// tuples costs more than the copy saves.
pub(super) const LAST_WRITE_OUTPUT_BYTES: usize = 4096;
pub(super) const REWRITTEN_WINDOW_BYTES: usize = 32;

/// Narrowest part of a window that a worker takes: two cache lines, which
/// hardware fetches together.
pub(super) const COLUMN_BYTES: usize = 128;

/// Where windows lie within a line and all that is read and written of the
/// output in so many bytes, a serial loop finds them in its caches and beats
/// any division.
pub(super) const SERIAL_REGION_BYTES: u64 = 16 << 20;

/// The same for longer windows: one core's first cache.
pub(super) const SERIAL_ROWS_BYTES: u64 = 32 * 1024;

/// Windows that lie in so many bytes are in a core's caches after a while: to
/// prefetch them costs more than it gains.
pub(super) const CACHED_BYTES: u64 = 1 << 20;

/// Windows that lie in more bytes than this are worth partitioning.
pub(super) const PARTITIONED_BYTES: u64 = 256 * 1024;

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

/// Largest copy that a worker makes of all windows: what a first-level and a
/// part of a second-level cache hold.
pub(super) const PRIVATE_BYTES: u64 = 256 * 1024;

/// Tuples, in all and for each destination, from which private copies pay.
pub(super) const PRIVATE_TUPLES: usize = 128 * 1024;
pub(super) const PRIVATE_TUPLES_EACH: u64 = 8;
