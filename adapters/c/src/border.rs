//! What every call from C goes through.

use crate::failure::Failure;
use crate::status::nds_status;

/// Runs a call from C: in the default floating-point mode, without letting a
/// panic out. What fails has been kept for `last_error` when it was made.
pub(crate) fn cross(call: impl FnOnce() -> Result<(), Failure>) -> nds_status {
    let outcome = ndscatter_host::cross(call).unwrap_or_else(|_| {
        Err(Failure::internal(format_args!(
            "the library panicked; this is a bug in it"
        )))
    });
    match outcome {
        Ok(()) => nds_status::NDS_OK,
        Err(failure) => failure.status(),
    }
}

/// Writes `value` where C asked for it.
///
/// # Safety
///
/// `place` is null or may be written.
pub(crate) unsafe fn give<T>(name: &'static str, place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::invalid(format_args!("`{name}` is null")));
    }
    // SAFETY: the caller vouches for the place.
    unsafe { place.write_unaligned(value) };
    Ok(())
}
