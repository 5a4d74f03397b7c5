//! Rounds `f32` values to the formats of conversions.
//!
//! The module knows the bits of each format, and each rounding. The module does not know strides,
//! scales or instruction sets. The definition of each conversion is scalar code without branches,
//! which the compiler vectorises. So the bits are equal on every instruction set. No operation has
//! an unspecified result.
//!
//! Each rounding of a float first limits the value, as an `f32`. The limited value is then rounded
//! to nearest or toward zero. Comparisons with NaN are false, and [`limited`] and [`limited_number`]
//! depend on this.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use crate::kernel::dispatch::Kernel;
use crate::kernel::half::{Bf16, F16, Half};

/// A format that conversions write.
pub(super) trait Target {
    /// The type of a stored element.
    type Stored: Copy;
    /// Whether a byte has two elements. [`narrowed`](Self::narrowed) returns one element, in the
    /// low 4 bits.
    const PACKED: bool = false;

    /// Converts `value` by the rule `R`. Floats ignore `zero`, the zero point.
    fn narrowed<R: Round>(value: f32, zero: i32) -> Self::Stored;
}

/// A rule of rounding. Each implementing type is one value of
/// [`Rounding`](crate::conversion::Rounding).
pub(super) trait Round {
    /// Converts `value` to the format `F`.
    fn to_float<F: Float>(value: f32) -> F::Code;
    /// Rounds `value` to an integer. Magnitudes above [`INTEGER_LIMIT`] become the limit.
    fn to_integer(value: f32) -> i32;
}

/// A float format.
pub(super) trait Float {
    type Code: Copy;
    /// The largest finite value.
    const MAX: f32;

    /// Rounds to the nearest value, ties to even. The format determines the result for NaN and for
    /// values that round beyond [`MAX`](Self::MAX).
    fn nearest(value: f32) -> Self::Code;
    /// Rounds toward zero a value with a magnitude of at most [`MAX`](Self::MAX).
    fn toward_zero(value: f32) -> Self::Code;
}

/// Larger magnitudes are limited to this value before they are rounded to integers. The sum of the
/// limit and a zero point is outside every integer format. Each integer up to the limit is an `f32`.
const INTEGER_LIMIT: f32 = 4_194_304.0;

pub(super) struct NearestEven;
pub(super) struct Saturate;
pub(super) struct SaturateNan;
pub(super) struct Truncate;

impl Round for NearestEven {
    #[inline(always)]
    fn to_float<F: Float>(value: f32) -> F::Code {
        F::nearest(value)
    }

    #[inline(always)]
    fn to_integer(value: f32) -> i32 {
        let number = if value.is_nan() { 0.0 } else { value };
        nearest_integer(limited(number, INTEGER_LIMIT))
    }
}

impl Round for Saturate {
    #[inline(always)]
    fn to_float<F: Float>(value: f32) -> F::Code {
        F::nearest(limited(value, F::MAX))
    }

    #[inline(always)]
    fn to_integer(value: f32) -> i32 {
        NearestEven::to_integer(value)
    }
}

impl Round for SaturateNan {
    #[inline(always)]
    fn to_float<F: Float>(value: f32) -> F::Code {
        F::nearest(limited_number(value, F::MAX))
    }

    #[inline(always)]
    fn to_integer(value: f32) -> i32 {
        nearest_integer(limited_number(value, INTEGER_LIMIT))
    }
}

impl Round for Truncate {
    #[inline(always)]
    fn to_float<F: Float>(value: f32) -> F::Code {
        // The addition changes -0 to +0, and no other value.
        F::toward_zero(limited_number(value, F::MAX) + 0.0)
    }

    #[inline(always)]
    fn to_integer(value: f32) -> i32 {
        let limited = limited_number(value, INTEGER_LIMIT);
        // SAFETY: `limited_number` has returned a number from `-INTEGER_LIMIT` to `INTEGER_LIMIT`,
        // so its integer part is an `i32`.
        unsafe { limited.to_int_unchecked() }
    }
}

