//! The public scatters: `scatter_nd`, `scatter_update`, `scatter_elements`, `tensor_scatter`.
//!
//! This module knows the arguments of a scatter, and the order in which the arguments are
//! converted. It does not know how an array is read, or what a scatter computes.

use ndscatter::{Execution, Operator, Reduction, ScatterError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{Array, Source, is_number};
use crate::docs::docs;
use crate::explanation::PyExplanation;
use crate::failure::{Failure, integer, optional_integer};
use crate::operands::{self, Operands, no_array};
use crate::options::{Meaning, choose};
use crate::threads::{execution, run};

/// The arguments of one call of a scatter, except for the indices.
pub(crate) struct Call<'a, 'py> {
    pub(crate) operator: Operator,
    pub(crate) meaning: Meaning,
    pub(crate) data: &'a Bound<'py, PyAny>,
    pub(crate) updates: &'a Bound<'py, PyAny>,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<isize>,
}

/// The converted arguments of one call of a scatter.
struct Prepared<'py> {
    operator: Operator,
    execution: Execution<'static>,
    indices: Array<'py>,
    operands: Operands<'py>,
}

impl<'py> Call<'_, 'py> {
    fn prepare(&self, indices: Source<'py>) -> PyResult<Prepared<'py>> {
        let execution = execution(self.threads)?;
        let (data, updates) = (Source::of(self.data)?, Source::of(self.updates)?);
        let output = self.out.map(Source::of_output).transpose()?;
        let (data, mut indices) = (data.read()?, operands::indices(indices)?);
        refuse_one_number(is_flat(self.operator, &indices), self.updates)?;
        let updates = operands::updates(updates, &data)?;
        let output = output.map(operands::output).transpose()?;
        let is_moved = self.meaning.reduction == Reduction::None;
        let operands = Operands::new(data, Some(updates), output, is_moved)?;
        Ok(Prepared {
            operator: fit(self.operator, &operands, &mut indices)?,
            execution,
            indices,
            operands,
        })
    }

    fn run(self, indices: Source<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.data.py();
        let Prepared {
            operator,
            execution,
            indices,
            mut operands,
        } = self.prepare(indices)?;
        let scatter = self.meaning.scatter(operator)?.execution(execution);
        let result = operands.new_result(py, &operands.shape())?;
        broadcasting(&mut operands, |operands, updates| {
            let output = operands.target(result.as_ref())?;
            let size = operands.data.len() + updates.len();
            let (data, at, updates) = (operands.data.view()?, indices.view()?, updates.view()?);
            run(py, size, || scatter.write_into(data, at, updates, output))
        })?;
        operands.finish(result)
    }

    /// Reports how the call would run. The call does not run.
    pub(crate) fn explain(self, indices: Source<'py>) -> PyResult<PyExplanation> {
        let py = self.data.py();
        let Prepared {
            operator,
            execution,
            indices,
            mut operands,
        } = self.prepare(indices)?;
        if let Some(output) = &operands.output {
            check_data(&operands.data, output.shape())?;
        }
        let updates = operands.updates.take().ok_or_else(no_array)?;
        let operator = operator.for_updates(updates.shape());
        let expected = operator.updates_shape(operands.data.shape(), indices.shape());
        let one_tuple = is_flat(operator, &indices).then(|| indices.len());
        check_updates(updates, &expected.map_err(Failure)?, one_tuple)?;
        let scatter = self.meaning.scatter(operator)?.execution(execution);
        let (dtype, is_in_place) = (operands.data.known()?, operands.is_in_place());
        let (layout, at) = (operands.output_layout()?, indices.view()?);
        let explained = run(py, indices.len(), || {
            scatter.explain(layout, at, dtype, is_in_place)
        })?;
        Ok(PyExplanation::new(explained.map_err(Failure)?, dtype))
    }
}

/// Checks whether the indices of `scatter_nd` or `gather_nd` have one axis. Such indices are the
/// coordinates of one tuple. The caller may have meant a list of rows.
pub(crate) fn is_flat(operator: Operator, indices: &Array<'_>) -> bool {
    matches!(operator, Operator::Nd { .. }) && indices.rank() == 1
}

