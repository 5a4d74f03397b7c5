//! The options, with values computed by hand: without self, mean, and wide accumulation. The cases
//! check the reference and the crate.

#![allow(
    unsafe_code,
    reason = "bytes of a foreign runtime are passed as raw parts"
)]

use crate::common::arithmetic::How;
use crate::common::by_hand::{Case, check_updates};
use crate::common::elements::Ref;
use crate::common::harness::{Operator, Options};
use crate::common::request::Request;
use ndscatter::{
    Accumulate, AnyView, AnyViewMut, Bounds, DType, Layout, Reduction, Scatter, Schedule,
    TensorView, TensorViewMut,
};

fn without_self(reduction: Reduction) -> How {
    How {
        include_self: false,
        ..How::from(reduction)
    }
}

fn options(operator: Operator) -> Options<'static> {
    Options::new(operator, Reduction::None)
}

mod include_self {
    use super::{Case, How, Operator, Reduction, Ref, check_updates, options, without_self};

    #[test]
    fn the_first_update_assigns_and_later_ones_reduce() {
        check_updates(without_self(Reduction::Add), 100, &[1, 2, 3], 6);
        check_updates(without_self(Reduction::Mul), 100, &[2, 3], 6);
        check_updates(without_self(Reduction::Min), 1, &[7, 5, 6], 5);
        check_updates(without_self(Reduction::Max), 100, &[5, 7, 6], 7);
        // The existing value has no effect, not even NaN.
        check_updates(without_self(Reduction::Add), f32::NAN, &[1.0, 2.0], 3.0);
        check_updates(without_self(Reduction::Min), f64::NAN, &[2.0, 1.0], 1.0);
        check_updates(without_self(Reduction::Mul), 0.0_f32, &[-3.0], -3.0);
        // With self, the existing value has an effect.
        check_updates(Reduction::Add, 100, &[1, 2, 3], 106);
        check_updates(Reduction::Max, 100, &[5, 7, 6], 100);
    }

    #[test]
    fn sub_begins_at_zero() {
        check_updates(without_self(Reduction::Sub), 9.0_f32, &[1.5, 2.0], -3.5);
        check_updates(without_self(Reduction::Sub), 9.0_f64, &[-1.5], 1.5);
        check_updates(without_self(Reduction::Sub), 9, &[1, 2], -3);
        check_updates(without_self(Reduction::Sub), 9_u8, &[1], 255);
        check_updates(without_self(Reduction::Sub), 0, &[i32::MIN], i32::MIN);
        // 0 - 0 and 0 - -0 are both +0.
        check_updates(without_self(Reduction::Sub), -0.0_f32, &[0.0], 0.0);
        check_updates(without_self(Reduction::Sub), -0.0_f32, &[-0.0], 0.0);
        // In order: the large values do not cancel first.
        let updates = [1.0_f32, 1e30, -1e30];
        check_updates(without_self(Reduction::Sub), 5.0, &updates, 0.0);
    }

    #[test]
    fn sub_of_bool_is_xor_of_the_updates() {
        let sub = without_self(Reduction::Sub);
        for current in [false, true] {
            check_updates(sub, current, &[true], true);
            check_updates(sub, current, &[false], false);
            check_updates(sub, current, &[true, true], false);
            check_updates(sub, current, &[true, false, true, true], true);
        }
    }

    #[test]
    fn reductions_of_bool() {
        for current in [false, true] {
            for (reduction, of_false, of_both) in [
                (Reduction::Add, false, true),
                (Reduction::Mul, false, false),
                (Reduction::Min, false, false),
                (Reduction::Max, false, true),
            ] {
                let how = without_self(reduction);
                check_updates(how, current, &[false], of_false);
                check_updates(how, current, &[true], true);
                check_updates(how, current, &[true, false], of_both);
                check_updates(how, current, &[false, true], of_both);
            }
        }
    }

