//! Arithmetic of 16-bit floats, for machines without instructions for it.
//!
//! The module knows the bits of the two formats. Sums, differences and products are computed in
//! `f32` and rounded once, to nearest even. Minima and maxima compare the bits, so that the result
//! is one of the operands. The code has no branches, so that the compiler can vectorise it.

use super::reduce::{Arithmetic, Ordered, arithmetic, ordered};

/// IEEE binary16.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct F16(pub(super) u16);

/// bfloat16.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Bf16(pub(super) u16);

/// A float with a sign bit and 15 bits of magnitude.
pub(super) trait Half: Arithmetic + Default {
    /// Magnitude of infinity. Larger magnitudes are NaN.
    const INFINITY: i16;

    fn bits(self) -> u16;

    /// Converts the value to `f32`, which is exact.
    fn widen(self) -> f32;

    /// Returns the nearest value. A tie gives the even value. NaN stays NaN.
    fn narrow(value: f32) -> Self;
}

impl Half for F16 {
    const INFINITY: i16 = 0x7c00;

    #[inline(always)]
    fn bits(self) -> u16 {
        self.0
    }

    // The two conversions come from the FP16 library (M. Dukhan). The conversions need few
    // operations. No operation has a subnormal `f32` operand, unless the argument is subnormal.
    #[inline(always)]
    fn widen(self) -> f32 {
        const DOWN: f32 = f32::from_bits((127 - 112) << 23);
        let bits = u32::from(self.0);
        let sign = (bits & 0x8000) << 16;
        let magnitude = bits & 0x7fff;
        // The bias of the exponent is 15 in binary16 and 127 in `f32`. The addition raises the
        // exponent by 2 * 112, so that the exponent 31 becomes infinity or NaN. The multiplication
        // by `DOWN` lowers the exponent by 112.
        let normal = f32::from_bits((magnitude << 13) + (224 << 23)) * DOWN;
        // For subnormal arguments: `magnitude`, the bits of the binary16 value without its sign,
        // becomes the lowest fraction bits of an `f32` whose other bits are those of 0.5. The
        // subtraction of 0.5 removes the leading one of this `f32`.
        let subnormal = f32::from_bits(magnitude | (126 << 23)) - 0.5;
        let value = if magnitude < 1 << 10 {
            subnormal
        } else {
            normal
        };
        f32::from_bits(sign | value.to_bits())
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        const UP: f32 = f32::from_bits((127 + 112) << 23);
        const DOWN: f32 = f32::from_bits((127 - 110) << 23);
        const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
        let bits = value.to_bits();
        let sign = (bits >> 16) & 0x8000;
        // Four times the magnitude, or infinity for magnitudes from 2^16 on.
        let scaled = (value.abs() * UP) * DOWN;
        // Let 2^e be the largest power of two that is at most the magnitude, or 2^-14 for smaller
        // magnitudes. `scaled` is less than 2^(e + 3). The addition of 2^(e + 15) rounds the sum to
        // a multiple of 2^(e - 8), which is four times the last bit of the binary16 fraction. The
        // low bits of the sum are then the rounded fraction.
        let exponent = Ord::max(bits & 0x7f80_0000, SMALLEST_NORMAL);
        let sum = (scaled + f32::from_bits(exponent + (15 << 23))).to_bits();
        let number = ((sum >> 13) & 0x7c00) + (sum & 0x0fff);
        let nan = if value.is_nan() { 0x7fff } else { 0 };
        Self(low_half(sign | number | nan))
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
        // Rounding alone could turn a NaN into infinity, or carry into the sign bit.
        let nan = if value.is_nan() { 0xffff } else { 0 };
        Self(low_half(rounded | nan))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the upper half is dropped")]
#[inline(always)]
fn low_half(bits: u32) -> u16 {
    bits as u16
}

arithmetic!(F16, Bf16:
    |a, b| Self::narrow(a.widen() + b.widen()), Self::narrow(a.widen() - b.widen()),
    Self::narrow(a.widen() * b.widen()));
ordered!(F16, Bf16:
    |a, b| replaced_if(a, b, key(b) < key(a)), replaced_if(a, b, key(b) > key(a)));

/// Returns `update` if it is NaN, or if it is better and `current` is not NaN. Otherwise returns
/// `current`.
#[inline(always)]
fn replaced_if<H: Half>(current: H, update: H, is_better: bool) -> H {
    if is_nan(update) | (is_better & !is_nan(current)) {
        update
    } else {
        current
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

/// Returns an integer key. The keys of two values have the order of the values. The key of both
/// zeros is 0.
#[inline(always)]
fn key<H: Half>(half: H) -> i16 {
    // All bits are set for negative numbers. Then `(m ^ sign) - sign` is `-m`.
    let sign = half.bits().cast_signed() >> 15;
    (magnitude(half) ^ sign) - sign
}
