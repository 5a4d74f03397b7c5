//! Kernels for PyTorch's operators. Each kernel calls the crate.
//!
//! This module knows the rules of PyTorch's operators. This module does not know how PyTorch
//! dispatches a call to a kernel.

use ndscatter::{
    Accumulate, AnyView, Bounds, DType, Execution, Pool, Reduction, Scatter, ScatterError,
    TensorView, profile,
};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use super::raw::{Tensor, run};
use crate::array::{Array, Dims, elements_of};
use crate::failure::Failure;
use crate::tuples::{Tuples, positions};
use crate::value::Value;

/// The options that determine how updates are combined with the existing values.
#[derive(Clone, Copy)]
struct Meaning {
    reduction: Reduction,
    include_self: bool,
    accumulate: Accumulate,
}

impl Meaning {
    /// Converts PyTorch's name of a reduction and the two other options. The empty name stands for
    /// no reduction. Returns `None` for an unknown name.
    fn parse(reduction: &str, include_self: bool, is_wide: bool) -> Option<Self> {
        let reduction = match reduction {
            "" => Reduction::None,
            "sum" | "add" => Reduction::Add,
            "subtract" => Reduction::Sub,
            "prod" | "multiply" => Reduction::Mul,
            "mean" => Reduction::Mean,
            "amax" => Reduction::Max,
            "amin" => Reduction::Min,
            _ => return None,
        };
        Some(Self {
            reduction,
            include_self,
            accumulate: match is_wide {
                true => Accumulate::Wide,
                false => Accumulate::Native,
            },
        })
    }

    fn of<'p>(self, scatter: Scatter<'p>) -> Scatter<'p> {
        (scatter.reduction(self.reduction))
            .include_self(self.include_self)
            .accumulate(self.accumulate)
    }
}

/// The tensors of one call.
struct Call {
    output: Tensor,
    /// The initial values of the output. `None` if the call is in place, that is, if `output`
    /// contains the initial values.
    data: Option<Tensor>,
    index: Tensor,
    updates: Tensor,
}

impl Call {
    /// Reads the tensors of a call. Returns `None` if PyTorch's own kernel must run the call.
    fn of(
        output: &Bound<'_, PyAny>,
        data: Option<&Bound<'_, PyAny>>,
        index: &Bound<'_, PyAny>,
        updates: &Bound<'_, PyAny>,
    ) -> Option<Self> {
        let call = Self {
            output: Tensor::of(output)?,
            data: match data {
                Some(data) => Some(Tensor::of(data)?),
                None => None,
            },
            index: Tensor::of(index)?,
            updates: Tensor::of(updates)?,
        };
        let data_fits = call.data.as_ref().is_none_or(|data| {
            data.has_type_of(&call.output)
                && data.shape == call.output.shape
                && !data.aliases_with_other_strides(&call.output)
        });
        let is_index = matches!(call.index.dtype, DType::I64 | DType::I32);
        let fits =
            is_index && call.output.has_common_type() && call.updates.has_type_of(&call.output);
        (data_fits && fits).then_some(call)
    }

    /// Runs the call by the crate. Returns false if the crate refuses the call with an error.
    fn run(&self, py: Python<'_>, scatter: &Scatter<'static>) -> PyResult<bool> {
        done(run(py, |pool| {
            let scatter = scatter.clone().execution(Execution::new().pool(pool));
            let (index, updates) = (self.index.view()?, self.updates.view()?);
            match &self.data {
                None => scatter.in_place(self.output.view_mut()?, index, updates)?,
                Some(data) => {
                    scatter.write_into(data.view()?, index, updates, self.output.view_new()?)?;
                }
            }
            Ok(true)
        })?)
    }
}

/// Converts an error of the crate to the value false, so that PyTorch's own kernel runs the call.
/// The error `PoolFailed` becomes a Python exception instead, because a call with this error may
/// have written a part of the output.
fn done(result: Result<bool, ScatterError>) -> PyResult<bool> {
    match result {
        Ok(is_done) => Ok(is_done),
        Err(error @ ScatterError::PoolFailed { .. }) => Err(Failure(error).into()),
        Err(_) => Ok(false),
    }
}

/// Runs PyTorch's `scatter`, `scatter_add` or `scatter_reduce`, which have one index per update.
/// Along each axis, `updates` may be longer than `index`; the additional updates are not used. If
/// `is_value` is true, `updates` is one value for all indices.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "those of PyTorch")]
fn elements(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    data: Option<&Bound<'_, PyAny>>,
    dim: isize,
    index: &Bound<'_, PyAny>,
    updates: &Bound<'_, PyAny>,
    reduction: &str,
    include_self: bool,
    is_value: bool,
) -> PyResult<bool> {
    let Some(meaning) = Meaning::parse(reduction, include_self, true) else {
        return Ok(false);
    };
    let Some(mut call) = Call::of(output, data, index, updates) else {
        return Ok(false);
    };
    let shape = &call.index.shape;
    let fits = match is_value {
        true => call.updates.expand(shape),
        false => call.updates.narrow(shape),
    };
    if fits.is_none() {
        return Ok(false);
    }
    call.run(py, &meaning.of(profile::torch::scatter(dim)))
}

