//! The failure of a call from the host to this library.
//!
//! The module `api` converts a failure to an `OrtStatus`, an object of the host with an error code
//! and a message. If a function of the host failed, `api` returns the `OrtStatus` of that function.
//! This module maps the errors of the crate `ndscatter` to the host's error codes.

use std::fmt;

use ndscatter::ScatterError;
use ort_sys::{OrtErrorCode, OrtStatus};

/// The failure of a call from the host to this library.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A function of the host failed with this status object. The library returns this object to
    /// the host.
    Host(*mut OrtStatus),
    /// A failure of this library: an error code from the host's list of codes, and a message.
    Own(OrtErrorCode, String),
}

impl Failure {
    #[cold]
    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::Own(OrtErrorCode::ORT_INVALID_ARGUMENT, message.to_string())
    }

    #[cold]
    pub(crate) fn unsupported(message: impl fmt::Display) -> Self {
        Self::Own(OrtErrorCode::ORT_NOT_IMPLEMENTED, message.to_string())
    }

    #[cold]
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::Own(OrtErrorCode::ORT_RUNTIME_EXCEPTION, message.to_string())
    }
}

impl From<ScatterError> for Failure {
    #[cold]
    fn from(error: ScatterError) -> Self {
        let code = match error {
            ScatterError::UnsupportedOption { .. }
            | ScatterError::UnsupportedReduction { .. }
            | ScatterError::Misaligned { .. } => OrtErrorCode::ORT_NOT_IMPLEMENTED,
            ScatterError::OutOfMemory { .. } | ScatterError::PoolFailed { .. } => {
                OrtErrorCode::ORT_RUNTIME_EXCEPTION
            }
            _ => OrtErrorCode::ORT_INVALID_ARGUMENT,
        };
        Self::Own(code, error.to_string())
    }
}
