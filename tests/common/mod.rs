//! The judge of every test, and what brings cases before it.
//!
//! [`scatters`] and [`gathers`] are the operators as the specifications write
//! them, [`arithmetic`] and [`elements`] what they do to numbers, [`indices`]
//! what the contract says of bad indices: one slice and one element at a time,
//! over logical tensors, without strides, threads or vectors. [`gradients`] has
//! those of gathers and scatters, from their definitions. [`operators`]
//! names the operators, [`harness`] runs the crate beside the reference, by
//! [`api`] alone.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary uses its own part of this module"
)]

pub(crate) mod api;
pub(crate) mod arithmetic;
pub(crate) mod by_hand;
pub(crate) mod destinations;
pub(crate) mod elements;
pub(crate) mod gathers;
pub(crate) mod gradients;
pub(crate) mod harness;
pub(crate) mod indices;
pub(crate) mod layouts;
pub(crate) mod operators;
pub(crate) mod pools;
pub(crate) mod random;
pub(crate) mod refused;
pub(crate) mod scatters;
pub(crate) mod small;

/// Where the tests of the interface import these from.
pub(crate) mod gather_harness {
    pub(crate) use super::api::{GatherOptions, Verbs};
    pub(crate) use super::harness::GatherProblem;
    pub(crate) use super::operators::Gatherer;
}
pub(crate) use api as request;

use indices::IndexRule;

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

    pub(crate) fn at(&self, index: &[usize]) -> &T {
        &self.values[position(&self.shape, index)]
    }
}

/// Where the element at `index` lies among the values of a tensor.
pub(crate) fn position(shape: &[usize], index: &[usize]) -> usize {
    assert_eq!(index.len(), shape.len(), "one coordinate a dimension");
    shape.iter().zip(index).fold(0, |position, (&size, &i)| {
        assert!(i < size, "{index:?} lies outside {shape:?}");
        position * size + i
    })
}

/// `scatter_nd` of elements of any type, which `f` combines two by two.
pub(crate) fn scatter_nd<T: Clone>(
    data: &Tensor<T>,
    indices: &Tensor<i128>,
    updates: &Tensor<T>,
    f: impl Fn(&T, &T) -> T,
) -> Tensor<T> {
    let hits = scatters::scatter_nd(&data.shape, indices, &updates.shape, IndexRule::DEFAULT);
    hits.apply(data, updates, |current, updates| {
        (updates.iter()).fold(current.clone(), |current, update| f(&current, update))
    })
}

/// Every index of `shape` in row-major order; one empty index for rank 0.
pub(crate) fn ndindex(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let count: usize = shape.iter().product();
    let mut next = vec![0; shape.len()];
    (0..count).map(move |_| {
        let index = next.clone();
        // The last one that is not at its end goes on, those after it begin again.
        for (i, &size) in next.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < size {
                break;
            }
            *i = 0;
        }
        index
    })
}
