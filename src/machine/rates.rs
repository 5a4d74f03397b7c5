//! The rates of the cost model: costs of cache lines, of tuples and of steps of a schedule.
//!
//! Most rates are fitted to the measurements in `benches/machines`. A few rates are set by hand.
//! `docs/notes/2026-11-23-costs.md` describes the fit and its errors.

use std::slice::{from_mut, from_ref};

use bytemuck::{cast_slice, cast_slice_mut};

use super::vendor::Vendor;

/// Defines the table of rates. The entry of a rate has a comment with the meaning of the rate, the
/// name and the type of the rate, and two values (or two lists of values). The first value is for
/// Intel, and the second value is for AMD. Other vendors use the values for Intel. All values are
/// for one core of a server with several cores. The word `step` marks a rate of instructions, which
/// is lower on a faster core.
macro_rules! rates {
    ($(
        $(#[$meaning:meta])* $name:ident: $numbers:ty = $intel:expr, $amd:expr $(, $step:ident)?;
    )*) => {
        /// Costs in nanoseconds, unless a comment says that the rate is a ratio. If a rate has four
        /// values, the values are for the first-level, second-level and last-level cache and for
        /// memory.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Rates {
            $($(#[$meaning])* pub(crate) $name: $numbers,)*
        }

        impl Rates {
            const INTEL: Self = Self {
                $($name: $intel,)*
            };

            const AMD: Self = Self {
                $($name: $amd,)*
            };

            /// Returns the names and values of all rates (costs in the cost model, and ratios).
            pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
                [$((stringify!($name), cast_slice::<_, f64>(from_ref(&self.$name))),)*].into_iter()
            }

            /// Returns the values of the rate `name`.
            pub(super) fn named_mut(&mut self, name: &str) -> Option<&mut [f64]> {
                match name {
                    $(stringify!($name) => Some(cast_slice_mut(from_mut(&mut self.$name))),)*
                    _ => None,
                }
            }

            /// Returns the values of all rates that are marked as `step`.
            pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut f64> {
                [$($($step(&mut self.$name),)?)*].into_iter()
            }
        }
    };
}

/// Returns `rate` unchanged. The word `step` in the table expands to a call of this function in
/// `Rates::steps_mut`.
fn step(rate: &mut f64) -> &mut f64 {
    rate
}

rates! {
    /// Cost of writing a cache line if lines are written in random order and prefetched early.
    random: [f64; 4] = [4.8, 2.2, 7.9, 12.0], [7.6, 3.5, 4.0, 1.2];
    /// Two costs that are added to `random`. The first cost is that of a miss of the translation
    /// buffer (TLB). The second cost is the additional cost of a TLB miss whose page table is not
    /// in the second-level cache.
    page_walk: [f64; 2] = [9.0, 35.0], [13.0, 22.0];
    /// Rows in random order: ratio for the cost of each cache line after the first line of a row.
    /// If the row is read, each of these lines costs this ratio times the cost of the first line.
    /// If the row is written, each of these lines costs `ordered`, plus this ratio times the
    /// difference between the cost of the first line and `ordered`.
    next_line: f64 = 0.0085, 0.039;
    /// Single elements: ratio for the cost of a cache line in random order. The processor overlaps
    /// the accesses of many single elements.
    single_line: f64 = 1.0, 0.2;
    /// Single elements: ratio for the costs per tuple of lists (`listed`), of the schedule by
    /// destination (`filtered`, `kept`) and of the schedule by partition (counting and moving).
    single_tuple: f64 = 1.0, 0.3;
    /// Cost of writing a cache line if lines are written in the order of their addresses.
    ordered: [f64; 4] = [0.31, 0.17, 2.8, 11.0], [0.14, 0.12, 1.1, 8.7];
    /// Cost of writing a cache line if destinations ascend but neighbours are at least a memory
    /// page apart, as a ratio of the cost of a line in random order.
    ascending: f64 = 0.27, 0.54;
    /// Cost of reading a cache line of updates if the updates are read in order.
    read: [f64; 4] = [0.097, 1.9, 0.41, 1.2], [0.093, 1.2, 0.32, 0.42];
    /// Cost of copying one cache line from data to the output. The three values are for copies
    /// whose source and output together fit in the second-level cache, fit in the last-level cache,
    /// or fit in no cache.
    copied: [f64; 3] = [1.8, 4.2, 6.0], [1.2, 2.0, 4.6];
    /// Cost of writing with streaming stores, as a ratio of the cost with ordinary stores.
    streamed: f64 = 0.8, 0.44;
    /// Cost of copying data to new memory in several pieces, as a ratio of the cost of copying all
    /// bytes at once.
    new_in_pieces: f64 = 1.0, 1.6;
    /// Schedule by column: cost of a restart of the hardware prefetcher, when a worker has read its
    /// part of a row of updates and continues at the next row.
    restart: [f64; 4] = [0.0, 2.2, 19.0, 26.0], [0.0, 10.0, 37.0, 21.0];
    /// Throughput that each worker after the first adds, as a ratio of the throughput of one
    /// worker.
    parallel: f64 = 0.85, 0.85;
    /// Maximum speedup of moving cache lines: the throughput of all workers together, as a ratio of
    /// the throughput of one worker.
    memory_workers: f64 = 8.0, 8.0;
    /// Cost of starting tasks on several workers and waiting until the last task ends.
    wake: f64 = 20000.0, 15000.0;
    /// Cost of a tuple whose window is a single element, without the costs of combining elements
    /// and of cache lines.
    element: f64 = 0.28, 0.27, step;
    /// Cost of a tuple whose window is a row, without the costs of combining elements and of cache
    /// lines.
    row: f64 = 1.6, 1.3, step;
    /// Additional cost of each run of a window after its first run.
    run: f64 = 5.0, 5.0, step;
    /// Cost of each tuple if contiguous windows are joined, that is, applied as one longer window.
    joined: f64 = 0.81, 0.038, step;
    /// Additional cost of a tuple whose window is the first window of a longer window.
    joined_run: f64 = 27.0, 110.0, step;
    /// Cost of combining 32 bytes of updates with the output.
    vector: f64 = 0.31, 0.17, step;
    /// Cost of combining one element of a window after its last whole 32 bytes.
    last_element: f64 = 0.11, 0.26, step;
    /// Cost of combining 32 bytes if a vector of elements needs several instructions, as a ratio of
    /// `vector`.
    heavy: f64 = 1.5, 0.61;
    /// Cost of combining one element of a window after its last whole 32 bytes, if a vector of
    /// elements needs several instructions.
    heavy_element: f64 = 0.59, 0.98, step;
    /// Cost of writing 32 bytes of updates that replace the existing values, as a ratio of
    /// `vector`.
    moved: f64 = 2.1, 4.7;
    /// Cost of waiting for the result of the previous tuple, if both tuples have the same
    /// destination.
    chain: f64 = 2.2, 1.7, step;
    /// Cost of reading the position of a tuple in the list of tuples, if a worker applies a list of
    /// positions.
    listed: f64 = 1.4, 2.0, step;
    /// Schedule by destination: cost of checking whether the destination of a tuple is in the
    /// worker's range of destinations.
    filtered: f64 = 2.7, 2.2, step;
    /// Schedule by destination: cost of writing a tuple to the worker's list, if the destination of
    /// the tuple is in the worker's range of destinations.
    kept: f64 = 0.58, 0.45, step;
    /// Schedule by partition: fixed cost of each partition (the tuples of one range of
    /// destinations).
    partition: f64 = 630.0, 2000.0, step;
    /// Schedule by partition: cost per tuple of counting the tuples of each partition.
    partition_count: f64 = 2.3, 2.7, step;
    /// Schedule by partition: cost of moving a tuple to its partition, without `partition_value`.
    partition_move: f64 = 1.3, 1.1, step;
    /// Schedule by partition: cost of moving 4 bytes of a tuple's value (single elements), or of
    /// moving the tuple's position (longer windows).
    partition_value: f64 = 0.76, 3.3, step;
    /// Schedule by partition, kept plan, single elements: cost of moving the value of a tuple in
    /// each execution. The rate is a ratio of the cost of moving tuple and value in a one-shot
    /// call.
    values_again: f64 = 0.13, 0.63;
    /// Schedules by partition and by destination: additional cost of reading a row of updates that
    /// is apart from the previous row. The rate is a ratio of the modelled cost of reading a row at
    /// a random position (`random_rows_cost` in `exec::cost`).
    partition_rows: f64 = 2.7, 0.89;
    /// Cost per tuple of sorting the list of tuples by destination.
    sort: f64 = 7.4, 8.1, step;
    /// Cost per tuple of sorting the list of tuples by destination, if the destinations already
    /// ascend but some are equal.
    sort_ordered: f64 = 7.3, 7.7, step;
    /// Schedule by last write: additional cost of one last write, without cache lines. The last
    /// write is the only update of a destination that this schedule applies.
    last_write: f64 = 7.1, 4.2, step;
    /// Schedule by last write: additional cost of reading the row of updates of a last write at a
    /// random position, as a ratio of `random_rows_cost`.
    last_write_rows: f64 = 9.2, 5.8;
    /// Schedule by last write: additional cost of each last write if the call is out of place.
    slice: f64 = 2.0, 12.0, step;
    /// Schedule "grouped": cost of a group, for each run of its window. A group is all tuples of
    /// one destination.
    group: f64 = 66.0, 97.0, step;
    /// Schedule "grouped": cost of a tuple, for each run of its window.
    grouped: f64 = 18.0, 21.0, step;
    /// Schedule "grouped": cost of reading a row of updates at a random position, as a ratio of
    /// `random_rows_cost`.
    group_rows: f64 = 4.8, 1.2;
    /// Schedule "grouped": cost of combining 32 bytes, as a ratio of `vector`.
    group_vector: f64 = 2.3, 2.1;
    /// Schedule "grouped": cost of combining elements if a vector of elements needs several
    /// instructions, as a ratio of the cost of combining other elements.
    group_heavy: f64 = 10.0, 14.0;
    /// Detecting duplicates in a bitmap with one bit per destination: cost of testing and setting
    /// one bit per tuple, without the cost of the bit's cache line.
    look: f64 = 0.68, 1.5, step;
    /// Detecting duplicates in a bitmap: cost per tuple of accessing the bit's cache line, as a
    /// ratio of the modelled cost of a random cache line.
    look_line: f64 = 0.37, 0.34;
    /// Schedule "private": elapsed time of clearing and merging the private copies of the output of
    /// all workers, per 32 bytes of one copy.
    merged: f64 = 12.0, 30.0, step;
}

impl Rates {
    /// Returns rates that are typical of machines of a vendor.
    pub(super) fn of(vendor: Vendor) -> Self {
        match vendor {
            Vendor::Amd => Self::AMD,
            Vendor::Intel | Vendor::Other => Self::INTEL,
        }
    }
}
