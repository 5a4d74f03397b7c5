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

use super::load::Bf16Block;
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

    /// Converts a block by the rule `R`, with fewer operations than [`narrowed`](Self::narrowed).
    /// `None`, for all blocks: the format or the rule has no such function.
    #[inline(always)]
    fn narrowed_block<R: Round>(block: &Bf16Block) -> Option<[Self::Stored; 32]> {
        let _ = block;
        None
    }
}

/// A rule of rounding. Each implementing type is one value of
/// [`Rounding`](crate::conversion::Rounding).
pub(super) trait Round {
    /// Whether conversions by this rule are frequent, so that they have a separate loop.
    const IS_COMMON: bool = true;
    /// How the rule limits magnitudes, if it rounds to nearest.
    const LIMIT: Option<Limit>;

    /// Converts `value` to the format `F`.
    fn to_float<F: Float>(value: f32) -> F::Code;
    /// Rounds `value` to an integer. Magnitudes above [`INTEGER_LIMIT`] become the limit.
    fn to_integer(value: f32) -> i32;
}

/// What a rule does to magnitudes above the largest finite value of a float format.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// The format determines the result.
    ByFormat,
    /// They become the largest finite value. NaN stays NaN.
    Largest,
    /// They become the largest finite value. NaN becomes the positive largest finite value.
    LargestOfNan,
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

    /// Rounds a block to nearest, as [`Target::narrowed_block`].
    #[inline(always)]
    fn nearest_block(block: &Bf16Block, limit: Limit) -> Option<[Self::Code; 32]> {
        let _ = (block, limit);
        None
    }
}

/// Larger magnitudes are limited to this value before they are rounded to integers. The sum of the
/// limit and a zero point is outside every integer format. Each integer up to the limit is an `f32`.
const INTEGER_LIMIT: f32 = 4_194_304.0;

pub(super) struct NearestEven;
pub(super) struct Saturate;
pub(super) struct SaturateNan;
pub(super) struct Truncate;

impl Round for NearestEven {
    const LIMIT: Option<Limit> = Some(Limit::ByFormat);

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
    const LIMIT: Option<Limit> = Some(Limit::Largest);

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
    const LIMIT: Option<Limit> = Some(Limit::LargestOfNan);

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
    const IS_COMMON: bool = false;
    const LIMIT: Option<Limit> = None;

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

    #[inline(always)]
    fn narrowed_block<R: Round>(block: &Bf16Block) -> Option<[F::Code; 32]> {
        F::nearest_block(block, R::LIMIT?)
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
    /// Part of each [`anchor`](Self::anchor). The sum of this number and the bits of
    /// `SMALLEST_NORMAL`, shifted by `DROPPED`, is a multiple of 2^8. The number is even.
    const OFFSET: u32 = (Self::SMALLEST_NORMAL >> Self::DROPPED).wrapping_neg() & 0xff;

    /// Returns the largest power of two that is at most the value with the bits `magnitude`, or the
    /// smallest normal value for smaller values. The result is the bits of the power.
    #[inline(always)]
    fn exponent(magnitude: u32) -> u32 {
        Ord::max(magnitude & 0x7f80_0000, Self::SMALLEST_NORMAL)
    }

    /// Returns the bits of the anchor of the values with the exponent `exponent`. The sum of a value
    /// and its anchor is the rounded value plus the anchor.
    ///
    /// Let `exponent` be the bits of 2^e. The values of the format from 2^e to 2^(e + 1) are
    /// multiples of 2^(e - FRACTION). These multiples are also the `f32` values from 2^(e + DROPPED)
    /// to twice as much. The anchor is one of them, and its lowest bit is 0. So the addition rounds to
    /// a multiple, ties to even. The low bits of the sum are `OFFSET` plus the rounded fraction,
    /// including the leading one of the fraction.
    #[inline(always)]
    fn anchor(exponent: u32) -> u32 {
        exponent + (Self::DROPPED << 23) + Self::OFFSET
    }

    /// Returns the bits of the sum of a value and its anchor.
    #[inline(always)]
    fn sum(magnitude: u32, exponent: u32) -> u32 {
        (f32::from_bits(magnitude) + f32::from_bits(Self::anchor(exponent))).to_bits()
    }

    /// Rounds the value with the bits `magnitude` to nearest, ties to even. The value is not
    /// negative, and is at most `BEYOND`. Returns the code in the lowest 8 bits, and the rounded value.
    /// The other bits are unspecified.
    #[inline(always)]
    fn rounded(magnitude: u32) -> (u32, f32) {
        let exponent = Self::exponent(magnitude);
        let sum = Self::sum(magnitude, exponent);
        // The code is the rounded fraction plus (exponent - SMALLEST_NORMAL) >> DROPPED. `OFFSET` is
        // the second term of the difference.
        let code = sum.wrapping_add(exponent >> Self::DROPPED);
        (
            code,
            f32::from_bits(sum) - f32::from_bits(Self::anchor(exponent)),
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

    /// The steps are those of [`rounded`](Self::rounded). The magnitudes and exponents are the high
    /// halves of those of `f32`, so each operation on them processes 32 elements. Only the addition
    /// needs `f32`. It processes first the elements at even positions, then those at odd positions.
    #[expect(clippy::cast_possible_truncation, reason = "the cut bits are not used")]
    #[inline(always)]
    fn nearest_block(block: &Bf16Block, limit: Limit) -> Option<[u8; 32]> {
        const HIGH: u32 = 0xffff_0000;
        let largest = match limit {
            Limit::ByFormat => Self::BEYOND,
            Limit::Largest | Limit::LargestOfNan => LARGEST,
        };
        // Loops over arrays instead of `map` and `from_fn`, which are not always inlined.
        let (mut magnitudes, mut exponents) = ([0_u16; 32], [0_u16; 32]);
        for (at, value) in block.iter().enumerate() {
            magnitudes[at] = Ord::min(value.0 & 0x7fff, (largest >> 16) as u16);
            exponents[at] = Ord::max(
                magnitudes[at] & 0x7f80,
                (Self::SMALLEST_NORMAL >> 16) as u16,
            );
        }
        let magnitude_pairs: [u32; 16] = bytemuck::cast(magnitudes);
        let exponent_pairs: [u32; 16] = bytemuck::cast(exponents);
        let mut sums = [0_u32; 16];
        for (at, sum) in sums.iter_mut().enumerate() {
            let (magnitudes, exponents) = (magnitude_pairs[at], exponent_pairs[at]);
            let low = Self::sum(magnitudes << 16, exponents << 16);
            let high = Self::sum(magnitudes & HIGH, exponents & HIGH);
            *sum = low & !HIGH | high << 16;
        }
        let sums: [u16; 32] = bytemuck::cast(sums);
        let keeps_nan = limit == Limit::Largest || limit == Limit::ByFormat && Self::HAS_INFINITY;
        let mut codes = [0; 32];
        for (at, code) in codes.iter_mut().enumerate() {
            let bits = block[at].0;
            let is_nan = bits & 0x7fff > 0x7f80;
            // The lowest 8 bits are those of the code that `rounded` computes.
            let magnitude = sums[at].wrapping_add(exponents[at] >> (Self::DROPPED - 16));
            let nan = if keeps_nan && is_nan { 0x7f } else { 0 };
            let is_unsigned = limit == Limit::LargestOfNan && is_nan;
            let sign = if is_unsigned { 0 } else { bits >> 8 & 0x80 };
            *code = (magnitude | nan | sign) as u8;
        }
        Some(codes)
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
