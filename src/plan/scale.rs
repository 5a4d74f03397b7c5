//! The relation between destination numbers and offsets in an output.
//!
//! This module uses the layout of an output. This module does not use the values of indices.

use super::form::Form;
use crate::operand::Layout;

/// Relation between destination numbers and offsets: destination number `n` is the slice at offset
/// `base + n * unit`. Offsets count elements, and element `[0, 0, ...]` of the output has offset 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Offset of destination number 0, in elements.
    pub(crate) base: isize,
    /// Stride from one destination number to the next, in elements. The stride can be negative.
    pub(crate) unit: isize,
    /// Exclusive upper bound of the destination numbers.
    pub(crate) count: u64,
    /// Whether destination numbers count slices in row-major order. If true, every number in
    /// `0..count` is the number of a slice. If false, a destination number is an offset in
    /// elements, relative to `base`.
    pub(crate) numbers_slices: bool,
}

impl Scale {
    /// Chooses between slice numbers and offsets for an output. Returns the relation, and the
    /// multipliers of the axes that tuples index. If one constant stride separates all slices of a
    /// repetition in row-major order, or if the output is empty, destination numbers count slices.
    /// Otherwise a destination number is the offset of a slice, relative to the slice with the
    /// lowest offset, in elements.
    pub(crate) fn new<'a>(output: &'a Layout<'_>, form: &Form) -> (Self, Multipliers<'a>) {
        // An output without elements is treated as contiguous, because its strides do not matter.
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

    /// Returns `count` times the absolute value of `unit`, in bytes. `size`: bytes of one element.
    /// The result is the approximate size of the memory region that the slices of one repetition
    /// occupy.
    pub(crate) fn bytes(&self, size: usize) -> u64 {
        let unit = (self.unit.unsigned_abs() as u64).saturating_mul(size as u64);
        self.count.saturating_mul(unit)
    }
}

/// Multipliers of the tuple axes. A tuple axis is an axis of the output that one coordinate of each
/// tuple indexes. The destination number of a tuple is `origin` plus the sum of the tuple's
/// coordinates, each times the multiplier of its tuple axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multipliers<'a> {
    /// Sizes of the tuple axes.
    pub(super) sizes: &'a [usize],
    /// Strides of the tuple axes in elements, if destination numbers are offsets. `None`:
    /// destination numbers count slices.
    strides: Option<&'a [isize]>,
    /// Destination number of the slice whose coordinates are all 0.
    pub(super) origin: u64,
}

impl<'a> Multipliers<'a> {
    /// Makes the multipliers of a tuple's coordinates for destination numbers that count slices in
    /// row-major order.
    #[inline(always)]
    pub(super) fn of_slices(sizes: &'a [usize]) -> Self {
        Self {
            sizes,
            strides: None,
            origin: 0,
        }
    }

    /// Returns the multiplier of a tuple's coordinate on the tuple axis `axis`, in the sum that
    /// gives the destination number. A negative multiplier is returned as its two's complement,
    /// because the arithmetic of destination numbers wraps.
    #[inline(always)]
    pub(super) fn along(&self, axis: usize) -> u64 {
        match self.strides {
            None => self.sizes[axis + 1..].iter().product::<usize>() as u64,
            Some(strides) => (strides[axis] as i64).cast_unsigned(),
        }
    }
}
