//! Gathers as the specifications define them, one slice of the output at a time. A skipped index
//! reads `zero`.

use super::indices::{IndexRule, resolve_axis};
use super::{Tensor, ndindex, position};

/// Returns a tensor of `shape`. For each index of the first `leading` dims, its slice is the slice
/// of `data` at `source(index)`.
fn read_slices<T: Clone>(
    shape: &[usize],
    leading: usize,
    data: &Tensor<T>,
    zero: &T,
    source: impl Fn(&[usize]) -> Option<Vec<usize>>,
) -> Tensor<T> {
    let window: usize = shape[leading..].iter().product();
    let mut values = Vec::with_capacity(shape.iter().product());
    for index in ndindex(&shape[..leading]) {
        match source(&index) {
            Some(source) => {
                let from = position(&data.shape[..source.len()], &source) * window;
                values.extend_from_slice(&data.values[from..from + window]);
            }
            None => values.resize(values.len() + window, zero.clone()),
        }
    }
    Tensor::new(shape, values)
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
    read_slices(&shape, tuples.len(), data, zero, |idx| {
        let coordinates = (0..k).map(|axis| {
            let index = *indices.at(&[idx, &[axis]].concat());
            rule.resolve(index, data.shape[batch_dims + axis])
        });
        let coordinates = coordinates.collect::<Option<Vec<_>>>()?;
        Some([&idx[..batch_dims], &coordinates].concat())
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
    let leading = axis + indices.shape.len();
    read_slices(&shape, leading, data, zero, |index| {
        let (outer, idx) = index.split_at(axis);
        let index = rule.resolve(*indices.at(idx), data.shape[axis])?;
        Some([outer, &[index]].concat())
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
    let rank = indices.shape.len();
    read_slices(&indices.shape, rank, data, zero, |idx| {
        let mut source = idx.to_vec();
        source[axis] = rule.resolve(*indices.at(idx), data.shape[axis])?;
        Some(source)
    })
}
