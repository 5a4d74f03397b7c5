//! The in-place verbs in one line.

use super::scatter::Scatter;
use crate::error::ScatterError;
use crate::operand::{Indices, Output, TensorView};
use crate::reduction::{CacheMode, Reduction};

/// Writes update slices into `data` at the positions named by `indices`.
///
/// With `k = indices.shape[-1]`, `updates` must have the shape
/// `indices.shape[..-1] ++ data.shape[k..]`. [`Scatter::nd`] has the options and
/// the other verbs.
///
/// The rule is that of ONNX ScatterND; negative indices count from the end.
/// Duplicates are applied in the row-major order of `indices`, whatever the number
/// of threads. `Min` and `Max` propagate NaN and keep the current value on a tie;
/// integers wrap.
///
/// # Errors
///
/// A [`ScatterError`] if the shapes disagree, an index is out of bounds or the
/// element type does not have the reduction. `data` is then unchanged.
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
/// `data` and `updates` cannot be the same memory:
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

/// Writes update slices into `data` at `indices` along `axis`.
///
/// `updates` must have the shape `data.shape[..axis] ++ indices.shape ++
/// data.shape[axis + 1..]`. [`Scatter::along`] has the options and the other
/// verbs.
///
/// The rule is that of OpenVINO ScatterUpdate and torch `index_add_`; a negative
/// axis and negative indices count from the end. Duplicates are applied in the order of `indices`, whatever the number of
/// threads. `Min` and `Max` propagate NaN and keep the current value on a tie;
/// integers wrap.
///
/// # Errors
///
/// A [`ScatterError`] if the axis is out of range, the shapes disagree, an
/// index is out of bounds or the element type does not have the reduction.
/// `data` is then unchanged.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_update};
///
/// // Sums rows by segment.
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

/// Writes `updates` into `data`, each at its own position but for `axis`,
/// where `indices` has its place.
///
/// `indices` and `updates` have one shape, at most that of `data` off the
/// axis. [`Scatter::elements`] has the options and the other verbs.
///
/// Duplicates are applied in the order of `indices`, whatever the number of
/// threads. `Min` and `Max` propagate NaN and keep the current value on a tie;
/// integers wrap.
///
/// # Errors
///
/// A [`ScatterError`] if the axis is out of range, the shapes disagree, an
/// index is out of bounds or the element type does not have the reduction.
/// `data` is then unchanged.
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

/// Writes the rows of `update` into `past_cache`, those of each sequence from
/// its own position on; from 0 where `write_indices` is `None`.
///
/// `past_cache` has the sequences on axis 0 and the positions on `axis`; `update`
/// has its shape, but for `axis`, where it may be shorter; `write_indices` has the
/// shape `[past_cache.shape[0]]`, or no dimension. The rule is that of ONNX
/// TensorScatter 24. [`Scatter::cache`] has the other verbs, and other types of
/// indices.
///
/// # Errors
///
/// A [`ScatterError`] if the axis is out of range or the first, the shapes
/// disagree, or a position does not suit. The cache is then unchanged.
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
