//! The same bits for every schedule, instruction set, number of workers, pool,
//! verb and layout: those of the reference, whose results depend on the order
//! of updates.
//!
//! [`cases`] is the table, [`runner`] takes each case through all of it, and
//! says what it covers; [`legal`] knows which schedules divide a case,
//! [`pools`] who may run the tasks.

mod cases;
mod legal;
mod pools;
mod runner;

use cases::Case;

/// A test for each group of cases.
macro_rules! groups {
    ($($group:ident)*) => {
        $(
            #[test]
            fn $group() {
                runner::check(&cases::$group());
            }
        )*

        /// The whole table.
        fn all_cases() -> Vec<Case> {
            [$(cases::$group()),*].concat()
        }
    };
}

groups! {
    batches
    caches
    element_scatters
    elements
    fewer_of_everything_than_workers
    histograms
    large_element_scatters
    large_groups
    large_histograms
    large_rows_by_stride_0
    large_rows_written_out
    large_tables
    long_lists
    outputs_larger_than_caches
    rows
    rows_in_order
    rows_that_are_streamed
    skewed_tables
    skipped_and_clamped
    what_is_chosen
    wide_rows
}