/// Limits the magnitude of `value` to `max`. NaN stays NaN.
#[inline(always)]
fn limited(value: f32, max: f32) -> f32 {
    let below = if value > max { max } else { value };
    if below < -max { -max } else { below }
}

/// Limits the magnitude of `value` to `max`. NaN becomes `max`.
#[inline(always)]
fn limited_number(value: f32, max: f32) -> f32 {
    let below = if value < max { value } else { max };
    if below < -max { -max } else { below }
}

/// Rounds a value with a magnitude of at most [`INTEGER_LIMIT`] to the nearest integer, ties to
/// even.
#[inline(always)]
fn nearest_integer(value: f32) -> i32 {
    /// 1.5 * 2^23. From 2^23 to 2^24, the `f32` values are the integers. So the addition rounds to
    /// an integer, and the lowest fraction bits of the sum are this integer.
    const INTEGERS: f32 = 12_582_912.0;
    let sum = (value + INTEGERS).to_bits().cast_signed();
    sum.wrapping_sub(INTEGERS.to_bits().cast_signed())
}

impl<F: Float> Target for F {
    type Stored = F::Code;

    #[inline(always)]
    fn narrowed<R: Round>(value: f32, _: i32) -> F::Code {
        R::to_float::<F>(value)
    }
}

impl Float for f32 {
    type Code = f32;
    const MAX: f32 = f32::MAX;

