//! The test harness: the sequential reference and the code that runs cases against it.
//!
//! How a case runs: a test describes a case by an operator ([`operators`]), shapes, indices, values
//! and layouts ([`layouts`]). The reference computes the expected tensor. [`harness`] calls one
//! method of the crate through [`api`]. It then compares the whole buffer of the output, including
//! gaps and margins, with the expected buffer.
//!
//! The reference consists of these modules. [`scatters`] and [`gathers`] contain the operators as
//! the specifications define them. [`arithmetic`] and [`elements`] contain the reductions of
//! numbers. [`indices`] contains the rules for indices out of bounds. [`gradients`] contains the
//! gradients, computed from their definitions. The reference processes one slice and one element at
//! a time, over logical tensors. It knows no strides, threads or vectors.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary uses its own part of this module"
)]

pub(crate) mod api;
pub(crate) mod arithmetic;
pub(crate) mod by_hand;
pub(crate) mod cases;
pub(crate) mod destinations;
pub(crate) mod elements;
#[cfg(feature = "half")]
pub(crate) mod formats;
#[cfg(feature = "gradients")]
pub(crate) mod gather_gradients;
pub(crate) mod gathers;
pub(crate) mod gradients;
pub(crate) mod harness;
pub(crate) mod indices;
pub(crate) mod layouts;
pub(crate) mod operators;
pub(crate) mod pools;
pub(crate) mod random;
pub(crate) mod refused;
#[cfg(feature = "gradients")]
pub(crate) mod scatter_gradients;
pub(crate) mod scatters;
pub(crate) mod small;

/// Returns the folder of the crate. For the package `tests/minimal`, this folder is not the folder of
/// the package.
pub(crate) fn repository() -> std::path::PathBuf {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors();
    let found = folders.find(|folder| folder.join("tests/data/onnx").is_dir());
    found.expect("the folder of the crate").to_path_buf()
}

/// Names under which the tests of the interface import parts of the harness.
pub(crate) mod gather_harness {
    pub(crate) use super::api::{GatherOptions, Methods};
    pub(crate) use super::harness::GatherProblem;
    pub(crate) use super::operators::Gatherer;
}
pub(crate) use api as request;

use indices::IndexRule;

/// A logical tensor of the reference: a shape and values, without a memory layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor<T> {
    pub(crate) shape: Vec<usize>,
    /// Elements in row-major order.
    pub(crate) values: Vec<T>,
}

impl<T> Tensor<T> {
    pub(crate) fn new(shape: &[usize], values: Vec<T>) -> Self {
        let count: usize = shape.iter().product();
        assert_eq!(
            count,
            values.len(),
            "shape {shape:?} and the number of values"
        );
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

/// Returns the row-major position of the element at `index` in a tensor of `shape`.
pub(crate) fn position(shape: &[usize], index: &[usize]) -> usize {
    assert_eq!(index.len(), shape.len(), "one coordinate per dimension");
    shape.iter().zip(index).fold(0, |position, (&size, &i)| {
        assert!(i < size, "{index:?} is outside {shape:?}");
        position * size + i
    })
}

/// Computes `scatter_nd` for elements of any type. `f(current, update)` combines two elements.
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

/// Returns every index of `shape` in row-major order. Rank 0 has one empty index.
pub(crate) fn ndindex(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let count: usize = shape.iter().product();
    let mut next = vec![0; shape.len()];
    (0..count).map(move |_| {
        let index = next.clone();
        // Increments the last coordinate that is not at its end. The coordinates after it restart
        // at 0.
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
