//! Kernels that replace PyTorch's kernels. The Python package `ndscatter.torch` calls these
//! kernels.
//!
//! | module | knows |
//! |---|---|
//! | `connection` | PyTorch's C functions and threads |
//! | `tensor` | PyTorch's tensors as addresses and layouts |
//! | `call` | the function and the arguments of a call |
//! | `counts`, `reason` | the numbers of calls per function; why PyTorch's own kernel runs a call |
//! | `dispatch` | the steps of a call; which module has the rules of a function |
//! | `scattering`, `put`, `embedding`, `gathers` | the rules of PyTorch's functions, and the calls that gain |
//! | `indices` | lists of index tensors |
//! | `python` | entry of kernels that are Python functions |
//! | `native` | entry of kernels in C++ (`python/ndscatter/torch/shim.cpp`) |
//! | `gate` | dispatch of a call by the number of elements of its tensors |
//! | `gradients` | the package's own operators and their gradients |
//!
//! A kernel returns whether it has run the call. After the value false, the output is unchanged,
//! and PyTorch's own kernel runs the call. If the arguments are wrong, PyTorch's kernel raises
//! PyTorch's error.

mod call;
mod connection;
mod counts;
mod dispatch;
mod embedding;
mod gate;
mod gathers;
mod gradients;
mod indices;
mod native;
mod put;
mod python;
mod reason;
mod scattering;
mod tensor;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let torch = PyModule::new(module.py(), "torch")?;
    torch.add_function(wrap_pyfunction!(connection::connect, &torch)?)?;
    counts::register(&torch)?;
    python::register(&torch)?;
    native::register(&torch)?;
    gate::register(&torch)?;
    gradients::register(&torch)?;
    module.add("torch", torch)
}
