//! The Python function `bincount`, with the rules of `np.bincount`.
//!
//! A sequential loop of this module processes a list of fewer than [`SHORT`] elements. For each
//! element of the list, the loop adds 1, or the weight of the element, to a bin. A scatter of the
//! crate processes longer lists. A scatter also processes lists of any length in calls with the
//! argument `out` and in calls with weights that are not f64.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ndscatter::{AnyView, DType, Operator, Pool, Reduction, ScatterError};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Array, Line, Source};
use crate::docs::docs;
use crate::failure::{Failure, integer, optional_integer};
use crate::operands;
use crate::options::Meaning;
use crate::threads::{execution, pool, run};
use crate::tuples::for_integers;
use crate::value::Value;

/// Count how often each number occurs in `x`, or sum the weights of each number: ``np.bincount``.
///
/// Args:
///     x: integers or booleans of shape ``(n,)``, not negative. Each element of `x` is the
///         number of a bin.
///     weights: array of shape ``(n,)``. The weights of one bin are added in the order of
///         their positions in `x`. The sums have the element type of `out`, or float64 without
///         `out`.
///     minlength: smallest number of bins.
///     out: numpy array of shape ``(bins,)`` with ``bins >= minlength``, of any numeric type.
///         All elements of `out` are overwritten.
#[doc = docs!("threads")]
///
/// Returns:
///     `out` if it was passed. Otherwise a new array of ``max(max(x) + 1, minlength)`` bins: counts
///     of type ``intp``, or sums of type float64 if there are weights.
///
/// Raises:
///     IndexError: an element of `x` is not smaller than the number of bins of `out`.
///     TypeError: the elements of `x` are neither integers nor booleans, numpy refuses to
///         convert the weights to the element type of the result, or `out` is not a numpy array
///         of numbers.
///     ValueError: an element of `x` or `minlength` is negative, a shape is wrong, `out` is
///         read-only or may be read-only, or `out` shares memory with `x` or `weights`.
///     MemoryError: an allocation failed.
///
/// After each of the errors listed under "Raises", `out` is unchanged.
///
/// >>> import numpy as np, ndscatter
/// >>> ndscatter.bincount([0, 1, 1, 3, 2, 1, 7])
/// array([1, 3, 1, 1, 0, 0, 0, 1])
/// >>> ndscatter.bincount([0, 1, 1, 2], weights=[0.3, 0.5, 0.2, 0.7])
/// array([0.3, 0.7, 0.7])
#[pyfunction]
#[pyo3(signature = (x, weights=None, minlength=0, out=None, *, threads=None))]
pub(crate) fn bincount<'py>(
    x: &Bound<'py, PyAny>,
    weights: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = integer)] minlength: isize,
    out: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let least = usize::try_from(minlength)
        .map_err(|_| PyValueError::new_err("'minlength' must not be negative"))?;
    let (x, weights) = (Source::of(x)?, weights.map(Source::of).transpose()?);
    let out = out.map(Source::of_output).transpose()?;
    let is_given = out.is_some();
    let numbers = operands::indices(x)?;
    check_numbers(&numbers)?;
    let weights = weights.map(Source::read).transpose()?;
    if !is_given && let Some(output) = short(py, &numbers, weights.as_ref(), least)? {
        return object_of(&output);
    }
    let output = match out {
        Some(out) => given(out, least)?,
        None => {
            let len = bins(&numbers, py, threads)?.max(least);
            Array::zeros(py, weights.is_some(), len)?
        }
    };
    let weights = weights.map(|weights| weighed(weights, &numbers, &output));
    count(
        py,
        &numbers,
        weights.transpose()?,
        &output,
        is_given,
        threads,
    )?;
    object_of(&output)
}

fn object_of<'py>(output: &Array<'py>) -> PyResult<Bound<'py, PyAny>> {
    let object = output.object().cloned();
    object.ok_or_else(|| PyTypeError::new_err("the array has no object"))
}

/// Number of list elements below which [`short`] processes a list in a sequential loop. For a list
/// of fewer elements, the loop costs less than the overhead of a scatter. Calls with `out`, and
/// calls with weights that are not f64, run a scatter for lists of any length.
const SHORT: usize = 8192;

