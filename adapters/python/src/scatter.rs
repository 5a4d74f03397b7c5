//! The public scatters: `scatter_nd`, `scatter_update`, `scatter_elements`, `tensor_scatter`.
//!
//! Knows the arguments of a scatter and the order in which they are converted. Does not know how
//! arrays are read, or what a scatter computes.

use ndscatter::{Operator, Reduction, ScatterError};
use pyo3::prelude::*;

use crate::array::{Array, Source};
use crate::failure::Failure;
use crate::operands::{self, Operands};
use crate::options::{Meaning, choose};
use crate::threads::{execution, run};

/// The arguments of one scatter, except for the indices.
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

/// Adapts an operator and its indices to elements that are moved as several units: `data` has an
/// additional last axis then.
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
        // Checks the tuples against the caller's shape: a longer tuple would index the axis of
        // units.
        Operator::Nd { .. } => {
            let gathered = operator.output_shape(&shape, indices.shape());
            gathered.map_err(Failure)?;
        }
        Operator::Elements { .. } => indices.repeat(count),
        _ => {}
    }
    Ok(operator.for_rank(shape.len()).map_err(Failure)?)
}

/// Makes a call. If the updates have the wrong shape and can be broadcast to the expected one,
/// makes the call again with broadcast updates.
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

/// Defines the scatters that have all options. `tensor_scatter` has fewer.
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
    /// a slice of shape ``data.shape[k:]``. Updates of one destination are applied in the
    /// row-major order of `indices`: without a reduction the last update stays.
    ///
    /// Args:
    ///     data: array of any shape and element type.
    ///     indices: integers of any integer type, of shape ``(..., k)`` with ``k <= data.ndim``.
    ///     updates: array of the element type of `data`, of shape
    ///         ``indices.shape[:-1] + data.shape[k:]`` or a shape that broadcasts to it. Lists
    ///         and numbers are converted to the element type.
    ///     reduction: how an update is combined with the existing value: ``"none"`` replaces
    ///         it; ``"add"``, ``"sub"``, ``"mul"``, ``"min"``, ``"max"``, ``"mean"``.
    ///     include_self: whether the existing value takes part in a reduction.
    ///     accumulate: ``"native"``, or ``"wide"`` to sum 16-bit floats in float32 and round
    ///         once.
    ///     bounds: treatment of an index out of bounds: ``"error"``, ``"skip"`` (its update is
    ///         dropped) or ``"clamp"`` (it is moved to the nearest valid index).
    ///     duplicates: ``"allow"``, or ``"reject"`` to raise an error if two tuples have one
    ///         destination.
    ///     negative_indices: whether negative indices count from the end. If not, they are
    ///         out of bounds.
    ///     out: array to write the result to; ``out=data`` updates `data` in place.
    ///     threads: largest number of threads; 1 is the calling thread, None is all threads.
    ///
    /// Returns:
    ///     `out`, or a new array of the library of `data`.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds.
    ///     TypeError: the element types differ or do not have the reduction, or indices are
    ///         not integers.
    ///     ValueError: a shape or an option is wrong, `out` shares memory with an argument in
    ///         another way than ``out=data``, `out` is a read-only numpy array, or a duplicate
    ///         is rejected.
    ///     BufferError: `out` is an array of another library without permission to write.
    ///
    /// After an error nothing has been written. The semantics are those of ONNX ScatterND 18
    /// and OpenVINO ScatterNDUpdate 15.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> table = np.zeros((3, 2))
    /// >>> rows = np.array([[0], [2], [2]])
    /// >>> ndscatter.scatter_nd(table, rows, [[1, 1], [2, 2], [3, 3]], reduction="add")
    /// array([[1., 1.],
    ///        [0., 0.],
    ///        [5., 5.]])
    scatter_nd => Operator::Nd { batch_dims: 0 };

    /// Write slices of `updates` to the positions `indices` along one axis.
    ///
    /// Update ``[.., i, ..]`` is written to ``data[.., indices[i], ..]``. For axis 0 these are
    /// the rows of a table. Updates of one position are applied in the row-major order of
    /// `indices`: without a reduction the last update stays.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type.
    ///     indices: integers of any integer type and any shape.
    ///     updates: array of the element type of `data`, of shape
    ///         ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]`` or a shape that
    ///         broadcasts to it.
    ///     axis: the indexed axis; a negative axis counts from the last one.
    ///
    /// Other arguments, the result and errors are those of `scatter_nd`. The semantics are
    /// those of OpenVINO ScatterUpdate 3 (which forbids negative indices), torch
    /// ``index_add_`` and segment sums.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.zeros((2, 3), np.int32)
    /// >>> ndscatter.scatter_update(data, [2, 0], [[30, 10], [60, 40]], axis=1)
    /// array([[10,  0, 30],
    ///        [40,  0, 60]], dtype=int32)
    scatter_update [axis] => Operator::Along { axis };

    /// Write each update to the position that its index selects along one axis.
    ///
    /// For axis 1, update ``[i, j, k]`` is written to ``data[i, indices[i, j, k], k]``.
    /// Updates of one element are applied in the row-major order of `indices`: without a
    /// reduction the last update stays.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type.
    ///     indices: integers of any integer type, of the rank of `data`. Along `axis` they may have
    ///         any size, along other axes at most that of `data`.
    ///     updates: array of the element type of `data`, of the shape of `indices` or a shape
    ///         that broadcasts to it.
    ///     axis: the indexed axis; a negative axis counts from the last one.
    ///
    /// Other arguments, the result and errors are those of `scatter_nd`. The semantics are
    /// those of ONNX ScatterElements 18, OpenVINO ScatterElementsUpdate 12, torch
    /// ``scatter_reduce_`` and numpy ``put_along_axis``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([1.0, 2.0, 3.0])
    /// >>> ndscatter.scatter_elements(data, [1, 1, -1], [0.5, 0.25, 1.0], reduction="add")
    /// array([1.  , 2.75, 4.  ])
    scatter_elements [axis] => Operator::Elements { axis };
}

/// Write consecutive rows of each sequence into a KV cache, from the sequence's position on.
///
/// Row ``s`` of the updates of sequence ``b`` is written to
/// ``data[b, .., indices[b] + s, ..]``, with the position at `axis`.
///
/// Args:
///     data: the cache, of rank 2 or more. Axis 0 is the sequence.
///     indices: integers of shape ``(data.shape[0],)``: the first position of each sequence.
///         One integer is the position of all sequences; None is 0.
///     updates: array of the element type and shape of `data`, except that it may be shorter
///         along `axis`.
///     axis: the axis of positions, not 0.
///     mode: ``"linear"``: updates must fit before the end of the axis. ``"circular"``:
///         positions continue at the beginning of the axis.
///     bounds: ``"error"``, or ``"skip"`` to skip sequences with a negative position.
///
/// `out`, `threads`, the result and errors are those of `scatter_nd`. A position out of range
/// raises an IndexError. The semantics are those of ONNX TensorScatter 24.
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

/// Converts the positions of a cache. None is position 0.
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
