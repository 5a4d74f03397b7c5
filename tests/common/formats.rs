//! Formats of converting writes: the values of floats, and the code of a value. The code of a value
//! comes from a search, not from the bits of the value.

use ndscatter::{DType, Format, Rounding};

/// A float format. Codes without a sign ascend with their values.
#[derive(Clone, Copy)]
struct Float {
    fraction: u32,
    bias: i32,
    /// Code of the largest finite value.
    last: u32,
    sign: u32,
}

const E4M3: Float = Float {
    fraction: 3,
    bias: 7,
    last: 0x7e,
    sign: 0x80,
};
const E5M2: Float = Float {
    fraction: 2,
    bias: 15,
    last: 0x7b,
    sign: 0x80,
};
const F16: Float = Float {
    fraction: 10,
    bias: 15,
    last: 0x7bff,
    sign: 0x8000,
};
const BF16: Float = Float {
    fraction: 7,
    bias: 127,
    last: 0x7f7f,
    sign: 0x8000,
};

impl Float {
    fn of_fraction(fraction: u32) -> Self {
        if fraction == 3 { E4M3 } else { E5M2 }
    }

    /// Returns the value of a code without a sign. A code that is not finite has the value that the
    /// bits would have without this exception.
    fn value(self, code: u32) -> f64 {
        let exponent = i32::try_from(code >> self.fraction).expect("few bits");
        let mantissa = f64::from(code & ((1 << self.fraction) - 1));
        let unit = 0.5_f64.powi(i32::try_from(self.fraction).expect("few bits"));
        match exponent {
            0 => mantissa * unit * 2_f64.powi(1 - self.bias),
            _ => (1.0 + mantissa * unit) * 2_f64.powi(exponent - self.bias),
        }
    }

    /// Returns the largest code whose value is at most `magnitude`. The code after the last finite
    /// one is the largest that is returned.
    fn below(self, magnitude: f64) -> u32 {
        let (mut below, mut above) = (0, self.last + 2);
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            match self.value(middle) <= magnitude {
                true => below = middle,
                false => above = middle,
            }
        }
        below
    }

    /// Returns the nearest code, ties to even. The code after the last finite one is the infinity or
    /// the NaN of a value that is too large.
    fn nearest(self, magnitude: f64) -> u32 {
        let below = self.below(magnitude);
        let (down, up) = (
            magnitude - self.value(below),
            self.value(below + 1) - magnitude,
        );
        let is_up = up < down || (up == down && below % 2 == 1);
        (below + u32::from(is_up)).min(self.last + 1)
    }

    /// Returns the code of a value. NaN that stays NaN has all bits below the sign.
    fn code(self, value: f32, rounding: Rounding) -> u32 {
        let sign = if value.is_sign_negative() {
            self.sign
        } else {
            0
        };
        let magnitude = f64::from(value).abs();
        match rounding {
            Rounding::NearestEven | Rounding::Saturate if value.is_nan() => sign | (self.sign - 1),
            _ if value.is_nan() => self.last,
            Rounding::NearestEven => sign | self.nearest(magnitude),
            Rounding::Truncate if value == 0.0 => 0,
            Rounding::Truncate => sign | self.below(magnitude).min(self.last),
            _ => sign | self.nearest(magnitude).min(self.last),
        }
    }
}

/// Returns the value of a code of an 8-bit float with `fraction` fraction bits. NaN for codes that
/// are not finite.
pub(crate) fn decode(code: u8, fraction: u32) -> f64 {
    let (format, magnitude) = (Float::of_fraction(fraction), u32::from(code & 0x7f));
    let sign = if code >= 128 { -1.0 } else { 1.0 };
    match magnitude <= format.last {
        true => sign * format.value(magnitude),
        false => f64::NAN,
    }
}

/// Returns the code of the nearest value of an 8-bit float, ties to even. Magnitudes beyond the
/// largest value become the largest value.
pub(crate) fn nearest(value: f32, fraction: u32) -> u8 {
    let code = Float::of_fraction(fraction).code(value, Rounding::Saturate);
    u8::try_from(code).expect("a code of 8 bits")
}

/// Returns the code of a value in `f32`.
fn single(value: f32, rounding: Rounding) -> u32 {
    let is_saturated = rounding != Rounding::NearestEven;
    let keeps_nan = !matches!(rounding, Rounding::SaturateNan | Rounding::Truncate);
    let value = match value {
        _ if value.is_nan() && keeps_nan => value,
        _ if value.is_nan() => f32::MAX,
        _ if value == 0.0 && rounding == Rounding::Truncate => 0.0,
        _ if is_saturated => value.clamp(f32::MIN, f32::MAX),
        _ => value,
    };
    value.to_bits()
}

fn integer(format: Format, rounding: Rounding, (value, zero): (f32, i32)) -> u32 {
    let (low, high) = format.integer_range().expect("integers");
    let value = f64::from(value);
    let rounded = match rounding {
        Rounding::Truncate => value.trunc(),
        _ => value.round_ties_even(),
    };
    let keeps_nan = matches!(rounding, Rounding::NearestEven | Rounding::Saturate);
    let rounded = match value.is_nan() {
        true if keeps_nan => 0.0,
        true => f64::INFINITY,
        false => rounded,
    };
    #[expect(clippy::cast_possible_truncation, reason = "clamped to a byte")]
    let clamped = (rounded + f64::from(zero)).clamp(low.into(), high.into()) as i32;
    clamped.cast_unsigned() & if format.is_packed() { 15 } else { 255 }
}

/// Returns the code of scaled values and their zero points. A code of a packed format has two
/// values.
pub(crate) fn code(format: Format, rounding: Rounding, values: &[(f32, i32)]) -> u32 {
    let value = values[0].0;
    match format {
        Format::F32 => single(value, rounding),
        Format::F16 => F16.code(value, rounding),
        Format::BF16 => BF16.code(value, rounding),
        Format::F8E4M3Fn => E4M3.code(value, rounding),
        Format::F8E5M2 => E5M2.code(value, rounding),
        Format::I8 | Format::U8 => integer(format, rounding, values[0]),
        Format::I4 | Format::U4 => {
            let of = |value| integer(format, rounding, value);
            of(values[0]) | (of(values[1]) << 4)
        }
        other => panic!("{other} has no reference"),
    }
}

/// Returns the bytes of a code of values that are rounded to the nearest even value.
pub(crate) fn encode(format: Format, values: &[(f32, i32)]) -> Vec<u8> {
    let code = code(format, Rounding::NearestEven, values);
    match dtype_of(format).size() {
        1 => vec![code.to_le_bytes()[0]],
        2 => u16::try_from(code).expect("16 bits").to_ne_bytes().to_vec(),
        _ => code.to_ne_bytes().to_vec(),
    }
}

pub(crate) fn dtype_of(format: Format) -> DType {
    match format {
        Format::F32 => DType::F32,
        Format::F16 => DType::F16,
        Format::BF16 => DType::BF16,
        Format::I8 => DType::I8,
        Format::U8 => DType::U8,
        _ => DType::Bytes1,
    }
}