/// Counts in a sequential loop how often each number occurs in a list of fewer than [`SHORT`]
/// elements, or sums the weights of each number. Returns `None` for a list of [`SHORT`] elements or
/// more, for weights that are not f64, and for weights whose shape is not that of the list.
fn short<'py>(
    py: Python<'py>,
    numbers: &Array<'py>,
    weights: Option<&Array<'py>>,
    least: usize,
) -> PyResult<Option<Array<'py>>> {
    let Some(line) = numbers.line().filter(|line| line.len() < SHORT) else {
        return Ok(None);
    };
    let Some(weights) = weights else {
        let len = bins(numbers, py, Some(1))?.max(least);
        let fill = |bins: &mut [isize]| each_bin(&line, bins, |bin, _| *bin += 1);
        return Array::filled(py, len, fill).map(Some);
    };
    let is_plain = weights.dtype() == Some(DType::F64) && weights.shape() == numbers.shape();
    let Some(weights) = weights.line().filter(|_| is_plain) else {
        return Ok(None);
    };
    let len = bins(numbers, py, Some(1))?.max(least);
    let fill = |bins: &mut [f64]| {
        each_bin(&line, bins, |bin, number| {
            *bin += weights.get::<f64>(number).unwrap_or_default();
        })
    };
    Array::filled(py, len, fill).map(Some)
}

/// Calls `add` for each number of a list, with the bin of the number and the position of the number
/// in the list. Returns an error if a number is negative. `bins` must have a bin for every number
/// that is not negative.
fn each_bin<B>(line: &Line, bins: &mut [B], mut add: impl FnMut(&mut B, usize)) -> PyResult<()> {
    let (mut number, mut are_inside) = (0, true);
    for_integers!(line.dtype(), T => line.read(0..line.len(), |value: T| {
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_fallible_conversions,
            reason = "the conversion is useless or infallible for some types only"
        )]
        let value = usize::try_from(value);
        match value.ok().and_then(|value| bins.get_mut(value)) {
            Some(bin) => add(bin, number),
            None => are_inside = false,
        }
        number += 1;
    }));
    match are_inside {
        true => Ok(()),
        false => Err(negative()),
    }
}

fn check_numbers(numbers: &Array<'_>) -> PyResult<()> {
    match numbers.rank() {
        0 => {
            return Err(PyValueError::new_err(
                "object of too small depth for desired array",
            ));
        }
        1 => {}
        _ => return Err(PyValueError::new_err("object too deep for desired array")),
    }
    match numbers.dtype() {
        Some(dtype) if dtype.is_index() || dtype == DType::Bool => Ok(()),
        _ => Err(PyTypeError::new_err(format!(
            "`x` has elements of {}; pass integers",
            numbers.type_name()
        ))),
    }
}

/// Reads the argument `out`. Returns an error if `out` is not a writable numpy array of numbers
/// with one axis and at least `least` elements.
fn given(out: Source<'_>, least: usize) -> PyResult<Array<'_>> {
    let output = operands::output(out)?;
    if !output.is_numpy() || output.dtype().is_none_or(|dtype| dtype.is_opaque()) {
        return Err(PyTypeError::new_err(format!(
            "`out` has elements of {} or is not a numpy array; pass a numpy array of numbers",
            output.type_name()
        )));
    }
    if output.rank() != 1 || output.len() < least {
        return Err(PyValueError::new_err(format!(
            "`out` has shape {:?}; pass one dimension of at least `minlength`, which is {least}",
            output.shape()
        )));
    }
    Ok(output)
}

/// Converts the weights to the element type of the output, by numpy's casting rule "same_kind".
/// Returns an error if the weights do not have the shape of the list of numbers.
fn weighed<'py>(
    weights: Array<'py>,
    numbers: &Array<'py>,
    output: &Array<'py>,
) -> PyResult<Array<'py>> {
    if weights.shape() != numbers.shape() {
        return Err(PyValueError::new_err(
            "The weights and list don't have the same length.",
        ));
    }
    match weights.dtype() == output.dtype() {
        true => Ok(weights),
        false => weights.cast_like(output, "same_kind"),
    }
}

