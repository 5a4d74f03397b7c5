//! The integer types that store destination numbers.
//!
//! This module knows the widths of the integers. This module does not know what a number means.

use std::fmt;

/// An integer type that stores destination numbers: `u32` if the exclusive upper bound of the
/// numbers is at most `u32::MAX`, else `u64`.
pub(crate) trait Number: Ord + fmt::Debug + Send + Sync + bytemuck::Pod {
    /// Value that marks a skipped tuple, which has no destination. Every destination number is
    /// smaller than this value.
    const SKIPPED: Self;

    /// Returns the number as `u64`.
    fn get(self) -> u64;
    /// Keeps the low bits of `value`. A value below [`Self::SKIPPED`] stays unchanged. Partial sums
    /// of a destination number may wrap: the low bits of the final sum are correct.
    fn new(value: u64) -> Self;
    /// Whether the value is a destination number and not [`Self::SKIPPED`].
    fn is_destination(self) -> bool {
        self != Self::SKIPPED
    }
    /// Whether the number is `before` plus 1.
    fn follows(self, before: Self) -> bool {
        Self::new(before.get().wrapping_add(1)) == self
    }
}

impl Number for u32 {
    const SKIPPED: Self = Self::MAX;

    fn get(self) -> u64 {
        self.into()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "32 bits store only numbers below `SKIPPED`"
    )]
    fn new(value: u64) -> Self {
        value as Self
    }
}

impl Number for u64 {
    const SKIPPED: Self = Self::MAX;

    fn get(self) -> u64 {
        self
    }

    fn new(value: u64) -> Self {
        value
    }
}
