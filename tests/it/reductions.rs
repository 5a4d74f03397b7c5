//! The scalar rules of the contract, with values computed by hand: NaN, ties, wrapping, bool,
//! rounding and complex products. The cases check the reference and every instruction set.

#![allow(
    unsafe_code,
    reason = "bytes of a foreign runtime are passed as raw parts"
)]

use crate::common::elements::{Ref, is_enabled, is_exact, same};
use crate::common::request::Request;
use ndscatter::{
    AnyView, AnyViewMut, DType, InstructionSet, Layout, Reduction, Scatter, TensorView,
    TensorViewMut,
};

/// Lengths for the path of single elements, for whole vectors with a tail, and for whole vectors.
const LENGTHS: [usize; 3] = [1, 67, 256];

/// Checks `expected = current (reduction) update` with the reference, and with windows and single
/// elements on every instruction set. Checks nothing if the build does not have the feature that
/// the reduction needs.
fn check<T: Ref>(reduction: Reduction, current: T, update: T, expected: T) {
    if !is_enabled(reduction, T::DTYPE) {
        return;
    }
    let agrees = |got| same(got, expected, is_exact(reduction));
    let reference = T::reduce(reduction.into(), current, &[update]);
    assert!(
        agrees(reference),
        "reference: {reduction} of {current:?}, {update:?} is {reference:?}"
    );
    for &set in InstructionSet::available() {
        let execution = Request::new(reduction).instruction_set(set);
        let scatter = execution.of(Scatter::nd());
        for len in LENGTHS {
            let indices: Vec<i64> = (0..len).map(|i| i64::try_from(i).expect("small")).collect();
            // One window of `len` elements, and `len` windows of one element.
            for (tuples, indices_shape) in [(&[0_i64][..], [1, 1]), (&indices, [len, 1])] {
                let shape = [len];
                let data_shape = if tuples.len() == 1 {
                    &[1, len][..]
                } else {
                    &[len]
                };
                let updates_shape = if tuples.len() == 1 {
                    &[1, len][..]
                } else {
                    &shape
                };
                let mut data = vec![current; len];
                let updates = vec![update; len];
                scatter
                    .in_place(
                        TensorViewMut::contiguous(&mut data, data_shape).expect("data"),
                        TensorView::contiguous(tuples, &indices_shape).expect("indices"),
                        TensorView::contiguous(&updates, updates_shape).expect("updates"),
                    )
                    .expect("the case is valid");
                let wrong = data.iter().find(|&&value| !agrees(value));
                assert_eq!(
                    wrong, None,
                    "{set}: {reduction} of {current:?} and {update:?}, {data_shape:?}"
                );
            }
        }
    }
}

#[test]
fn nan_propagates_from_either_side() {
    for reduction in [Reduction::Min, Reduction::Max] {
        for other in [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY] {
            check(reduction, f64::NAN, other, f64::NAN);
            check(reduction, other, f64::NAN, f64::NAN);
        }
        for other in [0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY] {
            check(reduction, f32::NAN, other, f32::NAN);
            check(reduction, other, f32::NAN, f32::NAN);
        }
    }
}

#[test]
fn a_tie_keeps_the_current_zero() {
    for reduction in [Reduction::Min, Reduction::Max] {
        check(reduction, 0.0_f32, -0.0, 0.0);
        check(reduction, -0.0_f32, 0.0, -0.0);
        check(reduction, 0.0_f64, -0.0, 0.0);
        check(reduction, -0.0_f64, 0.0, -0.0);
    }
}

#[test]
fn signs_of_zeros_follow_ieee_754() {
    check(Reduction::Add, -0.0_f32, -0.0, -0.0);
    check(Reduction::Add, -0.0_f32, 0.0, 0.0);
    check(Reduction::Sub, -0.0_f32, 0.0, -0.0);
    check(Reduction::Sub, 0.0_f32, 0.0, 0.0);
    check(Reduction::Mul, -0.0_f64, 5.0, -0.0);
    check(Reduction::None, 7.0_f64, -0.0, -0.0);
}

