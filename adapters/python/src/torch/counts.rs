//! Numbers of calls per function: the calls that the crate has run, and the calls that PyTorch's own
//! kernel ran instead, by reason.
//!
//! A kernel counts each call once, while its function is enabled. This module knows neither the rules
//! of the functions nor the form of the kernels.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use super::call::Function;
use super::reason::Reason;

/// The counters of one function. The alignment keeps functions in separate cache lines, so that threads
/// that call different functions do not wait for each other.
#[repr(align(128))]
struct Counters {
    run: AtomicU64,
    /// One counter per item of [`Reason::ALL`].
    declined: [AtomicU64; Reason::ALL.len()],
}

impl Counters {
    const fn new() -> Self {
        Self {
            run: AtomicU64::new(0),
            declined: [const { AtomicU64::new(0) }; Reason::ALL.len()],
        }
    }
}

// The counters of a function and of a reason are found by position.
const _: () = {
    let mut position = 0;
    while position < Reason::ALL.len() {
        assert!(Reason::ALL[position].1 as usize == position);
        position += 1;
    }
    position = 0;
    while position < Function::ALL.len() {
        assert!(Function::ALL[position].1 as usize == position);
        position += 1;
    }
};

/// One item per item of [`Function::ALL`].
static COUNTERS: [Counters; Function::ALL.len()] = [const { Counters::new() }; Function::ALL.len()];

/// Counts a call that the crate has run.
pub(super) fn count_run(function: Function) {
    let counters = &COUNTERS[function as usize];
    counters.run.fetch_add(1, Ordering::Relaxed);
}

/// Counts a call that PyTorch's own kernel runs.
pub(super) fn count_declined(function: Function, reason: Reason) {
    let counters = &COUNTERS[function as usize];
    counters.declined[reason as usize].fetch_add(1, Ordering::Relaxed);
}

/// Returns all numbers above 0: the name of the function, the reason, and the number of calls. The
/// reason is `None` for the calls that the crate has run.
#[pyfunction]
fn counts() -> Vec<(&'static str, Option<&'static str>, u64)> {
    let mut found = Vec::new();
    for ((name, _), counters) in Function::ALL.iter().zip(&COUNTERS) {
        let declined = (Reason::ALL.iter().zip(&counters.declined))
            .map(|((reason, _), counter)| (Some(*reason), counter));
        for (reason, counter) in std::iter::once((None, &counters.run)).chain(declined) {
            let count = counter.load(Ordering::Relaxed);
            if count > 0 {
                found.push((*name, reason, count));
            }
        }
    }
    found
}

/// Sets all numbers to 0.
#[pyfunction]
fn reset_counts() {
    for counters in &COUNTERS {
        for counter in std::iter::once(&counters.run).chain(&counters.declined) {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Counts a call that a kernel in Python passes to PyTorch's own kernel.
#[pyfunction]
fn decline(function: &str, reason: &str) -> PyResult<()> {
    count_declined(Function::named(function)?, Reason::named(reason)?);
    Ok(())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(counts, module)?)?;
    module.add_function(wrap_pyfunction!(reset_counts, module)?)?;
    module.add_function(wrap_pyfunction!(decline, module)?)
}
