//! The sweeps, one a table entry: what grows, and what stays as it is.

use std::ops::RangeInclusive;

use ndscatter::Reduction;

use super::findings::Growth;
use super::problem::{Pattern, Problem};
use crate::common::inputs::Form;

/// Bytes of updates where they are held.
const UPDATES_BYTES: usize = 64 << 20;

/// Problems that differ in one quantity, `x`, which doubles from one to the
/// next.
pub(crate) struct Sweep {
    pub(crate) name: &'static str,
    /// What `x` counts.
    pub(crate) unit: &'static str,
    /// Binary logarithms of `x`.
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

/// A functional call also copies data, which is as long as the updates or
/// longer: one reduction shows what that adds.
const MOSTLY_IN_PLACE: &[(Form, Reduction)] = &[
    (Form::InPlace, Reduction::Add),
    (Form::InPlace, Reduction::None),
    (Form::Functional, Reduction::Add),
];

pub(crate) const SWEEPS: [Sweep; 8] = [
    // Four elements of data a tuple.
    Sweep {
        name: "tuples_elements",
        unit: "tuples",
        exponents: 10..=24,
        growth: Growth::Work,
        problem: |tuples| uniform(4 * tuples, 1, tuples),
        calls: BOTH_FORMS,
    },
    // Four tuples a row.
    Sweep {
        name: "tuples_rows",
        unit: "tuples",
        exponents: 10..=24,
        growth: Growth::Work,
        problem: |tuples| uniform(tuples / 4, 64, tuples),
        calls: MOSTLY_IN_PLACE,
    },
    // As many bytes of updates in ever longer windows.
    Sweep {
        name: "window",
        unit: "bytes of a window",
        exponents: 2..=16,
        growth: Growth::Shape,
        problem: |bytes| uniform(UPDATES_BYTES / bytes, bytes / 4, UPDATES_BYTES / bytes),
        calls: BOTH_FORMS,
    },
    // As many tuples with ever longer windows.
    Sweep {
        name: "width",
        unit: "bytes of a window",
        exponents: 2..=16,
        growth: Growth::Work,
        problem: |bytes| uniform(8192, bytes / 4, 8192),
        calls: MOSTLY_IN_PLACE,
    },
    // From no duplicates to all tuples in one place.
    Sweep {
        name: "duplicates_elements",
        unit: "tuples a destination",
        exponents: 0..=22,
        growth: Growth::Shape,
        problem: |times| repeated(1, 1 << 22, times),
        calls: MOSTLY_IN_PLACE,
    },
    Sweep {
        name: "duplicates_rows",
        unit: "tuples a destination",
        exponents: 0..=18,
        growth: Growth::Shape,
        problem: |times| repeated(64, 1 << 18, times),
        calls: MOSTLY_IN_PLACE,
    },
    // As many tuples in ever more data.
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

/// As many rows as tuples, of which few are met.
const fn repeated(window: usize, tuples: usize, times: usize) -> Problem {
    Problem {
        pattern: Pattern::Times(times),
        ..uniform(tuples, window, tuples)
    }
}