    /// No initial constant, such as 0 for a sum, has an effect on the result.
    #[test]
    fn no_initial_constant_has_an_effect() {
        let (add, mul) = (without_self(Reduction::Add), without_self(Reduction::Mul));
        let (min, max) = (without_self(Reduction::Min), without_self(Reduction::Max));
        check_updates(add, 5.0_f32, &[-0.0, -0.0], -0.0);
        check_updates(add, 5.0_f64, &[-0.0], -0.0);
        check_updates(Reduction::Add, 0.0_f32, &[-0.0, -0.0], 0.0);
        let low = f32::NEG_INFINITY;
        check_updates(max, 5.0, &[low, low], low);
        check_updates(min, 5.0, &[f64::INFINITY], f64::INFINITY);
        check_updates(max, 5, &[i8::MIN], i8::MIN);
        check_updates(min, 5, &[u64::MAX, u64::MAX], u64::MAX);
        check_updates(mul, 5.0, &[f32::INFINITY, 0.0], f32::NAN);
        // Ties and NaN have the same rules as with self.
        check_updates(max, 5.0_f32, &[-0.0, 0.0], -0.0);
        check_updates(min, 5.0_f32, &[0.0, -0.0], 0.0);
        check_updates(max, 5.0, &[f32::NAN, 1.0], f32::NAN);
        check_updates(min, 5.0, &[1.0, f64::NAN], f64::NAN);
    }

    #[cfg(feature = "half")]
    #[test]
    fn no_initial_constant_has_an_effect_in_halves() {
        use half::{bf16, f16};
        let max = without_self(Reduction::Max);
        let low = f16::NEG_INFINITY;
        check_updates(max, f16::ONE, &[low, low], low);
        check_updates(max, bf16::ONE, &[bf16::NEG_INFINITY], bf16::NEG_INFINITY);
        let add = without_self(Reduction::Add);
        check_updates(
            add,
            f16::ONE,
            &[f16::NEG_ZERO, f16::NEG_ZERO],
            f16::NEG_ZERO,
        );
        let sub = without_self(Reduction::Sub);
        check_updates(sub, bf16::ONE, &[bf16::NEG_ZERO], bf16::ZERO);
    }

    #[cfg(feature = "complex")]
    #[test]
    fn complex_numbers() {
        use num_complex::Complex;
        let [a, b] = [Complex::new(1.0_f32, -0.0), Complex::new(-3.0, -0.0)];
        let nan = Complex::new(f32::NAN, f32::NAN);
        check_updates(
            without_self(Reduction::Add),
            nan,
            &[a, b],
            Complex::new(-2.0, -0.0),
        );
        check_updates(
            without_self(Reduction::Sub),
            nan,
            &[a, b],
            Complex::new(2.0, 0.0),
        );
        check_updates(without_self(Reduction::Mul), nan, &[a], a);
    }

    #[test]
    fn none_is_the_last_update_either_way() {
        fn check<T: Ref>(values: [T; 3]) {
            let [current, a, b] = values;
            check_updates(without_self(Reduction::None), current, &[a, b], b);
            check_updates(How::from(Reduction::None), current, &[b, a], a);
        }
        check([1, 2, 3]);
        check([
            1.0,
            f32::from_bits(0x7fc1_2345),
            f32::from_bits(0xffc5_4321),
        ]);
        check([true, false, true]);
    }

    #[test]
    fn destinations_without_updates_keep_their_value() {
        let case = Case {
            data: (&[4], &[1, 2, 3, 4]),
            indices: (&[3, 1], &[2, 2, -4]),
            updates: (&[3], &[10, 20, 50]),
            expected: &[50, 2, 30, 4],
        };
        let mut options = options(Operator::Nd);
        options.include_self = false;
        case.check(Reduction::Add, &options);
        // No update.
        let none = Case {
            indices: (&[0, 1], &[]),
            updates: (&[0], &[]),
            expected: &[1, 2, 3, 4],
            ..case
        };
        for reduction in Reduction::ALL {
            none.check(reduction, &options);
        }
    }
}

