//! The function `_explain`, which reports how a call would run.
//!
//! This module knows the arguments of the operators by name. It does not know how a report is made.

use ndscatter::Operator;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::explanation::PyExplanation;
use crate::failure::{integer, optional_integer};
use crate::gather;
use crate::options::{Meaning, choose};
use crate::scatter::{self, positions};

/// Reports how a call of the function `name` would run. `_explain.py` calls this function with all
/// arguments of the explained call.
#[pyfunction]
#[pyo3(signature = (
    name, *, data, indices, updates=None, axis=0, batch_dims=0, mode="linear", reduction="none",
    include_self=true, accumulate="native", bounds="error", duplicates="allow",
    negative_indices=true, out=None, threads=None,
))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
fn _explain<'py>(
    name: &str,
    data: &Bound<'py, PyAny>,
    indices: Option<&Bound<'py, PyAny>>,
    updates: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = integer)] axis: isize,
    #[pyo3(from_py_with = integer)] batch_dims: usize,
    mode: &str,
    reduction: &str,
    include_self: bool,
    accumulate: &str,
    bounds: &str,
    duplicates: &str,
    negative_indices: bool,
    out: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<PyExplanation> {
    let operator = match name {
        "scatter_nd" | "gather_nd" => Operator::Nd { batch_dims },
        "scatter_update" | "gather" => Operator::Along { axis },
        "scatter_elements" | "gather_elements" => Operator::Elements { axis },
        "gather_paged" => Operator::Paged,
        "tensor_scatter" => Operator::Cache {
            axis,
            mode: choose("mode", mode)?,
            update_len: 1,
        },
        _ => return Err(PyValueError::new_err("`name` is not one of the functions")),
    };
    let negative_indices = negative_indices && operator != Operator::Paged;
    let meaning = Meaning::parse(
        reduction,
        include_self,
        accumulate,
        bounds,
        duplicates,
        negative_indices,
    )?;
    match updates {
        Some(updates) => {
            let call = scatter::Call {
                operator,
                meaning,
                data,
                updates,
                out,
                threads,
            };
            call.explain(positions(data.py(), indices)?)
        }
        None => {
            let call = gather::Call {
                operator,
                meaning,
                data,
                indices: indices.ok_or_else(|| PyValueError::new_err("`indices` is missing"))?,
                out,
                threads,
            };
            call.explain()
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_explain, module)?)
}