#[test]
fn infinities_and_subnormals_survive() {
    check(Reduction::Add, f32::INFINITY, f32::NEG_INFINITY, f32::NAN);
    check(Reduction::Sub, f32::INFINITY, f32::INFINITY, f32::NAN);
    check(Reduction::Mul, f32::INFINITY, 0.0, f32::NAN);
    check(Reduction::Mul, f32::MAX, 2.0, f32::INFINITY);
    // Half of the smallest normal number is subnormal, not zero.
    let subnormal = f32::from_bits(0x0040_0000);
    check(Reduction::Mul, f32::MIN_POSITIVE, 0.5, subnormal);
    check(Reduction::Sub, f32::MIN_POSITIVE, subnormal, subnormal);
}

#[test]
fn moved_nan_keeps_its_payload() {
    let payload = f32::from_bits(0xffc1_2345);
    check(Reduction::None, 0.0_f32, payload, payload);
    let payload = f64::from_bits(0x7ff8_0000_dead_beef);
    check(Reduction::None, 0.0_f64, payload, payload);
}

#[test]
fn integers_wrap() {
    check(Reduction::Add, i8::MAX, 1, i8::MIN);
    check(Reduction::Sub, i8::MIN, 1, i8::MAX);
    check(Reduction::Mul, i8::MIN, -1, i8::MIN);
    check(Reduction::Mul, 100_i8, 3, 44);
    check(Reduction::Sub, 0_u8, 1, u8::MAX);
    check(Reduction::Mul, 200_u8, 200, 64);
    check(Reduction::Add, u16::MAX, 2, 1);
    check(Reduction::Mul, i16::MAX, i16::MAX, 1);
    check(Reduction::Add, i32::MIN, -1, i32::MAX);
    check(Reduction::Mul, 0x1_0001_u32, 0x1_0001, 0x2_0001);
    check(Reduction::Mul, i64::MIN, -1, i64::MIN);
    check(Reduction::Mul, 0xffff_ffff_u64, 0x1_0000_0001, u64::MAX);
    check(
        Reduction::Mul,
        0x1_0000_0001_u64,
        0x1_0000_0001,
        0x2_0000_0001,
    );
}

#[test]
fn min_and_max_compare_in_their_own_type() {
    // The top bit is a sign in signed types and a value bit in unsigned types.
    check(Reduction::Max, -1_i8, 1, 1);
    check(Reduction::Max, 255_u8, 1, 255);
    check(Reduction::Min, i16::MIN, 1, i16::MIN);
    check(Reduction::Min, 0x8000_u16, 1, 1);
    check(Reduction::Min, -1_i32, 0, -1);
    check(Reduction::Min, u32::MAX, 0, 0);
    check(Reduction::Max, i64::MIN, -1, -1);
    check(Reduction::Max, 1_u64 << 63, 1, 1 << 63);
    // The low halves are equal.
    check(
        Reduction::Max,
        0x1_0000_0000_i64,
        0x2_0000_0000,
        0x2_0000_0000,
    );
    check(
        Reduction::Min,
        -0x1_0000_0000_i64,
        0x1_0000_0000,
        -0x1_0000_0000,
    );
}

#[test]
fn bool_follows_its_table() {
    // Current value, update, then the results of add, sub, mul, min and max.
    let table = [
        (false, false, [false, false, false, false, false]),
        (false, true, [true, true, false, false, true]),
        (true, false, [true, true, false, false, true]),
        (true, true, [true, false, true, true, true]),
    ];
    for (current, update, expected) in table {
        for (reduction, expected) in Reduction::ALL[1..].iter().zip(expected) {
            check(*reduction, current, update, expected);
        }
        check(Reduction::None, current, update, update);
    }
}

