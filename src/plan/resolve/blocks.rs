//! Computes the slice numbers of long, contiguous lists of tuples block by block, without a plan.
//!
//! If each tuple has one index, a valid index that is not negative is already the slice number. For
//! a block of these indices, this module only checks the indices and computes nothing. This module
//! copies them only if they have fewer than 4 bytes or are foreign: other code, such as another
//! thread of a foreign runtime, may write their memory during the call. This module does not know how
//! slices are used.

#![expect(unsafe_code, reason = "reads indices at offsets of a contiguous view")]

use std::ops::Range;

use super::coordinate::Coordinate;
use super::tuples::Tuples;
use crate::error::ScatterError;
use crate::kernel::{InstructionSet, prefetch_bytes};
use crate::operand::indices::for_index_type;
#[cfg(doc)]
use crate::plan::number::Number;

/// Slice numbers of a block of tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Block<'a> {
    /// Slice numbers of 32 bits. No tuple is skipped.
    Narrow(&'a [u32]),
    /// Indices of 64 bits that are slice numbers. No tuple is skipped.
    Wide(&'a [u64]),
    /// Slice numbers of 32 bits, and [`Number::SKIPPED`] for each skipped tuple. At least one tuple
    /// is skipped.
    Skipping(&'a [u32]),
}

impl Block<'_> {
    /// Returns the first entry. Returns `None` if there are no tuples.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        match self {
            Self::Narrow(numbers) | Self::Skipping(numbers) => {
                numbers.first().copied().map(u64::from)
            }
            Self::Wide(numbers) => numbers.first().copied(),
        }
    }

    /// Returns the absolute difference between the first and the last entry, or 0 for fewer than
    /// two entries.
    #[inline(always)]
    pub(crate) fn span(&self) -> u64 {
        match *self {
            Block::Narrow([first, .., last]) | Block::Skipping([first, .., last]) => {
                u64::from(first.abs_diff(*last))
            }
            Block::Wide([first, .., last]) => first.abs_diff(*last),
            _ => 0,
        }
    }
}

/// Methods for contiguous indices that contain all coordinates of each tuple.
impl Tuples<'_> {
    /// Computes the slice numbers of successive tuples, beginning with tuple `first`. `buffer` has
    /// one entry for each of these tuples. The method uses AVX2 if `set` and the machine include
    /// AVX2.
    ///
    /// If the indices are already slice numbers and no other code may write them, the result
    /// borrows the indices and `buffer` stays unchanged.
    pub(crate) fn resolve_block<'b>(
        &'b self,
        set: InstructionSet,
        first: usize,
        buffer: &'b mut [u64],
    ) -> Result<Block<'b>, ScatterError> {
        for_index_type!(self.indices.kind(), I => {
            set.run(#[inline(always)] || self.block_as::<I>(first, buffer))
        })
    }

    /// Returns the address of the index of tuple `first`, the size of an index in bytes, and the
    /// number of slices. The indices are not checked: an index is a slice number if its unsigned
    /// value is below the number of slices.
    ///
    /// Returns `None` if a tuple does not have exactly one index, or if an index does not have 4 or
    /// 8 bytes. Also returns `None` if the unsigned value of a negative index could be below the
    /// number of slices.
    #[inline]
    pub(crate) fn unchecked(&self, first: usize) -> Option<(*const u8, usize, usize)> {
        let &[size] = self.multipliers.sizes else {
            return None;
        };
        let bytes = self.indices.size();
        let is_number = match bytes {
            4 => i32::try_from(size).is_ok(),
            _ => bytes == 8,
        };
        is_number.then(|| (self.indices.address(first), bytes, size))
    }

    /// Prefetches the indices of a range of tuples. The range may extend beyond the end of the
    /// list.
    #[inline]
    pub(crate) fn prefetch(&self, tuples: Range<usize>) {
        let tuple_len = self.multipliers.sizes.len();
        let [first, end] = [tuples.start, tuples.end]
            .map(|tuple| self.indices.address(tuple.wrapping_mul(tuple_len)));
        prefetch_bytes(first, end.addr().wrapping_sub(first.addr()));
    }

    /// Implements [`Self::resolve_block`] for one type of indices.
    #[inline(always)]
    fn block_as<'b, I: Coordinate>(
        &'b self,
        first: usize,
        buffer: &'b mut [u64],
    ) -> Result<Block<'b>, ScatterError> {
        let tuples = buffer.len();
        if self.are_numbers::<I>(first, buffer) {
            // If the indices are copied (they are narrow, or other code may write their memory during
            // the call), the result is the checked copy in `buffer`. The memory of the indices is not
            // read a second time, so no index can change after its check.
            let run = if self.indices.is_copied() {
                &bytemuck::cast_slice::<u64, I>(buffer)[..tuples]
            } else {
                // SAFETY: `are_numbers` has read the same elements, and states why they can be
                // read. No other code writes the memory of the indices, because `is_copied` is
                // false.
                unsafe { (self.indices).neighbours(first.cast_signed(), tuples) }
            };
            return Ok(match size_of::<I>() {
                4 => Block::Narrow(bytemuck::cast_slice(run)),
                _ => Block::Wide(bytemuck::cast_slice(run)),
            });
        }
        let numbers = &mut bytemuck::cast_slice_mut(buffer)[..tuples];
        Ok(match self.number_contiguous::<I>(first, numbers)? {
            0 => Block::Narrow(numbers),
            _ => Block::Skipping(numbers),
        })
    }

    /// Whether each tuple has one index, and all indices of the block are slice numbers, which are
    /// not negative. If the indices have fewer than 4 bytes or are foreign (other code may write their
    /// memory during the call), the method copies them to `buffer` and checks the copy.
    #[inline(always)]
    fn are_numbers<I: Coordinate>(&self, first: usize, buffer: &mut [u64]) -> bool {
        let &[size] = self.multipliers.sizes else {
            return false;
        };
        let (first, tuples) = (first.cast_signed(), buffer.len());
        let run: &[I] = if self.indices.is_copied() {
            let copy = &mut bytemuck::cast_slice_mut(buffer)[..tuples];
            // SAFETY: each tuple has one index, as checked above. `I` is the type of the indices.
            // `resolve_block` is called by `run/long_lists.rs`, `run/long_lists/` and
            // `run/long_gathers.rs`. These callers pass contiguous indices, and a buffer with one
            // entry for each tuple of a range of the list.
            unsafe { (self.indices).read_run(first, 1, copy) };
            copy
        } else {
            // SAFETY: the facts stated for `read_run` in the first branch hold here too. No other
            // code writes the memory of the indices, because `is_copied` is false.
            unsafe { (self.indices).neighbours(first, tuples) }
        };
        let mut inside = true;
        for index in run {
            inside &= index.position(0) < size as u64;
        }
        inside
    }
}
