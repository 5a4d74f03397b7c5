//! What lines, tuples and passes take, in nanoseconds.
//!
//! Fitted to the records in `benches/machines`: `docs/notes/2026-11-23-costs.md`
//! says how, and where they are wrong.

/// One number or several.
trait Numbers {
    fn all(&self) -> &[f64];
    fn all_mut(&mut self) -> &mut [f64];
}

impl Numbers for f64 {
    fn all(&self) -> &[f64] {
        std::slice::from_ref(self)
    }

    fn all_mut(&mut self) -> &mut [f64] {
        std::slice::from_mut(self)
    }
}

impl<const N: usize> Numbers for [f64; N] {
    fn all(&self) -> &[f64] {
        self
    }

    fn all_mut(&mut self) -> &mut [f64] {
        self
    }
}

/// The table of rates: what each means, its name and its numbers on one core of a
/// server with others to be had.
macro_rules! rates {
    ($($(#[$meaning:meta])* $name:ident: $numbers:ty = $typical:expr;)*) => {
        /// Nanoseconds, but for those that are a part of another one.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Rates {
            $($(#[$meaning])* pub(crate) $name: $numbers,)*
        }

        impl Rates {
            pub(crate) const TYPICAL: Self = Self {
                $($name: $typical,)*
            };

            /// All of them, by name.
            pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
                [$((stringify!($name), self.$name.all()),)*].into_iter()
            }

            /// The numbers of the one with a name.
            pub(super) fn named_mut(&mut self, name: &str) -> Option<&mut [f64]> {
                match name {
                    $(stringify!($name) => Some(self.$name.all_mut()),)*
                    _ => None,
                }
            }
        }
    };
}

rates! {
    /// A line in no order, looked up well before its turn and written: in the first,
    /// second and last cache, and in memory.
    random: [f64; 4] = [4.4, 1.1, 5.7, 12.0];
    /// What a page adds to that which the translation buffer does not have, and one whose
    /// table lies in no near cache.
    page_walk: [f64; 2] = [6.5, 30.0];
    /// Of that, what each further line of a row takes.
    next_line: f64 = 0.016;
    /// A line in order, written.
    ordered: [f64; 4] = [0.44, 0.16, 2.7, 11.0];
    /// Of a random line, what one takes that lies after all before it, pages away.
    ascending: f64 = 0.35;
    /// A line of updates, read in order.
    read: [f64; 4] = [0.097, 1.9, 0.44, 1.9];
    /// A line of data that is copied: within the second cache, the last one, memory.
    copied: [f64; 3] = [1.7, 6.8, 12.0];
    /// Of that, what streaming stores take.
    streamed: f64 = 0.8;
    /// To read on elsewhere after a part of a row.
    restart: [f64; 4] = [0.0, 1.9, 9.4, 19.0];
    /// What each worker after the first adds, of what the first does.
    parallel: f64 = 0.85;
    /// Workers that memory serves side by side.
    memory_workers: f64 = 8.0;
    /// Until tasks have begun and all have ended.
    wake: f64 = 20000.0;
    /// A tuple of a single element.
    element: f64 = 0.25;
    /// A tuple of a row.
    row: f64 = 2.2;
    /// Each further run of a window.
    run: f64 = 5.0;
    /// A tuple that follows the one before.
    joined: f64 = 0.49;
    /// A run of those.
    joined_run: f64 = 21.0;
    /// 32 bytes that are combined, and one of the elements that are left.
    vector: f64 = 0.49;
    last_element: f64 = 0.13;
    /// The same of elements that machines cannot calculate with, the first in that of others.
    heavy: f64 = 1.7;
    heavy_element: f64 = 0.68;
    /// 32 bytes that are moved, in that of combined ones.
    moved: f64 = 2.3;
    /// To wait for the tuple before, with the same destination.
    chain: f64 = 2.8;
    /// To look up where a tuple of a list is.
    listed: f64 = 0.76;
    /// By destination: a tuple that is looked at, and one that is kept.
    filtered: f64 = 2.5;
    kept: f64 = 0.57;
    /// By partition: each of them.
    partition: f64 = 410.0;
    /// A tuple that is counted, and one that is moved.
    partition_count: f64 = 3.2;
    partition_move: f64 = 1.6;
    /// 4 bytes of a value that is moved along, or the number of a tuple.
    partition_value: f64 = 0.89;
    /// Of both, what values take whose places a plan has.
    values_again: f64 = 0.12;
    /// Of a random line, what one of the rows takes that a partition reads.
    partition_rows: f64 = 3.7;
    /// A tuple that is sorted by destination, and one in order.
    sort: f64 = 9.2;
    sort_ordered: f64 = 7.4;
    /// Last writes: a tuple, a line of one, and a slice out of place.
    last_write: f64 = 11.0;
    last_write_rows: f64 = 8.6;
    slice: f64 = 2.0;
    /// Groups: a tuple, a line of one, and 32 bytes in those of a row.
    group: f64 = 20.0;
    group_rows: f64 = 4.7;
    group_vector: f64 = 2.0;
    /// Of those, what elements take that machines cannot calculate with.
    group_heavy: f64 = 9.2;
    /// A tuple whose bit is looked up, and its line in that of a random one.
    look: f64 = 0.76;
    look_line: f64 = 0.45;
    /// 32 bytes of a private copy: cleared and merged.
    merged: f64 = 5.9;
}

impl Rates {
    /// Those of steps, which a faster core takes faster.
    pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        [
            &mut self.element,
            &mut self.row,
            &mut self.run,
            &mut self.joined,
            &mut self.joined_run,
            &mut self.vector,
            &mut self.last_element,
            &mut self.heavy_element,
            &mut self.chain,
            &mut self.listed,
            &mut self.filtered,
            &mut self.kept,
            &mut self.partition,
            &mut self.partition_count,
            &mut self.partition_move,
            &mut self.partition_value,
            &mut self.sort,
            &mut self.sort_ordered,
            &mut self.last_write,
            &mut self.slice,
            &mut self.group,
            &mut self.look,
            &mut self.merged,
        ]
        .into_iter()
    }
}
