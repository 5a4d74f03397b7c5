//! Infers the shape of the output, which is the shape of data for every operator.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use ort_sys::OrtShapeInferContext;

use crate::api::Api;
use crate::failure::Failure;

/// Returns a new name for an unknown size that has no name.
///
/// The host would interpret an unknown size without a name as -1. Names are unique, because the
/// host assumes that sizes with the same name are equal.
fn unnamed() -> CString {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    CString::new(format!("ndscatter_unknown_{number}")).unwrap_or_default()
}

/// Sets the shape of the output to the shape of the first input.
///
/// # Safety
///
/// `context` is a valid context of the host.
pub(crate) unsafe fn infer(api: Api, context: *mut OrtShapeInferContext) -> Result<(), Failure> {
    // SAFETY: this function has the contract of `infer_same_shape`.
    unsafe { api.infer_same_shape(context, unnamed) }
}
