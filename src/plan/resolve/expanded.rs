//! Whether an index tensor has one value along all of its trailing dims, as
//! exporters write indices that were expanded.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

use super::coordinate::Coordinate;
use crate::error::ScatterError;
use crate::operand::Dims;
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::geometry::{merged, offset};

/// Values that are compared together.
const COMPARED_VALUES: usize = 64;

/// The number of rows that have values of their own: a row is what the dims from
/// `from` on hold, and there is one for each position of the other dims but those
/// of stride 0.
pub(crate) fn rows_along(indices: Integers<'_>, from: usize) -> Result<usize, ScatterError> {
    let layout = indices.layout();
    let outer = read_dims(&layout.shape()[..from], &layout.all_strides()?)?;
    Ok(outer.iter().map(|&(size, _)| size).product())
}

/// Whether in each of the rows `rows` all values are the same. Gives up at the
/// first difference.
pub(crate) fn is_expanded_along(
    indices: Integers<'_>,
    from: usize,
    rows: std::ops::Range<usize>,
) -> Result<bool, ScatterError> {
    for_index_type!(indices.kind(), I => is_expanded::<I>(indices, from, rows))
}

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
        // SAFETY: the offsets are those of elements of the layout, as they
        // follow its dims and strides.
        unsafe { indices.read_run(row, 0, &mut first) };
        (0..runs).all(|number| {
            let start = row + offset(around, number);
            // SAFETY: as above.
            unsafe { is_all(indices, start, step, run, first[0]) }
        })
    }))
}

/// Dims with a stride for each, merged, without those of stride 0: along these the
/// same values are read again, more often maybe than one could count to.
fn read_dims(shape: &[usize], strides: &[isize]) -> Result<Dims<(usize, isize)>, ScatterError> {
    let mut dims = merged(shape, &strides[..shape.len()])?;
    dims.retain(|&(_, stride)| stride != 0);
    Ok(dims)
}

/// Whether `len` values, `step` apart, are all `value`.
///
/// # Safety
///
/// They are elements of the layout, and `I` is their type.
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
        // SAFETY: the caller vouches for all of them.
        unsafe { indices.read_run(start + first.cast_signed() * step, step, raw) };
        // Without a branch on each, for the compiler to make vectors of.
        raw.iter()
            .fold(true, |same, &other| same & (other == value))
    })
}
