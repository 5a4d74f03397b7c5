//! Conversion of arguments to arrays, in two phases.
//!
//! An argument is a numpy array, a tensor that another library lends, or an object that numpy
//! converts. The conversion of an argument may run Python code of the caller, and this code may
//! resize another array of the same call. A call therefore first converts each argument to a
//! [`Source`]. After the last conversion, the call reads the addresses of all sources.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyList};

use super::dlpack::{Lent, described_address, libraries};
use super::numpy::{array_type, is_array, is_exactly, is_scalar};
use super::{Array, Borrowed, Owner};
use crate::failure::foreign;

/// A converted argument. [`Source::read`] reads its array without running Python code of the
/// caller.
pub(crate) struct Source<'py> {
    object: Bound<'py, PyAny>,
    kind: Kind,
}

enum Kind {
    Numpy,
    /// An array that numpy made from an object that is not an array.
    Converted,
    /// A tensor of another library, and the address of its elements that [`described_address`]
    /// returned.
    Lent(Lent, Option<*const u8>),
}

impl<'py> Source<'py> {
    /// Converts an argument. This package does not copy a numpy array or a tensor of another
    /// library. `numpy.asarray` converts any other object. May run Python code of the caller.
    #[inline]
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match Self::of_array(object)? {
            Some(source) => Ok(source),
            None => Self::converted(object),
        }
    }

    /// Converts an argument that is a numpy array or a tensor of another library. Returns `None`
    /// for any other object. May run Python code of the caller.
    #[inline]
    pub(crate) fn of_array(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Some(source) = Self::of_numpy(object) {
            refuse_masked_array(object)?;
            return Ok(Some(source));
        }
        // Lists, Python's ints and floats, and numpy scalars skip the lookup of `__dlpack__`. For
        // an object without this attribute, the lookup takes as long as a whole call on small
        // arrays.
        let is_value = is_exactly::<PyList>(object)
            || is_exactly::<PyInt>(object)
            || is_exactly::<PyFloat>(object)
            || is_scalar(object);
        match is_value {
            true => Ok(None),
            false => Self::lent(object).map_err(|error| foreign(object.py(), error)),
        }
    }

    fn lent(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if !object.hasattr(intern!(object.py(), "__dlpack__"))? {
            return Ok(None);
        }
        let lent = Lent::request(object)?;
        Ok(Some(Self {
            object: object.clone(),
            kind: Kind::Lent(lent, described_address(object)),
        }))
    }

    /// Converts an argument that is a numpy array. Returns `None` for any other object.
    #[inline]
    pub(crate) fn of_numpy(object: &Bound<'py, PyAny>) -> Option<Self> {
        is_array(object).then(|| Self {
            object: object.clone(),
            kind: Kind::Numpy,
        })
    }

    /// Converts the argument `out`, as [`Self::of_written`] does.
    pub(crate) fn of_output(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::of_written("out", object)
    }

    /// Converts the argument `name`, which the call writes. Returns an error if the argument is not
    /// an array or must not be written. May run Python code of the caller.
    ///
    /// An unversioned DLPack tensor has no read-only flag. This function accepts an unversioned
    /// tensor only from PyTorch, because PyTorch's tensors are always writable.
    pub(crate) fn of_written(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let not_an_array = || PyTypeError::new_err(format!("`{name}` is not an array"));
        let source = Self::of_array(object)?.ok_or_else(not_an_array)?;
        let Kind::Lent(lent, _) = &source.kind else {
            return Ok(source);
        };
        let is_known = lent.is_versioned() || libraries::is_torch_tensor(object)?;
        if is_known && lent.is_writable() && !libraries::is_immutable(object) {
            return Ok(source);
        }
        Err(PyValueError::new_err(format!(
            "`{name}` is a {} that is read-only or has no read-only flag; pass a numpy array, a \
             PyTorch tensor, or an array whose `__dlpack__` returns a versioned tensor without the \
             read-only flag",
            object.get_type().fully_qualified_name()?
        )))
    }

    #[cold]
    fn converted(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let asarray = ASARRAY.import(object.py(), "numpy", "asarray")?;
        let array = asarray.call1((object,));
        let object = array.map_err(|error| foreign(object.py(), error))?;
        match is_array(&object) {
            true => Ok(Self {
                object,
                kind: Kind::Converted,
            }),
            false => Err(PyTypeError::new_err(
                "numpy does not convert the object to an array",
            )),
        }
    }

    /// Reads the shape, the strides, the element type and the address of the converted array. Runs
    /// no Python code of the caller.
    #[inline]
    pub(crate) fn read(self) -> PyResult<Array<'py>> {
        if let Kind::Lent(lent, described) = self.kind {
            return Array::of_lent(Borrowed {
                object: self.object,
                lent,
                described,
            });
        }
        let array = Array::of_numpy(&self.object);
        let mut array =
            array.ok_or_else(|| PyTypeError::new_err("the object is not a numpy array"))?;
        array.is_converted = matches!(self.kind, Kind::Converted);
        Ok(array)
    }
}

/// Returns an error if `object` is a masked array of numpy. A call reads the memory of an array, and
/// this memory has values also where the mask excludes them.
#[inline]
pub(crate) fn refuse_masked(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match is_array(object) {
        true => refuse_masked_array(object),
        false => Ok(()),
    }
}

/// Returns an error if a numpy array is a masked array.
#[inline]
fn refuse_masked_array(array: &Bound<'_, PyAny>) -> PyResult<()> {
    // A numpy array of another type than exactly `numpy.ndarray` is rare.
    match array.get_type().is(array_type(array.py())) {
        true => Ok(()),
        false => refuse_masked_subclass(array),
    }
}

#[cold]
fn refuse_masked_subclass(object: &Bound<'_, PyAny>) -> PyResult<()> {
    static MASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let masked = MASKED.import(object.py(), "numpy.ma", "MaskedArray")?;
    match object.is_instance(masked)? {
        false => Ok(()),
        true => Err(PyTypeError::new_err(
            "masked arrays are not supported, because the mask would be ignored; pass \
             `array.filled(value)` or `array.compressed()`",
        )),
    }
}

/// Reports the write to an output to the library that owns the output. Only PyTorch requires this
/// report. Does nothing for outputs of other libraries.
pub(crate) fn note_written(output: &Array<'_>) -> PyResult<()> {
    match &output.owner {
        Owner::Lent(borrowed) => libraries::note_written(&borrowed.object),
        Owner::Numpy(..) | Owner::Exported(_) => Ok(()),
    }
}
