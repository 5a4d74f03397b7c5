//! Conversion of a coordinate to a position on its axis.
//!
//! This module knows the integer types of indices and the rules for their values. This module knows
//! neither tuples nor the memory of indices.

use bytemuck::Pod;

use crate::operand::indices::Widened;
use crate::reduction::Bounds;

/// Rules for the values of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRules {
    /// -1 (all bits set) if negative coordinates count from the end of their axis, else 0. With a
    /// `bool` instead, the compiler would compute a second vector mask in each loop over
    /// coordinates.
    wrap_mask: i8,
    /// Treatment of coordinates outside their axis.
    pub(crate) bounds: Bounds,
}

impl IndexRules {
    /// Makes the rules. If `negatives_wrap` is true, negative coordinates count from the end of
    /// their axis. If `negatives_wrap` is false, negative coordinates are out of bounds.
    #[inline]
    pub(crate) fn new(negatives_wrap: bool, bounds: Bounds) -> Self {
        Self {
            wrap_mask: -i8::from(negatives_wrap),
            bounds,
        }
    }

    /// Returns the value to add to negative coordinates on an axis of `size` elements: `size` if
    /// negative coordinates count from the end, else 0.
    #[inline(always)]
    pub(super) fn wrap(self, size: usize) -> u64 {
        size as u64 & i64::from(self.wrap_mask).cast_unsigned()
    }

    /// Returns the position of a coordinate on an axis of `size` elements. If the coordinate is out
    /// of bounds, [`Bounds::Clamp`] gives the nearest position on the axis. With other bounds
    /// rules, or on an empty axis, the result for such a coordinate is at least `size`.
    #[inline(always)]
    pub(super) fn position<I: Coordinate>(self, coordinate: I, size: usize) -> u64 {
        let position = coordinate.position(self.wrap(size));
        // The selections of `nearest` and of the result have no branches. Successive coordinates of
        // a loop are often of different kinds (on the axis, before its first element, or after its
        // last element), so a processor would often mispredict branches.
        let is_before = coordinate < I::default();
        let nearest = if is_before {
            0
        } else {
            (size as u64).saturating_sub(1)
        };
        let is_clamped = self.bounds == Bounds::Clamp && position >= size as u64 && size > 0;
        if is_clamped { nearest } else { position }
    }

    /// Whether the bounds rule skips a tuple with the coordinate `coordinate`, which is out of
    /// bounds.
    #[inline(always)]
    pub(super) fn skips<I: Coordinate>(self, coordinate: I) -> bool {
        match self.bounds {
            Bounds::Skip => true,
            Bounds::SkipNegative => coordinate < I::default(),
            Bounds::Error | Bounds::Clamp => false,
        }
    }
}

/// An integer type in which indices are read.
pub(super) trait Coordinate: Widened + Into<i128> + PartialOrd + Pod {
    /// Returns the position of the coordinate on its axis. If the coordinate is out of bounds, the
    /// result is at least the size of the axis. The argument `wrap` is the size of the axis if
    /// negative coordinates count from the end, else 0.
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

impl_coordinate!(signed: i32, i64; unsigned: u32, u64);

#[cfg(test)]
mod tests {
    use super::Coordinate;

    #[test]
    fn positions() {
        // Negative values count from the end. The third value, -5, is one below the first element.
        assert_eq!((-1_i32).position(4), 3, "last");
        assert_eq!((-4_i64).position(4), 0, "first");
        assert!((-5_i32).position(4) >= 4, "before the first");
        // Negative values are out of bounds.
        assert!((-1_i32).position(0) >= 4, "forbidden");
        // The extreme values must not become a position on the axis.
        assert!(i64::MIN.position(4) >= 4, "i64::MIN");
        assert!(
            i64::MIN.position(1 << 62) >= 1 << 62,
            "i64::MIN on a long axis"
        );
        assert_eq!(u64::MAX.position(4), u64::MAX, "beyond i64");
    }
}
