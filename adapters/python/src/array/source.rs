//! Arguments, before anything of them is read.
//!
//! Knows how an argument becomes an array: it is one, or another library lends it, or numpy
//! makes one of it. Each of these may run Python code of the caller's, which may resize
//! another array of the same call. A call therefore makes the sources of all its arguments
//! first, and looks at them afterwards.

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyList};

use super::dlpack::{Lent, described_address, libraries};
use super::numpy::{is_array, is_exactly, is_scalar};
use super::{Array, Borrowed, Owner};

/// An argument that an array can be read from without running Python code.
pub(crate) struct Source<'py> {
    object: Bound<'py, PyAny>,
    kind: Kind,
}

enum Kind {
    Numpy,
    /// numpy has made it of something that is no array.
    Converted,
    /// Lent by another library, and where the library said that it lies.
    Lent(Lent, Option<*const u8>),
}

impl<'py> Source<'py> {
    /// The array that `object` is, or that numpy makes of it. May run Python code.
    #[inline]
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match Self::of_array(object)? {
            Some(source) => Ok(source),
            None => Self::converted(object),
        }
    }

    /// The array that `object` is, if it is one. May run Python code.
    #[inline]
    pub(crate) fn of_array(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Some(source) = Self::of_numpy(object) {
            return Ok(Some(source));
        }
        // To ask for what is not there takes as long as a small call.
        let is_value = is_exactly::<PyList>(object)
            || is_exactly::<PyInt>(object)
            || is_exactly::<PyFloat>(object)
            || is_scalar(object);
        if !is_value && object.hasattr(intern!(object.py(), "__dlpack__"))? {
            let lent = Lent::ask(object)?;
            return Ok(Some(Self {
                object: object.clone(),
                kind: Kind::Lent(lent, described_address(object)),
            }));
        }
        Ok(None)
    }

    /// The array of numpy's that `object` is, if it is one.
    #[inline]
    pub(crate) fn of_numpy(object: &Bound<'py, PyAny>) -> Option<Self> {
        is_array(object).then(|| Self {
            object: object.clone(),
            kind: Kind::Numpy,
        })
    }

    /// An output that a caller has given. May run Python code.
    ///
    /// DLPack's older tensors do not say whether they may be written. Of libraries that hand
    /// out such tensors only PyTorch is known to have arrays that change.
    pub(crate) fn of_output(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let source = Self::of_array(object)?;
        let source = source.ok_or_else(|| PyTypeError::new_err("`out` is no array"))?;
        let Kind::Lent(lent, _) = &source.kind else {
            return Ok(source);
        };
        let is_known = lent.is_versioned() || libraries::is_torch_tensor(object)?;
        if is_known && lent.is_writable() && !libraries::is_immutable(object) {
            return Ok(source);
        }
        Err(PyBufferError::new_err(format!(
            "`out` is an array of {} that is read-only or does not say that it may be written; \
             pass an array of numpy's, a tensor of PyTorch's, or an array whose `__dlpack__` \
             gives a versioned tensor without the read-only flag",
            object.get_type().fully_qualified_name()?
        )))
    }

    #[cold]
    fn converted(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let asarray = ASARRAY.import(object.py(), "numpy", "asarray")?;
        let object = asarray.call1((object,))?;
        match is_array(&object) {
            true => Ok(Self {
                object,
                kind: Kind::Converted,
            }),
            false => Err(PyTypeError::new_err("numpy makes no array of it")),
        }
    }

    /// Reads shape, type and address. Runs no Python code of the caller's.
    #[inline]
    pub(crate) fn look(self) -> PyResult<Array<'py>> {
        if let Kind::Lent(lent, described) = self.kind {
            return Array::of_lent(Borrowed {
                object: self.object,
                lent,
                described,
            });
        }
        let array = Array::of_numpy(&self.object);
        let mut array = array.ok_or_else(|| PyTypeError::new_err("no array of numpy's"))?;
        array.is_converted = matches!(self.kind, Kind::Converted);
        Ok(array)
    }
}

/// Tells the library of an output that the output was written.
pub(crate) fn note_written(output: &Array<'_>) -> PyResult<()> {
    match &output.owner {
        Owner::Lent(borrowed) => libraries::note_written(&borrowed.object),
        Owner::Numpy(..) | Owner::Handed(_) => Ok(()),
    }
}