mod mean {
    use super::{
        Bounds, Case, Operator, Reduction, Scatter, TensorView, TensorViewMut, check_updates,
        options, without_self,
    };

    #[test]
    fn the_sum_is_divided_once() {
        check_updates(Reduction::Mean, 1.0_f32, &[2.0, 6.0], 3.0);
        check_updates(without_self(Reduction::Mean), f32::NAN, &[1.0, 2.0], 1.5);
        check_updates(without_self(Reduction::Mean), 7.0_f64, &[-0.0], -0.0);
        check_updates(Reduction::Mean, 1.0_f64, &[f64::INFINITY], f64::INFINITY);
        check_updates(Reduction::Mean, 1.0_f32, &[f32::NAN], f32::NAN);
        // The sum is the sum of `add`, so it may overflow.
        check_updates(Reduction::Mean, f32::MAX, &[f32::MAX], f32::INFINITY);
        check_updates(Reduction::Mean, 1.0_f32, &[1e30, -1e30], 0.0);
        // A multiplication by the reciprocal would be wrong: 49 * (1 / 49) is not 1, and 5 / 3 is
        // not 5 * (1 / 3).
        for count in 2..100 {
            let ones = vec![1.0_f32; count - 1];
            check_updates(Reduction::Mean, 1.0, &ones, 1.0);
            check_updates(Reduction::Mean, 1.0, &vec![1.0_f64; count - 1], 1.0);
        }
    }

    #[test]
    fn integers_round_down() {
        let without = without_self(Reduction::Mean);
        check_updates(Reduction::Mean, 7, &[0], 3);
        check_updates(Reduction::Mean, -7, &[0], -4);
        check_updates(Reduction::Mean, 0, &[-1], -1);
        check_updates(Reduction::Mean, 0_i8, &[-1, 0], -1);
        check_updates(without, 50_i16, &[-8, 1], -4);
        check_updates(without, 50_i64, &[-9], -9);
        check_updates(without, 0_i8, &[i8::MIN], i8::MIN);
        check_updates(Reduction::Mean, i64::MIN, &[0], i64::MIN / 2);
        check_updates(Reduction::Mean, i64::MIN, &[1], i64::MIN / 2);
        // As a signed number, the sum would be -1.
        check_updates(Reduction::Mean, u64::MAX, &[0], u64::MAX / 2);
        check_updates(Reduction::Mean, u8::MAX, &[0], 127);
        // Values that `f64` cannot represent.
        let odd = (1_i64 << 60) + 1;
        check_updates(Reduction::Mean, odd, &[0], 1 << 59);
        check_updates(Reduction::Mean, -odd, &[0], -(1 << 59) - 1);
    }

    #[test]
    fn the_sum_of_integers_wraps_before_it_is_divided() {
        check_updates(Reduction::Mean, 200_u8, &[100], 22);
        check_updates(Reduction::Mean, 100_i8, &[100], -28);
        check_updates(Reduction::Mean, i32::MAX, &[1], i32::MIN / 2);
        check_updates(Reduction::Mean, i64::MIN, &[-1], i64::MAX / 2);
    }

    /// The count must not be cast to the element type: 301 is 45 as a `u8`, 256 is 0, and 200 and
    /// 130 are negative as an `i8`.
    #[test]
    fn the_count_is_never_cast_to_the_element_type() {
        let without = without_self(Reduction::Mean);
        // 7 + 900 wraps to 139. The count is 301.
        check_updates(Reduction::Mean, 7_u8, &[3; 300], 0);
        // 900 wraps to 132. The count is 300.
        check_updates(without, 7_u8, &[3; 300], 0);
        // 100 + 255 wraps to 99. The count is 256.
        check_updates(Reduction::Mean, 100_u8, &[1; 255], 0);
        check_updates(without, 100_u8, &[1; 256], 0);
        // -200 wraps to 56. The count is 200, which is -56 as an `i8`.
        check_updates(without, 0_i8, &[-1; 200], 0);
        // -65 / 130 rounded down is -1. The count 130 is -126 as an `i8`.
        let mut updates = [0_i8; 130];
        updates[..65].fill(-1);
        check_updates(without, 5, &updates, -1);
    }

