//! Export of `RegisterCustomOps`, the entry point of a library of custom operators for ONNX
//! Runtime.

use ndscatter_onnxruntime::RegisterCustomOps;

/// A reference that keeps the function among the symbols of this library.
#[used]
static ENTRY: unsafe extern "system" fn(
    *mut ort_sys::OrtSessionOptions,
    *const ort_sys::OrtApiBase,
) -> ort_sys::OrtStatusPtr = RegisterCustomOps;
