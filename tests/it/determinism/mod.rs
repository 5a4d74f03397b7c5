//! Equal bits for every schedule, instruction set, number of workers, pool, method and layout.
//!
//! Results are compared with the reference, whose results depend on the order of updates. [`cases`]
//! is the table of cases. [`runner`] runs each case and documents the coverage. [`legal`] contains
//! the rules by which schedules divide a case. [`pools`] tests different pools. [`recorded`] compares
//! the results with the recorded results of earlier versions.

mod cases;
mod legal;
#[cfg(feature = "narrow-integers")]
mod long_updates;
mod pools;
mod recorded;
mod runner;

use std::collections::HashSet;
use std::hash::Hash;

use ndscatter::{Reduction, Schedule};

use cases::{Case, Size};

use crate::common::destinations::index_types;
use crate::common::elements::element_types;

/// Defines one test for each group of cases.
macro_rules! groups {
    ($($group:ident)*) => {
        $(
            #[test]
            fn $group() {
                runner::check(stringify!($group), &cases::$group());
            }
        )*

        /// Returns the whole table.
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
    independent_elements
    fewer_of_everything_than_workers
    groups
    histograms
    large_histograms
    large_tables
    long_lists
    one_lane
    outputs_larger_than_caches
    rows
    rows_by_stride_0
    rows_in_order
    rows_that_are_streamed
    rows_as_elements
    skewed_tables
    skipped_and_clamped
    chosen_schedules
    wide_rows
}

fn found<V: Eq + Hash>(values: impl Iterator<Item = V>) -> HashSet<V> {
    values.collect()
}

/// Checks that the table contains every reduction, dtype and index type, and that every schedule
/// divides some small case.
#[test]
fn the_table_covers_everything() {
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

/// Checks that a wrong order of updates would be detected: in reverse order, the sums of floats
/// have different bits.
#[test]
fn the_order_of_updates_changes_the_bits() {
    let cases = all_cases();
    let checked = cases.iter().filter(|case| runner::shows_order(case));
    assert!(checked.count() > 15, "number of cases with sums of floats");
}
