//! Blocks of the tuples of long, contiguous lists.
//!
//! Indices that are numbers of slices as they lie are checked, and neither moved nor
//! multiplied.

#![expect(
    unsafe_code,
    reason = "reads indices at the offsets of a contiguous view"
)]

use std::ops::Range;

use super::coordinate::Coordinate;
use super::tuples::Tuples;
use crate::error::ScatterError;
use crate::kernel::{InstructionSet, prefetch_bytes};
use crate::operand::indices::for_index_type;

/// The numbers of the slices that a block of tuples addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Block<'a> {
    Narrow(&'a [u32]),
    /// Indices of 64 bits, as they lie.
    Wide(&'a [u64]),
}

impl Block<'_> {
    /// How far apart the first and the last slice are.
    #[inline(always)]
    pub(crate) fn span(&self) -> u64 {
        match *self {
            Block::Narrow([first, .., last]) => u64::from(first.abs_diff(*last)),
            Block::Wide([first, .., last]) => first.abs_diff(*last),
            _ => 0,
        }
    }
}

/// For contiguous indices that list all coordinates.
impl Tuples<'_> {
    /// Numbers the slices of the tuples from `first` on, with instructions of `set` if the
    /// machine has them. `buffer` has an entry for each tuple. It is written unless the
    /// indices are valid slice numbers in memory.
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

    /// The address of the indices from tuple `first` on, the bytes of an index, and the
    /// number of slices. An index that is below this number, read as unsigned, is a slice
    /// number. `None` unless tuples have one index of 4 or 8 bytes. `None` too where a negative
    /// index, read as unsigned, could be below the number of slices.
    #[inline]
    pub(crate) fn unchecked(&self, first: usize) -> Option<(*const u8, usize, usize)> {
        let &[size] = self.multipliers.sizes else {
            return None;
        };
        let bytes = for_index_type!(self.indices.kind(), I => size_of::<I>());
        let is_number = match bytes {
            4 => i32::try_from(size).is_ok(),
            _ => bytes == 8,
        };
        is_number.then(|| (self.indices.address(first), bytes, size))
    }

    /// Prefetches the indices of a range of tuples, which need not exist.
    #[inline]
    pub(crate) fn prefetch(&self, tuples: Range<usize>) {
        let tuple_len = self.multipliers.sizes.len();
        let [first, end] = [tuples.start, tuples.end]
            .map(|tuple| self.indices.address(tuple.wrapping_mul(tuple_len)));
        prefetch_bytes(first, end.addr().wrapping_sub(first.addr()));
    }

    #[inline(always)]
    fn block_as<'b, I: Coordinate>(
        &'b self,
        first: usize,
        buffer: &'b mut [u64],
    ) -> Result<Block<'b>, ScatterError> {
        let tuples = buffer.len();
        if self.are_numbers::<I>(first, buffer) {
            // What was checked, and no second look at what others may write.
            let run = if self.indices.is_foreign() {
                &bytemuck::cast_slice::<u64, I>(buffer)[..tuples]
            } else {
                // SAFETY: as in `are_numbers`.
                unsafe { (self.indices).neighbours(first.cast_signed(), tuples) }
            };
            return Ok(match size_of::<I>() {
                4 => Block::Narrow(bytemuck::cast_slice(run)),
                _ => Block::Wide(bytemuck::cast_slice(run)),
            });
        }
        let numbers = &mut bytemuck::cast_slice_mut(buffer)[..tuples];
        self.number_contiguous::<I>(first, numbers)?;
        Ok(Block::Narrow(numbers))
    }

    /// Whether there is one index a tuple, and all of them are numbers of slices
    /// and wide enough for a [`Block`]: none counts from the end. Foreign ones
    /// are copied to `buffer` and checked there.
    #[inline(always)]
    fn are_numbers<I: Coordinate>(&self, first: usize, buffer: &mut [u64]) -> bool {
        let (&[size], 4 | 8) = (self.multipliers.sizes, size_of::<I>()) else {
            return false;
        };
        let (first, tuples) = (first.cast_signed(), buffer.len());
        let run: &[I] = if self.indices.is_foreign() {
            let copy = &mut bytemuck::cast_slice_mut(buffer)[..tuples];
            // SAFETY: the view is contiguous and has these tuples of one index.
            unsafe { (self.indices).read_run(first, 1, copy) };
            copy
        } else {
            // SAFETY: as above.
            unsafe { (self.indices).neighbours(first, tuples) }
        };
        let mut inside = true;
        for index in run {
            inside &= index.position(0) < size as u64;
        }
        inside
    }
}
