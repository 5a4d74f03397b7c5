//! The public gathers: `gather_nd`, `gather`, `gather_elements`.

use ndscatter::{Gather, Operator, ScatterError};
use pyo3::prelude::*;

use crate::array::{Array, Source, elements_of};
use crate::docs::docs;
use crate::explanation::PyExplanation;
use crate::failure::{Failure, integer, optional_integer};
use crate::operands::{self, Operands};
use crate::options::Meaning;
use crate::scatter::fit;
use crate::threads::{execution, run};

/// The arguments of one call of a gather.
pub(crate) struct Call<'a, 'py> {
    pub(crate) operator: Operator,
    pub(crate) meaning: Meaning,
    pub(crate) data: &'a Bound<'py, PyAny>,
    pub(crate) indices: &'a Bound<'py, PyAny>,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<isize>,
}

/// The converted arguments of one call of a gather.
struct Prepared<'py> {
    gather: Gather<'static>,
    indices: Array<'py>,
    operands: Operands<'py>,
    /// Shape of the result.
    shape: Vec<usize>,
}

impl<'py> Call<'_, 'py> {
    fn prepare(&self) -> PyResult<Prepared<'py>> {
        let execution = execution(self.threads)?;
        let (data, indices) = (Source::of(self.data)?, Source::of(self.indices)?);
        let output = self.out.map(Source::of_output).transpose()?;
        let (data, mut indices) = (data.read()?, operands::indices(indices)?);
        let shape = self.operator.output_shape(data.shape(), indices.shape());
        let shape = shape.map_err(Failure)?;
        let output = output.map(operands::output).transpose()?;
        let operands = Operands::new(data, None, output, true)?;
        let operator = fit(self.operator, &operands, &mut indices)?;
        Ok(Prepared {
            gather: self.meaning.gather(operator)?.execution(execution),
            indices,
            operands,
            shape,
        })
    }

    fn run(self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.data.py();
        let Prepared {
            gather,
            indices,
            operands,
            shape,
        } = self.prepare()?;
        let result = operands.new_result(py, &shape)?;
        let size = elements_of(&shape);
        let output = operands.target(result.as_ref())?;
        let (data, at) = (operands.data.view()?, indices.view()?);
        run(py, size, || gather.write_into(data, at, output))?.map_err(Failure)?;
        operands.finish(result)
    }

    /// Reports how the call would run. The call does not run.
    pub(crate) fn explain(self) -> PyResult<PyExplanation> {
        let py = self.data.py();
        let prepared = self.prepare()?;
        check_output(&prepared.operands, &prepared.shape)?;
        let (gather, operands) = (prepared.gather, prepared.operands);
        let (dtype, allocates) = (operands.data.known()?, operands.output.is_none());
        let (layout, at) = (operands.data.layout()?, prepared.indices.view()?);
        let explained = run(py, prepared.indices.len(), || {
            gather.explain(layout, at, dtype, allocates)
        })?;
        Ok(PyExplanation::new(explained.map_err(Failure)?, dtype))
    }
}

/// Returns the error of a gather whose `out` does not have the shape `expected`.
fn check_output(operands: &Operands<'_>, expected: &[usize]) -> PyResult<()> {
    match &operands.output {
        Some(output) if operands.caller_shape(output) != expected => {
            Err(PyErr::from(Failure(ScatterError::OutputShape {
                expected: expected.to_vec(),
                actual: operands.caller_shape(output).to_vec(),
            })))
        }
        _ => Ok(()),
    }
}

macro_rules! gathers {
    ($(
        $(#[$docs:meta])*
        $name:ident [$($argument:tt)*] $option:ident: $type:ty => $operator:expr;
    )*) => {$(
        $(#[$docs])*
        #[pyfunction]
        #[pyo3(signature = (
            data, indices, $($argument)*, bounds="error", negative_indices=true, out=None,
            threads=None,
        ))]
        pub(crate) fn $name<'py>(
            data: &Bound<'py, PyAny>,
            indices: &Bound<'py, PyAny>,
            #[pyo3(from_py_with = integer)] $option: $type,
            bounds: &str,
            negative_indices: bool,
            out: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let call = Call {
                operator: $operator,
                meaning: Meaning::of_indices(bounds, negative_indices)?,
                data,
                indices,
                out,
                threads,
            };
            call.run()
        }
    )*};
}

