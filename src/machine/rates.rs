//! What lines, tuples and passes take, in nanoseconds.
//!
//! Fitted to the records in `benches/machines`: `docs/notes/2026-11-23-costs.md`
//! says how, and where they are wrong.

use std::slice::{from_mut, from_ref};

use bytemuck::{cast_slice, cast_slice_mut};

use super::vendor::Vendor;

/// The table of rates: what each means, its name and its numbers on one core of a
/// server with others to be had: of Intel, which stand for those of other vendors too,
/// and of AMD. The word `step` marks a rate that is smaller on a faster core.
macro_rules! rates {
    ($(
        $(#[$meaning:meta])* $name:ident: $numbers:ty = $intel:expr, $amd:expr $(, $step:ident)?;
    )*) => {
        /// Nanoseconds, but for those that are a part of another one.
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

            /// All of them, by name.
            pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
                [$((stringify!($name), cast_slice::<_, f64>(from_ref(&self.$name))),)*].into_iter()
            }

            /// The numbers of the one with a name.
            pub(super) fn named_mut(&mut self, name: &str) -> Option<&mut [f64]> {
                match name {
                    $(stringify!($name) => Some(cast_slice_mut(from_mut(&mut self.$name))),)*
                    _ => None,
                }
            }

            /// Those of steps, which a faster core takes faster.
            pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut f64> {
                [$($($step(&mut self.$name),)?)*].into_iter()
            }
        }
    };
}

/// Marks a rate in the table as that of a step.
fn step(rate: &mut f64) -> &mut f64 {
    rate
}

rates! {
    /// A line in no order, looked up well before its turn and written: in the first,
    /// second and last cache, and in memory.
    random: [f64; 4] = [4.8, 2.2, 7.9, 12.0], [7.6, 3.5, 4.0, 1.2];
    /// What a page adds to that which the translation buffer does not have, and one whose
    /// table lies in no near cache.
    page_walk: [f64; 2] = [9.0, 35.0], [13.0, 22.0];
    /// Of that, what each further line of a row takes.
    next_line: f64 = 0.0085, 0.039;
    /// A line in order, written.
    ordered: [f64; 4] = [0.31, 0.17, 2.8, 11.0], [0.14, 0.12, 1.1, 8.7];
    /// Of a random line, what one takes that lies after all before it, pages away.
    ascending: f64 = 0.27, 0.54;
    /// A line of updates, read in order.
    read: [f64; 4] = [0.097, 1.9, 0.41, 1.2], [0.093, 1.2, 0.32, 0.42];
    /// A line of data that is copied: within the second cache, the last one, memory.
    copied: [f64; 3] = [1.8, 4.2, 6.0], [1.2, 2.0, 4.6];
    /// Of that, what streaming stores take.
    streamed: f64 = 0.8, 0.44;
    /// Of a copy to new memory, what one takes that is made in pieces.
    new_in_pieces: f64 = 1.0, 1.6;
    /// To read on elsewhere after a part of a row.
    restart: [f64; 4] = [0.0, 2.2, 19.0, 26.0], [0.0, 10.0, 37.0, 21.0];
    /// What each worker after the first adds, of what the first does.
    parallel: f64 = 0.85, 0.85;
    /// Workers that memory serves side by side.
    memory_workers: f64 = 8.0, 8.0;
    /// Until tasks have begun and all have ended.
    wake: f64 = 20000.0, 15000.0;
    /// A tuple of a single element.
    element: f64 = 0.28, 0.27, step;
    /// A tuple of a row.
    row: f64 = 1.6, 1.3, step;
    /// Each further run of a window.
    run: f64 = 5.0, 5.0, step;
    /// A tuple that follows the one before.
    joined: f64 = 0.81, 0.038, step;
    /// A run of those.
    joined_run: f64 = 27.0, 110.0, step;
    /// 32 bytes that are combined, and one of the elements that are left.
    vector: f64 = 0.31, 0.17, step;
    last_element: f64 = 0.11, 0.26, step;
    /// The same of elements that machines cannot calculate with, the first in that of others.
    heavy: f64 = 1.5, 0.61;
    heavy_element: f64 = 0.59, 0.98, step;
    /// 32 bytes that are moved, in that of combined ones.
    moved: f64 = 2.1, 4.7;
    /// To wait for the tuple before, with the same destination.
    chain: f64 = 2.2, 1.7, step;
    /// To look up where a tuple of a list is.
    listed: f64 = 1.4, 2.0, step;
    /// By destination: a tuple that is looked at, and one that is kept.
    filtered: f64 = 2.7, 2.2, step;
    kept: f64 = 0.58, 0.45, step;
    /// By partition: each of them.
    partition: f64 = 630.0, 2000.0, step;
    /// A tuple that is counted, and one that is moved.
    partition_count: f64 = 2.3, 2.7, step;
    partition_move: f64 = 1.3, 1.1, step;
    /// 4 bytes of a value that is moved along, or the number of a tuple.
    partition_value: f64 = 0.76, 3.3, step;
    /// Of both, what values take whose places a plan has.
    values_again: f64 = 0.13, 0.63;
    /// Of a random line, what one of the rows takes that a partition reads.
    partition_rows: f64 = 2.7, 0.89;
    /// A tuple that is sorted by destination, and one in order.
    sort: f64 = 7.4, 8.1, step;
    sort_ordered: f64 = 7.3, 7.7, step;
    /// Last writes: a tuple, a line of one, and a slice out of place.
    last_write: f64 = 7.1, 4.2, step;
    last_write_rows: f64 = 9.2, 5.8;
    slice: f64 = 2.0, 12.0, step;
    /// Groups: one, a tuple, a line of one, and 32 bytes in those of a row.
    group: f64 = 66.0, 97.0, step;
    grouped: f64 = 18.0, 21.0, step;
    group_rows: f64 = 4.8, 1.2;
    group_vector: f64 = 2.3, 2.1;
    /// Of those, what elements take that machines cannot calculate with.
    group_heavy: f64 = 10.0, 14.0;
    /// A tuple whose bit is looked up, and its line in that of a random one.
    look: f64 = 0.68, 1.5, step;
    look_line: f64 = 0.37, 0.34;
    /// 32 bytes of a private copy: cleared and merged.
    merged: f64 = 12.0, 30.0, step;
}

impl Rates {
    /// What is typical of a vendor's machines.
    pub(super) fn of(vendor: Vendor) -> Self {
        match vendor {
            Vendor::Amd => Self::AMD,
            Vendor::Intel | Vendor::Other => Self::INTEL,
        }
    }
}
