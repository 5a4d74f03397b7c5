//! The entry point for ONNX Runtime, and the counts of runs.
//!
//! ONNX Runtime calls the function `RegisterCustomOps` when it loads a library of custom operators.
//! This library exports the function.

use std::collections::BTreeMap;

use ndscatter_onnxruntime::RegisterCustomOps;
use pyo3::prelude::*;

/// A reference to `RegisterCustomOps`, so that the linker keeps the function in this library.
#[used]
static ENTRY: unsafe extern "system" fn(
    *mut ort_sys::OrtSessionOptions,
    *const ort_sys::OrtApiBase,
) -> ort_sys::OrtStatusPtr = RegisterCustomOps;

/// Return the number of successful runs of each operator under ONNX Runtime.
#[pyfunction]
fn _onnxruntime_runs() -> BTreeMap<&'static str, u64> {
    ndscatter_onnxruntime::runs().collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_onnxruntime_runs, module)?)
}
