//! Element types, with the arithmetic of the reference loops of the benches.

#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers have a small range"
)]

use std::fmt::Display;

#[cfg(feature = "half")]
use half::{bf16, f16};
use ndscatter::{Element, Reduction};

/// Factors that convert numbers in `[-1, 1)` to integers.
const I64_SCALE: f32 = (1 << 20) as f32;
const U8_SCALE: f32 = 100.0;

/// An element type.
pub(crate) trait Number: Element {
    fn of(value: f32) -> Self;

    /// Combines two values. The result is rounded to this type, or wraps.
    fn combined(self, update: Self, reduction: Reduction) -> Self;

    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($number:ty: $of:expr, $add:expr, $mul:expr, $bits:expr;)*) => {$(
        impl Number for $number {
            fn of(value: f32) -> Self {
                $of(value)
            }
            #[inline]
            #[allow(clippy::eq_op, reason = "only NaN is not equal to itself")]
            fn combined(self, update: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::None => update,
                    Reduction::Add => $add(self, update),
                    Reduction::Mul => $mul(self, update),
                    Reduction::Max => if update > self || update != update { update } else { self },
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
    i64: |value: f32| (value * I64_SCALE) as i64, i64::wrapping_add, i64::wrapping_mul,
        i64::cast_unsigned;
    i32: |value: f32| (value * I64_SCALE) as i32, i32::wrapping_add, i32::wrapping_mul,
        |a: i32| a.cast_unsigned().into();
    u32: |value: f32| ((value * I64_SCALE) as i32).cast_unsigned(), u32::wrapping_add,
        u32::wrapping_mul, u64::from;
    u8: |value: f32| ((value * U8_SCALE) as i8).cast_unsigned(), u8::wrapping_add,
        u8::wrapping_mul, u64::from;
}

#[cfg(feature = "half")]
numbers! {
    f16: f16::from_f32, |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32()),
        |a: f16, b: f16| f16::from_f32(a.to_f32() * b.to_f32()), |a: f16| a.to_bits().into();
    bf16: bf16::from_f32, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32()),
        |a: bf16, b: bf16| bf16::from_f32(a.to_f32() * b.to_f32()), |a: bf16| a.to_bits().into();
}

/// Panics unless `result` has the bits of `expected`.
pub(crate) fn assert_bits<T: Number>(what: impl Display, result: &[T], expected: &[T]) {
    assert_eq!(result.len(), expected.len(), "{what}: the length");
    let mut pairs = result.iter().zip(expected);
    if let Some(at) = pairs.position(|(is, not)| is.bits() != not.bits()) {
        let (is, not) = (result[at], expected[at]);
        panic!("{what}: element {at} is {is:?}; expected {not:?}");
    }
}
