//! Kernels for PyTorch. The Python package `ndscatter.torch` calls them.
//!
//! | module | knows |
//! |---|---|
//! | `raw` | PyTorch's tensors and threads; all unsafe code of this module |
//! | `kernels` | the call of the crate for each of PyTorch's operators |
//! | `gate` | dispatch of a call by the size of its tensors |
//! | `gradients` | the package's own operators and their gradients |
//!
//! A function of `kernels` returns whether it has run the call. If it returns false, it has written
//! nothing, and its caller calls PyTorch's kernel, which also raises PyTorch's errors.

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
