//! The entry point that ONNX Runtime looks for in a library of custom operators: this
//! library has it too.

use ndscatter_onnxruntime::RegisterCustomOps;

/// Keeps the function in the library, and so among its symbols.
#[used]
static ENTRY: unsafe extern "system" fn(
    *mut ort_sys::OrtSessionOptions,
    *const ort_sys::OrtApiBase,
) -> ort_sys::OrtStatusPtr = RegisterCustomOps;
