//! What destination numbers mean.
//!
//! Knows the layout of an output. Knows nothing of the values of indices.

use super::form::Form;
use crate::operand::Layout;

/// What a destination number means: number `n` lies `base + n * unit` elements
/// from element `[0, 0, ...]` of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) base: isize,
    pub(crate) unit: isize,
    /// Numbers lie in `0..count`.
    pub(crate) count: u64,
    /// Whether every number in `0..count` is a slice, numbered in row-major
    /// order (and not an offset in elements).
    pub(crate) numbers_slices: bool,
}

impl Scale {
    /// The numbering of destinations for an output, and what a step along each indexed axis
    /// adds to a number. Numbers are those of slices where the indexed axes merge to one
    /// stride, else offsets from the lowest address.
    pub(crate) fn new<'a>(output: &'a Layout<'_>, form: &Form) -> (Self, Multipliers<'a>) {
        // One without elements has no strides to honour.
        let made_up = Layout::contiguous(output.shape());
        let is_empty = output.shape().contains(&0);
        let laid_out = if is_empty { &made_up } else { output };
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
        // A part of what the whole output spans, which memory holds.
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

    /// Bytes of the output that the numbers spread over, with elements of
    /// `size`.
    pub(crate) fn bytes(&self, size: usize) -> u64 {
        let unit = (self.unit.unsigned_abs() as u64).saturating_mul(size as u64);
        self.count.saturating_mul(unit)
    }
}

/// What a step along each tuple axis adds to a destination number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multipliers<'a> {
    /// Sizes of the axes.
    pub(super) sizes: &'a [usize],
    /// Their strides, where numbers are offsets.
    strides: Option<&'a [isize]>,
    /// The number of the element `[0, 0, ...]` of the output.
    pub(super) origin: u64,
}

impl<'a> Multipliers<'a> {
    /// For numbers of slices.
    #[inline(always)]
    pub(super) fn of_slices(sizes: &'a [usize]) -> Self {
        Self {
            sizes,
            strides: None,
            origin: 0,
        }
    }

    /// What a step along an axis adds: numbers wrap, as it may be negative.
    #[inline(always)]
    pub(super) fn along(&self, axis: usize) -> u64 {
        match self.strides {
            None => self.sizes[axis + 1..].iter().product::<usize>() as u64,
            Some(strides) => (strides[axis] as i64).cast_unsigned(),
        }
    }
}
