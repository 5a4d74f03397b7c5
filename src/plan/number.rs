//! One destination number in memory.
//!
//! Knows widths. Knows nothing of what is numbered.

use std::fmt;

/// A destination number in memory: `u32`, or `u64` where the output is too
/// large for that.
pub(crate) trait Number: Copy + Ord + fmt::Debug + Send + Sync + bytemuck::Zeroable {
    /// Stands for a tuple without a destination; no number is as large.
    const SKIPPED: Self;

    /// The number. Not `Into<u64>`, so that `as` never stands in a loop.
    fn get(self) -> u64;
    /// The low bits of `value`: all of a number that is below [`Self::SKIPPED`], and enough
    /// of a sum that wraps on the way to one.
    fn new(value: u64) -> Self;
    /// Whether it is a number, and does not stand for a tuple without one.
    fn is_destination(self) -> bool {
        self != Self::SKIPPED
    }
    /// Whether it is the one after `before`.
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
        reason = "only numbers below `SKIPPED` are stored narrow"
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
