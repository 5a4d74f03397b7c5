//! What lines, tuples and passes take, in nanoseconds.
//!
//! Fitted to the records in `benches/machines`: `docs/notes/2026-11-23-costs.md`
//! says how, and where they are wrong.

/// Nanoseconds, but for those that are a part of another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rates {
    /// A line in no order, looked up well before its turn and written: in the first,
    /// second and last cache, and in memory.
    pub(crate) random: [f64; 4],
    /// What a page adds to that which the translation buffer does not have, and one whose
    /// table lies in no near cache.
    pub(crate) page_walk: [f64; 2],
    /// Of that, what each further line of a row takes.
    pub(crate) next_line: f64,
    /// A line in order, written.
    pub(crate) ordered: [f64; 4],
    /// Of a random line, what one takes that lies after all before it, pages away.
    pub(crate) ascending: f64,
    /// A line of updates, read in order.
    pub(crate) read: [f64; 4],
    /// A line of data that is copied: within the second cache, the last one, memory.
    pub(crate) copied: [f64; 3],
    /// Of that, what streaming stores take.
    pub(crate) streamed: f64,
    /// To read on elsewhere after a part of a row.
    pub(crate) restart: [f64; 4],
    /// What each worker after the first adds, of what the first does.
    pub(crate) parallel: f64,
    /// Workers that memory serves side by side.
    pub(crate) memory_workers: f64,
    /// Until tasks have begun and all have ended.
    pub(crate) wake: f64,
    /// A tuple of a single element.
    pub(crate) element: f64,
    /// A tuple of a row.
    pub(crate) row: f64,
    /// Each further run of a window.
    pub(crate) run: f64,
    /// A tuple that follows the one before.
    pub(crate) joined: f64,
    /// A run of those.
    pub(crate) joined_run: f64,
    /// 32 bytes that are combined, and one of the elements that are left.
    pub(crate) vector: f64,
    pub(crate) last_element: f64,
    /// The same of elements that machines cannot calculate with, the first in that of others.
    pub(crate) heavy: f64,
    pub(crate) heavy_element: f64,
    /// 32 bytes that are moved, in that of combined ones.
    pub(crate) moved: f64,
    /// To wait for the tuple before, with the same destination.
    pub(crate) chain: f64,
    /// To look up where a tuple of a list is.
    pub(crate) listed: f64,
    /// By destination: a tuple that is looked at, and one that is kept.
    pub(crate) filtered: f64,
    pub(crate) kept: f64,
    /// By partition: each of them.
    pub(crate) partition: f64,
    /// A tuple that is counted, and one that is moved.
    pub(crate) partition_count: f64,
    pub(crate) partition_move: f64,
    /// 4 bytes of a value that is moved along, or the number of a tuple.
    pub(crate) partition_value: f64,
    /// Of both, what values take whose places a plan has.
    pub(crate) values_again: f64,
    /// Of a random line, what one of the rows takes that a partition reads.
    pub(crate) partition_rows: f64,
    /// A tuple that is sorted by destination, and one in order.
    pub(crate) sort: f64,
    pub(crate) sort_ordered: f64,
    /// Last writes: a tuple, a line of one, and a slice out of place.
    pub(crate) last_write: f64,
    pub(crate) last_write_rows: f64,
    pub(crate) slice: f64,
    /// Groups: a tuple, a line of one, and 32 bytes in those of a row.
    pub(crate) group: f64,
    pub(crate) group_rows: f64,
    pub(crate) group_vector: f64,
    /// Of those, what elements take that machines cannot calculate with.
    pub(crate) group_heavy: f64,
    /// A tuple whose bit is looked up, and its line in that of a random one.
    pub(crate) look: f64,
    pub(crate) look_line: f64,
    /// 32 bytes of a private copy: cleared and merged.
    pub(crate) merged: f64,
}

impl Rates {
    /// Those of one core of a server, with others to be had.
    pub(crate) const TYPICAL: Self = Self {
        random: [4.4, 1.1, 5.7, 12.0],
        page_walk: [6.5, 30.0],
        next_line: 0.016,
        ordered: [0.44, 0.16, 2.7, 11.0],
        ascending: 0.35,
        read: [0.097, 1.9, 0.44, 1.9],
        copied: [1.7, 6.8, 12.0],
        streamed: 0.8,
        restart: [0.0, 1.9, 9.4, 19.0],
        parallel: 0.85,
        memory_workers: 8.0,
        wake: 20000.0,
        element: 0.25,
        row: 2.2,
        run: 5.0,
        joined: 0.49,
        joined_run: 21.0,
        vector: 0.49,
        last_element: 0.13,
        heavy: 1.7,
        heavy_element: 0.68,
        moved: 2.3,
        chain: 2.8,
        listed: 0.76,
        filtered: 2.5,
        kept: 0.57,
        partition: 410.0,
        partition_count: 3.2,
        partition_move: 1.6,
        partition_value: 0.89,
        values_again: 0.12,
        partition_rows: 3.7,
        sort: 9.2,
        sort_ordered: 7.4,
        last_write: 11.0,
        last_write_rows: 8.6,
        slice: 2.0,
        group: 20.0,
        group_rows: 4.7,
        group_vector: 2.0,
        group_heavy: 9.2,
        look: 0.76,
        look_line: 0.45,
        merged: 5.9,
    };
}