gathers! {
    /// Return the slices of `data` that tuples of coordinates address.
    ///
    /// With ``k = indices.shape[-1]`` and ``b = batch_dims``, the result has the shape
    /// ``indices.shape[:-1] + data.shape[b + k:]``. The first ``b`` dimensions of `data` must equal
    /// the first ``b`` dimensions of `indices`. Each position along these batch dimensions is a
    /// separate gather.
    ///
    /// Args:
    ///     data: array of any shape, of any element type except numpy's ``object``.
    ///     indices: integers of any integer type, of shape ``(..., k)``.
    ///     batch_dims: number of leading dimensions that `data` and `indices` share.
    #[doc = docs!("end of gather")]
    /// The semantics of `gather_nd` are those of ONNX GatherND 13.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([[0, 1], [2, 3]])
    /// >>> ndscatter.gather_nd(data, [[1, 0], [0, 1]])
    /// array([2, 1])
    gather_nd [*, batch_dims=0] batch_dims: usize => Operator::Nd { batch_dims };

    /// Return the slices of `data` at the positions `indices` along the axis `axis`.
    ///
    /// The result has the shape
    /// ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type except numpy's ``object``.
    ///     indices: integers of any integer type and any shape.
    #[doc = docs!("axis")]
    #[doc = docs!("end of gather")]
    /// The semantics of `gather` are those of ONNX Gather 13, numpy ``take`` and torch
    /// ``index_select``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> ndscatter.gather(np.array([[1, 2], [3, 4], [5, 6]]), [2, 0])
    /// array([[5, 6],
    ///        [1, 2]])
    gather [axis=0, *] axis: isize => Operator::Along { axis };

    /// Return one element of `data` for each element of `indices`. The index is the position of the
    /// returned element along the axis `axis`.
    ///
    /// For rank 3 and ``axis=1``, element ``[i, j, k]`` of the result is
    /// ``data[i, indices[i, j, k], k]``. The result has the shape of `indices`.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type except numpy's ``object``.
    ///     indices: integers of any integer type, of the rank of `data`. Along `axis`, `indices`
    ///         may have any size. Along every other axis, the size of `indices` is at most the size
    ///         of `data`.
    #[doc = docs!("axis")]
    #[doc = docs!("end of gather")]
    /// The semantics of `gather_elements` are those of ONNX GatherElements 13, numpy
    /// ``take_along_axis`` and torch ``gather``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([[1, 2], [3, 4]])
    /// >>> ndscatter.gather_elements(data, [[0, 0], [1, 0]], axis=1)
    /// array([[1, 1],
    ///        [4, 3]])
    gather_elements [axis=0, *] axis: isize => Operator::Elements { axis };
}

/// Return the rows of a paged cache at the positions `slots`.
///
/// The cache has the shape ``(blocks, block_size, ...)``, as for `write_paged`. Row ``i`` of the
/// result is slot ``slots[i]``. The result has the shape ``slots.shape + data.shape[2:]``.
///
/// Args:
///     data: the cache, of any element type except numpy's ``object``.
///     slots: integers of any integer type and any shape.
#[doc = docs!("read slots")]
#[doc = docs!("out")]
#[doc = docs!("threads")]
///
#[doc = docs!("returns")]
///
#[doc = docs!("read slot errors")]
///
/// >>> import numpy as np, ndscatter
/// >>> ndscatter.gather_paged(np.array([[1, 2], [3, 4]]), [3, -1, 0])
/// array([4, 0, 1])
#[pyfunction]
#[pyo3(signature = (data, slots, *, bounds="skip negative", out=None, threads=None))]
pub(crate) fn gather_paged<'py>(
    data: &Bound<'py, PyAny>,
    slots: &Bound<'py, PyAny>,
    bounds: &str,
    out: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call {
        operator: Operator::Paged,
        meaning: Meaning::of_indices(bounds, false)?,
        data,
        indices: slots,
        out,
        threads,
    };
    call.run()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gather_nd, module)?)?;
    module.add_function(wrap_pyfunction!(gather, module)?)?;
    module.add_function(wrap_pyfunction!(gather_elements, module)?)?;
    module.add_function(wrap_pyfunction!(gather_paged, module)?)
}