/// Returns an error if one number is the update of the single tuple in `indices` with one axis.
/// This call would have the shapes of a call that writes the number to a list of rows.
pub(crate) fn refuse_one_number(is_flat: bool, updates: &Bound<'_, PyAny>) -> PyResult<()> {
    match is_flat && is_number(updates) {
        false => Ok(()),
        true => Err(PyValueError::new_err(
            "`indices` with one axis is one tuple of coordinates, and `updates` is one number; did \
             you mean `scatter_update`, or `indices[:, None]`? For one tuple, pass `[indices]`",
        )),
    }
}

/// Adapts an operator and its indices to a call that divides each element into several units. In
/// such a call, `data` has an additional last axis, with one position per unit of an element. For
/// any other call, returns `operator` unchanged.
pub(crate) fn fit(
    operator: Operator,
    operands: &Operands<'_>,
    indices: &mut Array<'_>,
) -> PyResult<Operator> {
    let Some((count, _)) = operands.units else {
        return Ok(operator);
    };
    let shape = operands.shape();
    match operator {
        // Checks that a tuple does not have more coordinates than the caller's `data` has axes. A
        // longer tuple would index the additional axis.
        // A paged cache needs two axes, and the additional axis is not one of them.
        Operator::Nd { .. } | Operator::Paged => {
            let gathered = operator.output_shape(&shape, indices.shape());
            gathered.map_err(Failure)?;
        }
        Operator::Elements { .. } => indices.repeat(count),
        _ => {}
    }
    Ok(operator.for_rank(shape.len()).map_err(Failure)?)
}

/// Returns the error of a call whose updates have another shape than `expected` and cannot be
/// broadcast to it. A shape of rank 0 allows updates of any rank that have one element.
pub(crate) fn check_updates(
    mut updates: Array<'_>,
    expected: &[usize],
    one_tuple: Option<usize>,
) -> PyResult<()> {
    let is_one = expected.is_empty() && updates.len() == 1;
    match updates.shape() == expected || is_one || updates.broadcast(expected) {
        true => Ok(()),
        false => Err(PyErr::from(Failure(ScatterError::UpdatesShape {
            expected: expected.to_vec(),
            actual: updates.shape().to_vec(),
            one_tuple,
        }))),
    }
}

/// Returns the error of a call whose `data` does not have the shape `expected` of its output.
fn check_data(data: &Array<'_>, expected: &[usize]) -> PyResult<()> {
    match data.shape() == expected {
        true => Ok(()),
        false => Err(PyErr::from(Failure(ScatterError::DataShape {
            expected: expected.to_vec(),
            actual: data.shape().to_vec(),
        }))),
    }
}

/// Runs `call` with the updates. If the crate refuses the shape of the updates, and the updates can
/// be broadcast to the expected shape, runs `call` again with the broadcast updates.
pub(crate) fn broadcasting<'py>(
    operands: &mut Operands<'py>,
    mut call: impl FnMut(&Operands<'py>, &Array<'py>) -> PyResult<Result<(), ScatterError>>,
) -> PyResult<()> {
    let mut updates = operands.updates.take().ok_or_else(no_array)?;
    let done = match call(operands, &updates)? {
        Err(ScatterError::UpdatesShape { expected, .. }) if updates.broadcast(&expected) => {
            call(operands, &updates)?
        }
        done => done,
    };
    Ok(done.map_err(Failure)?)
}

