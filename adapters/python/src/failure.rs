//! Errors of the crate as exceptions of Python.

use ndscatter::ScatterError;
use ndscatter_host::Panicked;
use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};

/// An error of the crate, which becomes the exception that users of numpy expect.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) ScatterError);

impl From<Failure> for PyErr {
    #[cold]
    fn from(Failure(error): Failure) -> Self {
        use ScatterError as E;
        let message = error.to_string();
        match error {
            E::IndexOutOfBounds { .. } | E::WriteIndex { .. } => PyIndexError::new_err(message),
            E::IndexType { .. }
            | E::DTypeMismatch { .. }
            | E::UnsupportedReduction { .. }
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

/// A panic is a bug in the library.
#[cold]
pub(crate) fn panicked(_: Panicked) -> PyErr {
    PyRuntimeError::new_err("ndscatter has failed internally, which is a bug in it")
}
