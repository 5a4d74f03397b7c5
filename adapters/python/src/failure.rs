//! Conversion of the crate's errors to Python exceptions, and the exceptions for arguments that are
//! not read.

use std::fmt::Display;

use ndscatter::ScatterError;
use ndscatter_host::Panicked;
use pyo3::exceptions::{
    PyAttributeError, PyException, PyIndexError, PyMemoryError, PyOverflowError, PyRuntimeError,
    PyTypeError, PyValueError,
};
use pyo3::prelude::*;

use crate::types::{format_name, numpy_name};

/// An error of the crate `ndscatter`, which converts to a Python exception. The type of the
/// exception is IndexError, TypeError, MemoryError or ValueError, as for a similar error of numpy.
/// A failure of the thread pool becomes a RuntimeError.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) ScatterError);

impl From<Failure> for PyErr {
    #[cold]
    fn from(Failure(error): Failure) -> Self {
        use ScatterError as E;
        let message = message(&error);
        match error {
            E::IndexOutOfBounds { .. }
            | E::SlotOutOfBounds { .. }
            | E::RowOutOfBounds { .. }
            | E::WriteIndex { .. } => PyIndexError::new_err(message),
            E::IndexType { .. }
            | E::DTypeMismatch { .. }
            | E::UnsupportedReduction { .. }
            | E::UnsupportedConversion { .. }
            | E::DataFormat { .. }
            | E::ReductionOfClones { .. }
            | E::NoGradient { .. }
            | E::GradientOfClones
            | E::ForeignBool { .. } => PyTypeError::new_err(message),
            E::OutOfMemory { .. } => PyMemoryError::new_err(message),
            E::PoolFailed { .. } => PyRuntimeError::new_err(message),
            _ => PyValueError::new_err(message),
        }
    }
}

/// Returns the message of the exception. The message is the text of the crate's error, except that
/// it has numpy's names of element types, and names Python arguments that avoid the error.
fn message(error: &ScatterError) -> String {
    use ScatterError as E;
    match error {
        E::DTypeMismatch {
            tensor: tensor @ ("scale" | "zero_point"),
            expected,
            actual,
        } => format!(
            "`{tensor}` has elements of {}; pass elements of {}",
            numpy_name(*actual),
            numpy_name(*expected)
        ),
        E::DTypeMismatch {
            tensor,
            expected,
            actual,
        } => other_type(tensor, numpy_name(*actual), numpy_name(*expected), true),
        E::IndexType { actual } => format!(
            "`indices` has elements of {}; pass integers, such as int64",
            numpy_name(*actual)
        ),
        E::UnsupportedReduction { reduction, dtype } => format!(
            "reduction \"{reduction}\" is not defined for elements of {}; use another reduction, or \
             convert the arrays to another type",
            numpy_name(*dtype)
        ),
        E::UnsupportedConversion { from, to } => format!(
            "updates of {} cannot be converted to {}; pass updates of float32, float16 or bfloat16",
            numpy_name(*from),
            format_name(*to)
        ),
        E::DataFormat {
            dtype,
            format: Some(format),
        } => format!(
            "`data` of {} cannot hold elements of format {}",
            numpy_name(*dtype),
            format_name(*format)
        ),
        E::ZeroPointOutOfRange {
            position,
            zero_point,
            format,
        } => format!(
            "the zero point {zero_point} at position {position} is out of the range of {}",
            format_name(*format)
        ),
        E::TupleLength {
            tuple_len,
            rank,
            is_one_tuple: true,
        } => format!(
            "`indices` with one axis is one tuple of {tuple_len} coordinates, which does not fit \
             `data` of rank {rank}; did you mean `scatter_update` or `gather`, or \
             `indices[:, None]`?"
        ),
        E::UpdatesShape {
            expected,
            actual,
            one_tuple: Some(_),
        } => format!(
            "`updates` has shape {actual:?} but `data` and `indices` require {expected:?}; \
             `indices` with one axis is one tuple of coordinates: did you mean `scatter_update`, or \
             `indices[:, None]`?"
        ),
        E::WriteIndex { index: ..0, .. } => format!(
            "{error}; pass `bounds=\"skip\"` to skip the sequences that have a negative position"
        ),
        E::SlotOutOfBounds { slot: ..0, .. } => {
            format!("{error}; pass `bounds=\"skip negative\"` to skip negative slots")
        }
        E::RowOutOfBounds { row: ..0, .. } => {
            format!("{error}; pass `bounds=\"skip negative\"` to skip negative row numbers")
        }
        error => error.to_string(),
    }
}

/// Returns the message about the array `name` whose element type is not that of `data`.
///
/// `has_astype` is false for an array that has no method `astype`. The message then names the method
/// `to` of PyTorch.
pub(crate) fn other_type(
    name: &str,
    actual: impl Display,
    expected: impl Display,
    has_astype: bool,
) -> String {
    let method = if has_astype { "astype" } else { "to" };
    format!(
        "`{name}` has elements of {actual}, but `data` has elements of {expected}; pass one type, \
         such as `{name}.{method}(data.dtype)`"
    )
}

/// Converts an exception that code of an argument or of the argument's library raised while the
/// argument was converted. The result is one of the exceptions that the package documents. The
/// original exception is the cause of the result.
///
/// An exception that is no subclass of Python's `Exception`, such as `KeyboardInterrupt`, stays as
/// it is.
#[cold]
pub(crate) fn foreign(py: Python<'_>, error: PyErr) -> PyErr {
    let is_documented = error.is_instance_of::<PyIndexError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyMemoryError>(py);
    if is_documented || !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let message = format!("an argument cannot be read: {error}");
    let raised = match error.is_instance_of::<PyAttributeError>(py) {
        true => PyTypeError::new_err(message),
        false => PyValueError::new_err(message),
    };
    raised.set_cause(py, Some(error));
    raised
}

/// Collects the items of an iterator. Returns a MemoryError if there is no memory for the vector.
pub(crate) fn collect<T>(items: impl Iterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    for item in items {
        all.try_reserve(1).map_err(|_| out_of_memory::<T>())?;
        all.push(item?);
    }
    Ok(all)
}

#[cold]
fn out_of_memory<T>() -> PyErr {
    let bytes = size_of::<T>();
    Failure(ScatterError::OutOfMemory { bytes }).into()
}

/// Converts a Python integer that is a size, an axis or a number of threads. An integer that is too
/// large for the type `T`, or negative for a type without negative numbers, is a ValueError.
pub(crate) fn integer<T>(object: &Bound<'_, PyAny>) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    let py = object.py();
    object.extract().map_err(
        |error: PyErr| match error.is_instance_of::<PyOverflowError>(py) {
            true => PyValueError::new_err(format!(
                "the integer {object} is negative or too large for a size, an axis or a number of \
                 threads"
            )),
            false => foreign(py, error),
        },
    )
}

/// Converts an optional argument by [`integer`].
pub(crate) fn optional_integer(object: &Bound<'_, PyAny>) -> PyResult<Option<isize>> {
    match object.is_none() {
        true => Ok(None),
        false => integer(object).map(Some),
    }
}

/// Returns the RuntimeError for a panic. A panic is always a bug in ndscatter.
#[cold]
pub(crate) fn panicked(_: Panicked) -> PyErr {
    PyRuntimeError::new_err("internal error: this is a bug in ndscatter")
}
