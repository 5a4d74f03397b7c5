//! Gathers as the specifications write them, one element of the output at a
//! time. An index that is skipped reads `zero`.

use super::indices::{IndexRule, resolve_axis};
use super::{Tensor, ndindex};

/// A tensor of `shape` from the element of `data` at `source(index)`.
fn collect<T: Clone>(
    shape: &[usize],
    data: &Tensor<T>,
    zero: &T,
    source: impl Fn(&[usize]) -> Option<Vec<usize>>,
) -> Tensor<T> {
    let read = |index: Vec<usize>| match source(&index) {
        Some(source) => data.at(&source).clone(),
        None => zero.clone(),
    };
    Tensor::new(shape, ndindex(shape).map(read).collect())
}

/// ```text
/// output.shape = indices.shape[:-1] ++ data.shape[b + k:]
/// output[idx, inner] = data[idx[:b], indices[idx], inner]
/// ```
pub(crate) fn gather_nd<T: Clone>(
    data: &Tensor<T>,
    indices: &Tensor<i128>,
    batch_dims: usize,
    rule: IndexRule,
    zero: &T,
) -> Tensor<T> {
    let (&k, tuples) = indices.shape.split_last().expect("rank 1 or more");
    let window = batch_dims + k;
    let shape = [tuples, &data.shape[window..]].concat();
    collect(&shape, data, zero, |index| {
        let (idx, inner) = index.split_at(tuples.len());
        let coordinates = (0..k).map(|axis| {
            let index = *indices.at(&[idx, &[axis]].concat());
            rule.resolve(index, data.shape[batch_dims + axis])
        });
        let coordinates = coordinates.collect::<Option<Vec<_>>>()?;
        Some([&idx[..batch_dims], &coordinates, inner].concat())
    })
}

/// ```text
/// output.shape = data.shape[:axis] ++ indices.shape ++ data.shape[axis + 1:]
/// output[outer, idx, inner] = data[outer, indices[idx], inner]
/// ```
pub(crate) fn gather<T: Clone>(
    data: &Tensor<T>,
    indices: &Tensor<i128>,
    axis: isize,
    rule: IndexRule,
    zero: &T,
) -> Tensor<T> {
    let axis = resolve_axis(axis, data.shape.len());
    let (outer, inner) = (&data.shape[..axis], &data.shape[axis + 1..]);
    let shape = [outer, &indices.shape, inner].concat();
    collect(&shape, data, zero, |index| {
        let (outer, rest) = index.split_at(axis);
        let (idx, inner) = rest.split_at(indices.shape.len());
        let index = rule.resolve(*indices.at(idx), data.shape[axis])?;
        Some([outer, &[index], inner].concat())
    })
}

/// ```text
/// output.shape = indices.shape
/// output[idx] = data[idx with indices[idx] at axis]
/// ```
pub(crate) fn gather_elements<T: Clone>(
    data: &Tensor<T>,
    indices: &Tensor<i128>,
    axis: isize,
    rule: IndexRule,
    zero: &T,
) -> Tensor<T> {
    let axis = resolve_axis(axis, data.shape.len());
    collect(&indices.shape, data, zero, |idx| {
        let mut source = idx.to_vec();
        source[axis] = rule.resolve(*indices.at(idx), data.shape[axis])?;
        Some(source)
    })
}