/// Runs PyTorch's `index_add`, `index_copy` or `index_reduce`. `index` is a vector with the
/// position of each slice of `updates` along the axis `dim` of the output.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "those of PyTorch")]
fn slices(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    data: Option<&Bound<'_, PyAny>>,
    dim: isize,
    index: &Bound<'_, PyAny>,
    updates: &Bound<'_, PyAny>,
    reduction: &str,
    include_self: bool,
) -> PyResult<bool> {
    let Some(call) = Call::of(output, data, index, updates) else {
        return Ok(false);
    };
    let is_long = call.index.dtype == DType::I64;
    // `index_copy` has the empty reduction, and accepts int64 indices only. PyTorch's own kernel
    // raises the error for other indices.
    if call.index.shape.len() != 1 || (!is_long && reduction.is_empty()) {
        return Ok(false);
    }
    // PyTorch's `index_reduce` refuses some calls with boolean or complex elements. PyTorch's own
    // kernel runs all such calls.
    let is_bool_or_complex = matches!(
        call.output.dtype,
        DType::Bool | DType::Complex64 | DType::Complex128
    );
    if is_bool_or_complex && !matches!(reduction, "" | "sum" | "subtract") {
        return Ok(false);
    }
    // If the indices are int64, PyTorch runs a sum of slices along the first or last axis of a
    // tensor of rank 2 or more by `scatter_add`. PyTorch's `scatter_add` sums 16-bit floats in f32.
    // PyTorch rounds all other sums of slices, and all differences, to the element type after each
    // update.
    let rank = call.output.shape.len().cast_signed();
    let is_outermost = rank > 1 && [0, -rank, -1, rank - 1].contains(&dim);
    let is_wide = reduction == "sum" && is_long && is_outermost;
    let Some(meaning) = Meaning::parse(reduction, include_self, is_wide) else {
        return Ok(false);
    };
    call.run(py, &meaning.of(profile::torch::index_copy(dim)))
}

/// Runs PyTorch's `index_put`. `indices` contains one item per axis: an index tensor, or `None` for
/// an axis without an index. The index tensors are broadcast to one shape. If `always` is false,
/// returns false for a call that PyTorch's own kernel runs faster.
#[pyfunction]
fn put(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    indices: Vec<Option<Bound<'_, PyAny>>>,
    values: &Bound<'_, PyAny>,
    accumulate: bool,
    always: bool,
) -> PyResult<bool> {
    let put = Put::of(output, &indices, values);
    match put.filter(|put| always || put.gains(accumulate)) {
        Some(put) => put.run(py, accumulate),
        None => Ok(false),
    }
}

/// The tensors of one call of `index_put`.
struct Put {
    /// The output. The indexed axes of the output are merged to one axis, which is the first axis.
    output: Tensor,
    /// Sizes of the indexed axes of the output before these axes are merged.
    sizes: Dims<usize>,
    /// The shape to which all index tensors are broadcast.
    shape: Dims<usize>,
    /// One index tensor per indexed axis, broadcast to `shape`. If there are two or more tensors,
    /// the elements of all tensors are aligned, and all axes of each tensor may be merged to one.
    indices: Vec<Tensor>,
    /// Total number of elements of all index tensors before the broadcast. An axis with stride 0
    /// counts as one element.
    listed: usize,
    values: Tensor,
}

/// Limit of the number of tuples after the broadcast of the index tensors, divided by the number of
/// index elements before the broadcast ([`Put::listed`]). The indices of a call are called *spread*
/// if this ratio is larger than the limit.
const SPREAD: usize = 4;

/// Limit of the number of elements per slice for calls with spread indices (see [`SPREAD`]). If the
/// slices have fewer elements, PyTorch's own kernel runs the call, unless the argument `always` of
/// [`put`] is true.
///
/// The table shows the crate's time divided by PyTorch's time for calls with spread indices, on a
/// Zen 5 with two threads. Below 1, the crate is faster.
///
/// | slice | calls that replace | calls that add |
/// |---|---|---|
/// | 1 element | 1.1 to 5.9 | 0.3 to 5.3 |
/// | 4 elements | 0.7 to 0.8 | 0.2 to 0.3 |
/// | longer | less | less |
const LONG_SLICE: usize = 4;

