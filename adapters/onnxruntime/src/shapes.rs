//! Shape inference: the output of every operator has the shape of its data.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use ort_sys::OrtShapeInferContext;

use crate::api::Api;
use crate::failure::Failure;

/// A name for a size that is not known and has none: without one, the host would take it
/// for a size of -1. No two are the same, as the host takes equal names for equal sizes.
fn unnamed() -> CString {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    CString::new(format!("ndscatter_unknown_{number}")).unwrap_or_default()
}

/// # Safety
///
/// `context` is the host's.
pub(crate) unsafe fn infer(api: Api, context: *mut OrtShapeInferContext) -> Result<(), Failure> {
    // SAFETY: handed on as it is.
    unsafe { api.infer_same_shape(context, unnamed) }
}
