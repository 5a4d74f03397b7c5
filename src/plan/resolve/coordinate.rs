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
    use super::{Coordinate, IndexRules};
    use crate::reduction::Bounds;

    /// Returns the values that are at most 3 from `places`, in ascending order.
    fn near(places: &[i128]) -> Vec<i128> {
        let mut values: Vec<i128> = (places.iter())
            .flat_map(|&place| place - 3..=place + 3)
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Returns the position that `coordinate` addresses on an axis of `size` elements. `None`: the
    /// coordinate is out of bounds.
    fn reference(coordinate: i128, size: i128, wraps: bool, bounds: Bounds) -> Option<i128> {
        let added = if wraps && coordinate < 0 { size } else { 0 };
        let position = coordinate + added;
        match bounds {
            Bounds::Clamp if size > 0 => Some(position.clamp(0, size - 1)),
            _ => (0..size).contains(&position).then_some(position),
        }
    }

    /// Checks the coordinates of type `I` among `values`. Returns their number.
    fn check<I: Coordinate + TryFrom<i128>>(values: &[i128], size: usize) -> usize {
        let coordinates = values.iter().filter_map(|&value| I::try_from(value).ok());
        let mut checked = 0;
        for coordinate in coordinates {
            for bounds in Bounds::ALL {
                for wraps in [false, true] {
                    let position = IndexRules::new(wraps, bounds).position(coordinate, size);
                    let value = coordinate.into();
                    let is_right = match reference(value, size as i128, wraps, bounds) {
                        Some(expected) => i128::from(position) == expected,
                        None => position >= size as u64,
                    };
                    assert!(
                        is_right,
                        "{value} on {size}: {position}, {bounds:?}, {wraps}"
                    );
                }
            }
            checked += 1;
        }
        checked
    }

    /// Checks all coordinates near a place where the rules or the types change: 0, both ends of the
    /// axis, and the limits of the integer types. Between two such places, the position is a linear
    /// function of the coordinate.
    #[test]
    fn positions_are_right_near_every_limit() {
        let limits = [
            0,
            1 << 31,
            1 << 32,
            1 << 62,
            i128::from(i64::MAX),
            i128::from(u64::MAX),
        ];
        let longest = isize::MAX as i128;
        let sizes = near(&limits);
        for size in sizes
            .into_iter()
            .chain(0..=40)
            .filter(|size| (0..=longest).contains(size))
        {
            let ends = [size, -size, -(1 << 31), -(1 << 32), i128::from(i64::MIN)];
            let values = near(&[&limits[..], &ends].concat());
            let size = usize::try_from(size).expect("at most isize::MAX");
            let counts = [
                check::<i32>(&values, size),
                check::<u32>(&values, size),
                check::<i64>(&values, size),
                check::<u64>(&values, size),
            ];
            assert!(counts.iter().all(|&count| count > 9), "{counts:?}");
        }
    }
}