    #[cfg(feature = "half")]
    #[test]
    fn counts_that_halves_cannot_represent() {
        use half::{bf16, f16};
        use ndscatter::Accumulate;

        use super::How;
        let without = without_self(Reduction::Mean);
        let wide = How {
            accumulate: Accumulate::Wide,
            ..without
        };
        // The sum stops at 2048. 2048 / 2049 is the number before 1. If the count 2049 were rounded
        // to `f16`, the result would be 1.
        let ones = [f16::ONE; 2049];
        check_updates(without, f16::ZERO, &ones, f16::from_bits(0x3bff));
        check_updates(wide, f16::ZERO, &ones, f16::ONE);
        check_updates(
            Reduction::Mean,
            f16::ONE,
            &ones[1..],
            f16::from_bits(0x3bff),
        );
        // bfloat16: 256 / 257 is the number before 1.
        let ones = [bf16::ONE; 257];
        check_updates(without, bf16::ZERO, &ones, bf16::from_bits(0x3f7f));
        check_updates(wide, bf16::ZERO, &ones, bf16::ONE);
    }

    #[cfg(feature = "half")]
    #[test]
    fn halves_divide_in_f32_and_round_once() {
        use half::f16;
        use ndscatter::Accumulate;

        use super::How;
        let third = f16::from_f32(1.0 / 3.0);
        check_updates(Reduction::Mean, f16::ONE, &[f16::ZERO; 2], third);
        // The sum overflows, unless it is kept in `f32`.
        check_updates(Reduction::Mean, f16::MAX, &[f16::MAX], f16::INFINITY);
        let wide = How {
            accumulate: Accumulate::Wide,
            ..How::from(Reduction::Mean)
        };
        check_updates(wide, f16::MAX, &[f16::MAX], f16::MAX);
        // 2049 / 3: the sum 2049 is not an `f16`, and wide accumulation does not round it.
        let updates = [2048.0, 0.0].map(f16::from_f32);
        check_updates(wide, f16::ONE, &updates, f16::from_f32(683.0));
        check_updates(Reduction::Mean, f16::ONE, &updates, f16::from_f32(682.5));
    }

    #[cfg(feature = "complex")]
    #[test]
    fn complex_numbers_by_components() {
        use num_complex::Complex;
        // The components are divided separately. A division by the complex number 2 + 0i would give
        // NaN as the imaginary part.
        let current = Complex::new(f64::INFINITY, 1.0);
        let expected = Complex::new(f64::INFINITY, 2.0);
        check_updates(
            Reduction::Mean,
            current,
            &[Complex::new(1.0, 3.0)],
            expected,
        );
        let current = Complex::new(-0.0_f32, f32::NAN);
        let update = Complex::new(-0.0, 1.0);
        check_updates(
            Reduction::Mean,
            current,
            &[update],
            Complex::new(-0.0, f32::NAN),
        );
        let updates = [Complex::new(1.0_f32, 2.0), Complex::new(4.0, -8.0)];
        let expected = Complex::new(2.5, -3.0);
        check_updates(without_self(Reduction::Mean), current, &updates, expected);
    }

    #[test]
    fn skipped_updates_do_not_count() {
        let case = Case {
            data: (&[3], &[10.0_f32, 20.0, 30.0]),
            indices: (&[4, 1], &[0, 7, -4, 2]),
            updates: (&[4], &[2.0, 1000.0, 1000.0, 0.0]),
            expected: &[6.0, 20.0, 15.0],
        };
        let mut options = options(Operator::Nd);
        options.bounds = Bounds::Skip;
        case.check(Reduction::Mean, &options);
        options.include_self = false;
        let case = Case {
            expected: &[2.0, 20.0, 0.0],
            ..case
        };
        case.check(Reduction::Mean, &options);
    }

