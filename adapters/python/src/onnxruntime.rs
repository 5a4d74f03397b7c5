//! Export of the function `RegisterCustomOps`. ONNX Runtime calls this function when it loads a
//! library of custom operators.

use ndscatter_onnxruntime::RegisterCustomOps;

/// A reference to `RegisterCustomOps`, so that the linker keeps the function in this library.
#[used]
static ENTRY: unsafe extern "system" fn(
    *mut ort_sys::OrtSessionOptions,
    *const ort_sys::OrtApiBase,
) -> ort_sys::OrtStatusPtr = RegisterCustomOps;
