//! The same bits for every schedule, instruction set, number of workers, pool,
//! verb and layout: those of the reference, whose results depend on the order
//! of updates.
//!
//! [`cases`] is the table, [`runner`] takes each case through all of it, and
//! says what it covers; [`legal`] knows which schedules divide a case,
//! [`pools`] who may run the tasks.

mod cases;
mod legal;
mod long_updates;
mod pools;
mod runner;

use std::collections::HashSet;
use std::hash::Hash;

use ndscatter::{Reduction, Schedule};

use cases::{Case, Size};

use crate::common::destinations::index_types;
use crate::common::elements::element_types;

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
    elements_that_go_their_own_way
    fewer_of_everything_than_workers
    groups
    histograms
    large_histograms
    large_tables
    long_lists
    outputs_larger_than_caches
    rows
    rows_by_stride_0
    rows_in_order
    rows_that_are_streamed
    rows_written_out
    skewed_tables
    skipped_and_clamped
    what_is_chosen
    wide_rows
}

fn found<V: Eq + Hash>(values: impl Iterator<Item = V>) -> HashSet<V> {
    values.collect()
}

/// Every reduction, dtype and index type is in the table; every schedule
/// divides some small case.
#[test]
fn the_table_leaves_nothing_out() {
    let cases = all_cases();
    let values = || cases.iter().flat_map(|case| case.values);
    let reductions = found(values().map(|&(reduction, _)| reduction));
    assert_eq!(reductions, found(Reduction::ALL.into_iter()));
    let dtypes = found(values().map(|&(_, dtype)| dtype));
    let missing: Vec<_> = (element_types().into_iter())
        .filter(|dtype| !dtypes.contains(dtype))
        .collect();
    assert!(missing.is_empty(), "no case has {missing:?}");
    let indices = found(cases.iter().map(|case| case.index));
    assert_eq!(indices, found(index_types().into_iter()));
    let small = cases.iter().filter(|case| case.size == Size::Small);
    let dividing = found(small.flat_map(runner::dividing));
    let all = (Schedule::ALL.into_iter()).filter(|&schedule| schedule != Schedule::Serial);
    assert_eq!(dividing, found(all), "schedules that divide small cases");
}

/// The cases can fail: the same updates in reverse have other sums.
#[test]
fn the_order_of_updates_shows_in_the_bits() {
    let cases = all_cases();
    let checked = cases.iter().filter(|case| runner::shows_order(case));
    assert!(checked.count() > 15, "sums of floats");
}
