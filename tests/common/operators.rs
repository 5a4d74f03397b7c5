//! The operators as values that tables of cases name. This module knows the shapes, the reference
//! and the errors of each operator. [`super::api`] builds the crate's operators from them.

use ndscatter::{CacheMode, Reduction, ScatterError};

use super::arithmetic::How;
use super::elements::Ref;
use super::gathers::{gather, gather_elements, gather_nd};
use super::indices::{IndexRule, Refusals, resolve_axis};
use super::scatters::{Hits, scatter_elements, scatter_nd, scatter_update, tensor_scatter};
use super::{Tensor, ndindex};

/// A scatter operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operator {
    Nd,
    Update {
        axis: isize,
    },
    Elements {
        axis: isize,
    },
    /// `tensor_scatter` of `len` positions.
    Cache {
        axis: isize,
        mode: CacheMode,
        len: usize,
    },
    Paged,
}

/// Returns `shape` with its first two axes merged: the slots of a paged cache are one axis.
fn merged(shape: &[usize]) -> Vec<usize> {
    [&[shape[0] * shape[1]], &shape[2..]].concat()
}

fn is_axis(axis: isize, rank: usize) -> bool {
    let rank = rank.cast_signed();
    (-rank..rank).contains(&axis)
}

/// Whether updates of this shape are accepted where the operator requires the shape `expected`. One
/// element of any rank may stand for updates of rank 0.
pub(crate) fn are_updates(expected: &[usize], actual: &[usize]) -> bool {
    let is_scalar = expected.is_empty() && actual.iter().all(|&size| size == 1);
    actual == expected || is_scalar
}

/// Whether an operator on elements accepts these shapes: indices are at most as long as data,
/// except along `axis`.
fn are_lanes(axis: isize, data: &[usize], indices: &[usize]) -> bool {
    is_axis(axis, data.len()) && indices.len() == data.len() && {
        let along = resolve_axis(axis, data.len());
        let is_short = |dim: usize| dim == along || indices[dim] <= data[dim];
        (0..data.len()).all(is_short)
    }
}

impl Operator {
    /// Returns the shape of `updates`.
    pub(crate) fn updates_shape(self, data: &[usize], indices: &[usize]) -> Vec<usize> {
        match self {
            Self::Nd => {
                let (&k, tuples) = indices.split_last().expect("rank 1 or more");
                [tuples, &data[k..]].concat()
            }
            Self::Update { axis } => {
                let axis = resolve_axis(axis, data.len());
                [&data[..axis], indices, &data[axis + 1..]].concat()
            }
            Self::Elements { .. } => indices.to_vec(),
            Self::Cache { axis, len, .. } => {
                let axis = resolve_axis(axis, data.len());
                [&data[..axis], &[len], &data[axis + 1..]].concat()
            }
            Self::Paged => [indices, &data[2..]].concat(),
        }
    }

    /// Whether data and indices of these shapes fit the operator.
    pub(crate) fn fits(self, data: &[usize], indices: &[usize]) -> bool {
        match self {
            Self::Nd => indices.last().is_some_and(|&k| k <= data.len()),
            Self::Update { axis } => is_axis(axis, data.len()),
            Self::Elements { axis } => are_lanes(axis, data, indices),
            Self::Cache { axis, len, .. } => {
                let is_valid = data.len() > 1 && is_axis(axis, data.len());
                let axis = is_valid.then(|| resolve_axis(axis, data.len()));
                let has_room = axis.is_some_and(|axis| axis > 0 && len <= data[axis]);
                has_room && (indices.is_empty() || indices == &data[..1])
            }
            Self::Paged => data.len() > 1,
        }
    }

