//! What goes wrong, and which code of the host's stands for it.

use std::fmt;

use ndscatter::ScatterError;
use ort_sys::{OrtErrorCode, OrtStatus};

/// A call has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// One of the host's functions has: its status, which is handed on.
    Host(*mut OrtStatus),
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