/// Defines the Python functions for scatters with all options. `tensor_scatter` has fewer options
/// and is not defined by this macro.
macro_rules! scatters {
    ($(
        $(#[$docs:meta])*
        $name:ident $([$axis:ident])? => $operator:expr;
    )*) => {$(
        $(#[$docs])*
        #[pyfunction]
        #[pyo3(signature = (
            data, indices, updates, $($axis=0,)? *, reduction="none", include_self=true,
            accumulate="native", bounds="error", duplicates="allow", negative_indices=true,
            out=None, threads=None,
        ))]
        #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
        pub(crate) fn $name<'py>(
            data: &Bound<'py, PyAny>,
            indices: &Bound<'py, PyAny>,
            updates: &Bound<'py, PyAny>,
            $(#[pyo3(from_py_with = integer)] $axis: isize,)?
            reduction: &str,
            include_self: bool,
            accumulate: &str,
            bounds: &str,
            duplicates: &str,
            negative_indices: bool,
            out: Option<&Bound<'py, PyAny>>,
            #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let call = Call {
                operator: $operator,
                meaning: Meaning::parse(
                    reduction, include_self, accumulate, bounds, duplicates, negative_indices,
                )?,
                data,
                updates,
                out,
                threads,
            };
            call.run(Source::of(indices)?)
        }
    )*};
}

scatters! {
    /// Write slices of `updates` to the destinations that tuples of coordinates address.
    ///
    /// With ``k = indices.shape[-1]``, update ``i`` is written to ``data[tuple(indices[i])]``,
    /// a slice of shape ``data.shape[k:]``. If several tuples have the same destination, their
    /// updates are applied in the row-major order of the tuples in `indices`. Without a reduction,
    /// the destination keeps the last of these updates.
    ///
    /// Args:
    ///     data: array of any shape, of any element type except numpy's ``object``.
    ///     indices: integers of any integer type, of shape ``(..., k)`` with ``k <= data.ndim``.
    ///     updates: array of the element type of `data`, of shape
    ///         ``indices.shape[:-1] + data.shape[k:]`` or a shape that broadcasts to it. A list
    ///         or a number is converted to the element type of `data`. Indices with one axis are
    ///         one tuple, and are refused if `updates` is a number.
    #[doc = docs!("scatter options")]
    #[doc = docs!("end of scatter")]
    /// The semantics of `scatter_nd` are those of ONNX ScatterND 18 and OpenVINO ScatterNDUpdate
    /// 15.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> table = np.zeros((3, 2))
    /// >>> rows = np.array([[0], [2], [2]])
    /// >>> ndscatter.scatter_nd(table, rows, [[1, 1], [2, 2], [3, 3]], reduction="add")
    /// array([[1., 1.],
    ///        [0., 0.],
    ///        [5., 5.]])
    scatter_nd => Operator::Nd { batch_dims: 0 };

    /// Write slices of `updates` to the positions `indices` along the axis `axis`.
    ///
    /// For each position ``i`` in `indices`, update ``[.., i, ..]`` is written to
    /// ``data[.., indices[i], ..]``. With ``axis=0``, each update is one row of a table. If several
    /// indices select the same position, their updates are applied in the row-major order of
    /// `indices`. Without a reduction, the position keeps the last of these updates.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type except numpy's ``object``.
    ///     indices: integers of any integer type and any shape.
    ///     updates: array of the element type of `data`, of shape
    ///         ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]`` or a shape that
    ///         broadcasts to it.
    #[doc = docs!("axis")]
    #[doc = docs!("scatter options")]
    #[doc = docs!("end of scatter")]
    /// The semantics of `scatter_update` are those of OpenVINO ScatterUpdate 3, torch
    /// ``index_add_`` and segment sums. OpenVINO ScatterUpdate 3 forbids negative indices.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.zeros((2, 3), np.int32)
    /// >>> ndscatter.scatter_update(data, [2, 0], [[30, 10], [60, 40]], axis=1)
    /// array([[10,  0, 30],
    ///        [40,  0, 60]], dtype=int32)
    scatter_update [axis] => Operator::Along { axis };

    /// Write each element of `updates` to one element of `data`. The index of the update is the
    /// position of the destination along the axis `axis`.
    ///
    /// For rank 3 and ``axis=1``, update ``[i, j, k]`` is written to
    /// ``data[i, indices[i, j, k], k]``. If several updates have the same destination, the updates
    /// are applied in the row-major order of `indices`. Without a reduction, the destination keeps
    /// the last of these updates.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type except numpy's ``object``.
    ///     indices: integers of any integer type, of the rank of `data`. Along `axis`, `indices`
    ///         may have any size. Along every other axis, the size of `indices` is at most the size
    ///         of `data`.
    ///     updates: array of the element type of `data`, of the shape of `indices` or a shape
    ///         that broadcasts to it.
    #[doc = docs!("axis")]
    #[doc = docs!("scatter options")]
    #[doc = docs!("end of scatter")]
    /// The semantics of `scatter_elements` are those of ONNX ScatterElements 18, OpenVINO
    /// ScatterElementsUpdate 12, torch ``scatter_reduce_`` and numpy ``put_along_axis``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([1.0, 2.0, 3.0])
    /// >>> ndscatter.scatter_elements(data, [1, 1, -1], [0.5, 0.25, 1.0], reduction="add")
    /// array([1.  , 2.75, 4.  ])
    scatter_elements [axis] => Operator::Elements { axis };
}

