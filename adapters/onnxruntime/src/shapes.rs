//! Infers the shape of an operator's output before a run. The output of every operator has the
//! shape of its data.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use ort_sys::OrtShapeInferContext;

use crate::api::Api;
use crate::failure::Failure;

/// Returns a new name for an unknown size that has no name.
///
/// If an unknown size had no name, the host would use -1 as the size. Each call returns a different
/// name, because the host assumes that sizes with the same name are equal.
fn unnamed() -> CString {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    CString::new(format!("ndscatter_unknown_{number}")).unwrap_or_default()
}

/// Sets the inferred shape of the output to the inferred shape of the first input, which is the
/// data.
///
/// # Safety
///
/// `context` is a valid object of the host.
pub(crate) unsafe fn infer(api: Api, context: *mut OrtShapeInferContext) -> Result<(), Failure> {
    // SAFETY: `context` is valid (contract of this function).
    unsafe { api.infer_same_shape(context, unnamed) }
}
