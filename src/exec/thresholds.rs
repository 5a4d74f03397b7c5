//! Sizes that schedules, the walk over windows and the small-call path go by.
//!
//! Every number here has a name and a unit; `docs/notes/2026-11-22-thresholds.md` says which of
//! them are measured, which are arguments, and which measurements speak against
//! one. The choice, the workload, the schedules' own divisions, the walk over
//! windows and the small-call path read them.

/// Calls that touch fewer bytes than this are over before a choice is worth
/// making.
pub(super) const SMALL_CALL_BYTES: usize = 512 << 10;

/// A sample of a kept plan's destinations is looked at where a call moves so many windows:
/// the call takes some 5 microseconds, the look 0.3. With so many windows for each
/// destination, the call moves the last of them alone.
pub(super) const MANY_WINDOWS: usize = 1024;
pub(super) const WINDOWS_PER_DESTINATION: usize = 64;

/// Of windows in order, the part that begins in the line of the one before, from which on
/// none is prefetched: where they begin 48 bytes apart, or most repeat.
pub(super) const DENSE: f64 = 0.25;

/// Where one worker applies updates, data is copied by all if the copy touches so many
/// bytes: a worker that sleeps begins some 30 microseconds late.
pub(super) const PARALLEL_BYTES: usize = 12 << 20;

/// Where few destinations have many duplicates, all that is left to do is to
/// read updates. Workers that share the rows of updates among them read them no
/// faster, unless rows are this wide or there are so many workers.
pub(super) const WIDE_BYTES: usize = 1024;
pub(super) const READING_PARTS: usize = 4;

/// Out of place, windows of so many bytes are streamed where data was; that
/// beats finding last writes where updates come in no order and are at most
/// this part of the output.
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;
pub(super) const SPARSE: usize = 4;

/// Tasks take pieces of at least so many bytes, and of no more than so many for each: a
/// worker that begins late, or shares its core, then keeps the others waiting for a
/// piece, and not for its part of the call. Eight cost nothing that was seen, sixteen
/// took assignments of rows up to 1.04 of the time (a Xeon, Skylake).
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