    /// The count is rounded to `f32`: 2^24 + 1 becomes 2^24.
    #[test]
    fn more_updates_than_f32_counts() {
        let count: usize = 1 << 24;
        let (index, update, shape) = ([0_u8], [1.0_f32], [count]);
        let indices = TensorView::strided(&index, 0, &shape, &[0]).expect("one index for all");
        let updates = TensorView::strided(&update, 0, &shape, &[0]).expect("one update for all");
        let mut data = [1.0];
        Scatter::along(0)
            .reduction(Reduction::Mean)
            .in_place(
                TensorViewMut::contiguous(&mut data, &[1]).expect("one element"),
                indices,
                updates,
            )
            .expect("the case is valid");
        // The sum stops at 2^24. Divided by 2^24 + 1, it would be less than 1.
        assert_eq!(data, [1.0], "{count} updates and self");
    }
}

#[cfg(feature = "half")]
mod wide {
    use half::{bf16, f16};
    use ndscatter::{Accumulate, Reduction};

    use super::{How, check_updates};

    fn wide(reduction: Reduction) -> How {
        How {
            accumulate: Accumulate::Wide,
            ..How::from(reduction)
        }
    }

    fn wide_without_self(reduction: Reduction) -> How {
        How {
            include_self: false,
            ..wide(reduction)
        }
    }

    #[test]
    fn sums_are_rounded_once() {
        let [one, half, two] = [1.0, 2048.0, 2050.0].map(f16::from_f32);
        // Rounded after each step, the ones are lost.
        check_updates(Reduction::Add, half, &[one, one], half);
        check_updates(wide(Reduction::Add), half, &[one, one], two);
        // 2051 is a tie between 2050 and 2052. It is rounded to even.
        check_updates(wide(Reduction::Add), half, &[one; 3], f16::from_f32(2052.0));
        check_updates(
            wide_without_self(Reduction::Add),
            one,
            &[half, one, one],
            two,
        );
        let [one, many, more] = [1.0, 256.0, 258.0].map(bf16::from_f32);
        check_updates(Reduction::Add, many, &[one, one], many);
        check_updates(wide(Reduction::Add), many, &[one, one], more);
        check_updates(wide(Reduction::Add), many, &[one; 3], bf16::from_f32(260.0));
    }

    #[test]
    fn differences_and_products_as_well() {
        let [one, half] = [1.0, 4096.0].map(f16::from_f32);
        check_updates(Reduction::Sub, half, &[one, one], half);
        check_updates(
            wide(Reduction::Sub),
            half,
            &[one, one],
            f16::from_f32(4094.0),
        );
        let updates = [2048.0, 1.0, 1.0].map(f16::from_f32);
        let expected = f16::from_f32(-2050.0);
        check_updates(wide_without_self(Reduction::Sub), one, &updates, expected);
        // The running value leaves the range of `f16` and comes back, at both ends.
        let up_and_down = [2.0, 0.5].map(f16::from_f32);
        check_updates(Reduction::Mul, f16::MAX, &up_and_down, f16::INFINITY);
        check_updates(wide(Reduction::Mul), f16::MAX, &up_and_down, f16::MAX);
        let down_and_up = [0.5, 2.0].map(f16::from_f32);
        let tiny = f16::from_bits(1);
        check_updates(Reduction::Mul, tiny, &down_and_up, f16::ZERO);
        check_updates(wide(Reduction::Mul), tiny, &down_and_up, tiny);
        // The final value is out of range.
        let update = f16::from_f32(16.0);
        check_updates(wide(Reduction::Add), f16::MAX, &[update], f16::INFINITY);
    }

    #[test]
    fn the_running_value_is_an_f32() {
        // In `f32`, 2^24 + 1 is 2^24. In `f64`, the ones would add up to 2^17.
        let (large, ones) = (bf16::from_f32(16_777_216.0), vec![bf16::ONE; 1 << 17]);
        check_updates(wide(Reduction::Add), large, &ones, large);
        let large = bf16::MAX;
        check_updates(
            wide(Reduction::Add),
            large,
            &[large, -large],
            bf16::INFINITY,
        );
    }