/// Minimum number of list elements per task in the parallel search for the largest number of a
/// list. Only the last task may have fewer elements. One thread needs an estimated 50 microseconds
/// for this number of elements.
const SHARE: usize = 1 << 18;

/// Returns the number of bins that a list needs: the largest number of the list plus one, or 0 for
/// an empty list.
fn bins(numbers: &Array<'_>, py: Python<'_>, threads: Option<isize>) -> PyResult<usize> {
    let line = numbers.line();
    let line = line.ok_or_else(|| {
        PyTypeError::new_err("`x` was resized while the arguments were converted")
    })?;
    let largest = match line.len() {
        0 => return Ok(0),
        len if len < 2 * SHARE => largest(&line, 0..len),
        _ => py.detach(|| largest_of_shares(&line, &pool(threads))),
    };
    // The largest number is negative only if all numbers are negative. If only some numbers of the
    // list are negative, the loop or the scatter that later processes the list returns the error.
    let count = usize::try_from(largest + 1).unwrap_or(usize::MAX);
    match largest {
        ..0 => Err(negative()),
        _ if count > isize::MAX.unsigned_abs() => Err(PyMemoryError::new_err(
            "`x` needs more bins than memory can have",
        )),
        _ => Ok(count),
    }
}

/// Computes the largest number of a list in parallel, on all workers of `pool`.
fn largest_of_shares(line: &Line, pool: &dyn Pool) -> i128 {
    let workers = pool.workers().unwrap_or(1).max(1);
    let share = line.len().div_ceil(workers).max(SHARE);
    let found = Mutex::new(i128::MIN);
    pool.run(line.len().div_ceil(share), &|number| {
        let first = number * share;
        let own = largest(line, first..first + share);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = own.max(*found);
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the largest of the list elements at the positions `range`.
fn largest(line: &Line, range: Range<usize>) -> i128 {
    let mut largest = i128::MIN;
    for_integers!(line.dtype(), T => {
        // Eight independent running maxima, so that a comparison does not wait for the result of
        // the preceding comparison.
        let mut high = [T::MIN; 8];
        line.read_blocks(range, |values: &[T]| {
            for (high, &value) in high.iter_mut().zip(values) {
                *high = value.max(*high);
            }
        });
        largest = high.into_iter().map(i128::from).max().unwrap_or(largest);
    });
    largest
}

fn negative() -> PyErr {
    PyValueError::new_err("'list' argument must have no negative elements")
}

fn count<'py>(
    py: Python<'py>,
    numbers: &Array<'py>,
    weights: Option<Array<'py>>,
    output: &Array<'py>,
    is_given: bool,
    threads: Option<isize>,
) -> PyResult<()> {
    let Some(dtype) = output.dtype() else {
        return Ok(());
    };
    let meaning = Meaning {
        reduction: Reduction::Add,
        negative_indices: false,
        ..Meaning::DEFAULT
    };
    let scatter = meaning.scatter(Operator::Along { axis: 0 })?;
    let scatter = scatter.execution(execution(threads)?);
    let size = numbers.len();
    let (one, shape) = (Value::one(dtype), [size]);
    let updates = match &weights {
        Some(weights) => weights.view()?,
        None => AnyView::splat(&one.0, dtype, &shape).map_err(Failure)?,
    };
    let list = numbers.index_view()?;
    let into = match is_given {
        true => output.view_mut()?,
        false => output.view_zeros()?,
    };
    let done = match is_given {
        false => run(py, size, || scatter.in_place(into, list, updates))?,
        true => {
            // The sums begin with zero. The old values of `out` are not added.
            let zeros = AnyView::splat(&Value::ZERO.0, dtype, output.shape());
            let zeros = zeros.map_err(Failure)?;
            run(py, size + output.len(), || {
                scatter.write_into(zeros, list, updates, into)
            })?
        }
    };
    match done {
        Err(ScatterError::IndexOutOfBounds { index: ..0, .. }) => Err(negative()),
        done => Ok(done.map_err(Failure)?),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bincount, module)?)
}