#[test]
fn foreign_bool_bytes_read_as_true_and_move_unchanged() {
    // Current value, update, reduction, result. Any byte except 0 is true.
    let cases = [
        (0x80, 0, Reduction::Add, 1),
        (0, 0x42, Reduction::Max, 1),
        (2, 4, Reduction::Mul, 1),
        (2, 4, Reduction::Min, 1),
        (2, 4, Reduction::Sub, 0),
        (0, 0xff, Reduction::Sub, 1),
        (1, 0x42, Reduction::None, 0x42),
    ];
    for &set in InstructionSet::available() {
        for (current, update, reduction, expected) in cases {
            let mut data = [current; 100];
            // The last row is not a destination, so it keeps its foreign bytes.
            let updates = [update; 50];
            // SAFETY: the layouts have the lengths of the arrays, which outlive the call. Nothing
            // else accesses them.
            let (data_view, updates_view) = unsafe {
                let shape = Layout::contiguous(&[2, 50]);
                let window = Layout::contiguous(&[1, 50]);
                (
                    AnyViewMut::from_raw_parts(data.as_mut_ptr(), DType::Bool, shape),
                    AnyView::from_raw_parts(updates.as_ptr(), DType::Bool, window),
                )
            };
            let indices = TensorView::contiguous(&[0_i64], &[1, 1]).expect("one tuple");
            (Request::new(reduction).instruction_set(set))
                .of(Scatter::nd())
                .in_place(
                    data_view.expect("bytes are aligned"),
                    indices,
                    updates_view.expect("bytes are aligned"),
                )
                .expect("the case is valid");
            assert_eq!(
                data[..50],
                [expected; 50],
                "{set}: {current:#x} {reduction} {update:#x}"
            );
            assert_eq!(
                data[50..],
                [current; 50],
                "{set}: {reduction} wrote to another row"
            );
        }
    }
}

#[cfg(feature = "half")]
mod halves {
    use half::{bf16, f16};
    use ndscatter::Reduction;

    use super::check;

    #[test]
    fn round_once_after_each_update() {
        // 2048 + 1 is a tie between 2048 and 2050. It is rounded to even.
        check(
            Reduction::Add,
            f16::from_f32(2048.0),
            f16::ONE,
            f16::from_f32(2048.0),
        );
        // 2050 + 1 is a tie between 2050 and 2052. It is rounded to even.
        check(
            Reduction::Add,
            f16::from_f32(2050.0),
            f16::ONE,
            f16::from_f32(2052.0),
        );
        // In bfloat16, 256 + 1 and 258 + 1 are ties too.
        check(
            Reduction::Add,
            bf16::from_f32(256.0),
            bf16::ONE,
            bf16::from_f32(256.0),
        );
        check(
            Reduction::Add,
            bf16::from_f32(258.0),
            bf16::ONE,
            bf16::from_f32(260.0),
        );
        // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20, which is rounded down.
        let next = f16::from_bits(0x3c01);
        check(Reduction::Mul, next, next, f16::from_bits(0x3c02));
    }

    #[test]
    fn overflow_and_subnormals() {
        check(Reduction::Add, f16::MAX, f16::MAX, f16::INFINITY);
        // 65504 + 16 is a tie that is rounded up to infinity.
        check(Reduction::Add, f16::MAX, f16::from_f32(16.0), f16::INFINITY);
        // 65504 + 8 is rounded down.
        check(Reduction::Add, f16::MAX, f16::from_f32(8.0), f16::MAX);
        let tiny = f16::from_bits(1);
        check(Reduction::Add, tiny, tiny, f16::from_bits(2));
        check(Reduction::Mul, f16::from_bits(2), f16::from_f32(0.5), tiny);
        // Half of the smallest number is a tie with zero. It is rounded to even, and zero keeps the
        // sign.
        check(Reduction::Mul, -tiny, f16::from_f32(0.5), f16::NEG_ZERO);
        let tiny = bf16::from_bits(1);
        check(Reduction::Add, tiny, tiny, bf16::from_bits(2));
        check(Reduction::Mul, bf16::MAX, bf16::MAX, bf16::INFINITY);
    }

