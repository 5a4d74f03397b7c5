//! Defines the sweeps: the quantity that doubles, and the problem for each of its values.

use std::ops::RangeInclusive;

use ndscatter::Reduction;

use super::findings::Growth;
use super::problem::{Pattern, Problem};
use crate::common::inputs::Form;

/// Bytes of updates in sweeps where they are constant.
const UPDATES_BYTES: usize = 64 << 20;

/// Problems that differ in one quantity, `x`. It doubles from point to point.
pub(crate) struct Sweep {
    pub(crate) name: &'static str,
    /// Unit of `x`.
    pub(crate) unit: &'static str,
    /// Binary logarithms of the values of `x`.
    pub(crate) exponents: RangeInclusive<u32>,
    pub(crate) growth: Growth,
    pub(crate) problem: fn(usize) -> Problem,
    pub(crate) calls: &'static [(Form, Reduction)],
}

const BOTH_FORMS: &[(Form, Reduction)] = &[
    (Form::InPlace, Reduction::Add),
    (Form::InPlace, Reduction::None),
    (Form::Functional, Reduction::Add),
    (Form::Functional, Reduction::None),
];

/// Calls without a functional assignment. A functional call also copies data. One reduction
/// shows the cost of that copy.
const MOSTLY_IN_PLACE: &[(Form, Reduction)] = &[
    (Form::InPlace, Reduction::Add),
    (Form::InPlace, Reduction::None),
    (Form::Functional, Reduction::Add),
];

pub(crate) const SWEEPS: [Sweep; 8] = [
    // Four elements of data per tuple.
    Sweep {
        name: "tuples_elements",
        unit: "tuples",
        exponents: 10..=24,
        growth: Growth::Work,
        problem: |tuples| uniform(4 * tuples, 1, tuples),
        calls: BOTH_FORMS,
    },
    // Four tuples per row.
    Sweep {
        name: "tuples_rows",
        unit: "tuples",
        exponents: 10..=24,
        growth: Growth::Work,
        problem: |tuples| uniform(tuples / 4, 64, tuples),
        calls: MOSTLY_IN_PLACE,
    },
    // Longer windows with constant bytes of updates.
    Sweep {
        name: "window",
        unit: "bytes of a window",
        exponents: 2..=16,
        growth: Growth::Shape,
        problem: |bytes| uniform(UPDATES_BYTES / bytes, bytes / 4, UPDATES_BYTES / bytes),
        calls: BOTH_FORMS,
    },
    // Longer windows with a constant number of tuples.
    Sweep {
        name: "width",
        unit: "bytes of a window",
        exponents: 2..=16,
        growth: Growth::Work,
        problem: |bytes| uniform(8192, bytes / 4, 8192),
        calls: MOSTLY_IN_PLACE,
    },
    // From no duplicates to one destination for all tuples.
    Sweep {
        name: "duplicates_elements",
        unit: "tuples per destination",
        exponents: 0..=22,
        growth: Growth::Shape,
        problem: |times| repeated(1, 1 << 22, times),
        calls: MOSTLY_IN_PLACE,
    },
    Sweep {
        name: "duplicates_rows",
        unit: "tuples per destination",
        exponents: 0..=18,
        growth: Growth::Shape,
        problem: |times| repeated(64, 1 << 18, times),
        calls: MOSTLY_IN_PLACE,
    },
    // More data with a constant number of tuples.
    Sweep {
        name: "data_elements",
        unit: "bytes of data",
        exponents: 15..=32,
        growth: Growth::Work,
        problem: |bytes| uniform(bytes / 4, 1, 1 << 20),
        calls: BOTH_FORMS,
    },
    Sweep {
        name: "data_rows",
        unit: "bytes of data",
        exponents: 15..=32,
        growth: Growth::Work,
        problem: |bytes| uniform(bytes / 256, 64, 1 << 15),
        calls: BOTH_FORMS,
    },
];

const fn uniform(rows: usize, window: usize, tuples: usize) -> Problem {
    Problem {
        rows,
        window,
        tuples,
        pattern: Pattern::Uniform,
    }
}

/// Returns a problem with an equal number of rows and tuples. Each named row occurs `times`
/// times.
const fn repeated(window: usize, tuples: usize, times: usize) -> Problem {
    Problem {
        pattern: Pattern::Times(times),
        ..uniform(tuples, window, tuples)
    }
}
