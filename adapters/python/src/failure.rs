//! Conversion of the crate's errors to Python exceptions.

use ndscatter::ScatterError;
use ndscatter_host::Panicked;
use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};

/// An error of the crate `ndscatter`, which converts to a Python exception. The type of the
/// exception is IndexError, TypeError, MemoryError or ValueError, as for a similar error of numpy.
/// A failure of the thread pool becomes a RuntimeError.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) ScatterError);

impl From<Failure> for PyErr {
    #[cold]
    fn from(Failure(error): Failure) -> Self {
        use ScatterError as E;
        let message = error.to_string();
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

/// Returns the RuntimeError for a panic. A panic is always a bug in ndscatter.
#[cold]
pub(crate) fn panicked(_: Panicked) -> PyErr {
    PyRuntimeError::new_err("internal error: this is a bug in ndscatter")
}
