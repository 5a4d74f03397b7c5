//! Memory that may not be had: an error, never an abort.

use bytemuck::Zeroable;

use crate::error::ScatterError;

/// A vector of `len` zeros; pages are touched only when written.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>, ScatterError> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| out_of_memory::<T>(len))
}

/// The error for `len` elements that found no memory.
pub(crate) fn out_of_memory<T>(len: usize) -> ScatterError {
    ScatterError::OutOfMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    }
}
