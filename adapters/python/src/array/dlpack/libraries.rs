//! Properties of a library's arrays that DLPack does not describe.
//!
//! This module recognises a JAX array by the `__module__` of the object's type, which begins with
//! `jax`. A PyTorch tensor is recognised as an instance of `Tensor` of the module `torch` in
//! `sys.modules`. Neither check imports a library, because an array of a library exists only if the
//! program has imported the library.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Checks whether an object is a JAX array. JAX arrays are immutable, even if the flags of their
/// DLPack tensors allow writing.
pub(in crate::array) fn is_immutable(object: &Bound<'_, PyAny>) -> bool {
    let module = object
        .get_type()
        .getattr(intern!(object.py(), "__module__"));
    let module: Option<String> = module.ok().and_then(|module| module.extract().ok());
    module.is_some_and(|module| module.starts_with("jax"))
}

/// Checks whether an object is a PyTorch tensor.
pub(in crate::array) fn is_torch_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    if let Some(tensor) = TENSOR.get(py) {
        return object.is_instance(tensor.bind(py));
    }
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(torch) = modules.get_item(intern!(py, "torch")) else {
        return Ok(false);
    };
    let Ok(tensor) = torch.getattr(intern!(py, "Tensor")) else {
        return Ok(false);
    };
    let tensor = tensor.cast_into::<PyType>()?.unbind();
    object.is_instance(TENSOR.get_or_init(py, || tensor).bind(py))
}

/// Increments the version counter of a PyTorch tensor after a call has written to the tensor.
/// PyTorch's own in-place functions also increment the counter. Does nothing for other objects.
///
/// A later backward pass may need the elements that the call overwrote. Because of the increment,
/// this backward pass raises an error. Without the increment, the backward pass would compute a
/// wrong gradient.
pub(in crate::array) fn note_written(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    if !is_torch_tensor(object)? {
        return Ok(());
    }
    // An inference tensor has no version counter. It needs no counter, because PyTorch does not
    // save inference tensors for a backward pass.
    if object
        .call_method0(intern!(py, "is_inference"))?
        .is_truthy()?
    {
        return Ok(());
    }
    static INCREMENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let increment = INCREMENT.import(py, "torch.autograd.graph", "increment_version")?;
    increment.call1((object,)).map(drop)
}
