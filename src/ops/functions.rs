//! Functions that scatter in place: short forms of [`Scatter`] builders.

use super::scatter::Scatter;
use crate::error::ScatterError;
use crate::operand::{Indices, Output, TensorView};
use crate::reduction::{CacheMode, Reduction};

/// Applies slices of `updates` to the slices of `data` that tuples of coordinates address.
/// `reduction` states how an update changes the existing value.
///
/// - `indices` has rank 1 or more and any integer type. The last dimension of `indices` holds the
///   `k` coordinates of a tuple. Negative indices count from the end of their axis.
/// - `updates` has the shape `indices.shape[..-1] ++ data.shape[k..]`, and the element type of
///   `data`.
///
/// Updates of one destination are applied in the row-major order of `indices`, with any number of
/// threads. Integers wrap. `Min` and `Max` propagate NaN and keep the current value on a tie.
///
/// The shapes and the addressed slices are those of ONNX ScatterND. [`Scatter::nd`] has all options
/// and methods.
///
/// # Errors
///
/// A [`ScatterError`], for example if shapes do not fit, an index is out of bounds, or the element
/// type lacks the reduction. After an error, `data` is usually unchanged. [`Scatter`] names the
/// exceptions.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_nd};
///
/// let mut data = [1.0_f32, 2.0, 3.0, 4.0];
/// scatter_nd(
///     TensorViewMut::from(&mut data),
///     TensorView::contiguous(&[0_i64, -1], &[2, 1])?,
///     TensorView::from(&[10.0, 40.0]),
///     Reduction::Add,
/// )?;
/// assert_eq!(data, [11.0, 2.0, 3.0, 44.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
///
/// The compiler rejects a call in which `data` and `updates` borrow the same memory:
///
/// ```compile_fail,E0502
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_nd};
///
/// let mut data = [1.0_f32, 2.0];
/// scatter_nd(
///     TensorViewMut::from(&mut data),
///     TensorView::contiguous(&[1_i64, 0], &[2, 1]).unwrap(),
///     TensorView::from(&data),
///     Reduction::None,
/// );
/// ```
#[inline]
pub fn scatter_nd<'i, O: Output>(
    data: O,
    indices: impl Into<Indices<'i>>,
    updates: O::Input,
    reduction: Reduction,
) -> Result<(), ScatterError> {
    (Scatter::nd().reduction(reduction)).in_place(data, indices, updates)
}

/// Applies slices of `updates` to the slices of `data` at the positions `indices` along `axis`.
/// `reduction` states how an update changes the existing value.
///
/// - `axis` is in `-rank..rank` of `data`. A negative axis counts from the end.
/// - `indices` has any rank and any integer type. Negative indices count from the end of `axis`.
/// - `updates` has the shape `data.shape[..axis] ++ indices.shape ++ data.shape[axis + 1..]`,
///   and the element type of `data`.
///
/// Updates of one destination are applied in the row-major order of `indices`, with any number of
/// threads. Integers wrap. `Min` and `Max` propagate NaN and keep the current value on a tie.
///
/// `axis`, indices that are not negative, and the shape of `updates` have the same meaning as in
/// OpenVINO ScatterUpdate and torch `index_add_`. [`Scatter::along`] has all options and methods.
///
/// # Errors
///
/// A [`ScatterError`], for example if `axis` is out of range, shapes do not fit, an index is out
/// of bounds, or the element type lacks the reduction. After an error, `data` is usually
/// unchanged. [`Scatter`] names the exceptions.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_update};
///
/// // Adds each row to the row of its segment.
/// let mut sums = [0.0_f64; 4];
/// scatter_update(
///     TensorViewMut::contiguous(&mut sums, &[2, 2])?,
///     TensorView::from(&[0_u8, 1, 0]),
///     TensorView::contiguous(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?,
///     0,
///     Reduction::Add,
/// )?;
/// assert_eq!(sums, [6.0, 8.0, 3.0, 4.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[inline]
pub fn scatter_update<'i, O: Output>(
    data: O,
    indices: impl Into<Indices<'i>>,
    updates: O::Input,
    axis: isize,
    reduction: Reduction,
) -> Result<(), ScatterError> {
    (Scatter::along(axis).reduction(reduction)).in_place(data, indices, updates)
}

