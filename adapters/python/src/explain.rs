//! The function `_explain`, which reports how a call would run.
//!
//! This module knows the arguments of the operators by name. It does not know how a report is made.

use ndscatter::Operator;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyNone;

use crate::array::Source;
use crate::explanation::PyExplanation;
use crate::failure::{integer, optional_integer};
use crate::gather;
use crate::options::{Meaning, choose};
use crate::scatter::{self, positions};

/// How the indices of a function address elements.
#[derive(Clone, Copy, Debug)]
enum Addressing {
    Nd,
    Along,
    Elements,
    Paged,
    Cache,
}

/// The functions whose calls are explained. The last item is true for a gather.
const FUNCTIONS: [(&str, Addressing, bool); 8] = [
    ("scatter_nd", Addressing::Nd, false),
    ("scatter_update", Addressing::Along, false),
    ("scatter_elements", Addressing::Elements, false),
    ("tensor_scatter", Addressing::Cache, false),
    ("gather_nd", Addressing::Nd, true),
    ("gather", Addressing::Along, true),
    ("gather_elements", Addressing::Elements, true),
    ("gather_paged", Addressing::Paged, true),
];

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
    let known = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    let &(_, addressing, is_gather) =
        known.ok_or_else(|| PyValueError::new_err("`name` is not one of the functions"))?;
    let operator = match addressing {
        Addressing::Nd => Operator::Nd { batch_dims },
        Addressing::Along => Operator::Along { axis },
        Addressing::Elements => Operator::Elements { axis },
        Addressing::Paged => Operator::Paged,
        Addressing::Cache => Operator::Cache {
            axis,
            mode: choose("mode", mode)?,
            update_len: 1,
        },
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
    // Python's None is an argument like any other: the calls themselves convert or refuse it.
    let none = PyNone::get(data.py());
    let given = indices.unwrap_or(&none);
    if is_gather {
        let call = gather::Call {
            operator,
            meaning,
            data,
            indices: given,
            out,
            threads,
        };
        return call.explain();
    }
    let call = scatter::Call {
        operator,
        meaning,
        data,
        updates: updates.unwrap_or(&none),
        out,
        threads,
    };
    call.explain(match addressing {
        Addressing::Cache => positions(data.py(), indices)?,
        _ => Source::of(given)?,
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("_EXPLAINED", FUNCTIONS.map(|(name, ..)| name))?;
    module.add_function(wrap_pyfunction!(_explain, module)?)
}