    #[inline(always)]
    fn nearest(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    fn toward_zero(value: f32) -> f32 {
        value
    }
}

/// Implements [`Float`] for 16-bit floats.
macro_rules! halves {
    ($($half:ty: $max:expr;)*) => {$(
        impl Float for $half {
            type Code = $half;
            const MAX: f32 = f32::from_bits($max);

            #[inline(always)]
            fn nearest(value: f32) -> $half {
                <$half>::narrow(value)
            }

            #[inline(always)]
            fn toward_zero(value: f32) -> $half {
                let nearest = <$half>::narrow(value);
                // The magnitudes of neighbours differ by 1 in the lowest bit.
                let is_above = nearest.widen().abs() > value.abs();
                Self(nearest.0.wrapping_sub(u16::from(is_above)))
            }
        }
    )*};
}

halves! {
    F16: 0x477f_e000;
    Bf16: 0x7f7f_0000;
}

/// An 8-bit float with `FRACTION` bits of fraction. `SMALLEST` is the exponent of the smallest
/// normal value. `LARGEST` has the bits of the largest finite value, as `f32`.
pub(super) struct Float8<const FRACTION: u32, const SMALLEST: i32, const LARGEST: u32>;

/// `f8e4m3fn`: the largest finite value is 448.
pub(super) type E4m3Fn = Float8<3, -6, 0x43e0_0000>;
/// `f8e5m2`: the largest finite value is 57344.
pub(super) type E5m2 = Float8<2, -14, 0x4760_0000>;

impl<const FRACTION: u32, const SMALLEST: i32, const LARGEST: u32>
    Float8<FRACTION, SMALLEST, LARGEST>
{
    /// Number of fraction bits of an `f32` that the format does not have.
    const DROPPED: u32 = 23 - FRACTION;
    /// Bits of the smallest normal value, as `f32`.
    const SMALLEST_NORMAL: u32 = (127 + SMALLEST).cast_unsigned() << 23;
    /// Bits of the value that would follow the largest finite value. Its code is infinity or NaN.
    const BEYOND: u32 = LARGEST + (1 << Self::DROPPED);
    /// Whether the code of `BEYOND` is infinity: all fraction bits of `BEYOND` are 0.
    const HAS_INFINITY: bool = Self::BEYOND & 0x007f_ffff == 0;
    const NAN: u32 = 0x7f;

    /// Rounds the value with the bits `magnitude` to nearest, ties to even. The value is not
    /// negative, and is at most `BEYOND`. Returns the code, and the rounded value.
    #[inline(always)]
    fn rounded(magnitude: u32) -> (u32, f32) {
        // Let 2^e be the largest power of two that is at most the value, or the smallest normal
        // value for smaller values. The values of the format around the value are multiples of
        // 2^(e - FRACTION). These are also the `f32` values around 2^(e + DROPPED), so the addition
        // rounds to a multiple. The low bits of the sum are then the rounded fraction, including
        // its leading one.
        let exponent = Ord::max(magnitude & 0x7f80_0000, Self::SMALLEST_NORMAL);
        let anchor = exponent + (Self::DROPPED << 23);
        let sum = f32::from_bits(magnitude) + f32::from_bits(anchor);
        let fraction = sum.to_bits().wrapping_sub(anchor);
        let exponent = exponent.wrapping_sub(Self::SMALLEST_NORMAL) >> Self::DROPPED;
        (
            fraction.wrapping_add(exponent),
            sum - f32::from_bits(anchor),
        )
    }

    #[expect(clippy::cast_possible_truncation, reason = "a code has 7 bits")]
    #[inline(always)]
    fn with_sign(code: u32, bits: u32) -> u8 {
        (code | (bits >> 24 & 0x80)) as u8
    }
}

impl<const FRACTION: u32, const SMALLEST: i32, const LARGEST: u32> Float
    for Float8<FRACTION, SMALLEST, LARGEST>
{
    type Code = u8;
    const MAX: f32 = f32::from_bits(LARGEST);

    #[inline(always)]
    fn nearest(value: f32) -> u8 {
        let bits = value.to_bits();
        let (code, _) = Self::rounded(Ord::min(bits & 0x7fff_ffff, Self::BEYOND));
        // Without infinity, the code of `BEYOND` is NaN already.
        let is_lost = Self::HAS_INFINITY && value.is_nan();
        Self::with_sign(code | if is_lost { Self::NAN } else { 0 }, bits)
    }

    #[inline(always)]
    fn toward_zero(value: f32) -> u8 {
        let bits = value.to_bits();
        let (code, rounded) = Self::rounded(bits & 0x7fff_ffff);
        let code = code.wrapping_sub(u32::from(rounded > value.abs()));
        Self::with_sign(code, bits)
    }
}

/// Integers from `MIN` to `MAX`. `PACKED`: a byte has two integers of 4 bits.
pub(super) struct Integer<const MIN: i32, const MAX: i32, const PACKED: bool>;

impl<const MIN: i32, const MAX: i32, const PACKED: bool> Target for Integer<MIN, MAX, PACKED> {
    type Stored = u8;
    const PACKED: bool = PACKED;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the integer has at most 8 bits"
    )]
    #[inline(always)]
    fn narrowed<R: Round>(value: f32, zero: i32) -> u8 {
        let integer = R::to_integer(value).wrapping_add(zero).clamp(MIN, MAX);
        (if PACKED { integer & 0xf } else { integer }) as u8
    }
}

/// The loop that converts `f32` values to the format `T`, by the rule `R`. The list has one zero
/// point for each value.
pub(super) struct Narrow<T, R>(PhantomData<(T, R)>);

impl<T: Target, R: Round> Kernel for Narrow<T, R> {
    type Entry = i32;
    type Form<'a> = ();

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, zeros: &[i32], (): ()) {
        let len = zeros.len();
        // SAFETY: the caller guarantees `len` elements on both sides, which do not overlap.
        let (codes, values) = unsafe {
            (
                slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T::Stored>>(), len),
                slice::from_raw_parts(src.cast::<f32>(), len),
            )
        };
        for ((code, &value), &zero) in codes.iter_mut().zip(values).zip(zeros) {
            code.write(T::narrowed::<R>(value, zero));
        }
    }
}
