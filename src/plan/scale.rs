//! What destination numbers mean.
//!
//! Knows the layout of an output. Knows nothing of the values of indices.

use super::form::Form;
use crate::error::ScatterError;
use crate::operand::{Dims, Layout};

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
    /// The numbering of destinations for an output, and what a step along each
    /// indexed axis adds to a number: slices where the indexed axes merge to one
    /// stride, else offsets from the lowest address.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: &Form,
    ) -> Result<(Self, Dims<isize>), ScatterError> {
        // One without elements has no strides to honour.
        let made_up = Layout::contiguous(output.shape());
        let is_empty = output.shape().contains(&0);
        let output = if is_empty { &made_up } else { output };
        let axes = form.batch_rank..form.batch_rank + form.tuple_len;
        let (sizes, window) = (&output.shape()[axes.clone()], &output.shape()[axes.end..]);
        let mut multipliers = Dims::filled(sizes.len(), 1)?;
        let mut dims = output.dims_from_last();
        dims.by_ref().take(window.len()).for_each(drop);
        if let Some(unit) = dims.merged(sizes) {
            let slices = Layout::contiguous(sizes);
            for (multiplier, (_, step)) in multipliers.iter_mut().rev().zip(slices.dims_from_last())
            {
                *multiplier = step;
            }
            let scale = Self {
                base: 0,
                unit,
                count: sizes.iter().map(|&size| size as u64).product(),
                numbers_slices: true,
            };
            return Ok((scale, multipliers));
        }
        let strides = output.all_strides()?;
        let strides = &strides[axes];
        let reach = |stride: isize, size: usize| stride * (size.cast_signed() - 1);
        let (mut low, mut high) = (0, 0);
        for (&size, &stride) in sizes.iter().zip(strides) {
            low += reach(stride, size).min(0);
            high += reach(stride, size).max(0);
        }
        multipliers.copy_from_slice(strides);
        let scale = Self {
            base: low,
            unit: 1,
            count: high.abs_diff(low) as u64 + 1,
            numbers_slices: false,
        };
        Ok((scale, multipliers))
    }

    /// Bytes of the output that the numbers spread over, with elements of
    /// `size`.
    pub(crate) fn bytes(&self, size: usize) -> u64 {
        let unit = (self.unit.unsigned_abs() as u64).saturating_mul(size as u64);
        self.count.saturating_mul(unit)
    }
}
