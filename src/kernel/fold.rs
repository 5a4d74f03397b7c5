//! What becomes of all the updates of one destination, one after another.
//!
//! Knows values: how a running value begins, goes on and ends. Knows nothing
//! of slices or memory.

use std::marker::PhantomData;

use super::half::Half;
use super::multiply::Multiplied;
use super::reduce::{Add, Arithmetic, Max, Min, Mul, Reducer, Single, Sub};
use super::scalar::{Bool, Complex};

/// The updates of one destination, as a type.
pub(super) trait Fold<T> {
    /// The running value.
    type Running: Copy + Default;
    /// Begins with the value that is there.
    fn include(current: T) -> Self::Running;
    /// Begins with the first update.
    fn first(update: T) -> Self::Running;
    fn step(running: Self::Running, update: T) -> Self::Running;
    /// The result, of `count` values; of gradients, multiplied by the factor.
    fn finish(running: Self::Running, count: u64, factor: f64) -> T;
}

/// A sum that can be divided by a count.
pub(super) trait Divided: Single + Arithmetic {
    fn divided(self, count: u64) -> Self;
}

/// How a reduction begins without the value that is there.
pub(super) trait Begin<T>: Reducer<T> {
    fn begin(update: T) -> T;
}

macro_rules! begin_with_the_first {
    ($($reducer:ty),*) => {$(
        impl<T: Single> Begin<T> for $reducer
        where
            $reducer: Reducer<T>,
        {
            #[inline(always)]
            fn begin(update: T) -> T {
                update.taken()
            }
        }
    )*};
}

begin_with_the_first!(Add, Mul, Min, Max);

impl<T: Single + Arithmetic> Begin<T> for Sub {
    #[inline(always)]
    fn begin(update: T) -> T {
        T::default().sub(update)
    }
}

/// A reduction in the type of the elements.
pub(super) struct Native<R>(PhantomData<R>);

impl<T: Single, R: Begin<T>> Fold<T> for Native<R> {
    type Running = T;

    #[inline(always)]
    fn include(current: T) -> T {
        current
    }
    #[inline(always)]
    fn first(update: T) -> T {
        R::begin(update)
    }
    #[inline(always)]
    fn step(running: T, update: T) -> T {
        R::apply(running, update)
    }
    #[inline(always)]
    fn finish(running: T, _: u64, _: f64) -> T {
        running
    }
}

/// The mean, its sum in the type of the elements.
pub(super) struct Mean;

impl<T: Divided> Fold<T> for Mean {
    type Running = T;

    #[inline(always)]
    fn include(current: T) -> T {
        current
    }
    #[inline(always)]
    fn first(update: T) -> T {
        update
    }
    #[inline(always)]
    fn step(running: T, update: T) -> T {
        running.add(update)
    }
    #[inline(always)]
    fn finish(running: T, count: u64, _: f64) -> T {
        running.divided(count)
    }
}

/// A reduction of 16-bit floats in `f32`.
pub(super) struct InF32<R>(PhantomData<R>);

impl<H: Half, R: Begin<f32>> Fold<H> for InF32<R> {
    type Running = f32;

    #[inline(always)]
    fn include(current: H) -> f32 {
        current.widen()
    }
    #[inline(always)]
    fn first(update: H) -> f32 {
        R::begin(update.widen())
    }
    #[inline(always)]
    fn step(running: f32, update: H) -> f32 {
        R::apply(running, update.widen())
    }
    #[inline(always)]
    fn finish(running: f32, _: u64, _: f64) -> H {
        H::narrow(running)
    }
}

/// The mean of 16-bit floats, their sum in `f32`.
pub(super) struct MeanInF32;

impl<H: Half> Fold<H> for MeanInF32 {
    type Running = f32;

    #[inline(always)]
    fn include(current: H) -> f32 {
        current.widen()
    }
    #[inline(always)]
    fn first(update: H) -> f32 {
        update.widen()
    }
    #[inline(always)]
    fn step(running: f32, update: H) -> f32 {
        running + update.widen()
    }
    #[inline(always)]
    fn finish(running: f32, count: u64, _: f64) -> H {
        H::narrow(running / rounded(count))
    }
}

/// The sum of 16-bit gradients, from zero, kept and multiplied in `f32`.
pub(super) struct GradientInF32;

impl<H: Half> Fold<H> for GradientInF32 {
    type Running = f32;

    #[inline(always)]
    fn include(_: H) -> f32 {
        0.0
    }
    #[inline(always)]
    fn first(update: H) -> f32 {
        0.0 + update.widen()
    }
    #[inline(always)]
    fn step(running: f32, update: H) -> f32 {
        running + update.widen()
    }
    #[inline(always)]
    fn finish(running: f32, _: u64, factor: f64) -> H {
        H::narrow(running.multiplied(factor))
    }
}

/// A count as the nearest `f32`.
#[expect(clippy::cast_precision_loss, reason = "rounded once, as the rule asks")]
#[inline(always)]
fn rounded(count: u64) -> f32 {
    count as f32
}

macro_rules! single {
    ($($value:ty),*) => {$( impl Single for $value {} )*};
}

single!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl<H: Half> Divided for H {
    #[inline(always)]
    fn divided(self, count: u64) -> Self {
        H::narrow(self.widen() / rounded(count))
    }
}

impl Single for Bool {
    #[inline(always)]
    fn taken(self) -> Self {
        self.normal()
    }
}

impl<F: Single> Single for Complex<F> {}

macro_rules! divide_integers {
    ($($integer:ty: $wide:ty),*) => {$(
        impl Divided for $integer {
            /// Towards negative infinity. A count is that of a list in memory,
            /// and fits every 64-bit integer.
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                clippy::cast_lossless,
                reason = "the quotient lies between the sum and zero or minus one"
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
            #[allow(clippy::cast_precision_loss, reason = "rounded once, as the rule asks")]
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