    /// Returns the axes that a tuple's indices address. Each comes with the number of valid
    /// positions on it.
    pub(crate) fn axes(self, data: &[usize], indices: &[usize]) -> Vec<(usize, usize)> {
        let sizes = data.iter().copied().enumerate();
        match self {
            Self::Nd => sizes
                .take(*indices.last().expect("rank 1 or more"))
                .collect(),
            Self::Update { axis } | Self::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                vec![(axis, data[axis])]
            }
            Self::Cache { axis, len, .. } => {
                let axis = resolve_axis(axis, data.len());
                vec![(axis, data[axis] - len + 1)]
            }
            Self::Paged => vec![(0, merged(data)[0])],
        }
    }

    /// Returns the number of tuples of indices of this shape.
    pub(crate) fn tuples(self, indices: &[usize]) -> usize {
        match self {
            Self::Nd => indices[..indices.len() - 1].iter().product(),
            _ => indices.iter().product(),
        }
    }

    /// Computes the result with the reference. The call must be valid.
    pub(crate) fn expected<T: Ref>(
        self,
        rules: impl Into<Rules>,
        data: &Tensor<T>,
        indices: &Tensor<i128>,
        updates: &Tensor<T>,
    ) -> Tensor<T> {
        let Rules { how, index } = rules.into();
        let hits = self.hits(index, &data.shape, indices);
        hits.apply(data, updates, |&current, updates| {
            T::reduce(how, current, updates)
        })
    }

    /// Computes which update slices each destination receives.
    pub(crate) fn hits(self, rule: IndexRule, data: &[usize], indices: &Tensor<i128>) -> Hits {
        let updates = &self.updates_shape(data, &indices.shape);
        match self {
            Self::Nd => scatter_nd(data, indices, updates, rule),
            Self::Update { axis } => scatter_update(data, indices, updates, axis, rule),
            Self::Elements { axis } => scatter_elements(data, indices, updates, axis, rule),
            Self::Cache { axis, mode, .. } => {
                tensor_scatter(data, indices, updates, (axis, mode), rule)
            }
            Self::Paged => scatter_update(&merged(data), indices, updates, 0, rule),
        }
    }

    /// Returns the error that the values of `indices` must cause, if there is one.
    pub(crate) fn refusal(
        self,
        refusals: Refusals,
        data: &[usize],
        indices: &Tensor<i128>,
    ) -> Option<ScatterError> {
        let count = self.tuples(&indices.shape);
        let axes = self.axes(data, &indices.shape);
        let first = |implied: &dyn Fn(usize) -> Vec<usize>| {
            refusals.first(&indices.values, count, &axes, implied)
        };
        match self {
            Self::Nd | Self::Update { .. } => first(&|_| vec![]),
            Self::Paged => first(&|_| vec![]).map(|error| of_slot(error, data)),
            Self::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                let places: Vec<_> = ndindex(&indices.shape).collect();
                // A tuple's destination keeps the tuple's own coordinates, except on the axis.
                first(&|tuple| [&places[tuple][..axis], &places[tuple][axis + 1..]].concat())
            }
            // Without sequences, one position for all sequences belongs to no sequence. It is not
            // an error.
            Self::Cache { .. } if data[0] == 0 => None,
            Self::Cache { axis, mode, len } => {
                let size = data[resolve_axis(axis, data.len())];
                let idle = |index: i128| index < 0 && refusals.rule.drops(index);
                refused_write_index(&indices.values, mode, len, size, idle)
            }
        }
    }
}

/// Returns the error of a paged cache of shape `data` for an error of its merged axis.
fn of_slot(error: ScatterError, data: &[usize]) -> ScatterError {
    match error {
        ScatterError::IndexOutOfBounds { tuple, index, .. } => ScatterError::SlotOutOfBounds {
            position: tuple,
            slot: index,
            blocks: data[0],
            block_size: data[1],
        },
        error => error,
    }
}

/// Returns the error for the first sequence whose position is negative or, in a linear cache,
/// leaves too little room. An idle sequence has no error.
fn refused_write_index(
    write_indices: &[i128],
    mode: CacheMode,
    update_len: usize,
    cache_len: usize,
    is_idle: impl Fn(i128) -> bool,
) -> Option<ScatterError> {
    let room = i128::try_from(cache_len - update_len).expect("the size fits i128");
    let is_bad = |index: i128| index < 0 || (mode == CacheMode::Linear && index > room);
    let is_bad = |&index: &i128| is_bad(index) && !is_idle(index);
    let batch = write_indices.iter().position(is_bad)?;
    Some(ScatterError::WriteIndex {
        batch,
        index: write_indices[batch],
        update_len,
        cache_len,
        mode,
    })
}

