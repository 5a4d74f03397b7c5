//! The failure of a call from the host to this library.
//!
//! The module `api` converts a failure to an `OrtStatus`, an object of the host with an error code
//! and a message. If a function of the host failed, `api` returns the `OrtStatus` of that function.
//! This module maps the errors of the crate `ndscatter` to the host's error codes.

use std::fmt::{self, Write};

use ndscatter::ScatterError;
use ort_sys::{OrtErrorCode, OrtStatus};

/// The failure of a call from the host to this library.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A function of the host failed with this status object. The library returns this object to
    /// the host.
    Host(*mut OrtStatus),
    /// A failure of this library: an error code from the host's list of codes, and a message for the
    /// host, which a NUL ends. The NUL is missing if there was no memory for the whole message.
    Own(OrtErrorCode, String),
}

impl Failure {
    #[cold]
    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::Own(OrtErrorCode::ORT_INVALID_ARGUMENT, text(message))
    }

    #[cold]
    pub(crate) fn unsupported(message: impl fmt::Display) -> Self {
        Self::Own(OrtErrorCode::ORT_NOT_IMPLEMENTED, text(message))
    }

    #[cold]
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::Own(OrtErrorCode::ORT_RUNTIME_EXCEPTION, text(message))
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
        Self::Own(code, text(error))
    }
}

/// Returns the text of a message for [`Failure::Own`].
fn text(message: impl fmt::Display) -> String {
    let mut text = Fallible(String::new());
    // This fails only if there is no memory. The text is then incomplete, without a NUL.
    let _ = write!(text, "ndscatter: {message}\0");
    text.0
}

/// A text whose writer returns an error if there is no memory. The writer of `String` would end the
/// process.
struct Fallible(String);

impl fmt::Write for Fallible {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.try_reserve(part.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(part);
        Ok(())
    }
}