    #[test]
    fn nan_and_ties() {
        for reduction in [Reduction::Min, Reduction::Max] {
            check(reduction, f16::NAN, f16::ONE, f16::NAN);
            check(reduction, f16::ONE, f16::NAN, f16::NAN);
            check(reduction, f16::ZERO, f16::NEG_ZERO, f16::ZERO);
            check(reduction, f16::NEG_ZERO, f16::ZERO, f16::NEG_ZERO);
            check(reduction, bf16::NAN, bf16::ONE, bf16::NAN);
            check(reduction, bf16::ONE, bf16::NAN, bf16::NAN);
            check(reduction, bf16::NEG_ZERO, bf16::ZERO, bf16::NEG_ZERO);
        }
        let payload = f16::from_bits(0x7e55);
        check(Reduction::None, f16::ONE, payload, payload);
        let payload = bf16::from_bits(0xffd5);
        check(Reduction::None, bf16::ONE, payload, payload);
    }

    /// Checks the conversion that the reference uses. It rounds to the nearest number, and ties to
    /// even.
    #[test]
    fn conversion_rounds_to_nearest_even() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            let middle = f32::midpoint(low.to_f32(), high.to_f32());
            let even = if bits % 2 == 0 { low } else { high };
            assert_eq!(f16::from_f32(middle), even, "between {low} and {high}");
            assert_eq!(f16::from_f32(middle.next_down()), low, "below {middle}");
            assert_eq!(f16::from_f32(middle.next_up()), high, "above {middle}");
        }
        for bits in 0..0x7f7f_u16 {
            let (low, high) = (bf16::from_bits(bits), bf16::from_bits(bits + 1));
            let middle = f32::midpoint(low.to_f32(), high.to_f32());
            let even = if bits % 2 == 0 { low } else { high };
            assert_eq!(bf16::from_f32(middle), even, "between {low} and {high}");
            assert_eq!(bf16::from_f32(middle.next_down()), low, "below {middle}");
            assert_eq!(bf16::from_f32(middle.next_up()), high, "above {middle}");
        }
    }
}

#[cfg(feature = "complex")]
mod complex {
    use ndscatter::Reduction;
    use num_complex::Complex;

    use super::check;

    #[test]
    fn arithmetic_by_components() {
        let (a, b) = (Complex::new(1.0_f32, 2.0), Complex::new(3.0, -4.0));
        check(Reduction::Add, a, b, Complex::new(4.0, -2.0));
        check(Reduction::Sub, a, b, Complex::new(-2.0, 6.0));
        // (1 + 2i)(3 - 4i) = 3 + 8 + (-4 + 6)i
        check(Reduction::Mul, a, b, Complex::new(11.0, 2.0));
        check(Reduction::None, a, b, b);
    }

    #[test]
    fn products_are_not_fused() {
        // The products ac and bd are both rounded to 1 + 2^-11, so the difference is 0. A fused
        // multiply-subtract would leave the rounding error, 2^-24.
        let x = 1.0 + 2.0_f32.powi(-12);
        let (a, b) = (Complex::new(x, x), Complex::new(x, x));
        check(Reduction::Mul, a, b, Complex::new(0.0, 2.0 * (x * x)));
        let x = 1.0 + 2.0_f64.powi(-27);
        let (a, b) = (Complex::new(x, x), Complex::new(x, x));
        check(Reduction::Mul, a, b, Complex::new(0.0, 2.0 * (x * x)));
    }

    #[test]
    fn nan_stays_in_its_component() {
        let infinite = Complex::new(f64::INFINITY, 0.0);
        // (inf + 0i)(1 + 0i): im = inf * 0 + 0 * 1 is NaN, re is not.
        check(
            Reduction::Mul,
            infinite,
            Complex::new(1.0, 0.0),
            Complex::new(f64::INFINITY, f64::NAN),
        );
        check(
            Reduction::Add,
            Complex::new(f64::NAN, 1.0),
            Complex::new(1.0, 1.0),
            Complex::new(f64::NAN, 2.0),
        );
    }
}
