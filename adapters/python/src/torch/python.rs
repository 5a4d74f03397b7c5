//! The entry from Python: kernels that are Python functions call [`attempt`].

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

use super::call::{Alpha, Arguments, Function, Stop};
use super::connection::exception;
use super::counts::count_declined;
use super::dispatch::{self, Step};
use super::reason::Reason;
use super::tensor::Tensor;

/// Performs the step "decide", "run" or "decide and run" of a call. Returns whether the crate has
/// decided to run the call, or has run it.
#[pyfunction]
#[pyo3(signature = (function, step, output, data, dim, indices, updates, always, *, reduce=None,
    include_self=true, accumulate=false, alpha=None))]
#[expect(clippy::too_many_arguments, reason = "those of PyTorch")]
fn attempt(
    py: Python<'_>,
    function: &str,
    step: &str,
    output: &Bound<'_, PyAny>,
    data: Option<&Bound<'_, PyAny>>,
    dim: i64,
    indices: Vec<Option<Bound<'_, PyAny>>>,
    updates: Option<&Bound<'_, PyAny>>,
    always: bool,
    reduce: Option<&str>,
    include_self: bool,
    accumulate: bool,
    alpha: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let function = Function::named(function)?;
    let step = match step {
        "decide" => Step::Decide,
        "run" => Step::Run,
        "decide and run" => Step::DecideAndRun,
        other => return Err(PyValueError::new_err(format!("unknown step {other:?}"))),
    };
    let arguments = || {
        Ok(Arguments {
            output: Tensor::of(output)?,
            data: data.map(Tensor::of).transpose()?,
            dim,
            indices: (indices.iter())
                .map(|index| index.as_ref().map(Tensor::of).transpose())
                .collect::<Result<_, Reason>>()?,
            updates: updates.map(Tensor::of).transpose()?,
            reduce,
            include_self,
            accumulate,
            is_new: false,
            alpha: (alpha.map_or(Some(Alpha::Integer(1)), read_alpha)).ok_or(Reason::Argument)?,
        })
    };
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(reason) => {
            count_declined(function, reason);
            return Ok(false);
        }
    };
    match py.detach(|| dispatch::attempt(function, step, &arguments, always)) {
        Ok(_) => Ok(true),
        Err(Stop::Declined(_)) => Ok(false),
        Err(Stop::Failed(failed)) => Err(exception(failed)),
    }
}

/// Reads a factor. Returns `None` for a number that does not fit in 64 bits.
fn read_alpha(alpha: &Bound<'_, PyAny>) -> Option<Alpha> {
    if alpha.is_instance_of::<PyBool>() {
        alpha.extract().ok().map(Alpha::Bool)
    } else if alpha.is_instance_of::<PyInt>() {
        alpha.extract().ok().map(Alpha::Integer)
    } else if alpha.is_instance_of::<PyFloat>() {
        alpha.extract().ok().map(Alpha::Float)
    } else {
        alpha
            .is_instance_of::<PyComplex>()
            .then_some(Alpha::Complex)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(attempt, module)?)
}
