//! Scatter as the specifications write it: which updates come to which
//! element, in which order. What they do there is [`super::elements`]' part.

use ndscatter::CacheMode;

use super::indices::{IndexRule, resolve_axis};
use super::{Tensor, ndindex, position};

/// The updates that come to the elements of an output, in order.
pub(crate) struct Hits<T> {
    shape: Vec<usize>,
    hits: Vec<(usize, T)>,
}

impl<T: Clone> Hits<T> {
    fn new(shape: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            hits: Vec::new(),
        }
    }

    fn push(&mut self, index: &[usize], update: &T) {
        let position = position(&self.shape, index);
        self.hits.push((position, update.clone()));
    }

    /// `data` with `f(current, updates)` in the place of each element that has
    /// updates.
    pub(crate) fn apply(mut self, data: &Tensor<T>, f: impl Fn(&T, &[T]) -> T) -> Tensor<T> {
        let mut output = data.clone();
        // Stable: the updates of one element keep their order.
        self.hits.sort_by_key(|&(position, _)| position);
        for hits in self.hits.chunk_by(|a, b| a.0 == b.0) {
            let updates: Vec<T> = hits.iter().map(|(_, update)| update.clone()).collect();
            let current = &mut output.values[hits[0].0];
            *current = f(current, &updates);
        }
        output
    }
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape[:-1]):
///     output[indices[idx]] = f(output[indices[idx]], updates[idx])
/// ```
pub(crate) fn scatter_nd<T: Clone>(
    data: &[usize],
    indices: &Tensor<i128>,
    updates: &Tensor<T>,
    rule: IndexRule,
) -> Hits<T> {
    let mut output = Hits::new(data);
    let (&k, tuples) = indices.shape.split_last().expect("rank 1 or more");
    for idx in ndindex(tuples) {
        let coordinates = (0..k).map(|axis| {
            let index = *indices.at(&[&idx[..], &[axis]].concat());
            rule.resolve(index, data[axis])
        });
        let Some(destination) = coordinates.collect::<Option<Vec<_>>>() else {
            continue;
        };
        for inner in ndindex(&data[k..]) {
            let update = updates.at(&[&idx[..], &inner].concat());
            output.push(&[&destination[..], &inner].concat(), update);
        }
    }
    output
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape):
///     output[..., indices[idx], ...] = f(output[..., indices[idx], ...], updates[..., idx, ...])
/// ```
pub(crate) fn scatter_update<T: Clone>(
    data: &[usize],
    indices: &Tensor<i128>,
    updates: &Tensor<T>,
    axis: isize,
    rule: IndexRule,
) -> Hits<T> {
    let mut output = Hits::new(data);
    let axis = resolve_axis(axis, data.len());
    for idx in ndindex(&indices.shape) {
        let Some(index) = rule.resolve(*indices.at(&idx), data[axis]) else {
            continue;
        };
        for outer in ndindex(&data[..axis]) {
            for inner in ndindex(&data[axis + 1..]) {
                let update = updates.at(&[&outer[..], &idx, &inner].concat());
                output.push(&[&outer[..], &[index], &inner].concat(), update);
            }
        }
    }
    output
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape):
///     destination = idx with indices[idx] at axis
///     output[destination] = f(output[destination], updates[idx])
/// ```
pub(crate) fn scatter_elements<T: Clone>(
    data: &[usize],
    indices: &Tensor<i128>,
    updates: &Tensor<T>,
    axis: isize,
    rule: IndexRule,
) -> Hits<T> {
    let mut output = Hits::new(data);
    let axis = resolve_axis(axis, data.len());
    for idx in ndindex(&indices.shape) {
        let mut destination = idx.clone();
        if let Some(index) = rule.resolve(*indices.at(&idx), data[axis]) {
            destination[axis] = index;
            output.push(&destination, updates.at(&idx));
        }
    }
    output
}

/// ```text
/// output = np.copy(cache)
/// for idx in np.ndindex(update.shape):
///     destination = idx with write_indices[idx[0]] + idx[axis] at axis (circular: modulo its size)
///     output[destination] = update[idx]
/// ```
pub(crate) fn tensor_scatter<T: Clone>(
    cache: &[usize],
    write_indices: &Tensor<i128>,
    update: &Tensor<T>,
    axis: isize,
    mode: CacheMode,
) -> Hits<T> {
    let mut output = Hits::new(cache);
    let axis = resolve_axis(axis, cache.len());
    for idx in ndindex(&update.shape) {
        let sequence = &idx[..write_indices.shape.len()];
        let step = i128::try_from(idx[axis]).expect("sizes fit");
        let index = *write_indices.at(sequence) + step;
        let size = i128::try_from(cache[axis]).expect("sizes fit");
        let index = match mode {
            CacheMode::Linear => index,
            CacheMode::Circular => index % size,
        };
        let mut destination = idx.clone();
        destination[axis] = usize::try_from(index).expect("a valid write index");
        output.push(&destination, update.at(&idx));
    }
    output
}
