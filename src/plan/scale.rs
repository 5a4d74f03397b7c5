//! The meaning of destination numbers.
//!
//! This module knows the layout of an output. It knows nothing of the values of indices.

use super::form::Form;
use crate::operand::Layout;

/// Meaning of destination numbers: destination number `n` is the slice at offset `base + n * unit`,
/// in elements from element `[0, 0, ...]` of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Offset of destination number 0, in elements.
    pub(crate) base: isize,
    /// Distance from one destination number to the next, in elements.
    pub(crate) unit: isize,
    /// Exclusive upper bound of the destination numbers.
    pub(crate) count: u64,
    /// Whether destination numbers count slices in row-major order. Then every number in `0..count`
    /// is the number of a slice. Otherwise a destination number is an offset in elements.
    pub(crate) numbers_slices: bool,
}

impl Scale {
    /// Chooses the meaning of destination numbers for an output. Returns this meaning and the
    /// multipliers of the indexed axes. If the indexed axes merge to one stride, destination
    /// numbers count slices. Otherwise destination numbers are offsets from the slice with the
    /// lowest offset, in elements.
    pub(crate) fn new<'a>(output: &'a Layout<'_>, form: &Form) -> (Self, Multipliers<'a>) {
        // The strides of an output without elements do not matter.
        let contiguous = Layout::contiguous(output.shape());
        let is_empty = output.shape().contains(&0);
        let laid_out = if is_empty { &contiguous } else { output };
        let axes = form.indexed();
        let sizes = &output.shape()[axes.clone()];
        let mut dims = laid_out.dims_from_last();
        dims.by_ref()
            .take(output.shape().len() - axes.end)
            .for_each(drop);
        let strides = match (dims.merged(sizes), laid_out.strides()) {
            (None, Some(strides)) => &strides[axes],
            (unit, _) => {
                let scale = Self {
                    base: 0,
                    unit: unit.unwrap_or(1),
                    count: sizes.iter().map(|&size| size as u64).product(),
                    numbers_slices: true,
                };
                return (scale, Multipliers::of_slices(sizes));
            }
        };
        // `extent` cannot fail: the output has elements, and memory holds all of them.
        let (low, high) = Layout::of_parts(sizes, strides)
            .extent()
            .unwrap_or_default();
        let scale = Self {
            base: low,
            unit: 1,
            count: high.abs_diff(low) as u64 + 1,
            numbers_slices: false,
        };
        let multipliers = Multipliers {
            sizes,
            strides: Some(strides),
            origin: low.unsigned_abs() as u64,
        };
        (scale, multipliers)
    }

    /// Returns the bytes between the slice of destination number 0 and the end of the slice of the
    /// last destination number, `count - 1`. `size`: bytes of an element.
    pub(crate) fn bytes(&self, size: usize) -> u64 {
        let unit = (self.unit.unsigned_abs() as u64).saturating_mul(size as u64);
        self.count.saturating_mul(unit)
    }
}

/// Factors of coordinates: a destination number is the sum of each coordinate times the multiplier
/// of its tuple axis, plus `origin`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multipliers<'a> {
    /// Sizes of the tuple axes.
    pub(super) sizes: &'a [usize],
    /// Strides of the tuple axes, if destination numbers are offsets. `None`: destination numbers
    /// count slices.
    strides: Option<&'a [isize]>,
    /// Destination number of the slice whose coordinates are all 0.
    pub(super) origin: u64,
}

impl<'a> Multipliers<'a> {
    /// Makes the multipliers for numbers that count slices.
    #[inline(always)]
    pub(super) fn of_slices(sizes: &'a [usize]) -> Self {
        Self {
            sizes,
            strides: None,
            origin: 0,
        }
    }

    /// Returns the multiplier of a tuple axis. A negative multiplier is stored as its two's
    /// complement, because destination numbers wrap.
    #[inline(always)]
    pub(super) fn along(&self, axis: usize) -> u64 {
        match self.strides {
            None => self.sizes[axis + 1..].iter().product::<usize>() as u64,
            Some(strides) => (strides[axis] as i64).cast_unsigned(),
        }
    }
}
