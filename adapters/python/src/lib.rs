//! ndscatter for Python.
//!
//! | module | knows |
//! |---|---|
//! | `array` | arrays of numpy and of DLPack; all that is unsafe |
//! | `operands` | the arrays of a call, in one form |
//! | `options` | names of options, operators |
//! | `scatter`, `gather`, `plan` | the functions by name |
//! | `at`, `bincount` | the functions that numpy has too |
//! | `tuples` | tuples of coordinates as positions |
//! | `value` | one value that stands for many |
//! | `threads`, `failure` | who runs a call; exceptions |
//! | `about` | what `python -m ndscatter` says |
//! | `onnxruntime` | the entry point for ONNX Runtime |
//! | `torch` | kernels for PyTorch |

use pyo3::prelude::*;

mod about;
mod array;
mod at;
mod bincount;
mod failure;
mod gather;
mod onnxruntime;
mod operands;
mod options;
mod plan;
mod scatter;
mod threads;
mod torch;
mod tuples;
mod value;

#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    about::register(module)?;
    scatter::register(module)?;
    gather::register(module)?;
    plan::register(module)?;
    at::register(module)?;
    bincount::register(module)?;
    torch::register(module)?;
    Ok(())
}
