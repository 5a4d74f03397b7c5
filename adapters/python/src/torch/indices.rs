//! Lists of index tensors, as `t[i, j]` has: one index tensor per indexed axis of a table, or none.
//!
//! This module knows PyTorch's rules for such lists. It does not know what a call does with the
//! slices that the indices address.

use ndscatter::{AnyView, DType, Pool, ScatterError, TensorView};

use super::call::Stop;
use super::connection::run;
use super::reason::Reason;
use super::tensor::Tensor;
use crate::array::{Dims, elements_of};
use crate::tuples::{Tuples, positions};

/// A table and the index tensors of its indexed axes.
pub(super) struct IndexedTable {
    /// The table. Its indexed axes are merged to one axis, which is the first axis.
    pub(super) table: Tensor,
    /// Sizes of the indexed axes before these axes are merged.
    sizes: Dims<usize>,
    /// The shape to which all index tensors are broadcast.
    shape: Dims<usize>,
    /// One index tensor per indexed axis, broadcast to `shape`. If there are two or more tensors,
    /// the elements of all tensors are aligned, and all axes of each tensor may be merged to one.
    indices: Vec<Tensor>,
    /// Total number of elements of all index tensors before the broadcast. An axis with stride 0
    /// counts as one element.
    listed: usize,
    /// The shape of `t[i, j]`: of the slices that the indices address.
    pub(super) slices_shape: Dims<usize>,
    /// Order of the axes of `slices_shape` in which the axes of the index tensors come first.
    pub(super) order: Dims<usize>,
}

/// Limit of the number of tuples after the broadcast of the index tensors, divided by the number of
/// index elements before the broadcast. The indices of a call are called *spread* if this ratio is
/// larger than the limit.
const SPREAD: usize = 4;

/// Smallest number of elements per slice for which the crate is faster with spread indices.
///
/// The table shows the crate's time divided by PyTorch's time for calls with spread indices, on a
/// Zen 5 with two threads. Below 1, the crate is faster.
///
/// | slice | calls that replace | calls that add | gathers |
/// |---|---|---|---|
/// | 1 element | 1.1 to 5.9 | 0.3 to 5.3 | 1.0 to 5.0 |
/// | 2 or 3 elements | | | 0.7 to 1.3 |
/// | 4 elements | 0.7 to 0.8 | 0.2 to 0.3 | |
/// | longer | less | less | 0.2 to 0.4 |
const LONG_SLICE: usize = 4;

impl IndexedTable {
    /// Returns the reason if PyTorch's own kernel must run the call.
    pub(super) fn of(table: &Tensor, indices: &[Option<Tensor>]) -> Result<Self, Reason> {
        let mut table = table.clone();
        let rank = table.shape.len();
        if indices.len() > rank {
            return Err(Reason::Shape);
        }
        if !table.has_common_type() {
            return Err(Reason::Dtype);
        }
        let (mut axes, mut tensors) = (Dims::<usize>::new(), Vec::new());
        for (axis, index) in indices.iter().enumerate() {
            if let Some(index) = index {
                axes.push(axis);
                tensors.push(index.clone());
            }
        }
        let (Some(&first), Some(&last)) = (axes.first(), axes.last()) else {
            return Err(Reason::Shape);
        };
        if let Some(other) = tensors.iter().find(|tensor| !tensor.is_index()) {
            return Err(match other.dtype {
                DType::Bool | DType::U8 => Reason::Mask,
                _ => Reason::Dtype,
            });
        }
        let shape = broadcast(tensors.iter()).ok_or(Reason::Shape)?;
        let listed = tensors.iter().map(Tensor::stored_elements);
        let listed = listed.fold(0, usize::saturating_add);
        for tensor in &mut tensors {
            tensor.expand(&shape).ok_or(Reason::Shape)?;
        }
        let others: Dims<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
        // In the shape of the slices, the axes of the broadcast indices replace the indexed axes of
        // the table, if all indexed axes are adjacent. Otherwise the axes of the indices come first.
        let before = match last - first + 1 == axes.len() {
            true => first,
            false => 0,
        };
        let sizes = |axes: &[usize]| axes.iter().map(|&axis| table.shape[axis]).collect();
        let [front, back]: [Dims<usize>; 2] = [sizes(&others[..before]), sizes(&others[before..])];
        let slices_shape: Dims<usize> = [&front[..], &shape, &back].concat().into();
        let of_indices = before..before + shape.len();
        let order = of_indices
            .clone()
            .chain(0..before)
            .chain(of_indices.end..slices_shape.len())
            .collect();
        axes.extend_from_slice(&others);
        table.permute(&axes);
        let sizes = table.shape[..tensors.len()].into();
        let is_merged = table.merge_first(tensors.len());
        is_merged.ok_or(Reason::Layout)?;
        if tensors.len() > 1 {
            if !tensors.iter().all(Tensor::is_aligned) {
                return Err(Reason::Layout);
            }
            tensors = merged(tensors);
        }
        Ok(Self {
            table,
            sizes,
            shape,
            indices: tensors,
            listed,
            slices_shape,
            order,
        })
    }

