//! A block of tuples: coordinates checked, destinations numbered.
//!
//! Every coordinate is read once, checked against its own axis in its own
//! type, and only then multiplied.

#![expect(
    unsafe_code,
    reason = "reads indices at offsets that its callers take from their layout"
)]

use crate::element::Index;
use crate::error::ScatterError;
use crate::indices::Indices;
use crate::plan::destinations::Number;

/// An integer type that indices can have.
pub(super) trait Coordinate: Index + Into<i128> + Default {
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) axis: usize,
    pub(super) size: usize,
    /// What one step along the axis adds to the destination number.
    pub(super) multiplier: i64,
}

/// A coordinate that no axis holds.
pub(super) struct Outlier {
    /// Position of the tuple in its block.
    tuple: usize,
    axis: Axis,
    index: i128,
}

/// Where the coordinates of a block of tuples are read.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) indices: Indices<'a>,
    /// Offset of the first tuple, and distance from one to the next.
    pub(super) offset: isize,
    pub(super) step: isize,
    pub(super) negatives_wrap: bool,
}

impl Cursor<'_> {
    /// Numbers a block of tuples. `axes` gives each indexed axis, in any
    /// order, with the offset of its coordinate in a tuple. Axis by axis, so
    /// that the loops over tuples are free of branches.
    ///
    /// # Safety
    ///
    /// `I` is the type of the indices; the offsets of all the coordinates are
    /// offsets of elements of their layout.
    #[inline]
    pub(super) unsafe fn resolve<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        axes: impl Iterator<Item = (Axis, isize)>,
        origin: u64,
        numbers: &mut [N],
    ) -> Option<Outlier> {
        let mut sums = [origin; BLOCK];
        let mut raw = [I::default(); BLOCK];
        let raw = &mut raw[..numbers.len()];
        let mut outlier: Option<Outlier> = None;
        for (axis, coordinate) in axes {
            // SAFETY: the caller vouches for the offsets.
            unsafe { (self.indices).read_run(self.offset + coordinate, self.step, raw) };
            let size = axis.size as u64;
            let wrap = if self.negatives_wrap { size } else { 0 };
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
}

impl Cursor<'_> {
    /// [`Self::resolve`] for tuples of one coordinate that is itself the
    /// number: what gathers, embeddings and graphs ask for.
    ///
    /// # Safety
    ///
    /// As for [`Self::resolve`].
    #[inline]
    pub(super) unsafe fn resolve_single<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        axis: Axis,
        numbers: &mut [N],
    ) -> Option<Outlier> {
        let mut raw = [I::default(); BLOCK];
        let raw = &mut raw[..numbers.len()];
        // SAFETY: the caller vouches for the offsets.
        unsafe { (self.indices).read_run(self.offset, self.step, raw) };
        let size = axis.size as u64;
        let wrap = if self.negatives_wrap { size } else { 0 };
        let mut inside = true;
        for (number, &index) in numbers.iter_mut().zip(&*raw) {
            let position = index.position(wrap);
            inside &= position < size;
            *number = N::new(position);
        }
        if inside {
            return None;
        }
        let tuple = raw.iter().position(|index| index.position(wrap) >= size)?;
        let index = raw[tuple].into();
        Some(Outlier { tuple, axis, index })
    }
}

impl Outlier {
    /// The error, for a block that begins at tuple `first`.
    #[cold]
    pub(super) fn error(&self, first: usize) -> ScatterError {
        ScatterError::IndexOutOfBounds {
            tuple: first + self.tuple,
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
