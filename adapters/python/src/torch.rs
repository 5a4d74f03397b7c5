//! Kernels for PyTorch: what the package's `torch` module calls.
//!
//! | module | knows |
//! |---|---|
//! | `raw` | tensors as PyTorch hands them out, its threads; all that is unsafe here |
//! | `kernels` | which call of the crate an operator of PyTorch is |
//! | `gate` | which calls are large |
//! | `gradients` | operators by name: the calls and their gradients |
//!
//! A kernel returns whether it has done the call. If not, nothing has been written, and the
//! caller hands the call to PyTorch's own kernel, which knows what to say about it.

mod gate;
mod gradients;
mod kernels;
mod raw;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let torch = PyModule::new(module.py(), "torch")?;
    torch.add_function(wrap_pyfunction!(raw::connect, &torch)?)?;
    kernels::register(&torch)?;
    gate::register(&torch)?;
    gradients::register(&torch)?;
    module.add("torch", torch)
}
