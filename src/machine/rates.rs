//! The cost of cache lines, tuples and passes.
//!
//! The rates are fitted to the records in `benches/machines`. `docs/notes/2026-11-23-costs.md`
//! describes the fit and its errors.

use std::slice::{from_mut, from_ref};

use bytemuck::{cast_slice, cast_slice_mut};

use super::vendor::Vendor;

/// Defines the table of rates. A row has the meaning of a rate, its name, its type, and its values
/// for Intel and for AMD. Other vendors use the values for Intel. All values are for one core of a
/// server with several cores. The word `step` marks a rate that is lower on a faster core.
macro_rules! rates {
    ($(
        $(#[$meaning:meta])* $name:ident: $numbers:ty = $intel:expr, $amd:expr $(, $step:ident)?;
    )*) => {
        /// Costs in nanoseconds, unless a rate is marked as a ratio. The four values of a rate are
        /// for the first-level, second-level and last-level cache and for memory.
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

            /// Returns the names and values of all rates.
            pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
                [$((stringify!($name), cast_slice::<_, f64>(from_ref(&self.$name))),)*].into_iter()
            }

            /// Returns the values of the rate with this name.
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

/// Returns `rate`. `Rates::steps_mut` calls this function for each rate that the table marks with
/// the word `step`: a rate that is lower on a faster core.
fn step(rate: &mut f64) -> &mut f64 {
    rate
}

rates! {
    /// Cost of a cache line in random order that is prefetched early and written.
    random: [f64; 4] = [4.8, 2.2, 7.9, 12.0], [7.6, 3.5, 4.0, 1.2];
    /// Additional cost of a page that the translation buffer does not have, and additional cost if
    /// the page table is also not in the second-level cache.
    page_walk: [f64; 2] = [9.0, 35.0], [13.0, 22.0];
    /// Cost of each cache line of a row after the first line, as a ratio of `random`, the cost of
    /// the first line.
    next_line: f64 = 0.0085, 0.039;
    /// Cost of a cache line that is written in order.
    ordered: [f64; 4] = [0.31, 0.17, 2.8, 11.0], [0.14, 0.12, 1.1, 8.7];
    /// Cost of a cache line at a higher address than all earlier lines, in another page, as a ratio
    /// of `random`.
    ascending: f64 = 0.27, 0.54;
    /// Cost of a cache line of updates that is read in order.
    read: [f64; 4] = [0.097, 1.9, 0.41, 1.2], [0.093, 1.2, 0.32, 0.42];
    /// Cost of a cache line of data that is copied. The three values are for a source and a
    /// destination in the second-level cache, in the last-level cache, and in memory.
    copied: [f64; 3] = [1.8, 4.2, 6.0], [1.2, 2.0, 4.6];
    /// Cost of a copy with streaming stores, as a ratio of a copy with ordinary stores.
    streamed: f64 = 0.8, 0.44;
    /// Cost of a copy to new memory in pieces, as a ratio of the cost of one copy of all bytes.
    new_in_pieces: f64 = 1.0, 1.6;
    /// Cost of continuing to read at another row after a part of a row.
    restart: [f64; 4] = [0.0, 2.2, 19.0, 26.0], [0.0, 10.0, 37.0, 21.0];
    /// Throughput that each further worker adds, as a ratio of the throughput of the first worker.
    parallel: f64 = 0.85, 0.85;
    /// Number of workers that memory serves at full speed at the same time.
    memory_workers: f64 = 8.0, 8.0;
    /// Cost of starting tasks and waiting for the last one.
    wake: f64 = 20000.0, 15000.0;
    /// Cost of a tuple whose window is a single element.
    element: f64 = 0.28, 0.27, step;
    /// Cost of a tuple whose window is a row.
    row: f64 = 1.6, 1.3, step;
    /// Cost of each run of a window after the first run.
    run: f64 = 5.0, 5.0, step;
    /// Cost of a tuple whose window is joined to the previous window.
    joined: f64 = 0.81, 0.038, step;
    /// Cost of a run of joined windows.
    joined_run: f64 = 27.0, 110.0, step;
    /// Cost of combining 32 bytes.
    vector: f64 = 0.31, 0.17, step;
    /// Cost of combining one of the elements after the last 32 bytes.
    last_element: f64 = 0.11, 0.26, step;
    /// Cost of combining 32 bytes of elements that need several instructions, as a ratio of
    /// `vector`.
    heavy: f64 = 1.5, 0.61;
    /// Cost of combining one element that needs several instructions, after the last 32 bytes.
    heavy_element: f64 = 0.59, 0.98, step;
    /// Cost of moving 32 bytes, as a ratio of `vector`.
    moved: f64 = 2.1, 4.7;
    /// Cost of waiting for the previous tuple, if the two tuples have one destination.
    chain: f64 = 2.2, 1.7, step;
    /// Cost of reading the position of a tuple from a list.
    listed: f64 = 1.4, 2.0, step;
    /// In the schedule by destination: cost of checking whether the destination of a tuple is in
    /// the worker's range of destinations.
    filtered: f64 = 2.7, 2.2, step;
    /// In the schedule by destination: cost of keeping a tuple whose destination is in the worker's
    /// range.
    kept: f64 = 0.58, 0.45, step;
    /// In the schedule by partition: cost of a partition.
    partition: f64 = 630.0, 2000.0, step;
    /// In the schedule by partition: cost of counting a tuple.
    partition_count: f64 = 2.3, 2.7, step;
    /// In the schedule by partition: cost of moving a tuple.
    partition_move: f64 = 1.3, 1.1, step;
    /// In the schedule by partition: cost of moving 4 bytes of a value with its tuple, or the
    /// number of a tuple.
    partition_value: f64 = 0.76, 3.3, step;
    /// In the schedule by partition: cost of moving a value of a kept plan whose tuples are already
    /// sorted, as a ratio of `partition_move` and `partition_value` together.
    values_again: f64 = 0.13, 0.63;
    /// In the schedule by partition: cost of reading a row of updates, as a ratio of the modelled
    /// cost of reading a row at a random position (`random_rows_cost` in `exec::cost`).
    partition_rows: f64 = 2.7, 0.89;
    /// Cost of sorting a tuple by its destination.
    sort: f64 = 7.4, 8.1, step;
    /// Cost of sorting a tuple by its destination if the destinations are in order.
    sort_ordered: f64 = 7.3, 7.7, step;
    /// Schedule "last write": cost of applying one last write. The last write is the only update of
    /// a destination that this schedule applies. The cost of the accessed memory is not included.
    last_write: f64 = 7.1, 4.2, step;
    /// Schedule "last write": cost of reading the row of updates of a last write, as a ratio of the
    /// modelled cost of reading a row at a random position.
    last_write_rows: f64 = 9.2, 5.8;
    /// Schedule "last write": additional cost of each last write if the call is not in place.
    slice: f64 = 2.0, 12.0, step;
    /// Groups: cost of a group.
    group: f64 = 66.0, 97.0, step;
    /// Groups: cost of a tuple.
    grouped: f64 = 18.0, 21.0, step;
    /// Groups: cost of reading a row of updates, as a ratio of the modelled cost of reading a row
    /// at a random position.
    group_rows: f64 = 4.8, 1.2;
    /// Groups: cost of combining 32 bytes, as a ratio of `vector`.
    group_vector: f64 = 2.3, 2.1;
    /// Groups: cost of combining elements that need several instructions, as a ratio of the cost of
    /// combining other elements.
    group_heavy: f64 = 10.0, 14.0;
    /// Detecting duplicates in a bitmap with one bit per destination: cost of testing and setting
    /// the bit of a tuple's destination.
    look: f64 = 0.68, 1.5, step;
    /// Detecting duplicates in a bitmap: cost of the cache line that has the bit of a tuple's
    /// destination, as a ratio of the cost of a random cache line.
    look_line: f64 = 0.37, 0.34;
    /// Schedule "private": cost of clearing and merging 32 bytes of a worker's private copy.
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
