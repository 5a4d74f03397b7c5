//! Formats of converting writes: the values of 8-bit floats, and the code of a value. The code of a
//! value comes from a search, not from the bits of the value.

use half::{bf16, f16};
use ndscatter::{DType, Format};

/// Returns the value of a code of an 8-bit float with `fraction` fraction bits. NaN for codes that
/// are not finite.
pub(crate) fn decode(code: u8, fraction: u32) -> f64 {
    let (bias, sign) = (
        (1 << (6 - fraction)) - 1,
        if code >= 128 { -1.0 } else { 1.0 },
    );
    let magnitude = i32::from(code & 0x7f);
    let (exponent, mantissa) = (magnitude >> fraction, magnitude & ((1 << fraction) - 1));
    let is_finite = match fraction {
        3 => magnitude < 0x7f,
        _ => magnitude < 0x7c,
    };
    let unit = 2_f64.powi(-i32::try_from(fraction).expect("few bits"));
    match (is_finite, exponent) {
        (false, _) => f64::NAN,
        (_, 0) => sign * f64::from(mantissa) * unit * 2_f64.powi(1 - bias),
        _ => sign * (1.0 + f64::from(mantissa) * unit) * 2_f64.powi(exponent - bias),
    }
}

/// Returns the code of the nearest value of an 8-bit float, ties to even. Magnitudes beyond the
/// largest value become the largest value.
pub(crate) fn nearest(value: f32, fraction: u32) -> u8 {
    let last = if fraction == 3 { 0x7e } else { 0x7b };
    let magnitude = f64::from(value).abs().min(decode(last, fraction));
    // The values ascend with the codes. `above` is the first code whose value is larger.
    let (mut above, mut below) = (last + 1, 0);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        match decode(middle, fraction) <= magnitude {
            true => below = middle,
            false => above = middle,
        }
    }
    let distance = |code: u8| (decode(code, fraction) - magnitude).abs();
    let is_nearer = |code: u8| match distance(code).total_cmp(&distance(below)) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => code.is_multiple_of(2),
        std::cmp::Ordering::Greater => false,
    };
    let code = if above <= last && is_nearer(above) {
        above
    } else {
        below
    };
    code | if value.is_sign_negative() { 0x80 } else { 0 }
}

/// A scaled value and a zero point, as bytes of a format. Two values for packed formats.
pub(crate) fn encode(format: Format, values: &[(f32, i32)]) -> Vec<u8> {
    let integer = |&(value, zero): &(f32, i32), low: i32, high: i32| {
        let rounded = f64::from(value).round_ties_even() + f64::from(zero);
        #[expect(clippy::cast_possible_truncation, reason = "clamped to a byte")]
        let clamped = rounded.clamp(low.into(), high.into()) as i32;
        clamped.to_le_bytes()[0]
    };
    let value = values[0].0;
    match format {
        Format::F32 => value.to_ne_bytes().to_vec(),
        Format::F16 => f16::from_f32(value).to_ne_bytes().to_vec(),
        Format::BF16 => bf16::from_f32(value).to_ne_bytes().to_vec(),
        Format::F8E4M3Fn => vec![nearest(value, 3)],
        Format::F8E5M2 => vec![nearest(value, 2)],
        Format::I8 => vec![integer(&values[0], -128, 127)],
        Format::U8 => vec![integer(&values[0], 0, 255)],
        Format::I4 | Format::U4 => {
            let (low, high) = format.integer_range().expect("integers");
            let code = |at: usize| integer(&values[at], low, high) & 15;
            vec![code(0) | (code(1) << 4)]
        }
        other => panic!("{other} has no reference"),
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