/// Number of bytes of a slice that fills a cache line: 64.
///
/// PyTorch's own kernel runs a call that replaces slices of fewer than 64 bytes, under two
/// conditions. The first condition is that the values of the call have fewer than [`MANY_ELEMENTS`]
/// elements in total. The second condition is that the argument `always` of [`put`] is false.
/// PyTorch divides such a call among its threads. The crate does not divide such a call.
///
/// For a call that replaces 3125 slices of 15 floats in a table of 150 MB, with two threads,
/// PyTorch is faster. PyTorch's time divided by the crate's time is 0.64 (Zen 4), 0.77 (Zen 5) and
/// 0.86 (Emerald Rapids).
const LINE_BYTES: usize = 64;

/// Minimum total number of elements at which the crate runs a call that replaces slices of fewer
/// than [`LINE_BYTES`] bytes. Such calls with at least this number of elements were measured in
/// tables of 80 MB on a Zen 5. PyTorch's time divided by the crate's time is 1.2 to 2.9, so the
/// crate is faster.
const MANY_ELEMENTS: usize = 1 << 17;

impl Put {
    /// Reads the tensors of a call. Returns `None` if PyTorch's own kernel must run the call.
    fn of(
        output: &Bound<'_, PyAny>,
        indices: &[Option<Bound<'_, PyAny>>],
        values: &Bound<'_, PyAny>,
    ) -> Option<Self> {
        let (mut output, mut values) = (Tensor::of(output)?, Tensor::of(values)?);
        let rank = output.shape.len();
        if indices.len() > rank || !output.has_common_type() || !values.has_type_of(&output) {
            return None;
        }
        let (mut axes, mut tensors) = (Dims::<usize>::new(), Vec::new());
        for (axis, index) in indices.iter().enumerate() {
            if let Some(index) = index {
                axes.push(axis);
                tensors.push(Tensor::of(index)?);
            }
        }
        let (&first, &last) = (axes.first()?, axes.last()?);
        let is_index = |index: &Tensor| matches!(index.dtype, DType::I64 | DType::I32);
        if !tensors.iter().all(is_index) {
            return None;
        }
        let shape = broadcast(&tensors)?;
        let listed = tensors.iter().map(Tensor::stored_elements);
        let listed = listed.fold(0, usize::saturating_add);
        for tensor in &mut tensors {
            tensor.expand(&shape)?;
        }
        let others: Dims<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
        // In the shape that `values` is broadcast to, the axes of the broadcast indices replace the
        // indexed axes of the output, if all indexed axes are adjacent. Otherwise the axes of the
        // indices come first.
        let before = match last - first + 1 == axes.len() {
            true => first,
            false => 0,
        };
        let sizes = |axes: &[usize]| axes.iter().map(|&axis| output.shape[axis]).collect();
        let [front, back]: [Dims<usize>; 2] = [sizes(&others[..before]), sizes(&others[before..])];
        let wanted: Dims<usize> = [&front[..], &shape, &back].concat().into();
        values.expand(&wanted)?;
        let of_indices = before..before + shape.len();
        let order: Dims<usize> = of_indices
            .clone()
            .chain(0..before)
            .chain(of_indices.end..wanted.len())
            .collect();
        values.permute(&order);
        axes.extend_from_slice(&others);
        output.permute(&axes);
        let sizes = output.shape[..tensors.len()].into();
        output.merge_first(tensors.len())?;
        if tensors.len() > 1 {
            tensors = merged(tensors.iter().all(Tensor::is_aligned).then_some(tensors)?);
        }
        Some(Self {
            output,
            sizes,
            shape,
            indices: tensors,
            listed,
            values,
        })
    }

    /// Checks whether the crate runs this call faster than PyTorch, by measured limits. The limits
    /// are [`LONG_SLICE`] with [`SPREAD`], and [`LINE_BYTES`] with [`MANY_ELEMENTS`].
    fn gains(&self, accumulate: bool) -> bool {
        let slice = elements_of(self.output.shape.get(1..).unwrap_or_default());
        // For spread indices, the crate has an additional cost: it writes one position per tuple to
        // memory. PyTorch reads the broadcast indices with stride 0, and writes no positions.
        let is_spread =
            slice < LONG_SLICE && elements_of(&self.shape) > self.listed.saturating_mul(SPREAD);
        let is_scattered = !accumulate
            && slice.saturating_mul(self.output.dtype.size()) < LINE_BYTES
            && elements_of(&self.values.shape) < MANY_ELEMENTS;
        !is_spread && !is_scattered
    }

    fn run(&self, py: Python<'_>, accumulate: bool) -> PyResult<bool> {
        let scatter = Scatter::along(0).reduction(match accumulate {
            true => Reduction::Add,
            false => Reduction::None,
        });
        if let [index] = &self.indices[..] {
            return done(run(py, |pool| self.scatter(scatter, pool, index.view()?))?);
        }
        let Some(positions) = self.positions(py)? else {
            return Ok(false);
        };
        let indices = positions.view()?;
        done(run(py, |pool| self.scatter(scatter, pool, indices))?)
    }

    fn scatter(
        &self,
        scatter: Scatter<'_>,
        pool: &dyn Pool,
        indices: AnyView<'_>,
    ) -> Result<bool, ScatterError> {
        let scatter = scatter.execution(Execution::new().pool(pool));
        scatter.in_place(self.output.view_mut()?, indices, self.values.view()?)?;
        Ok(true)
    }

    /// Computes the position of each tuple along the first axis of the output, into which the
    /// indexed axes are merged. Returns `None` if a coordinate is out of bounds, or if there is no
    /// memory for the positions.
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Option<Array<'py>>> {
        let lines = |row| self.indices.iter().map(|index| index.line(row)).collect();
        let last = self.indices.first().and_then(|index| index.shape.last());
        let tuples = Tuples {
            width: last.copied().unwrap_or(1),
            row: &lines,
        };
        let mut are_inside = true;
        let found = Array::filled(py, elements_of(&self.shape), |to| {
            let filled = run(py, |pool| Ok(positions(tuples, &self.sizes, pool, to)))?;
            are_inside = filled.map_err(Failure)?;
            Ok(())
        });
        match found {
            Ok(found) => Ok(are_inside.then(|| found.in_shape(&self.shape))),
            // numpy raises a ValueError instead of a MemoryError if an array has more bytes than
            // the address space.
            Err(error)
                if error.is_instance_of::<PyMemoryError>(py)
                    || error.is_instance_of::<PyValueError>(py) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Merges all axes of each tensor to one axis, if every tensor has its elements, in row-major
/// order, at a constant stride. Otherwise returns all tensors unchanged.
fn merged(tensors: Vec<Tensor>) -> Vec<Tensor> {
    let merge = |tensor: &Tensor| {
        let (mut tensor, rank) = (tensor.clone(), tensor.shape.len());
        tensor.merge_first(rank).map(|()| tensor)
    };
    let merged: Option<Vec<_>> = tensors.iter().map(merge).collect();
    merged.unwrap_or(tensors)
}

/// Returns the shape to which all tensors can be broadcast together. Returns `None` if the shapes
/// of the tensors do not allow a broadcast.
fn broadcast(tensors: &[Tensor]) -> Option<Dims<usize>> {
    let rank = tensors.iter().map(|tensor| tensor.shape.len()).max()?;
    let mut shape: Dims<usize> = Dims::from_elem(1, rank);
    for tensor in tensors {
        let new = rank - tensor.shape.len();
        for (wanted, &size) in shape[new..].iter_mut().zip(&tensor.shape) {
            match (*wanted, size) {
                (1, _) => *wanted = size,
                (_, 1) => {}
                (known, size) if known == size => {}
                _ => return None,
            }
        }
    }
    Some(shape)
}

/// Runs PyTorch's `embedding_dense_backward`. For each index, this function adds a row of
/// `gradient` to the row of `output` at this index. `output` is the gradient of an embedding's
/// table.
///
/// `output` must contain zeros before the call. Indices out of bounds, including negative indices,
/// are skipped. At the end, row `padding` of `output` is set to zero, if `output` has this row.
#[pyfunction]
fn embedding(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    gradient: &Bound<'_, PyAny>,
    index: &Bound<'_, PyAny>,
    padding: i64,
) -> PyResult<bool> {
    let Some(call) = Call::of(output, None, index, gradient) else {
        return Ok(false);
    };
    done(run(py, |pool| {
        let execution = Execution::new().pool(pool);
        let rows = profile::torch::index_copy(0)
            .bounds(Bounds::Skip)
            .execution(execution);
        let sums = rows.clone().reduction(Reduction::Add);
        let (index, updates) = (call.index.view()?, call.updates.view()?);
        sums.in_place(call.output.view_mut()?, index, updates)?;
        // Sets row `padding` to zero. All elements of the row of zeros are one element with stride
        // 0.
        let padding = [padding];
        let mut shape = call.output.shape.clone();
        if let Some(rows) = shape.first_mut() {
            *rows = 1;
        }
        let zeros = AnyView::splat(&Value::ZERO.0, call.output.dtype, &shape)?;
        rows.in_place(call.output.view_mut()?, TensorView::from(&padding), zeros)?;
        Ok(true)
    })?)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(elements, module)?)?;
    module.add_function(wrap_pyfunction!(slices, module)?)?;
    module.add_function(wrap_pyfunction!(put, module)?)?;
    module.add_function(wrap_pyfunction!(embedding, module)?)
}
