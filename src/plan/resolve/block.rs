//! A block of tuples: coordinates checked, destinations numbered.
//!
//! Every coordinate is read once for its number, checked against its own axis in
//! its own type, and only then multiplied. Of blocks with outliers all are read
//! and checked anew.

#![expect(
    unsafe_code,
    reason = "reads indices at offsets that its callers take from their layout"
)]

use bytemuck::Pod;

use crate::error::ScatterError;
use crate::operand::Index;
use crate::operand::indices::Integers;
use crate::plan::destinations::Number;
use crate::reduction::Bounds;

/// What the values of indices may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRules {
    pub(crate) negatives_wrap: bool,
    pub(crate) bounds: Bounds,
}

/// An integer type that indices can have.
pub(super) trait Coordinate: Index + Into<i128> + Default + PartialOrd + Pod {
    /// The position on an axis of `size` elements, at least `size` if there is
    /// none. `wrap` is `size` where negative values count from the end, else 0.
    fn position(self, wrap: u64) -> u64;
}

macro_rules! impl_coordinate {
    (signed: $($signed:ty),*; unsigned: $($unsigned:ty),*) => {
        $(impl Coordinate for $signed {
            fn position(self, wrap: u64) -> u64 {
                let value = i64::from(self);
                value.cast_unsigned().wrapping_add((value >> 63).cast_unsigned() & wrap)
            }
        })*
        $(impl Coordinate for $unsigned {
            fn position(self, _wrap: u64) -> u64 {
                u64::from(self)
            }
        })*
    };
}

impl_coordinate!(signed: i8, i16, i32, i64; unsigned: u8, u16, u32, u64);

/// An indexed axis of the output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Axis {
    pub(super) axis: usize,
    pub(super) size: usize,
    /// What one step along the axis adds to the destination number.
    pub(super) multiplier: i64,
}

/// A coordinate that no axis holds.
pub(super) struct Outlier {
    /// Position of the tuple in its block.
    pub(super) tuple: usize,
    pub(super) axis: Axis,
    pub(super) index: i128,
}

/// Where the coordinates of a block of tuples are read, and how they count.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) indices: Integers<'a>,
    /// Offset of the first tuple, and distance from one to the next.
    pub(super) offset: isize,
    pub(super) step: isize,
    /// Number of the first tuple if its coordinates are zero, and what each
    /// step adds.
    pub(super) number: u64,
    pub(super) number_step: i64,
    pub(super) rules: IndexRules,
}

