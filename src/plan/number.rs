//! The integer types that store destination numbers.
//!
//! This module knows widths. It knows nothing of the meaning of a number.

use std::fmt;

/// An integer that stores a destination number: `u32`, or `u64` where the output has more slices or
/// elements than 32 bits can number.
pub(crate) trait Number: Ord + fmt::Debug + Send + Sync + bytemuck::Pod {
    /// Value of a skipped tuple, which has no destination. Every destination number is smaller.
    const SKIPPED: Self;

    /// Returns the number as `u64`.
    fn get(self) -> u64;
    /// Stores the low bits of `value`. A number below [`Self::SKIPPED`] stays unchanged. A partial
    /// sum that wraps keeps enough bits for the final number to be right.
    fn new(value: u64) -> Self;
    /// Whether the value is a destination number and not [`Self::SKIPPED`].
    fn is_destination(self) -> bool {
        self != Self::SKIPPED
    }
    /// Whether the number is the successor of `before`.
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
