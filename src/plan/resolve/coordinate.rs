//! From a coordinate to a position on its axis.
//!
//! Knows the integer types of indices and what their values may be. Knows nothing of
//! tuples, nor of where indices lie.

use bytemuck::Pod;

use crate::operand::Index;
use crate::reduction::Bounds;

/// What the values of indices may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRules {
    /// All bits if negative coordinates count from the end of their axis, else no bits. From a
    /// `bool`, the compiler would make a second vector mask in each loop over coordinates.
    wrap_mask: i8,
    pub(crate) bounds: Bounds,
}

impl IndexRules {
    /// Negative coordinates count from the end, or are outside.
    #[inline]
    pub(crate) fn new(negatives_wrap: bool, bounds: Bounds) -> Self {
        Self {
            wrap_mask: -i8::from(negatives_wrap),
            bounds,
        }
    }

    /// What is added to negative coordinates of an axis of `size` elements.
    #[inline(always)]
    pub(super) fn wrap(self, size: usize) -> u64 {
        size as u64 & i64::from(self.wrap_mask).cast_unsigned()
    }

    /// The position that a coordinate stands for on an axis of `size` elements: at least
    /// `size` where it stands for none.
    #[inline(always)]
    pub(super) fn position<I: Coordinate>(self, coordinate: I, size: usize) -> u64 {
        let position = coordinate.position(self.wrap(size));
        // Without branches, for loops in which each coordinate is another case.
        let is_before = coordinate < I::default();
        let nearest = if is_before {
            0
        } else {
            (size as u64).saturating_sub(1)
        };
        let is_clamped = self.bounds == Bounds::Clamp && position >= size as u64 && size > 0;
        if is_clamped { nearest } else { position }
    }
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
