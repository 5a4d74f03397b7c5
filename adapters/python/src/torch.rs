//! Kernels that replace PyTorch's kernels. The Python package `ndscatter.torch` calls these
//! kernels.
//!
//! | module | knows |
//! |---|---|
//! | `raw` | PyTorch's tensors and threads; all unsafe code of this module |
//! | `kernels` | the call of the crate for each of PyTorch's operators |
//! | `gate` | dispatch of a call by the number of elements of its tensors |
//! | `gradients` | the package's own operators and their gradients |
//!
//! Each function of `kernels` returns whether it has run the call. After the value false, the
//! output is unchanged, and the Python package calls PyTorch's own kernel instead. If the arguments
//! are wrong, PyTorch's kernel raises PyTorch's error.

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
