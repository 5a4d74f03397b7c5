//! The extension module `ndscatter._native`.
//!
//! | module | knows |
//! |---|---|
//! | `array` | arrays of numpy and of DLPack; all unsafe code outside of `torch` |
//! | `operands` | `data`, updates and `out` of a call, converted to one element type |
//! | `options` | names of options; operators |
//! | `scatter`, `gather`, `plan` | the public scatters, gathers and plans |
//! | `writes`, `moves` | writes and moves of rows, in place |
//! | `at`, `bincount` | the functions with numpy's rules |
//! | `sharding` | tables whose rows are divided among processes |
//! | `tuples` | conversion of tuples of coordinates to positions |
//! | `value` | one value that stands for all updates |
//! | `threads` | the pool of a call, and Python's lock |
//! | `failure` | conversion of errors to exceptions |
//! | `types` | numpy's names of element types |
//! | `explain`, `explanation` | reports of how calls would run |
//! | `docs` | texts that several docstrings share |
//! | `about` | version, instruction set, number of threads, machine |
//! | `onnxruntime` | the entry point for ONNX Runtime, and counts of runs |
//! | `torch` | kernels for PyTorch |

use pyo3::prelude::*;

mod about;
mod array;
mod at;
mod bincount;
mod docs;
mod explain;
mod explanation;
mod failure;
mod gather;
mod moves;
mod onnxruntime;
mod operands;
mod options;
mod plan;
mod scatter;
mod sharding;
mod threads;
mod torch;
mod tuples;
mod types;
mod value;
mod writes;

#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Loads numpy's table of functions. The crate `numpy` would otherwise import it in the first call.
    // If the first call ran while the interpreter ends, this import would fail, and panic.
    numpy::dtype::<f64>(module.py());
    about::register(module)?;
    scatter::register(module)?;
    gather::register(module)?;
    plan::register(module)?;
    explanation::register(module)?;
    explain::register(module)?;
    writes::register(module)?;
    moves::register(module)?;
    sharding::register(module)?;
    at::register(module)?;
    bincount::register(module)?;
    onnxruntime::register(module)?;
    torch::register(module)?;
    Ok(())
}
