//! The judge of every test: scatter as the ONNX page writes it, one element
//! at a time, and what the contract says of bad indices.
//!
//! Knows logical tensors only: a shape and its values in row-major order.
//! Knows nothing of strides, threads or vectors.

#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]

pub(crate) mod elements;
pub(crate) mod harness;
pub(crate) mod layouts;
pub(crate) mod pools;
pub(crate) mod random;

use std::collections::HashMap;

use ndscatter::ScatterError;

/// A tensor as the reference sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor<T> {
    pub(crate) shape: Vec<usize>,
    /// In row-major order.
    pub(crate) values: Vec<T>,
}

impl<T> Tensor<T> {
    pub(crate) fn new(shape: &[usize], values: Vec<T>) -> Self {
        let count: usize = shape.iter().product();
        assert_eq!(count, values.len(), "shape {shape:?} and its values");
        let shape = shape.to_vec();
        Self { shape, values }
    }

    pub(crate) fn generate(shape: &[usize], value: impl FnMut() -> T) -> Self {
        let count = shape.iter().product();
        Self::new(shape, std::iter::repeat_with(value).take(count).collect())
    }

    fn position(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.shape.len(), "one coordinate a dimension");
        self.shape
            .iter()
            .zip(index)
            .fold(0, |position, (&size, &i)| {
                assert!(i < size, "{index:?} lies outside {:?}", self.shape);
                position * size + i
            })
    }

    pub(crate) fn at(&self, index: &[usize]) -> &T {
        &self.values[self.position(index)]
    }

    pub(crate) fn at_mut(&mut self, index: &[usize]) -> &mut T {
        let position = self.position(index);
        &mut self.values[position]
    }
}

/// Every index of `shape` in row-major order; one empty index for rank 0.
pub(crate) fn ndindex(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let count: usize = shape.iter().product();
    (0..count).map(move |mut rest| {
        let mut index = vec![0; shape.len()];
        for (i, size) in index.iter_mut().zip(shape).rev() {
            *i = rest % size;
            rest /= size;
        }
        index
    })
}

/// `index` on an axis of `size` elements; negative ones count from the end.
fn wrap(index: i128, size: usize) -> Option<usize> {
    let size = i128::try_from(size).expect("sizes fit");
    let index = if index < 0 { index + size } else { index };
    (0..size)
        .contains(&index)
        .then(|| usize::try_from(index).expect("it is below a usize"))
}

/// ```text
/// output = np.copy(data)
/// for idx in np.ndindex(indices.shape[:-1]):
///     output[indices[idx]] = f(output[indices[idx]], updates[idx])
/// ```
pub(crate) fn scatter_nd<T: Clone>(
    data: &Tensor<T>,
    indices: &Tensor<i128>,
    updates: &Tensor<T>,
    f: impl Fn(&T, &T) -> T,
) -> Tensor<T> {
    let mut output = data.clone();
    let (&k, tuples) = indices.shape.split_last().expect("rank 1 or more");
    for idx in ndindex(tuples) {
        let destination: Vec<usize> = (0..k)
            .map(|axis| {
                let index = *indices.at(&[&idx[..], &[axis]].concat());
                wrap(index, data.shape[axis]).expect("indices in bounds")
            })
            .collect();
        for inner in ndindex(&data.shape[k..]) {
            let update = updates.at(&[&idx[..], &inner].concat());
            let current = output.at_mut(&[&destination[..], &inner].concat());
            *current = f(current, update);
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
    data: &Tensor<T>,
    indices: &Tensor<i128>,
    updates: &Tensor<T>,
    axis: isize,
    f: impl Fn(&T, &T) -> T,
) -> Tensor<T> {
    let mut output = data.clone();
    let axis = resolve_axis(axis, data.shape.len());
    let (before, after) = (&data.shape[..axis], &data.shape[axis + 1..]);
    for idx in ndindex(&indices.shape) {
        let index = wrap(*indices.at(&idx), data.shape[axis]).expect("indices in bounds");
        for outer in ndindex(before) {
            for inner in ndindex(after) {
                let update = updates.at(&[&outer[..], &idx, &inner].concat());
                let current = output.at_mut(&[&outer[..], &[index], &inner].concat());
                *current = f(current, update);
            }
        }
    }
    output
}

/// A valid axis, counted from the front.
pub(crate) fn resolve_axis(axis: isize, rank: usize) -> usize {
    let axis = i128::try_from(axis).expect("it fits");
    wrap(axis, rank).expect("the axis is in range")
}

/// What the contract refuses in the values of `indices`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusals {
    pub(crate) negative_indices: bool,
    pub(crate) reject_duplicates: bool,
}

impl Refusals {
    /// The error that `count` tuples deserve: the first tuple out of bounds,
    /// by its lowest axis; then the first that repeats an earlier one.
    /// `axes` are the axes that the coordinates address, with their sizes.
    pub(crate) fn first(
        self,
        indices: &[i128],
        count: usize,
        axes: &[(usize, usize)],
    ) -> Option<ScatterError> {
        let coordinates = |tuple: usize| indices[tuple * axes.len()..].iter().zip(axes);
        for tuple in 0..count {
            for (&index, &(axis, size)) in coordinates(tuple) {
                let forbidden = index < 0 && !self.negative_indices;
                if forbidden || wrap(index, size).is_none() {
                    return Some(ScatterError::IndexOutOfBounds {
                        tuple,
                        axis,
                        index,
                        size,
                    });
                }
            }
        }
        let mut last = HashMap::new();
        for tuple in (0..count).filter(|_| self.reject_duplicates) {
            let wrapped = coordinates(tuple).map(|(&index, &(_, size))| wrap(index, size));
            if let Some(earlier) = last.insert(wrapped.collect::<Vec<_>>(), tuple) {
                return Some(ScatterError::DuplicateIndex { tuple, earlier });
            }
        }
        None
    }
}
