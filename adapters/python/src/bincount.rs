//! `bincount`: the rules of `np.bincount`.
//!
//! A plain loop of this module counts short lists. A scatter of the crate counts longer lists.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ndscatter::{AnyView, DType, Operator, Pool, Reduction, ScatterError};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Array, Line, Source};
use crate::failure::Failure;
use crate::operands;
use crate::options::Meaning;
use crate::threads::{execution, pool, run};
use crate::tuples::for_integers;
use crate::value::Value;

/// Count the occurrences of each number, or sum the weights of each number: ``np.bincount``.
///
/// Args:
///     x: integers or booleans of shape ``(n,)``, not negative.
///     weights: array of shape ``(n,)``. The weights of one bin are added in their order, in
///         float64, or in the element type of `out`.
///     minlength: smallest number of bins.
///     out: numpy array of shape ``(bins,)`` with ``bins >= minlength``, of any numeric type.
///         All its elements are overwritten.
///     threads: largest number of threads; 1 is the calling thread, None is all threads.
///
/// Returns:
///     `out`, or an array of ``max(max(x) + 1, minlength)`` counts (``intp``) or sums
///     (float64).
///
/// Raises:
///     IndexError: a number is not smaller than the number of bins of `out`.
///     TypeError: `x` is not of integers, the weights do not convert to the type of the
///         result, or `out` is not a numpy array of numbers.
///     ValueError: a number or `minlength` is negative, a shape is wrong, or `out` is a
///         read-only array or shares memory with an argument.
///     BufferError: `out` is an array of another library without permission to write.
///
/// After an error nothing has been written.
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
    minlength: isize,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<isize>,
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

/// Limit of [`short`], in list elements. `short` counts lists with fewer elements by a plain loop,
/// which costs less than the overhead of a scatter. Calls with `out`, and calls with weights that
/// are not f64, run a scatter for lists of any length.
const SHORT: usize = 8192;

/// Counts a list of fewer than [`SHORT`] elements, or sums its weights, by a plain loop. Returns
/// `None` for a longer list, and for weights that are not f64 or do not have the shape of the list.
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

/// Calls `add` with the bin of each number and with the number's position in the list.
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

/// Reads and checks the argument `out`.
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

/// Checks that the weights have the shape of the list, and converts the weights to the type of the
/// output.
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

/// Minimum number of list elements per thread in the search for the largest number. One thread
/// needs an estimated 50 microseconds for these elements.
const SHARE: usize = 1 << 18;

/// Returns the number of bins of a list: its largest number plus one, or 0 for an empty list.
fn bins(numbers: &Array<'_>, py: Python<'_>, threads: Option<isize>) -> PyResult<usize> {
    let line = numbers.line();
    let line = line.ok_or_else(|| {
        PyTypeError::new_err("`x` was resized while the arguments were converted")
    })?;
    let largest = match line.len() {
        0 => return Ok(0),
        len if len < 2 * SHARE => largest(&line, 0..len),
        _ => py.detach(|| largest_of_shares(&line, pool(threads))),
    };
    // A negative number is detected here only if all numbers are negative. Otherwise, the loop or
    // the scatter that counts the numbers detects it.
    let count = usize::try_from(largest + 1).unwrap_or(usize::MAX);
    match largest {
        ..0 => Err(negative()),
        _ if count > isize::MAX.unsigned_abs() => Err(PyMemoryError::new_err(
            "`x` needs more bins than memory can have",
        )),
        _ => Ok(count),
    }
}

/// Computes the largest number of a list on all workers of a pool.
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

/// Returns the largest number among the list elements at the positions `range`.
fn largest(line: &Line, range: Range<usize>) -> i128 {
    let mut largest = i128::MIN;
    for_integers!(line.dtype(), T => {
        // Eight independent maxima, so that no comparison waits for the one before.
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
            // The old values of `out` do not count: the sums begin with zeros.
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
