//! Detection of index tensors whose values are constant along their trailing dims.
//!
//! Exporters of models often repeat each index of a row along the trailing dims of `indices`,
//! because ScatterElements needs an index for each element. If this module detects the repetition,
//! a call can move whole rows instead of single elements. The module reads the values of indices.
//! The module does not use the meaning of the indices.

#![expect(
    unsafe_code,
    reason = "reads indices at offsets that the loops take from the layout of their view"
)]

use super::coordinate::Coordinate;
use crate::error::ScatterError;
use crate::operand::Dims;
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::geometry::{merged, offset};

/// Maximum number of values that are read and compared together.
const COMPARED_VALUES: usize = 64;

/// Returns the number of rows that must be compared. A row consists of all values at one position
/// along the dims before `from`. The dims of a row are the dims from `from` on. A dim before `from`
/// that has stride 0 does not multiply the number of rows, because all positions along this dim
/// share their values.
pub(crate) fn rows_along(indices: Integers<'_>, from: usize) -> Result<usize, ScatterError> {
    let layout = indices.layout();
    let outer = read_dims(&layout.shape()[..from], &layout.all_strides()?)?;
    Ok(outer.iter().map(|&(size, _)| size).product())
}

/// Whether all values within each row are equal, for the rows with the numbers `rows`. Different
/// rows may have different values. A row has the values along the dims from `from` on. The
/// comparison reads at most [`COMPARED_VALUES`] values at a time, and stops after the first values
/// that are not all equal.
pub(crate) fn is_expanded_along(
    indices: Integers<'_>,
    from: usize,
    rows: std::ops::Range<usize>,
) -> Result<bool, ScatterError> {
    for_index_type!(indices.kind(), I => is_expanded::<I>(indices, from, rows))
}

/// Implements [`is_expanded_along`] for one type of indices.
fn is_expanded<I: Coordinate>(
    indices: Integers<'_>,
    from: usize,
    rows: std::ops::Range<usize>,
) -> Result<bool, ScatterError> {
    let layout = indices.layout();
    let strides = layout.all_strides()?;
    let outer = read_dims(&layout.shape()[..from], &strides)?;
    let inner = read_dims(&layout.shape()[from..], &strides[from..])?;
    let (run, step) = inner.last().copied().unwrap_or((1, 0));
    let around = &inner[..inner.len().saturating_sub(1)];
    let runs: usize = around.iter().map(|&(size, _)| size).product();
    Ok(rows.into_iter().all(|row| {
        let row = offset(&outer, row);
        let mut first = [I::default()];
        // SAFETY: `row` is the offset of an element of the layout, for three reasons. `outer` has
        // the sizes and strides of the layout. The layout has no dim of size 0. The row number is
        // less than the number of rows, the result of `rows_along`. The caller, `in_rows` of
        // `run/plan_builder.rs`, checks the dims and passes only row numbers less than this result.
        unsafe { indices.read_run(row, 0, &mut first) };
        (0..runs).all(|number| {
            let start = row + offset(around, number);
            // SAFETY: `around`, `run` and `step` have the sizes and strides of the layout, so the
            // offsets are offsets of elements, as for `row` above. The type `I` is the type of the
            // indices, because `is_expanded_along` has dispatched on it.
            unsafe { is_all(indices, start, step, run, first[0]) }
        })
    }))
}

/// Returns the dims whose positions must be visited: merges neighbouring dims that one size and one
/// stride can describe, and removes dims of stride 0. All positions along a dim of stride 0 share
/// their values. A dim of stride 0 can also be too long for a loop.
fn read_dims(shape: &[usize], strides: &[isize]) -> Result<Dims<(usize, isize)>, ScatterError> {
    let mut dims = merged(shape, &strides[..shape.len()])?;
    dims.retain(|&(_, stride)| stride != 0);
    Ok(dims)
}

/// Whether `len` values at stride `step` are all equal to `value`.
///
/// # Safety
///
/// The offsets `start + i * step` for `i` in `0..len` are offsets of elements of the layout, and
/// `I` is the type of the indices.
unsafe fn is_all<I: Coordinate>(
    indices: Integers<'_>,
    start: isize,
    step: isize,
    len: usize,
    value: I,
) -> bool {
    let mut raw = [value; COMPARED_VALUES];
    (0..len).step_by(COMPARED_VALUES).all(|first| {
        let raw = &mut raw[..COMPARED_VALUES.min(len - first)];
        // SAFETY: the caller guarantees that the offsets `start + i * step` are offsets of elements
        // of the layout. The caller also guarantees that `I` is the type of the indices, as the
        // Safety section of this function states.
        unsafe { indices.read_run(start + first.cast_signed() * step, step, raw) };
        // The loop has no branch for each value, so the compiler can vectorise it.
        raw.iter()
            .fold(true, |same, &other| same & (other == value))
    })
}
