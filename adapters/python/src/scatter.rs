//! The scatters by name.

use ndscatter::{Operator, Reduction, ScatterError};
use pyo3::prelude::*;

use crate::array::{Array, Source};
use crate::failure::Failure;
use crate::operands::{self, Operands};
use crate::options::{Meaning, choose};
use crate::threads::{execution, run};

/// One scatter.
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
        let (data, mut indices) = (data.look()?, operands::indices(indices)?);
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

/// The operator for elements that are taken as several units, and its indices.
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
        // Longer tuples would reach the axis of units.
        Operator::Nd { .. } => {
            let gathered = operator.output_shape(&shape, indices.shape());
            gathered.map_err(Failure)?;
        }
        Operator::Elements { .. } => indices.repeat(count),
        _ => {}
    }
    Ok(operator.for_rank(shape.len()).map_err(Failure)?)
}

/// Makes a call, and once more with updates that are stretched to the shape that it asks
/// for, if they can be.
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

/// The options that all scatters but that into a cache have.
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
    /// Write slices of `updates` to the places that tuples of coordinates name.
    ///
    /// With ``k = indices.shape[-1]``, update ``i`` goes to ``data[tuple(indices[i])]``, a
    /// slice of shape ``data.shape[k:]``. Updates of one place are applied in the row-major
    /// order of `indices`: without a reduction the last one stays.
    ///
    /// Args:
    ///     data: array of any shape and type.
    ///     indices: integers, ``(..., k)`` with ``k <= data.ndim``; negative ones count
    ///         from the end.
    ///     updates: of the type of `data`, ``indices.shape[:-1] + data.shape[k:]``, or what
    ///         broadcasts to that.
    ///     reduction: ``"none"``, ``"add"``, ``"sub"``, ``"mul"``, ``"min"``, ``"max"`` or
    ///         ``"mean"``: how updates meet the value that is there.
    ///     include_self: whether that value takes part in a reduction.
    ///     accumulate: ``"wide"`` sums floats of 16 bits in float32.
    ///     bounds: ``"error"``, ``"skip"`` or ``"clamp"``: what becomes of an index that is
    ///         out of bounds.
    ///     duplicates: ``"reject"`` makes two updates of one place an error.
    ///     negative_indices: whether negative indices count from the end.
    ///     out: array to write to; ``out=data`` changes `data` itself.
    ///     threads: at most so many; 1 is the calling thread; None is all.
    ///
    /// Returns:
    ///     `out`, or a new array of the type that `data` came as.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds.
    ///     TypeError: types differ, or have no such reduction.
    ///     ValueError: shapes, options, or memory that is shared or read-only.
    ///     BufferError: `out` does not say that it may be written.
    ///
    /// Nothing has been written then. The rule is that of ONNX ScatterND 18 and OpenVINO
    /// ScatterNDUpdate 15.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> table = np.zeros((3, 2))
    /// >>> rows = np.array([[0], [2], [2]])
    /// >>> ndscatter.scatter_nd(table, rows, [[1, 1], [2, 2], [3, 3]], reduction="add")
    /// array([[1., 1.],
    ///        [0., 0.],
    ///        [5., 5.]])
    scatter_nd => Operator::Nd { batch_dims: 0 };

    /// Write slices of `updates` to the positions along one axis that `indices` name.
    ///
    /// Update ``[.., i, ..]`` goes to ``data[.., indices[i], ..]``: the rows of a table, for
    /// axis 0. Updates of one place are applied in the order of `indices`.
    ///
    /// Args:
    ///     data: array of rank 1 or more and of any type.
    ///     indices: integers of any shape; negative ones count from the end.
    ///     updates: of the type of `data`,
    ///         ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``, or what
    ///         broadcasts to that.
    ///     axis: the axis; negative ones count from the end.
    ///
    /// Other arguments, the result and errors are those of `scatter_nd`. The rule is that of
    /// OpenVINO ScatterUpdate 3 (which forbids negative indices), torch ``index_add_`` and
    /// segment sums.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.zeros((2, 3), np.int32)
    /// >>> ndscatter.scatter_update(data, [2, 0], [[30, 10], [60, 40]], axis=1)
    /// array([[10,  0, 30],
    ///        [40,  0, 60]], dtype=int32)
    scatter_update [axis] => Operator::Along { axis };

    /// Write each update to the place that its own index names along one axis.
    ///
    /// Update ``[i, j, k]`` meets ``data[i, indices[i, j, k], k]`` where the axis is 1.
    /// Updates of one place are applied in the row-major order of `indices`.
    ///
    /// Args:
    ///     data: array of rank 1 or more and of any type.
    ///     indices: integers, of the rank of `data`; off the axis no longer than `data`.
    ///     updates: of the type of `data` and the shape of `indices`, or what broadcasts to
    ///         that.
    ///     axis: the axis; negative ones count from the end.
    ///
    /// Other arguments, the result and errors are those of `scatter_nd`. The rule is that of
    /// ONNX ScatterElements 18, OpenVINO ScatterElementsUpdate 12, torch ``scatter_reduce_``
    /// and numpy ``put_along_axis``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([1.0, 2.0, 3.0])
    /// >>> ndscatter.scatter_elements(data, [1, 1, -1], [0.5, 0.25, 1.0], reduction="add")
    /// array([1.  , 2.75, 4.  ])
    scatter_elements [axis] => Operator::Elements { axis };
}

/// Write rows of each sequence into its cache, from the sequence's position on.
///
/// Row ``s`` of the updates of sequence ``b`` goes to
/// ``data[b, .., indices[b] + s, ..]``, the position at `axis`: the step that fills a KV
/// cache.
///
/// Args:
///     data: the cache, of rank 2 or more: axis 0 holds the sequences.
///     indices: one position for each sequence, ``(data.shape[0],)``; one integer for all,
///         or None for 0.
///     updates: of the type and shape of `data`, but for `axis`, where they may be shorter.
///     axis: the axis of positions, not 0.
///     mode: ``"linear"``, where updates must fit before the end, or ``"circular"``, where
///         positions go on at the beginning.
///     bounds: ``"skip"`` leaves sequences with a negative position out.
///
/// `out`, `threads`, the result and errors are those of `scatter_nd`; a position out of
/// range is an IndexError. The rule is that of ONNX TensorScatter 24.
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

/// The positions of a cache: at the beginning where none are given.
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
