//! Whether an index tensor has one value along all of its trailing dims, as
//! exporters write indices that were expanded.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

use super::block::Coordinate;
use super::listed::merged;
use crate::error::ScatterError;
use crate::operand::indices::{Integers, for_index_type};

/// Values that are compared together.
const BLOCK: usize = 64;

/// Whether in each of the rows `rows` all values are the same. A row is what
/// the dims from `from` on hold; there are as many rows as the other dims have
/// positions. Gives up at the first difference.
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
    let outer = merged(&layout.shape()[..from], &strides[..from])?;
    let inner = merged(&layout.shape()[from..], &strides[from..])?;
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

fn offset(dims: &[(usize, isize)], mut number: usize) -> isize {
    let mut offset = 0;
    for &(size, stride) in dims.iter().rev() {
        offset += (number % size).cast_signed() * stride;
        number /= size;
    }
    offset
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
    let mut raw = [value; BLOCK];
    (0..len).step_by(BLOCK).all(|first| {
        let raw = &mut raw[..BLOCK.min(len - first)];
        // SAFETY: the caller vouches for all of them.
        unsafe { indices.read_run(start + first.cast_signed() * step, step, raw) };
        // Without a branch on each, for the compiler to make vectors of.
        raw.iter()
            .fold(true, |same, &other| same & (other == value))
    })
}
