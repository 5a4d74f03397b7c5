//! The public scatters: `scatter_nd`, `scatter_update`, `scatter_elements`, `tensor_scatter`.
//!
//! This module knows the arguments of a scatter, and the order in which the arguments are
//! converted. It does not know how an array is read, or what a scatter computes.

use ndscatter::{Operator, Reduction, ScatterError};
use pyo3::prelude::*;

use crate::array::{Array, Source};
use crate::failure::Failure;
use crate::operands::{self, Operands};
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

impl<'py> Call<'_, 'py> {
    fn run(self, indices: Source<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, execution) = (self.data.py(), execution(self.threads)?);
        let (data, updates) = (Source::of(self.data)?, Source::of(self.updates)?);
        let output = self.out.map(Source::of_output).transpose()?;
        let (data, mut indices) = (data.read()?, operands::indices(indices)?);
        let updates = operands::updates(updates, &data)?;
        let output = output.map(operands::output).transpose()?;
        let is_moved = self.meaning.reduction == Reduction::None;
        let mut operands = Operands::new(data, Some(updates), output, is_moved)?;
        let operator = fit(self.operator, &operands, &mut indices)?;
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

/// Runs `call` with the updates. If the crate refuses the shape of the updates, and the updates can
/// be broadcast to the expected shape, runs `call` again with the broadcast updates.
pub(crate) fn broadcasting<'py>(
    operands: &mut Operands<'py>,
    mut call: impl FnMut(&Operands<'py>, &Array<'py>) -> PyResult<Result<(), ScatterError>>,
) -> PyResult<()> {
    let Some(mut updates) = operands.updates.take() else {
        return Ok(());
    };
    match call(operands, &updates)? {
        Err(ScatterError::UpdatesShape { expected, .. }) if updates.broadcast(&expected) => {
            Ok(call(operands, &updates)?.map_err(Failure)?)
        }
        done => Ok(done.map_err(Failure)?),
    }
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
            $($axis: isize,)?
            reduction: &str,
            include_self: bool,
            accumulate: &str,
            bounds: &str,
            duplicates: &str,
            negative_indices: bool,
            out: Option<&Bound<'py, PyAny>>,
            threads: Option<isize>,
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
    ///         or a number is converted to the element type of `data`.
    ///     reduction: how an update is combined with the existing value. ``"none"`` replaces the
    ///         existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
    ///         ``"min"``, ``"max"`` and ``"mean"``.
    ///     include_self: whether the existing value takes part in a reduction.
    ///     accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
    ///         of a destination after every update. ``"wide"`` computes the value in float32, and
    ///         rounds it once, after the last update.
    ///     bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
    ///         ``"skip"`` drops the update of the index, and ``"clamp"`` replaces the index by the
    ///         nearest valid index.
    ///     duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two tuples have the
    ///         same destination.
    ///     negative_indices: whether a negative index counts from the end of its axis. If False, a
    ///         negative index is out of bounds.
    ///     out: array to write the result to. ``out=data`` updates `data` in place.
    ///     threads: largest number of threads that the call uses: 1 is the calling thread alone,
    ///         None is all threads of the thread pool.
    ///
    /// Returns:
    ///     `out` if it was passed. Otherwise a new array of the library of `data`.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
    ///         empty with ``bounds="clamp"``.
    ///     TypeError: the element types of `data`, `updates` and `out` differ, the element type
    ///         does not have the reduction, or indices are not integers.
    ///     ValueError: a shape or an option is wrong, `out` shares memory with an argument in
    ///         another way than ``out=data``, `out` is a read-only numpy array, or two tuples have
    ///         the same destination with ``duplicates="reject"``.
    ///     BufferError: `out` is an array of a library other than numpy, and is read-only or may
    ///         be read-only.
    ///
    /// After each of the errors listed under "Raises", `out` is unchanged. The semantics of
    /// `scatter_nd` are those of ONNX ScatterND 18 and OpenVINO ScatterNDUpdate 15.
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
    ///     axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
    ///
    /// All other arguments, the result and the errors are those of `scatter_nd`. The semantics of
    /// `scatter_update` are those of OpenVINO ScatterUpdate 3, torch ``index_add_`` and segment
    /// sums. OpenVINO ScatterUpdate 3 forbids negative indices.
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
    ///     axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
    ///
    /// All other arguments, the result and the errors are those of `scatter_nd`. The semantics of
    /// `scatter_elements` are those of ONNX ScatterElements 18, OpenVINO ScatterElementsUpdate 12,
    /// torch ``scatter_reduce_`` and numpy ``put_along_axis``.
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
/// ``data[b, .., indices[b] + s, ..]``, where ``indices[b] + s`` is the position along `axis`.
///
/// Args:
///     data: the cache, of rank 2 or more. Axis 0 is the axis of sequences.
///     indices: integers of shape ``(data.shape[0],)``. The integer of a sequence is the position
///         of its first new row. A single integer is the position for all sequences. None is
///         position 0 for all sequences.
///     updates: array of the element type and shape of `data`, except that `updates` may be
///         shorter along `axis`.
///     axis: the axis of positions. Axis 0 is not allowed.
///     mode: ``"linear"`` requires that the updates of a sequence fit between its position and the
///         end of the axis. ``"circular"`` takes positions modulo the length of the axis.
///     bounds: treatment of a negative position: ``"error"`` raises an IndexError, and ``"skip"``
///         drops the updates of the sequence.
///
/// The arguments `out` and `threads`, the result and the errors are those of `scatter_nd`. In
/// linear mode, a position at which the updates do not fit raises an IndexError, whatever `bounds`
/// is. The semantics of `tensor_scatter` are those of ONNX TensorScatter 24.
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
    axis: isize,
    mode: &str,
    bounds: &str,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<isize>,
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
