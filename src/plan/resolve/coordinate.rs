//! Conversion of a coordinate to a position on its axis.
//!
//! This module knows the integer types of indices and the rules for their values. It knows nothing
//! of tuples, and nothing of the memory of indices.

use bytemuck::Pod;

use crate::operand::Index;
use crate::reduction::Bounds;

/// Rules for the values of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRules {
    /// All bits set if negative coordinates count from the end of their axis, else 0. A `bool`
    /// would make the compiler compute a second vector mask in each loop over coordinates.
    wrap_mask: i8,
    /// Treatment of coordinates outside their axis.
    pub(crate) bounds: Bounds,
}

impl IndexRules {
    /// Makes the rules. `negatives_wrap`: negative coordinates count from the end of their axis.
    /// Otherwise negative coordinates are out of bounds.
    #[inline]
    pub(crate) fn new(negatives_wrap: bool, bounds: Bounds) -> Self {
        Self {
            wrap_mask: -i8::from(negatives_wrap),
            bounds,
        }
    }

    /// Returns the value to add to negative coordinates on an axis of `size` elements.
    #[inline(always)]
    pub(super) fn wrap(self, size: usize) -> u64 {
        size as u64 & i64::from(self.wrap_mask).cast_unsigned()
    }

    /// Returns the position of a coordinate on an axis of `size` elements. The result is at least
    /// `size` if the coordinate is out of bounds.
    #[inline(always)]
    pub(super) fn position<I: Coordinate>(self, coordinate: I, size: usize) -> u64 {
        let position = coordinate.position(self.wrap(size));
        // Selections without branches: in a loop, successive coordinates are often different cases.
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

/// An integer type of indices.
pub(super) trait Coordinate: Index + Into<i128> + Default + PartialOrd + Pod {
    /// Returns the position on an axis of `size` elements. The result is at least `size` if the
    /// value is out of bounds. `wrap` is `size` where negative values count from the end, else 0.
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
        // Counted from the end. The third value is one too low.
        assert_eq!((-1_i8).position(4), 3, "last");
        assert_eq!((-4_i64).position(4), 0, "first");
        assert!((-5_i32).position(4) >= 4, "before the first");
        // Negative values are forbidden.
        assert!((-1_i16).position(0) >= 4, "forbidden");
        // The extreme values must not wrap into the axis.
        assert!(i64::MIN.position(4) >= 4, "i64::MIN");
        assert!(
            i64::MIN.position(1 << 62) >= 1 << 62,
            "i64::MIN on a long axis"
        );
        assert_eq!(u64::MAX.position(4), u64::MAX, "beyond i64");
    }
}