    #[test]
    fn minimum_maximum_and_none_are_unchanged() {
        let [a, b] = [f16::from_f32(1.5), f16::from_bits(0x7e55)];
        check_updates(wide(Reduction::None), a, &[a, b], b);
        for reduction in [Reduction::Min, Reduction::Max] {
            check_updates(wide(reduction), f16::ZERO, &[f16::NEG_ZERO], f16::ZERO);
            check_updates(wide(reduction), a, &[f16::NAN], f16::NAN);
        }
        check_updates(wide(Reduction::Max), a, &[-a, a + a], a + a);
    }

    #[test]
    fn other_types_have_no_wider_one() {
        check_updates(
            wide(Reduction::Add),
            16_777_216.0_f32,
            &[1.0, 1.0],
            16_777_216.0,
        );
        check_updates(wide(Reduction::Add), 100_i8, &[100], -56);
        check_updates(wide(Reduction::Mean), 100_u8, &[200], 22);
        check_updates(wide(Reduction::Sub), true, &[true], false);
    }
}

/// Foreign bytes of a `bool` without self. A case is a reduction, updates, and the resulting byte.
#[test]
fn foreign_bool_bytes_without_self() {
    let cases: [(Reduction, &[u8], u8); 9] = [
        // The first update assigns, and is written as 0 or 1 too.
        (Reduction::Add, &[0x42], 1),
        (Reduction::Mul, &[0x42], 1),
        (Reduction::Min, &[0x80, 4], 1),
        (Reduction::Max, &[0, 0xff], 1),
        (Reduction::Max, &[0], 0),
        (Reduction::Sub, &[0x42], 1),
        (Reduction::Sub, &[2, 4], 0),
        (Reduction::Sub, &[2, 4, 1], 1),
        // Without a reduction, the byte is moved unchanged.
        (Reduction::None, &[1, 0x42], 0x42),
    ];
    for (reduction, updates, expected) in cases {
        let mut data = [0x33_u8, 0x55];
        let (shape, count, tuples) = ([2], [updates.len()], [updates.len(), 1]);
        let element = DType::Bool;
        // SAFETY: the layouts have the lengths of the arrays, which outlive the call. Nothing else
        // accesses them.
        let (view, updates_view) = unsafe {
            (
                AnyViewMut::from_raw_parts(data.as_mut_ptr(), element, Layout::contiguous(&shape)),
                AnyView::from_raw_parts(updates.as_ptr(), element, Layout::contiguous(&count)),
            )
        };
        let indices = vec![0_i64; updates.len()];
        let indices = TensorView::contiguous(&indices, &tuples).expect("tuples");
        Scatter::nd()
            .reduction(reduction)
            .include_self(false)
            .in_place(
                view.expect("bytes are aligned"),
                indices,
                updates_view.expect("bytes are aligned"),
            )
            .expect("the case is valid");
        // The second element is not a destination, so it keeps its foreign byte.
        assert_eq!(data, [expected, 0x55], "{reduction} of {updates:?}");
    }
}

/// A forced schedule that does not support the options must not change the bits.
#[test]
fn forced_schedules_change_nothing() {
    for schedule in Schedule::ALL {
        let execution = Request::new(Reduction::Mean).schedule(schedule);
        let mut options = Options::new(Operator::Nd, execution);
        options.accumulate = Accumulate::Wide;
        let case = Case {
            data: (&[3], &[-7_i8, 100, 9]),
            indices: (&[4, 1], &[0, 1, 1, -1]),
            updates: (&[4], &[0, 100, 100, 8]),
            expected: &[-4, 14, 8],
        };
        case.check(Reduction::Mean, &options);
        options.include_self = false;
        let case = Case {
            expected: &[0, -28, 8],
            ..case
        };
        case.check(Reduction::Mean, &options);
    }
}
