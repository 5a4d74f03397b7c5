//! The 16-bit floats, on machines that cannot calculate with them.
//!
//! Knows their bits. Sums and products are made in `f32` and rounded once, to
//! nearest even; the smaller and the larger one are found on the bits, so
//! that the result is one of the operands. All of it is free of branches, for
//! the compiler to make vectors of.

use super::reduce::Arithmetic;
use super::reduce::Ordered;

/// IEEE binary16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F16(pub(super) u16);

/// bfloat16
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bf16(pub(super) u16);

/// A float of a sign bit and 15 bits of magnitude.
pub(super) trait Half: Copy {
    /// Magnitude of infinity; what lies above it is NaN.
    const INFINITY: i16;

    fn bits(self) -> u16;

    /// The same value.
    fn widen(self) -> f32;

    /// The nearest value; of two, the even one. NaN stays NaN.
    fn narrow(value: f32) -> Self;
}

impl Half for F16 {
    const INFINITY: i16 = 0x7c00;

    #[inline(always)]
    fn bits(self) -> u16 {
        self.0
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        // Exponents are biased by 15 here and by 127 in `f32`.
        const REBIAS: u32 = (127 - 15) << 23;
        const SMALLEST_NORMAL: f32 = f32::from_bits(REBIAS + (1 << 23));
        let bits = u32::from(self.0);
        let sign = (bits & 0x8000) << 16;
        let magnitude = (bits & 0x7fff) << 13;
        let exponent = magnitude & (0x1f << 23);
        // Infinity and NaN need the largest exponent of `f32`.
        let rebias = if exponent == 0x1f << 23 {
            2 * REBIAS
        } else {
            REBIAS
        };
        // Subnormals lack the leading one: give it to them, then take it off.
        let with_one = f32::from_bits(magnitude + REBIAS + (1 << 23));
        let subnormal = (with_one - SMALLEST_NORMAL).to_bits();
        let value = if exponent == 0 {
            subnormal
        } else {
            magnitude + rebias
        };
        f32::from_bits(sign | value)
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        const REBIAS: u32 = (127 - 15) << 23;
        // Adding it leaves a subnormal's bits, rounded, at the lower end.
        const ALIGN: f32 = f32::from_bits((127 - 15 + 23 - 10 + 1) << 23);
        let bits = value.to_bits();
        let sign = (bits >> 16) & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let odd = (magnitude >> 13) & 1;
        // Wraps for subnormals only, whose value is taken from elsewhere.
        let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + odd) >> 13;
        let aligned = (f32::from_bits(magnitude) + ALIGN).to_bits();
        let subnormal = aligned.wrapping_sub(ALIGN.to_bits());
        let is_subnormal = magnitude < REBIAS + (1 << 23);
        let finite = if is_subnormal { subnormal } else { normal };
        // From 2^16 on; what is below rounds to infinity by its carry.
        let is_infinite = magnitude >= (127 + 16) << 23;
        let number = if is_infinite { 0x7c00 } else { finite };
        let is_nan = magnitude > 0x7f80_0000;
        Self(low_half(sign | if is_nan { 0x7e00 } else { number }))
    }
}

impl Half for Bf16 {
    const INFINITY: i16 = 0x7f80;

    #[inline(always)]
    fn bits(self) -> u16 {
        self.0
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        let bits = value.to_bits();
        let odd = (bits >> 16) & 1;
        let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
        // Rounding could carry a NaN into infinity, and beyond the sign.
        let nan = if value.is_nan() { 0xffff } else { 0 };
        Self(low_half(rounded | nan))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the upper half is dropped")]
#[inline(always)]
fn low_half(bits: u32) -> u16 {
    bits as u16
}

impl<H: Half> Arithmetic for H {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        H::narrow(self.widen() + other.widen())
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        H::narrow(self.widen() - other.widen())
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        H::narrow(self.widen() * other.widen())
    }
}

impl<H: Half> Ordered for H {
    #[inline(always)]
    fn min(self, update: Self) -> Self {
        let smaller = key(update) < key(self);
        if is_nan(update) | (smaller & !is_nan(self)) {
            update
        } else {
            self
        }
    }
    #[inline(always)]
    fn max(self, update: Self) -> Self {
        let larger = key(update) > key(self);
        if is_nan(update) | (larger & !is_nan(self)) {
            update
        } else {
            self
        }
    }
}

#[inline(always)]
fn magnitude<H: Half>(half: H) -> i16 {
    (half.bits() & 0x7fff).cast_signed()
}

#[inline(always)]
fn is_nan<H: Half>(half: H) -> bool {
    magnitude(half) > H::INFINITY
}

/// Orders numbers as their values do; both zeros are 0.
#[inline(always)]
fn key<H: Half>(half: H) -> i16 {
    // All ones for negative numbers: then `(m ^ sign) - sign` is `-m`.
    let sign = half.bits().cast_signed() >> 15;
    (magnitude(half) ^ sign) - sign
}