/// Everything that decides a result, except the tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) how: How,
    pub(crate) index: IndexRule,
}

impl From<Reduction> for Rules {
    fn from(reduction: Reduction) -> Self {
        Self {
            how: reduction.into(),
            index: IndexRule::DEFAULT,
        }
    }
}

/// A gather operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gatherer {
    Nd { batch_dims: usize },
    Along { axis: isize },
    Elements { axis: isize },
    Paged,
}

impl Gatherer {
    /// Whether data and indices of these shapes fit the operator.
    pub(crate) fn fits(self, data: &[usize], indices: &[usize]) -> bool {
        match self {
            Self::Nd { batch_dims } => indices.split_last().is_some_and(|(&k, tuples)| {
                let has_batches = batch_dims <= tuples.len() && batch_dims + k <= data.len();
                has_batches && data[..batch_dims] == tuples[..batch_dims]
            }),
            Self::Along { axis } => is_axis(axis, data.len()),
            Self::Elements { axis } => are_lanes(axis, data, indices),
            Self::Paged => data.len() > 1,
        }
    }

    /// Returns the axes of data that a tuple's indices address, with their sizes.
    pub(crate) fn axes(self, data: &[usize], indices: &[usize]) -> Vec<(usize, usize)> {
        let axes = match self {
            Self::Nd { batch_dims } => {
                let k = indices.last().expect("rank 1 or more");
                batch_dims..batch_dims + k
            }
            Self::Along { axis } | Self::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                axis..axis + 1
            }
            Self::Paged => return vec![(0, merged(data)[0])],
        };
        axes.map(|axis| (axis, data[axis])).collect()
    }

    /// Returns the number of tuples of indices of this shape.
    pub(crate) fn tuples(self, indices: &[usize]) -> usize {
        match self {
            Self::Nd { .. } => indices[..indices.len() - 1].iter().product(),
            _ => indices.iter().product(),
        }
    }

    /// Computes the result with the reference. The call must be valid.
    pub(crate) fn expected<T: Ref>(
        self,
        rule: IndexRule,
        data: &Tensor<T>,
        indices: &Tensor<i128>,
    ) -> Tensor<T> {
        let zero = T::zero_value();
        match self {
            Self::Nd { batch_dims } => gather_nd(data, indices, batch_dims, rule, &zero),
            Self::Along { axis } => gather(data, indices, axis, rule, &zero),
            Self::Elements { axis } => gather_elements(data, indices, axis, rule, &zero),
            Self::Paged => {
                let data = Tensor::new(&merged(&data.shape), data.values.clone());
                gather(&data, indices, 0, rule, &zero)
            }
        }
    }

    /// Returns the shape of the output.
    pub(crate) fn output_shape(self, data: &[usize], indices: &[usize]) -> Vec<usize> {
        match self {
            Self::Nd { batch_dims } => {
                let (&k, tuples) = indices.split_last().expect("rank 1 or more");
                [tuples, &data[batch_dims + k..]].concat()
            }
            Self::Along { axis } => {
                let axis = resolve_axis(axis, data.len());
                [&data[..axis], indices, &data[axis + 1..]].concat()
            }
            Self::Elements { .. } => indices.to_vec(),
            Self::Paged => [indices, &data[2..]].concat(),
        }
    }

    /// Returns the error that the values of `indices` must cause, if there is one.
    pub(crate) fn refusal(
        self,
        rule: IndexRule,
        data: &[usize],
        indices: &Tensor<i128>,
    ) -> Option<ScatterError> {
        let refusals = Refusals {
            rule,
            reject_duplicates: false,
        };
        let count = self.tuples(&indices.shape);
        let axes = self.axes(data, &indices.shape);
        let error = refusals.first(&indices.values, count, &axes, |_| vec![]);
        match self {
            Self::Paged => error.map(|error| of_slot(error, data)),
            _ => error,
        }
    }
}