/// Applies each element of `updates` to one element of `data`. `reduction` states how an update
/// changes the existing value.
///
/// The position in `data` is the position of the update in `updates`, except along `axis`. Along
/// `axis`, the position in `data` is the index that `indices` has for this update.
///
/// - `axis` is in `-rank..rank` of `data`. A negative axis counts from the end.
/// - `indices` has the rank of `data` and any integer type. `indices` may be longer than `data`
///   only along `axis`. Negative indices count from the end of `axis`.
/// - `updates` has the shape of `indices` and the element type of `data`.
///
/// Updates of one destination are applied in the row-major order of `indices`, with any number of
/// threads. Integers wrap. `Min` and `Max` propagate NaN and keep the current value on a tie.
///
/// The shapes and the addressed elements are those of ONNX ScatterElements and torch
/// `scatter_reduce_`. [`Scatter::elements`] has all options and methods.
///
/// # Errors
///
/// A [`ScatterError`], for example if `axis` is out of range, shapes do not fit, an index is out
/// of bounds, or the element type lacks the reduction. After an error, `data` is usually
/// unchanged. [`Scatter`] names the exceptions.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_elements};
///
/// let mut data = [[1, 2, 3], [4, 5, 6]].concat();
/// scatter_elements(
///     TensorViewMut::contiguous(&mut data, &[2, 3])?,
///     TensorView::contiguous(&[2_i64, 0], &[2, 1])?,
///     TensorView::contiguous(&[30, 40], &[2, 1])?,
///     1,
///     Reduction::None,
/// )?;
/// assert_eq!(data, [1, 2, 30, 40, 5, 6]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[inline]
pub fn scatter_elements<'i, O: Output>(
    data: O,
    indices: impl Into<Indices<'i>>,
    updates: O::Input,
    axis: isize,
    reduction: Reduction,
) -> Result<(), ScatterError> {
    (Scatter::elements(axis).reduction(reduction)).in_place(data, indices, updates)
}

/// Writes the rows of `update` into `past_cache`. The rows of a sequence get consecutive positions,
/// and the first position is the write index of the sequence.
///
/// - `past_cache` has the sequences on axis 0 and the positions on `axis`.
/// - `axis` is in `-rank..rank` of `past_cache`, and is not axis 0. A negative axis counts from
///   the end.
/// - `write_indices` has the shape `[past_cache.shape[0]]`: one index for each sequence.
///   `write_indices` of rank 0 has one index for all sequences. With `None`, the index of all
///   sequences is 0. A negative index is an error.
/// - `update` has the shape of `past_cache`, except that `update` may be shorter along `axis`.
///   `update` has the element type of `past_cache`.
///
/// In [`CacheMode::Linear`] the rows must fit between the write index and the end of `axis`. In
/// [`CacheMode::Circular`] positions are taken modulo the size of `axis` in `past_cache`. No two
/// rows of `update` are written to the same position of a sequence.
///
/// The shapes, the positions and the two modes are those of ONNX TensorScatter 24. This function
/// only writes in place, with indices of type `i64`. The builder [`Scatter::cache`] can also write
/// into another output and make a kept plan. `Scatter::cache` accepts all index types and can skip
/// idle sequences.
///
/// # Errors
///
/// A [`ScatterError`], for example if `axis` is out of range or 0, shapes do not fit, or a write
/// index is negative. With [`CacheMode::Linear`], also if the rows do not fit between a write index
/// and the end of `axis`. After an error, the cache is usually unchanged. [`Scatter`] names the
/// exceptions.
///
/// # Examples
///
/// ```
/// use ndscatter::{CacheMode, TensorView, TensorViewMut, tensor_scatter};
///
/// let mut cache = [0, 1, 2, 3, 4, 5];
/// tensor_scatter(
///     TensorViewMut::contiguous(&mut cache, &[1, 6])?,
///     Some(TensorView::from(&[5])),
///     TensorView::contiguous(&[50, 51], &[1, 2])?,
///     1,
///     CacheMode::Circular,
/// )?;
/// assert_eq!(cache, [51, 1, 2, 3, 4, 50]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[inline]
pub fn tensor_scatter<O: Output>(
    past_cache: O,
    write_indices: Option<TensorView<'_, i64>>,
    update: O::Input,
    axis: isize,
    mode: CacheMode,
) -> Result<(), ScatterError> {
    let start = match write_indices {
        Some(indices) => indices,
        None => TensorView::contiguous(&[0], &[])?,
    };
    Scatter::cache(axis, mode).in_place(past_cache, start, update)
}
