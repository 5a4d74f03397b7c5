//! Element types, as the plain loops of the benches know them.

#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers lie in a small range"
)]

use half::{bf16, f16};
use ndscatter::{Element, Reduction};

/// Integers for numbers of `[-1, 1)`: so many times as large.
const I64_SCALE: f32 = (1 << 20) as f32;
const U8_SCALE: f32 = 100.0;

/// An element type.
pub(crate) trait Number: Element {
    fn of(value: f32) -> Self;

    /// In this very type: rounded here, or wrapped.
    fn combined(self, update: Self, reduction: Reduction) -> Self;

    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($number:ty: $of:expr, $add:expr, $mul:expr, $bits:expr;)*) => {$(
        impl Number for $number {
            fn of(value: f32) -> Self {
                $of(value)
            }
            fn combined(self, update: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::None => update,
                    Reduction::Add => $add(self, update),
                    Reduction::Mul => $mul(self, update),
                    Reduction::Max => if update > self { update } else { self },
                    other => unreachable!("no bench has the reduction {other}"),
                }
            }
            fn bits(self) -> u64 {
                $bits(self)
            }
        }
    )*};
}

numbers! {
    f32: f32::from, |a: f32, b| a + b, |a: f32, b| a * b, |a: f32| a.to_bits().into();
    f64: f64::from, |a: f64, b| a + b, |a: f64, b| a * b, f64::to_bits;
    f16: f16::from_f32, |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32()),
        |a: f16, b: f16| f16::from_f32(a.to_f32() * b.to_f32()), |a: f16| a.to_bits().into();
    bf16: bf16::from_f32, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32()),
        |a: bf16, b: bf16| bf16::from_f32(a.to_f32() * b.to_f32()), |a: bf16| a.to_bits().into();
    i64: |value: f32| (value * I64_SCALE) as i64, i64::wrapping_add, i64::wrapping_mul,
        i64::cast_unsigned;
    u32: |value: f32| ((value * I64_SCALE) as i32).cast_unsigned(), u32::wrapping_add,
        u32::wrapping_mul, u64::from;
    u8: |value: f32| ((value * U8_SCALE) as i8).cast_unsigned(), u8::wrapping_add,
        u8::wrapping_mul, u64::from;
}
