//! Scatters as the specifications define them: the update slices that each output slice receives,
//! in order. [`super::elements`] combines them.

use ndscatter::CacheMode;

use super::indices::{IndexRule, resolve_axis};
use super::{Tensor, ndindex, position};

/// The update slices that output slices receive, in order.
pub(crate) struct Hits {
    /// Number of leading dims that identify a slice, in the output and in updates.
    leading: (usize, usize),
    output: Vec<usize>,
    updates: Vec<usize>,
    /// Positions of the first element of a slice, in the output and in updates.
    hits: Vec<(usize, usize)>,
}

impl Hits {
    fn new(output: &[usize], updates: &[usize], leading: (usize, usize)) -> Self {
        let window = &output[leading.0..];
        assert_eq!(window, &updates[leading.1..], "slices of one shape");
        Self {
            leading,
            output: output.to_vec(),
            updates: updates.to_vec(),
            hits: Vec::new(),
        }
    }

    /// Returns the number of elements of a slice.
    fn window(&self) -> usize {
        self.output[self.leading.0..].iter().product()
    }

    fn push(&mut self, destination: &[usize], update: &[usize]) {
        let to = position(&self.output[..self.leading.0], destination);
        let from = position(&self.updates[..self.leading.1], update);
        let window = self.window();
        self.hits.push((to * window, from * window));
    }

    /// Sorts by destination. The updates of a destination keep their order.
    fn sorted(mut self) -> Self {
        self.hits.sort_by_key(|&(to, _)| to);
        self
    }

    /// Calls `f(element, updates)` for every output element that has updates. `updates` are
    /// positions in the updates tensor, in order.
    pub(crate) fn each(&self, mut f: impl FnMut(usize, &[usize])) {
        // The allocation of a vector for each element would take longer than the rest.
        let mut updates = Vec::new();
        for hits in self.hits.chunk_by(|a, b| a.0 == b.0) {
            for at in 0..self.window() {
                updates.clear();
                updates.extend(hits.iter().map(|&(_, from)| from + at));
                f(hits[0].0 + at, &updates);
            }
        }
    }

    /// Returns `data` with each element that has updates replaced by `f(current, updates)`.
    pub(crate) fn apply<T: Clone>(
        &self,
        data: &Tensor<T>,
        updates: &Tensor<T>,
        f: impl Fn(&T, &[T]) -> T,
    ) -> Tensor<T> {
        let mut output = data.clone();
        let mut together = Vec::new();
        self.each(|to, from| {
            together.clear();
            together.extend(from.iter().map(|&at| updates.values[at].clone()));
            let current = &mut output.values[to];
            *current = f(current, &together);
        });
        output
    }
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape[:-1]):
///     output[indices[idx]] = f(output[indices[idx]], updates[idx])
/// ```
pub(crate) fn scatter_nd(
    data: &[usize],
    indices: &Tensor<i128>,
    updates: &[usize],
    rule: IndexRule,
) -> Hits {
    let (&k, tuples) = indices.shape.split_last().expect("rank 1 or more");
    let mut output = Hits::new(data, updates, (k, tuples.len()));
    for (number, idx) in ndindex(tuples).enumerate() {
        // The tuple is `indices[idx]`: tuples are stored in row-major order.
        let tuple = indices.values[number * k..][..k].iter().zip(data);
        let coordinates = tuple.map(|(&index, &size)| rule.resolve(index, size));
        let Some(destination) = coordinates.collect::<Option<Vec<_>>>() else {
            continue;
        };
        output.push(&destination, &idx);
    }
    output.sorted()
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape):
///     output[..., indices[idx], ...] = f(output[..., indices[idx], ...], updates[..., idx, ...])
/// ```
pub(crate) fn scatter_update(
    data: &[usize],
    indices: &Tensor<i128>,
    updates: &[usize],
    axis: isize,
    rule: IndexRule,
) -> Hits {
    let axis = resolve_axis(axis, data.len());
    let mut output = Hits::new(data, updates, (axis + 1, axis + indices.shape.len()));
    for (idx, &index) in ndindex(&indices.shape).zip(&indices.values) {
        let Some(index) = rule.resolve(index, data[axis]) else {
            continue;
        };
        for outer in ndindex(&data[..axis]) {
            output.push(
                &[&outer[..], &[index]].concat(),
                &[&outer[..], &idx].concat(),
            );
        }
    }
    output.sorted()
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape):
///     destination = idx with indices[idx] at axis
///     output[destination] = f(output[destination], updates[idx])
/// ```
pub(crate) fn scatter_elements(
    data: &[usize],
    indices: &Tensor<i128>,
    updates: &[usize],
    axis: isize,
    rule: IndexRule,
) -> Hits {
    let mut output = Hits::new(data, updates, (data.len(), data.len()));
    let axis = resolve_axis(axis, data.len());
    for (idx, &index) in ndindex(&indices.shape).zip(&indices.values) {
        let mut destination = idx.clone();
        if let Some(index) = rule.resolve(index, data[axis]) {
            destination[axis] = index;
            output.push(&destination, &idx);
        }
    }
    output.sorted()
}

/// ```text
/// output = np.copy(cache)
/// for idx in np.ndindex(update.shape[:axis + 1]):
///     if write_indices[idx[0]] < 0 and the rule skips negative indices: continue
///     destination = idx with write_indices[idx[0]] + idx[axis] at axis (circular: modulo its size)
///     output[destination] = update[idx]
/// ```
pub(crate) fn tensor_scatter(
    cache: &[usize],
    write_indices: &Tensor<i128>,
    update: &[usize],
    (axis, mode): (isize, CacheMode),
    rule: IndexRule,
) -> Hits {
    let axis = resolve_axis(axis, cache.len());
    let mut output = Hits::new(cache, update, (axis + 1, axis + 1));
    for idx in ndindex(&update[..=axis]) {
        let sequence = &idx[..write_indices.shape.len()];
        let step = i128::try_from(idx[axis]).expect("the size fits i128");
        let start = *write_indices.at(sequence);
        if start < 0 && rule.drops(start) {
            continue;
        }
        let index = start + step;
        let size = i128::try_from(cache[axis]).expect("the size fits i128");
        let index = match mode {
            CacheMode::Linear => index,
            CacheMode::Circular => index % size,
        };
        let mut destination = idx.clone();
        destination[axis] = usize::try_from(index).expect("a valid write index");
        output.push(&destination, &idx);
    }
    output.sorted()
}
