//! Contiguous index tensors, without preparations.

#![expect(
    unsafe_code,
    reason = "reads indices at the offsets of a contiguous view"
)]

use std::ops::Range;

use super::block::{Axis, Coordinate, Cursor, IndexRules, Outlier};
use crate::error::ScatterError;
use crate::kernel::{InstructionSet, prefetch_bytes};
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::flat::Extents;
use crate::reduction::Bounds;

/// Tuples that are worked on together: few enough that a tiny call does not
/// pay for clearing them.
const BLOCK: usize = 16;

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

/// Tuples of a contiguous index tensor: what [`Resolver`](super::Resolver)
/// does, without its preparations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contiguous<'a> {
    indices: &'a Integers<'a>,
    /// The axis that the first coordinate addresses, and the sizes of all that
    /// are addressed.
    first_axis: usize,
    sizes: &'a [usize],
    rules: IndexRules,
}

impl<'a> Contiguous<'a> {
    /// The form of `extents` lists all coordinates.
    #[inline]
    pub(crate) fn new(extents: &Extents<'a>, indices: &'a Integers<'a>, rules: IndexRules) -> Self {
        Self {
            indices,
            first_axis: extents.form.batch_rank,
            sizes: extents.sizes(),
            rules,
        }
    }

    /// Numbers the slices that the tuples from the first on address, for small
    /// calls. Returns how many tuples are skipped.
    #[inline(always)]
    pub(crate) fn resolve(&self, numbers: &mut [u32]) -> Result<usize, ScatterError> {
        for_index_type!(self.indices.kind(), I => self.resolve_as::<I>(0, numbers))
    }

    /// Numbers the slices that the tuples from `first` on address, with
    /// instructions of `set`, if the machine has them: as many tuples as
    /// `buffer` has entries. Writes to it, unless the indices are such numbers
    /// as they lie.
    pub(crate) fn resolve_block<'b>(
        &'b self,
        set: InstructionSet,
        first: usize,
        buffer: &'b mut [u64],
    ) -> Result<Block<'b>, ScatterError> {
        for_index_type!(self.indices.kind(), I => match set.min(InstructionSet::best()) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: it is no better than what the machine has.
            InstructionSet::Avx2 => unsafe { self.block_avx2::<I>(first, buffer) },
            _ => self.block_as::<I>(first, buffer),
        })
    }

    /// Where the indices from tuple `first` on lie, how many bytes each has, and below
    /// what they are numbers of slices as they lie, taken as unsigned: where tuples have one
    /// index of 4 or 8 bytes, and negative ones are no such numbers.
    #[inline]
    pub(crate) fn unchecked(&self, first: usize) -> Option<(*const u8, usize, usize)> {
        let &[size] = self.sizes else {
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
        let [first, end] = [tuples.start, tuples.end]
            .map(|tuple| (self.indices).address(tuple.wrapping_mul(self.sizes.len())));
        prefetch_bytes(first, end.addr().wrapping_sub(first.addr()));
    }

    /// [`Self::block_as`], compiled for AVX2.
    ///
    /// # Safety
    ///
    /// The machine has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn block_avx2<'b, I: Coordinate>(
        &'b self,
        first: usize,
        buffer: &'b mut [u64],
    ) -> Result<Block<'b>, ScatterError> {
        self.block_as::<I>(first, buffer)
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
        self.resolve_as::<I>(first, numbers)?;
        Ok(Block::Narrow(numbers))
    }

    /// Whether there is one index a tuple, and all of them are numbers of slices
    /// and wide enough for a [`Block`]: none counts from the end. Foreign ones
    /// are copied to `buffer` and checked there.
    #[inline(always)]
    fn are_numbers<I: Coordinate>(&self, first: usize, buffer: &mut [u64]) -> bool {
        let (&[size], 4 | 8) = (self.sizes, size_of::<I>()) else {
            return false;
        };
        let (first, tuples) = (first.cast_signed(), buffer.len());
        let run: &[I] = if self.indices.is_foreign() {
            let copy = &mut bytemuck::cast_slice_mut(buffer)[..tuples];
            // SAFETY: the view is contiguous and has so many tuples of one index.
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

    #[inline(always)]
    fn resolve_as<I: Coordinate>(
        &self,
        first: usize,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        if let &[size] = self.sizes {
            // One coordinate a tuple, side by side: no block to collect them.
            let axis = Axis {
                axis: self.first_axis,
                size,
                multiplier: 1,
            };
            // SAFETY: the view is contiguous and has a tuple for every entry
            // of `numbers` from `first` on.
            let outlier = unsafe {
                self.cursor(first, 1)
                    .resolve_single::<I, u32, BLOCK>(axis, numbers)
            };
            return match outlier {
                None => Ok(0),
                Some(outlier) => self.settle::<I>(outlier, first, numbers),
            };
        }
        let mut skipped = 0;
        let tuple_len = self.sizes.len();
        for (block, numbers) in numbers.chunks_mut(BLOCK).enumerate() {
            let first = first + block * BLOCK;
            let cursor = self.cursor(first * tuple_len, tuple_len);
            // SAFETY: as above, and `sizes` has one entry a coordinate.
            let outlier = unsafe { cursor.resolve::<I, u32, BLOCK>(self.axes(), numbers) };
            if let Some(outlier) = outlier {
                skipped += self.settle::<I>(outlier, first, numbers)?;
            }
        }
        Ok(skipped)
    }

    /// The axes that are addressed, the last one first, each with the place of
    /// its coordinate in a tuple.
    #[inline(always)]
    fn axes(&self) -> impl Iterator<Item = (Axis, isize)> {
        let mut multiplier = 1;
        (0..self.sizes.len()).rev().map(move |coordinate| {
            let size = self.sizes[coordinate];
            let axis = Axis {
                axis: self.first_axis + coordinate,
                size,
                multiplier,
            };
            multiplier *= (size as u64).cast_signed();
            (axis, coordinate.cast_signed())
        })
    }

    /// Numbers the tuples from `first` on, of which one has an outlier, as the
    /// rules say.
    #[cold]
    fn settle<I: Coordinate>(
        &self,
        outlier: Outlier,
        first: usize,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        if self.rules.bounds == Bounds::Error {
            return Err(outlier.error(first, 1));
        }
        let tuple_len = self.sizes.len();
        let mut skipped = 0;
        for (block, numbers) in numbers.chunks_mut(BLOCK).enumerate() {
            let first = first + block * BLOCK;
            let cursor = self.cursor(first * tuple_len, tuple_len);
            // SAFETY: as in `resolve_as`, whose tuples these are.
            let settled = unsafe { cursor.settle::<I, u32, BLOCK>(self.axes(), numbers) };
            skipped += settled.map_err(|outlier| outlier.error(first, 1))?;
        }
        Ok(skipped)
    }

    fn cursor(&self, offset: usize, step: usize) -> Cursor<'_> {
        Cursor {
            indices: *self.indices,
            offset: offset.cast_signed(),
            step: step.cast_signed(),
            number: 0,
            number_step: 0,
            rules: self.rules,
        }
    }
}
