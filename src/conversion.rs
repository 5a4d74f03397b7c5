//! Options of a write that converts elements: the format that elements are converted to, the
//! rounding, and how a scale is applied.
//!
//! This module knows the values of options, their rules and their names. It does not implement the
//! options.

use crate::names::named;

/// The format that a converting write stores elements in.
///
/// The source elements are `f32`, `f16` or `bf16`. Each source element is widened exactly to `f32`,
/// and then scaled if there is a scale ([`Scaling`]). The scaled value is converted to the format
/// by the rule that [`Rounding`] names.
///
/// | format | bits | largest finite value | infinity | NaN |
/// |---|---|---|---|---|
/// | [`F32`](Self::F32) | 32 | (2 - 2^-23) * 2^127 | yes | yes |
/// | [`F16`](Self::F16) | 16 | 65504 | yes | yes |
/// | [`BF16`](Self::BF16) | 16 | (2 - 2^-7) * 2^127 | yes | yes |
/// | [`F8E4M3Fn`](Self::F8E4M3Fn) | 8 | 448 | no | `0x7f` and `0xff` |
/// | [`F8E5M2`](Self::F8E5M2) | 8 | 57344 | `0x7c` and `0xfc` | six codes |
/// | [`I8`](Self::I8) | 8 | 127 | no | no |
/// | [`U8`](Self::U8) | 8 | 255 | no | no |
/// | [`I4`](Self::I4) | 4 | 7 | no | no |
/// | [`U4`](Self::U4) | 4 | 15 | no | no |
///
/// Sources: IEEE 754-2019 for `F32` and `F16`, and [ONNX's page on 8-bit floats][float8], which
/// follows the paper *FP8 Formats for Deep Learning* (arXiv 2209.05433).
///
/// [float8]: https://onnx.ai/onnx/technical/float8.html
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// 8-bit float with 4 exponent bits and 3 fraction bits, without infinity. Smallest positive
    /// value: 2^-9.
    F8E4M3Fn,
    /// 8-bit float with 5 exponent bits and 2 fraction bits. Smallest positive value: 2^-16.
    F8E5M2,
    /// Integers -128 to 127, in two's complement.
    I8,
    /// Integers 0 to 255.
    U8,
    /// Integers -8 to 7, in two's complement. One byte has two elements, as in ONNX: element `2i`
    /// in the low 4 bits, and element `2i + 1` in the high 4 bits.
    I4,
    /// Integers 0 to 15. One byte has two elements, in the order of [`I4`](Self::I4).
    U4,
}

named! { Format, "format":
    // The other names are those of numpy, torch, ONNX and vLLM.
    F32 => "f32" | "float32",
    F16 => "f16" | "float16",
    BF16 => "bf16" | "bfloat16",
    F8E4M3Fn => "f8e4m3fn" | "float8_e4m3fn" | "float8e4m3fn" | "fp8_e4m3" | "fp8",
    F8E5M2 => "f8e5m2" | "float8_e5m2" | "float8e5m2" | "fp8_e5m2",
    I8 => "i8" | "int8",
    U8 => "u8" | "uint8",
    I4 => "i4" | "int4",
    U4 => "u4" | "uint4",
}

impl Format {
    /// Whether one byte has two elements.
    pub const fn is_packed(self) -> bool {
        matches!(self, Self::I4 | Self::U4)
    }

    /// Whether the elements are integers. Only integers have a zero point.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::U8 | Self::I4 | Self::U4)
    }

    /// Returns the smallest and the largest value of an integer format. `None`: the elements are
    /// floats.
    pub const fn integer_range(self) -> Option<(i32, i32)> {
        match self {
            Self::I8 => Some((-128, 127)),
            Self::U8 => Some((0, 255)),
            Self::I4 => Some((-8, 7)),
            Self::U4 => Some((0, 15)),
            Self::F32 | Self::F16 | Self::BF16 | Self::F8E4M3Fn | Self::F8E5M2 => None,
        }
    }
}