    /// Returns the number of elements of one slice and the number of slices. This function is faster
    /// than [`of`](Self::of), and makes fewer checks. Returns `None` if the index tensors cannot be
    /// broadcast together.
    pub(super) fn sizes(table: &Tensor, indices: &[Option<Tensor>]) -> Option<(usize, usize)> {
        let shape = broadcast(indices.iter().flatten())?;
        let is_indexed = |axis: usize| matches!(indices.get(axis), Some(Some(_)));
        let others = table.shape.iter().enumerate();
        let others = others.filter(|&(axis, _)| !is_indexed(axis));
        let slice = others.fold(1_usize, |all, (_, &size)| all.saturating_mul(size));
        Some((slice, elements_of(&shape)))
    }

    /// Number of elements of one slice.
    pub(super) fn slice(&self) -> usize {
        elements_of(self.table.shape.get(1..).unwrap_or_default())
    }

    /// Number of slices.
    pub(super) fn count(&self) -> usize {
        elements_of(&self.shape)
    }

    /// Whether the indices are spread and the slices are short. For several spread index tensors,
    /// the crate has an additional cost: it writes one position per tuple to memory. PyTorch reads
    /// the broadcast indices with stride 0, and writes no positions.
    pub(super) fn has_short_spread_slices(&self) -> bool {
        self.slice() < LONG_SLICE
            && self.indices.len() > 1
            && self.count() > self.listed.saturating_mul(SPREAD)
    }

    /// Runs `call` with the position of each slice along the first axis of the table.
    pub(super) fn run(
        &self,
        call: impl FnOnce(AnyView<'_>, &dyn Pool) -> Result<(), ScatterError>,
    ) -> Result<(), Stop> {
        if let [index] = &self.indices[..] {
            run(|pool| call(index.view()?, pool))?;
            return Ok(());
        }
        let positions = self.positions()?;
        run(|pool| {
            let indices = TensorView::contiguous(&positions, &self.shape)?;
            call(indices.into(), pool)
        })?;
        Ok(())
    }

    /// Computes the position of each tuple along the first axis of the table, into which the indexed
    /// axes are merged. PyTorch's own kernel must run the call if a coordinate is out of bounds, or if
    /// there is no memory for the positions.
    fn positions(&self) -> Result<Vec<isize>, Stop> {
        let lines = |row| self.indices.iter().map(|index| index.line(row)).collect();
        let last = self.indices.first().and_then(|index| index.shape.last());
        let tuples = Tuples {
            width: last.copied().unwrap_or(1),
            row: &lines,
        };
        // The allocator returns memory of zeros, without a pass over it.
        let Ok(mut found) = bytemuck::try_zeroed_vec(self.count()) else {
            return Err(Reason::Error.into());
        };
        let are_inside =
            found.is_empty() || run(|pool| Ok(positions(tuples, &self.sizes, pool, &mut found)))?;
        are_inside.then_some(found).ok_or(Reason::Error.into())
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
fn broadcast<'a>(tensors: impl Iterator<Item = &'a Tensor> + Clone) -> Option<Dims<usize>> {
    let rank = tensors.clone().map(|tensor| tensor.shape.len()).max()?;
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
