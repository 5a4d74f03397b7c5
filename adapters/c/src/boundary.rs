//! The boundary between C and Rust. All C functions cross it, except those that return a version or
//! the last failure.
//!
//! Catches panics, sets the default floating-point mode during the call, and converts the result of
//! the call to a status. Knows nothing of operators or tensors.

use crate::failure::Failure;
use crate::status::nds_status;

/// Runs a call from C in the default floating-point mode and returns its status. Catches a panic of
/// the call and returns `NDS_INTERNAL`.
///
/// This function stores no message for a [`Failure`] that `call` returns: the constructor of the
/// failure has stored the message for `nds_last_error`.
pub(crate) fn cross(call: impl FnOnce() -> Result<(), Failure>) -> nds_status {
    let outcome = ndscatter_host::cross(call).unwrap_or_else(|_| {
        Err(Failure::internal(format_args!(
            "the library panicked; this is a bug in the library"
        )))
    });
    match outcome {
        Ok(()) => nds_status::NDS_OK,
        Err(failure) => failure.status(),
    }
}

/// Writes `value` to `place`, the pointer that C passes for a result. Fails if `place` is null.
///
/// # Safety
///
/// `place` is null or valid for a write of a `T`. It may be unaligned.
pub(crate) unsafe fn write_result<T>(
    name: &'static str,
    place: *mut T,
    value: T,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::invalid(format_args!("`{name}` is null")));
    }
    // SAFETY: `place` is not null, so it is valid for the write (contract of this function).
    unsafe { place.write_unaligned(value) };
    Ok(())
}