/// How a value is rounded to a [`Format`].
///
/// Each value is the rule of other software, because software rounds differently. `v` is the scaled value,
/// and `max` is the largest finite value of the format.
///
/// | rounding | `v` between values of a float | `v` beyond `max` of a float | NaN to a float | NaN to an integer |
/// |---|---|---|---|---|
/// | `NearestEven` | nearest, ties to even | infinity, or NaN | NaN | the zero point |
/// | `Saturate` | nearest, ties to even | `max`, with the sign | NaN | the zero point |
/// | `SaturateNan` | nearest, ties to even | `max`, with the sign | `max` | the largest integer |
/// | `Truncate` | toward zero | `max`, with the sign | `max` | the largest integer |
///
/// An integer is `round(v) + zero_point`, clamped to the range of the format with every rounding.
/// `Truncate` rounds `v` toward zero. The other roundings round to the nearest integer, ties to
/// even, as QuantizeLinear of ONNX does. ONNX has no rule for NaN.
///
/// Subnormal values of a format are kept. A NaN that becomes a NaN of an 8-bit float has the code
/// `0x7f`, with the sign of the source. A NaN of a 16-bit float has no promised sign or payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rounding {
    /// Rounds to the nearest value, ties to even. The rule is that of ml_dtypes (JAX), of Cast of
    /// ONNX with `saturate = 0`, and of `torch.Tensor.to` before torch 2.12.
    ///
    /// A value that rounds beyond the largest finite value becomes NaN in `F8E4M3Fn`, and infinity
    /// in all other floats. Infinity becomes NaN in `F8E4M3Fn`. Both keep the sign.
    ///
    /// From 2.12 on, torch follows this rule for `F8E5M2`, `F16` and `BF16`, and the rule
    /// [`Saturate`](Self::Saturate) for `F8E4M3Fn` ([pull request 178817][saturated]). With these
    /// rules, results in 8-bit floats have the bits of torch 2.15.
    ///
    /// [saturated]: https://github.com/pytorch/pytorch/pull/178817
    #[default]
    NearestEven,
    /// As [`NearestEven`](Self::NearestEven), but magnitudes above the largest finite value,
    /// infinity included, become the largest finite value. The rule is Cast of ONNX with
    /// `saturate = 1`. NaN stays NaN.
    Saturate,
    /// As [`Saturate`](Self::Saturate), but NaN of both signs becomes the largest finite value,
    /// positive. With [`Scaling::Reciprocal`], results in 8-bit floats have the bits of the cache
    /// write of vLLM 0.33 for CPUs (`csrc/cpu/cpu_attn_fp8.hpp`).
    SaturateNan,
    /// Rounds toward zero. Magnitudes above the largest finite value become the largest finite
    /// value, and NaN becomes the largest finite value, positive. `-0` becomes `+0`. A negative
    /// value that is rounded to zero stays negative: it becomes `-0`.
    ///
    /// The rule is an earlier cache write of vLLM for CPUs (commit `0f25e05`). That code computes
    /// with one more rounding. So `f32` values at most 2^-30 below a subnormal value of
    /// `F8E4M3Fn` become this value there. Here they are rounded toward zero as all other values.
    Truncate,
}

named! { Rounding, "rounding":
    NearestEven => "nearest even" | "nearest",
    Saturate => "saturate",
    SaturateNan => "saturate nan",
    Truncate => "truncate",
}

/// How a scale is applied to a value before the conversion.
///
/// The operations are operations of `f32`. Each operation is rounded once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scaling {
    /// `value / scale`, as QuantizeLinear of ONNX.
    #[default]
    Divide,
    /// `value * (1 / scale)`, as vLLM.
    Reciprocal,
}

named! { Scaling, "scaling":
    Divide => "divide",
    Reciprocal => "reciprocal",
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn spellings_of_other_software_are_understood() {
        let cases = [
            ("float8_e4m3fn", Format::F8E4M3Fn), // torch
            ("FLOAT8E4M3FN", Format::F8E4M3Fn),  // ONNX
            ("fp8", Format::F8E4M3Fn),           // vLLM
            ("fp8_e5m2", Format::F8E5M2),        // vLLM
            ("UINT4", Format::U4),               // ONNX
        ];
        for (name, expected) in cases {
            assert_eq!(name.parse(), Ok(expected), "{name}");
        }
    }
}
