//! PyTorch's operators as calls of the crate.
//!
//! Knows the rules of PyTorch's operators. Does not know how PyTorch dispatches them.

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

/// How updates are combined with the existing values.
#[derive(Clone, Copy)]
struct Meaning {
    reduction: Reduction,
    include_self: bool,
    accumulate: Accumulate,
}

impl Meaning {
    /// Parses PyTorch's name of a reduction. Returns `None` for an unknown name.
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
    /// The initial values of the output. `None`: the call is in place.
    data: Option<Tensor>,
    index: Tensor,
    updates: Tensor,
}

impl Call {
    /// Reads the tensors of a call. Returns `None` if the call must stay with PyTorch.
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

    /// Runs the call. Returns false if the crate refuses it.
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

/// Converts an error of the crate to false, so that PyTorch runs the call. `PoolFailed` becomes an
/// exception, as the output may have been written.
fn done(result: Result<bool, ScatterError>) -> PyResult<bool> {
    match result {
        Ok(is_done) => Ok(is_done),
        Err(error @ ScatterError::PoolFailed { .. }) => Err(Failure(error).into()),
        Err(_) => Ok(false),
    }
}

/// Runs `scatter`, `scatter_add` or `scatter_reduce`: one index per update. Updates may be longer
/// than the indices, or one value (`is_value`).
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

/// Runs `index_add`, `index_copy` or `index_reduce`: a vector of indices for slices along one axis.
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
    // `index_copy` has int64 indices only.
    if call.index.shape.len() != 1 || (!is_long && reduction.is_empty()) {
        return Ok(false);
    }
    // PyTorch's `index_reduce` refuses some calls of these types.
    let is_bool_or_complex = matches!(
        call.output.dtype,
        DType::Bool | DType::Complex64 | DType::Complex128
    );
    if is_bool_or_complex && !matches!(reduction, "" | "sum" | "subtract") {
        return Ok(false);
    }
    // PyTorch runs sums of slices along the first or last axis by `scatter_add`, which sums 16-bit
    // floats in f32. It rounds other sums, and differences, after each update.
    let rank = call.output.shape.len().cast_signed();
    let is_outermost = rank > 1 && [0, -rank, -1, rank - 1].contains(&dim);
    let is_wide = reduction == "sum" && is_long && is_outermost;
    let Some(meaning) = Meaning::parse(reduction, include_self, is_wide) else {
        return Ok(false);
    };
    call.run(py, &meaning.of(profile::torch::index_copy(dim)))
}

/// Runs `index_put`: indices for some of the axes, which are broadcast together. `None` stands for
/// an axis without an index. `always` also runs calls that PyTorch runs faster.
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

/// An `index_put`.
struct Put {
    /// The output. Its indexed axes come first, merged to one.
    output: Tensor,
    /// Sizes of the indexed axes.
    sizes: Dims<usize>,
    /// The broadcast shape of the indices.
    shape: Dims<usize>,
    /// One tensor per indexed axis. Several tensors are aligned, and their axes may be merged to
    /// one.
    indices: Vec<Tensor>,
    /// Number of elements of all indices before the broadcast.
    listed: usize,
    values: Tensor,
}

/// Limit of tuples per index element. Indices are called *spread* if their broadcast makes more
/// tuples per index element than this limit.
const SPREAD: usize = 4;

/// Number of elements of a slice from which on the crate's kernel runs calls with spread indices
/// (see [`SPREAD`]). PyTorch's own kernel runs such calls with shorter slices.
///
/// The crate's time divided by PyTorch's, on a Zen 5 with two threads:
///
/// | slice | replaces | is added |
/// |---|---|---|
/// | 1 element | 1.1 to 5.9 | 0.3 to 5.3 |
/// | 4 elements | 0.7 to 0.8 | 0.2 to 0.3 |
/// | longer | less | less |
const LONG_SLICE: usize = 4;

/// Bytes of a slice that fills a cache line.
///
/// A call that replaces shorter slices stays with PyTorch if it has fewer elements than
/// [`MANY_ELEMENTS`]: PyTorch divides the call among its threads, and the crate does not.
///
/// PyTorch's time divided by the crate's is 0.64 (Zen 4), 0.77 (Zen 5) and 0.86 (Emerald Rapids).
/// The call has 3125 slices of 15 floats in a table of 150 MB, and two threads.
const LINE_BYTES: usize = 64;

/// Number of elements from which the ratio of [`LINE_BYTES`] is 1.2 to 2.9 in tables of 80 MB
/// (Zen 5).
const MANY_ELEMENTS: usize = 1 << 17;

impl Put {
    /// Reads the tensors of a call. Returns `None` if the call must stay with PyTorch.
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
        // The axes of the indices take the place of adjacent indexed axes. If the indexed axes are
        // not adjacent, the axes of the indices come first.
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

    /// Checks whether the crate was measured to be faster than PyTorch.
    fn gains(&self, accumulate: bool) -> bool {
        let slice = elements_of(self.output.shape.get(1..).unwrap_or_default());
        // The crate writes a position for each tuple. PyTorch reads broadcast indices with stride
        // 0.
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

    /// Computes the positions of the tuples along the merged indexed axes. Returns `None` if a
    /// coordinate is out of bounds, or if the memory of the positions cannot be allocated.
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
            // numpy raises a ValueError if the bytes exceed the address space.
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

/// Merges all axes of each tensor to one, if the elements of every tensor are evenly strided.
/// Otherwise returns the tensors unchanged.
fn merged(tensors: Vec<Tensor>) -> Vec<Tensor> {
    let merge = |tensor: &Tensor| {
        let (mut tensor, rank) = (tensor.clone(), tensor.shape.len());
        tensor.merge_first(rank).map(|()| tensor)
    };
    let merged: Option<Vec<_>> = tensors.iter().map(merge).collect();
    merged.unwrap_or(tensors)
}

/// Returns the shape that all tensors broadcast to, or `None`.
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

/// Runs `embedding_dense_backward`: adds the gradients of rows to the gradient of an embedding's
/// table.
///
/// Indices out of bounds are skipped. `output` must hold zeros. Row `padding` is zero afterwards,
/// if it exists.
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
        // One zero with stride 0 stands for the row.
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