impl Cursor<'_> {
    /// What is added to negative coordinates of an axis.
    fn wrap(self, axis: Axis) -> u64 {
        if self.rules.negatives_wrap {
            axis.size as u64
        } else {
            0
        }
    }

    /// The numbers of the tuples if their coordinates are zero.
    fn starts<const BLOCK: usize>(self) -> [u64; BLOCK] {
        let mut starts = [self.number; BLOCK];
        if self.number_step != 0 {
            let mut next = self.number;
            for start in &mut starts {
                *start = next;
                next = next.wrapping_add(self.number_step.cast_unsigned());
            }
        }
        starts
    }

    /// Numbers a block of tuples. `axes` gives each axis that is read, in any
    /// order, with the offset of its coordinate in a tuple. Axis by axis, so
    /// that the loops over tuples are free of branches.
    ///
    /// # Safety
    ///
    /// `I` is the type of the indices; the offsets of all the coordinates are
    /// offsets of elements of their layout.
    #[inline(always)]
    pub(super) unsafe fn resolve<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        axes: impl Iterator<Item = (Axis, isize)>,
        numbers: &mut [N],
    ) -> Option<Outlier> {
        let mut sums = self.starts::<BLOCK>();
        let mut raw = [I::default(); BLOCK];
        let raw = &mut raw[..numbers.len()];
        let mut outlier: Option<Outlier> = None;
        for (axis, coordinate) in axes {
            // SAFETY: the caller vouches for the offsets.
            unsafe { (self.indices).read_run(self.offset + coordinate, self.step, raw) };
            let (size, wrap) = (axis.size as u64, self.wrap(axis));
            let mut inside = true;
            for (sum, &index) in sums.iter_mut().zip(&*raw) {
                let position = index.position(wrap);
                inside &= position < size;
                *sum = sum.wrapping_add(position.wrapping_mul(axis.multiplier.cast_unsigned()));
            }
            if !inside {
                let found = raw.iter().position(|index| index.position(wrap) >= size)?;
                let candidate = (found, axis.axis);
                if (outlier.as_ref()).is_none_or(|first| candidate < (first.tuple, first.axis.axis))
                {
                    outlier = Some(Outlier {
                        tuple: found,
                        axis,
                        index: raw[found].into(),
                    });
                }
            }
        }
        for (number, sum) in numbers.iter_mut().zip(sums) {
            *number = N::new(sum);
        }
        outlier
    }

    /// [`Self::resolve`] for one axis: what embeddings and graphs ask
    /// for. More tuples than a block where their indices lie side by side. Of
    /// memory that others may write, each index is read once.
    ///
    /// # Safety
    ///
    /// As for [`Self::resolve`].
    #[inline(always)]
    pub(super) unsafe fn resolve_single<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        axis: Axis,
        numbers: &mut [N],
    ) -> Option<Outlier> {
        if self.step == 1 && !self.indices.is_foreign() {
            // SAFETY: the caller vouches for the offsets.
            let run = unsafe { self.indices.neighbours::<I>(self.offset, numbers.len()) };
            return self.number_run(axis, run, numbers);
        }
        let mut raw = [I::default(); BLOCK];
        for (block, numbers) in numbers.chunks_mut(BLOCK).enumerate() {
            let first = block * BLOCK;
            let cursor = self.at_tuple(first);
            let raw = &mut raw[..numbers.len()];
            // SAFETY: as above.
            unsafe { (self.indices).read_run(cursor.offset, cursor.step, raw) };
            if let Some(outlier) = cursor.number_run(axis, raw, numbers) {
                return Some(Outlier {
                    tuple: first + outlier.tuple,
                    ..outlier
                });
            }
        }
        None
    }

    /// The same block from a later tuple on.
    fn at_tuple(self, tuple: usize) -> Self {
        let steps = (tuple as u64).wrapping_mul(self.number_step.cast_unsigned());
        Self {
            offset: self.offset + tuple.cast_signed() * self.step,
            number: self.number.wrapping_add(steps),
            ..self
        }
    }

    /// Numbers tuples of one coordinate each. `run` is not written meanwhile.
    #[inline(always)]
    fn number_run<I: Coordinate, N: Number>(
        self,
        axis: Axis,
        run: &[I],
        numbers: &mut [N],
    ) -> Option<Outlier> {
        let (size, wrap) = (axis.size as u64, self.wrap(axis));
        let multiplier = axis.multiplier.cast_unsigned();
        let mut inside = true;
        let mut start = self.number;
        for (number, &index) in numbers.iter_mut().zip(run) {
            let position = index.position(wrap);
            inside &= position < size;
            *number = N::new(start.wrapping_add(position.wrapping_mul(multiplier)));
            start = start.wrapping_add(self.number_step.cast_unsigned());
        }
        if inside {
            return None;
        }
        let tuple = run.iter().position(|index| index.position(wrap) >= size)?;
        let index = run[tuple].into();
        Some(Outlier { tuple, axis, index })
    }

    /// Numbers a block that may have outliers, as the rules say, of which they
    /// are no error: tuples that are skipped get no destination, coordinates that
    /// are clamped the nearest one. Returns how many were skipped, or the outlier
    /// for which there is no nearest.
    ///
    /// # Safety
    ///
    /// As for [`Self::resolve`].
    #[cold]
    pub(super) unsafe fn settle<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        axes: impl Iterator<Item = (Axis, isize)>,
        numbers: &mut [N],
    ) -> Result<usize, Outlier> {
        let clamps = self.rules.bounds == Bounds::Clamp;
        // The first axis of the tuple that has no positions.
        let mut empty = None;
        let mut sums = self.starts::<BLOCK>();
        let mut applied = [true; BLOCK];
        let mut raw = [I::default(); BLOCK];
        let raw = &mut raw[..numbers.len()];
        for (axis, coordinate) in axes {
            // SAFETY: the caller vouches for the offsets.
            unsafe { (self.indices).read_run(self.offset + coordinate, self.step, raw) };
            let (size, wrap) = (axis.size as u64, self.wrap(axis));
            if clamps && size == 0 {
                if (empty.as_ref()).is_none_or(|first: &Outlier| axis.axis < first.axis.axis) {
                    let index = raw[0].into();
                    empty = Some(Outlier {
                        tuple: 0,
                        axis,
                        index,
                    });
                }
                continue;
            }
            for ((sum, applied), &index) in sums.iter_mut().zip(&mut applied).zip(&*raw) {
                let mut position = index.position(wrap);
                if clamps {
                    let below = index < I::default() && position >= size;
                    position = if below { 0 } else { position.min(size - 1) };
                }
                *applied &= position < size;
                *sum = sum.wrapping_add(position.wrapping_mul(axis.multiplier.cast_unsigned()));
            }
        }
        if let Some(outlier) = empty {
            return Err(outlier);
        }
        let mut skipped = 0;
        for ((number, sum), applied) in numbers.iter_mut().zip(sums).zip(applied) {
            *number = if applied { N::new(sum) } else { N::SKIPPED };
            skipped += usize::from(!applied);
        }
        Ok(skipped)
    }
}

impl Outlier {
    /// The error, for a block that begins at tuple `first`, where each tuple
    /// stands for so many positions.
    #[cold]
    pub(super) fn error(&self, first: usize, positions: usize) -> ScatterError {
        ScatterError::IndexOutOfBounds {
            tuple: (first + self.tuple) * positions,
            axis: self.axis.axis,
            index: self.index,
            size: self.axis.size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Coordinate;

    #[test]
    fn positions() {
        // Counted from the end, and one further.
        assert_eq!((-1_i8).position(4), 3, "last");
        assert_eq!((-4_i64).position(4), 0, "first");
        assert!((-5_i32).position(4) >= 4, "before the first");
        // Negative values forbidden.
        assert!((-1_i16).position(0) >= 4, "forbidden");
        // The extremes must not wrap into the axis.
        assert!(i64::MIN.position(4) >= 4, "i64::MIN");
        assert!(
            i64::MIN.position(1 << 62) >= 1 << 62,
            "i64::MIN of a long axis"
        );
        assert_eq!(u64::MAX.position(4), u64::MAX, "beyond i64");
    }
}
