//! Arithmetic of 16-bit floats without machine instructions for 16-bit floats.
//!
//! The module knows the bits of the two formats. Each sum, difference or product is computed in
//! `f32` and then rounded to 16 bits: to nearest, ties to even. Minima and maxima compare the bits,
//! so the result has the bits of one operand. The code has no branches, so that the compiler can
//! vectorise it.

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

    /// Converts the value to `f32`. The conversion is exact.
    fn widen(self) -> f32;

    /// Rounds `value` to the nearest value of this type. In a tie, the result is the value whose
    /// last bit is 0. NaN stays NaN.
    fn narrow(value: f32) -> Self;
}

impl Half for F16 {
    const INFINITY: i16 = 0x7c00;

    #[inline(always)]
    fn bits(self) -> u16 {
        self.0
    }

    // The conversions `widen` and `narrow` of binary16 come from the FP16 library (Marat Dukhan).
    // These conversions need few operations. No operation has a subnormal `f32` operand, unless the
    // argument of `narrow` is subnormal.
    #[inline(always)]
    fn widen(self) -> f32 {
        const DOWN: f32 = f32::from_bits((127 - 112) << 23);
        let bits = u32::from(self.0);
        let sign = (bits & 0x8000) << 16;
        let magnitude = bits & 0x7fff;
        // The bias of the exponent is 15 in binary16 and 127 in `f32`. The addition raises the
        // exponent by 2 * 112. The exponent 31 (infinity or NaN) thus becomes 255, also infinity or
        // NaN. The multiplication by `DOWN` lowers the exponent of finite values by 112.
        let normal = f32::from_bits((magnitude << 13) + (224 << 23)) * DOWN;
        // A subnormal binary16 value is `magnitude` (its bits without the sign) times 2^-24.
        // `magnitude` in the lowest fraction bits of the `f32` 0.5 gives 0.5 plus this value. The
        // subtraction of 0.5 leaves this value.
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
        // Four times the magnitude of `value`, or infinity for magnitudes of at least 2^16.
        let scaled = (value.abs() * UP) * DOWN;
        // Let 2^e be the largest power of two that is at most the magnitude of `value`, or 2^-14
        // for smaller magnitudes. `scaled` is less than 2^(e + 3). The addition of 2^(e + 15)
        // rounds the sum to a multiple of 2^(e - 8), which is four times the last bit of the
        // binary16 fraction. The low 12 bits of the sum are then the rounded fraction, including
        // its leading one.
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
        // Without `nan`, the rounding of a NaN could give infinity, or carry into the sign bit.
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

/// Returns `update` if `update` is NaN, or if `is_better` is true and `current` is not NaN.
/// Otherwise returns `current`. `is_better`: whether `update` is smaller (minimum) or larger
/// (maximum) than `current`.
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

/// Returns an integer key. The keys of two values that are not NaN compare as the values do. The
/// keys of 0 and -0 are both 0.
#[inline(always)]
fn key<H: Half>(half: H) -> i16 {
    // For negative numbers, all bits of `sign` are set, and `(m ^ sign) - sign` is `-m`. For other
    // numbers, `sign` is 0.
    let sign = half.bits().cast_signed() >> 15;
    (magnitude(half) ^ sign) - sign
}
