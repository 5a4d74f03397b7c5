//! Reduces all updates of one destination, one after another.
//!
//! A running value is the intermediate result of a reduction: the combination of the updates so
//! far, with the existing value if the reduction includes it. This module knows values: how a
//! running value begins, continues and ends. This module does not know slices or memory.

use super::half::Half;
use super::multiply::Multiplied;
use super::reduce::{Add, Arithmetic, Max, Min, Mul, Reducer, Sub};
use super::scalar::Complex;

/// An element type whose running values have the type `C`: the element type itself, or `f32` for
/// 16-bit floats.
pub(super) trait ComputedIn<C>: Copy {
    fn computed(self) -> C;
    fn rounded(computed: C) -> Self;
}

impl<T: Copy> ComputedIn<T> for T {
    #[inline(always)]
    fn computed(self) -> T {
        self
    }
    #[inline(always)]
    fn rounded(computed: T) -> T {
        computed
    }
}

impl<H: Half> ComputedIn<f32> for H {
    #[inline(always)]
    fn computed(self) -> f32 {
        self.widen()
    }
    #[inline(always)]
    fn rounded(computed: f32) -> H {
        H::narrow(computed)
    }
}

/// A reduction that defines how its running value begins.
pub(super) trait Begin<C>: Reducer<C> {
    /// Returns the running value before the first update, for a reduction that includes the
    /// existing value `current`.
    #[inline(always)]
    fn include(current: C) -> C {
        current
    }
    /// Returns the running value after the first update, for a reduction that excludes the existing
    /// value.
    fn first(update: C) -> C;
}

macro_rules! begin_with_the_first {
    ($($reducer:ty),*) => {$(
        impl<C: Arithmetic> Begin<C> for $reducer
        where
            $reducer: Reducer<C>,
        {
            #[inline(always)]
            fn first(update: C) -> C {
                update.taken()
            }
        }
    )*};
}

begin_with_the_first!(Add, Mul, Min, Max);

impl<C: Arithmetic + Default> Begin<C> for Sub {
    #[inline(always)]
    fn first(update: C) -> C {
        C::default().sub(update)
    }
}

/// A sum that starts from zero and ignores the existing value.
pub(super) struct AddToZero;

impl<C: Arithmetic> Reducer<C> for AddToZero {
    #[inline(always)]
    fn apply(current: C, update: C) -> C {
        current.add(update)
    }
}

impl<C: Arithmetic + Default> Begin<C> for AddToZero {
    #[inline(always)]
    fn include(_: C) -> C {
        C::default()
    }
    #[inline(always)]
    fn first(update: C) -> C {
        C::default().add(update)
    }
}

/// Last step of a reduction: how the final running value becomes the result of the destination.
/// Each implementing type is one such step.
pub(super) trait Finish<C> {
    /// Returns the result for the final running value `running`. The argument `count` is the number
    /// of combined values, including the existing value if it takes part. The argument `factor` is
    /// the factor that a sum of gradients is multiplied by.
    fn finish(running: C, count: u64, factor: f64) -> C;
}

/// The result is the running value, unchanged.
pub(super) struct Kept;

impl<C> Finish<C> for Kept {
    #[inline(always)]
    fn finish(running: C, _: u64, _: f64) -> C {
        running
    }
}

/// The result is the sum divided by the number of combined values (mean).
pub(super) struct ByCount;

impl<C: Divided> Finish<C> for ByCount {
    #[inline(always)]
    fn finish(running: C, count: u64, _: f64) -> C {
        running.divided(count)
    }
}

/// The result is the sum of gradients multiplied by the factor.
pub(super) struct ByFactor;

impl<C: Multiplied> Finish<C> for ByFactor {
    #[inline(always)]
    fn finish(running: C, _: u64, factor: f64) -> C {
        running.multiplied(factor)
    }
}

/// A type whose values can be divided by a count.
pub(super) trait Divided: Arithmetic {
    fn divided(self, count: u64) -> Self;
}

impl<H: Half> Divided for H {
    #[inline(always)]
    fn divided(self, count: u64) -> Self {
        H::narrow(self.widen().divided(count))
    }
}

macro_rules! divide_integers {
    ($($integer:ty: $wide:ty),*) => {$(
        impl Divided for $integer {
            /// Divides and rounds towards negative infinity. `count` is a number of tuples of a
            /// list in memory, plus one if the mean includes the existing value of the destination.
            /// So `count` fits in `i64` and `u64`.
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                clippy::cast_lossless,
                reason = "the quotient is between the sum and 0 or -1"
            )]
            #[inline(always)]
            fn divided(self, count: u64) -> Self {
                (self as $wide).div_euclid(count as $wide) as Self
            }
        }
    )*};
}

divide_integers!(u8: u64, u16: u64, u32: u64, u64: u64, i8: i64, i16: i64, i32: i64, i64: i64);

macro_rules! divide_floats {
    ($($float:ty),*) => {$(
        impl Divided for $float {
            #[allow(clippy::cast_precision_loss, reason = "the rule for means rounds the count")]
            #[inline(always)]
            fn divided(self, count: u64) -> Self {
                self / count as $float
            }
        }
    )*};
}

divide_floats!(f32, f64);

impl<F: Divided> Divided for Complex<F> {
    #[inline(always)]
    fn divided(self, count: u64) -> Self {
        self.by_component(|component| component.divided(count))
    }
}