/// Write the new rows of each sequence to consecutive positions of the sequence in a KV cache.
///
/// Row ``s`` of the updates of sequence ``b`` is written to
/// ``data[b, .., indices[b] + s, ..]``, where ``indices[b] + s`` is the position along `axis`. No
/// two updates of a call have the same destination.
///
/// Args:
///     data: the cache, of rank 2 or more. Axis 0 is the axis of sequences.
///     indices: integers of shape ``(data.shape[0],)``. The integer of a sequence is the position
///         of its first new row. A single integer is the position for all sequences. None is
///         position 0 for all sequences.
///     updates: array of the element type and shape of `data`, except that `updates` may be
///         shorter along `axis`.
///     axis: the axis of positions. Axis 0 is not allowed.
#[doc = docs!("mode")]
#[doc = docs!("cache bounds")]
#[doc = docs!("out data")]
#[doc = docs!("threads")]
///
#[doc = docs!("returns")]
///
#[doc = docs!("cache errors")]
/// The semantics of `tensor_scatter` are those of ONNX TensorScatter 24.
///
/// >>> import numpy as np, ndscatter
/// >>> cache = np.zeros((2, 4, 1), np.float32)
/// >>> step = np.ones((2, 1, 1), np.float32)
/// >>> _ = ndscatter.tensor_scatter(cache, [0, 3], step, out=cache)
/// >>> cache[..., 0]
/// array([[1., 0., 0., 0.],
///        [0., 0., 0., 1.]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (
    data, indices, updates, axis=-2, *, mode="linear", bounds="error", out=None, threads=None,
), text_signature = "(data, indices, updates, axis=-2, *, mode='linear', \
        bounds='error', out=None, threads=None)")]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn tensor_scatter<'py>(
    data: &Bound<'py, PyAny>,
    indices: Option<&Bound<'py, PyAny>>,
    updates: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = integer)] axis: isize,
    mode: &str,
    bounds: &str,
    out: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    let operator = Operator::Cache {
        axis,
        mode: choose("mode", mode)?,
        update_len: 1,
    };
    let call = Call {
        operator,
        meaning: Meaning::of_indices(bounds, true)?,
        data,
        updates,
        out,
        threads,
    };
    call.run(positions(data.py(), indices)?)
}

/// Converts the argument `indices` of `tensor_scatter`. A missing argument becomes the integer 0,
/// which is the position for all sequences.
pub(crate) fn positions<'py>(
    py: Python<'py>,
    indices: Option<&Bound<'py, PyAny>>,
) -> PyResult<Source<'py>> {
    match indices {
        Some(indices) => Source::of(indices),
        None => Source::of(0_i64.into_pyobject(py)?.as_any()),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scatter_nd, module)?)?;
    module.add_function(wrap_pyfunction!(scatter_update, module)?)?;
    module.add_function(wrap_pyfunction!(scatter_elements, module)?)?;
    module.add_function(wrap_pyfunction!(tensor_scatter, module)?)
}
