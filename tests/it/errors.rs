//! Every error of a scatter. Each method returns the same error with its facts, at every number of
//! workers, and writes nothing.

#![allow(
    unsafe_code,
    reason = "views of a foreign runtime are made from raw parts"
)]

use crate::common::Tensor;
use crate::common::api::Methods;
use crate::common::harness::{Operator, Options, in_place, write_into};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::pools::Workers;
use crate::common::random::Random;
use crate::common::refused::{check_indices_refused, check_refused, filled, numbers};
use crate::common::request::Request;
use ndscatter::{
    AnyView, AnyViewMut, Cloned, DType, Duplicates, Gather, Index, Layout, Reduction, Scatter,
    ScatterError, TensorView, TensorViewMut,
};

/// The sizes of a tensor's dimensions.
type Shape = &'static [usize];

/// A repeated tuple, and the earlier tuple with equal destination.
type Repeat = (usize, usize);

fn options(operator: Operator) -> Options<'static> {
    Options::new(operator, Reduction::None)
}

#[test]
fn ranks_that_do_not_fit() {
    let cases = [
        // The indices have no dimension for the coordinates.
        (&[4][..], &[][..], ScatterError::IndicesRank),
        // More coordinates than dimensions of data.
        (
            &[2, 3],
            &[1, 3],
            ScatterError::TupleLength {
                tuple_len: 3,
                rank: 2,
                is_one_tuple: false,
            },
        ),
        // A scalar has no axis.
        (
            &[],
            &[1, 1],
            ScatterError::TupleLength {
                tuple_len: 1,
                rank: 0,
                is_one_tuple: false,
            },
        ),
        // The tuple length is checked even without tuples.
        (
            &[2],
            &[0, 5],
            ScatterError::TupleLength {
                tuple_len: 5,
                rank: 1,
                is_one_tuple: false,
            },
        ),
    ];
    for (data, shape, expected) in cases {
        let indices = Strided::new(
            &Tensor::generate(shape, || 0_i64),
            Arrangement::Contiguous,
            0,
            0,
        );
        check_indices_refused::<i32>(&options(Operator::Nd), data, &indices, &[1], &expected);
    }
}

#[test]
fn an_axis_out_of_range() {
    for (data, axis) in [
        (&[4, 3][..], 2),
        (&[4, 3], -3),
        (&[4], 1),
        (&[], 0),
        (&[], -1),
    ] {
        let rank = data.len();
        let expected = ScatterError::AxisOutOfRange { axis, rank };
        let operator = options(Operator::Update { axis });
        check_indices_refused::<i32>(&operator, data, &numbers(&[1], &[0_i64]), &[1], &expected);
    }
}

#[test]
fn updates_of_another_shape() {
    let nd = Operator::Nd;
    let along = |axis| Operator::Update { axis };
    let cases: [(Operator, Shape, Shape, Shape, Shape); 10] = [
        // Operator, shapes of data and indices, expected shape of updates, actual shape of updates.
        // The window is too short, then too long.
        (nd, &[4, 3], &[2, 1], &[2, 3], &[2, 2]),
        (nd, &[4, 3], &[2, 1], &[2, 3], &[2, 4]),
        // Too few tuples.
        (nd, &[4, 3], &[2, 1], &[2, 3], &[1, 3]),
        // An equal number of elements in another shape.
        (nd, &[4, 3], &[2, 1], &[2, 3], &[3, 2]),
        (nd, &[4, 3], &[2, 1], &[2, 3], &[6]),
        // An additional dimension of size 1.
        (nd, &[4, 3], &[2, 1], &[2, 3], &[2, 1, 3]),
        // No broadcasting.
        (nd, &[4, 3], &[2, 2], &[2], &[1]),
        // The updates must be one element, without dimensions.
        (nd, &[4, 3], &[2], &[], &[2]),
        (nd, &[4, 3], &[2], &[], &[0]),
        // The dimensions of the tuples replace the axis. They do not come first.
        (along(1), &[4, 3, 5], &[2], &[4, 2, 5], &[2, 4, 5]),
    ];
    for (operator, data, shape, expected, actual) in cases {
        let indices = Strided::new(
            &Tensor::generate(shape, || 0_i32),
            Arrangement::Contiguous,
            0,
            0,
        );
        let error = ScatterError::UpdatesShape {
            expected: expected.into(),
            actual: actual.into(),
            one_tuple: (operator == nd && shape.len() == 1).then_some(2),
        };
        check_refused::<f32>(&options(operator), data, &indices, actual, &error);
        let message = error.to_string();
        for shape in [expected, actual] {
            assert!(
                message.contains(&format!("{shape:?}")),
                "{message} does not name {shape:?}"
            );
        }
    }
}

/// Indices of rank 1 are one tuple. Callers often mean a list of positions along axis 0, so the
/// errors name the operator for such a list.
#[test]
fn indices_of_rank_one() {
    let one_tuple = |expected: Shape, actual: Shape, one_tuple| ScatterError::UpdatesShape {
        expected: expected.into(),
        actual: actual.into(),
        one_tuple,
    };
    let cases: [(Operator, Shape, Shape, Shape, Shape, Option<usize>); 6] = [
        // Operator, shapes of data and indices, expected shape of updates, actual shape of updates,
        // coordinates of the one tuple.
        (Operator::Nd, &[4, 3], &[2], &[], &[2, 3], Some(2)),
        (Operator::Nd, &[4, 3], &[1], &[3], &[1, 3], Some(1)),
        // The indices are a list, not one tuple.
        (Operator::Nd, &[4, 3], &[1, 1], &[1, 3], &[3], None),
        (
            Operator::Update { axis: 0 },
            &[4, 3],
            &[2],
            &[2, 3],
            &[3],
            None,
        ),
        (
            Operator::Update { axis: 0 },
            &[4, 3],
            &[],
            &[3],
            &[1, 3],
            None,
        ),
        (Operator::Elements { axis: 0 }, &[4], &[2], &[2], &[3], None),
    ];
    for (operator, data, shape, expected, actual, coordinates) in cases {
        let zeros = Tensor::generate(shape, || 0_i64);
        let indices = Strided::new(&zeros, Arrangement::Contiguous, 0, 0);
        let error = one_tuple(expected, actual, coordinates);
        check_refused::<f32>(&options(operator), data, &indices, actual, &error);
        assert_eq!(
            error.to_string().contains('?'),
            coordinates.is_some(),
            "{error}"
        );

        let plan = indices.plan(&options(operator), Layout::contiguous(data));
        let plan = plan.expect("the indices are valid");
        let mut output = filled::<f32>(data);
        let got = (plan.run()).in_place(output.view_mut(), filled::<f32>(actual).view());
        assert_eq!(got, Err(error), "a plan");
    }

    let text = one_tuple(&[], &[2, 3], Some(2)).to_string();
    assert_eq!(
        text,
        "`updates` has shape [2, 3] but `data` and `indices` require []; `indices` of shape [2] is \
         one tuple of 2 coordinates: did you mean `scatter_update` (in Rust: `Scatter::along(0)`), \
         or `indices` of shape [2, 1]?"
    );
}

/// As [`indices_of_rank_one`], with more indices than data has dimensions.
#[test]
fn a_long_tuple_of_indices_of_rank_one() {
    let error = ScatterError::TupleLength {
        tuple_len: 5,
        rank: 2,
        is_one_tuple: true,
    };
    let indices = numbers(&[5], &[0_i64; 5]);
    check_indices_refused::<f32>(&options(Operator::Nd), &[4, 3], &indices, &[5, 3], &error);
    let data = filled::<f32>(&[4, 3]);
    let got = Gather::nd(0).allocate(data.view(), indices.view());
    assert_eq!(got.err().as_ref(), Some(&error), "a gather");
    assert!(
        error.to_string().ends_with(
            "use at most 2 coordinates; `indices` of shape [5] is one tuple of 5 coordinates: did \
             you mean `scatter_update` or `gather` (in Rust: `along(0)`), or `indices` of shape \
             [5, 1]?"
        ),
        "{error}"
    );
}

#[test]
fn data_whose_shape_differs_from_the_output() {
    for actual in [&[3, 4][..], &[12], &[4, 3, 1], &[4, 2]] {
        let data = filled::<i32>(actual);
        let updates = filled::<i32>(&[1, 3]);
        let mut output = filled::<i32>(&[4, 3]);
        let before = output.buffer.clone();
        let indices = numbers(&[1, 1], &[0_i64]);
        let expected = ScatterError::DataShape {
            expected: vec![4, 3],
            actual: actual.into(),
        };
        let message = expected.to_string();
        assert!(
            message.contains("[4, 3]"),
            "{message} does not name the output's shape"
        );
        assert!(
            message.contains(&format!("{actual:?}")),
            "{message} does not name the data's shape"
        );

        let options = options(Operator::Nd);
        let got = indices.write_into(&options, data.view(), updates.view(), output.view_mut());
        assert_eq!(got, Err(expected.clone()), "data {actual:?}");
        let plan = indices.plan(&options, Layout::contiguous(&[4, 3]));
        let plan = plan.expect("the indices are valid");
        let got = Request::new(Reduction::Add).run(&plan).write_into(
            data.view(),
            updates.view(),
            output.view_mut(),
        );
        assert_eq!(got, Err(expected), "planned, data {actual:?}");
        assert_eq!(
            output.buffer, before,
            "the output was written with data {actual:?}"
        );
    }
}

/// Checks the error for tuples with an index out of bounds.
fn check_bounds<I>(data: &[usize], k: usize, values: &[I], expected: (usize, usize, i128, usize))
where
    I: Index + Into<i128>,
{
    let (tuple, axis, index, size) = expected;
    let expected = ScatterError::IndexOutOfBounds {
        tuple,
        axis,
        index,
        size,
    };
    let indices = numbers(&[values.len() / k, k], values);
    let updates = Operator::Nd.updates_shape(data, &[values.len() / k, k]);
    check_indices_refused::<i32>(&options(Operator::Nd), data, &indices, &updates, &expected);
    if k == 1 {
        let operator = Operator::Update { axis: 0 };
        let indices = numbers(&[values.len()], values);
        check_indices_refused::<i32>(&options(operator), data, &indices, &updates, &expected);
    }
    if data.len() == 1 {
        let operator = Operator::Elements { axis: 0 };
        let indices = numbers(&[values.len()], values);
        check_indices_refused::<i32>(&options(operator), data, &indices, &updates, &expected);
    }
}

#[test]
fn indices_out_of_bounds() {
    // One position past the end, and one position before the front.
    check_bounds(&[4], 1, &[3_i64, 4], (1, 0, 4, 4));
    check_bounds(&[4], 1, &[-4_i64, -5], (1, 0, -5, 4));
    // Only the inner coordinate is too large. As a flat offset, it would be [1, 0].
    check_bounds(&[3, 4], 2, &[0_i32, 4], (0, 1, 4, 4));
    check_bounds(&[3, 4], 2, &[2_i32, -5], (0, 1, -5, 4));
    // As a flat offset, the position would be inside the tensor.
    check_bounds(&[3, 4, 5], 3, &[0_i16, 0, 0, 1, -5, 0], (1, 1, -5, 4));
    // Several coordinates are out of bounds. The error names the lowest axis of the first such
    // tuple.
    check_bounds(&[3, 4], 2, &[0_i8, 0, 5, 9, 7, 7], (1, 0, 5, 3));
    // An empty axis has no valid index, not even 0. Other windows are empty too.
    check_bounds(&[0], 1, &[0_u8], (0, 0, 0, 0));
    check_bounds(&[2, 0], 2, &[1_i64, -1], (0, 1, -1, 0));
    // An empty window is not written, but its index is checked.
    check_bounds(&[2, 0], 1, &[1_i64, 2], (1, 0, 2, 2));
    // Truncated to 32 bits, these indices would be 1.
    check_bounds(&[4], 1, &[(1_i64 << 32) + 1], (0, 0, (1 << 32) + 1, 4));
    check_bounds(&[4], 1, &[(1_u64 << 32) + 1], (0, 0, (1 << 32) + 1, 4));
    // As signed numbers, these indices would be -1.
    check_bounds(&[4], 1, &[u64::MAX], (0, 0, i128::from(u64::MAX), 4));
    check_bounds(&[4], 1, &[u32::MAX], (0, 0, i128::from(u32::MAX), 4));
    // Added to the size, these indices would wrap.
    check_bounds(&[4], 1, &[i64::MIN], (0, 0, i128::from(i64::MIN), 4));
    check_bounds(
        &[4],
        1,
        &[i64::MIN + 3],
        (0, 0, i128::from(i64::MIN) + 3, 4),
    );
}

#[test]
fn extremes_of_every_index_type() {
    fn check<I: Index + Into<i128>>(min: I, max: I) {
        for index in [min, max] {
            let value = index.into();
            if value != 0 {
                // Past both ends of 100 elements. With two axes, the error names the first axis.
                check_bounds(&[100], 1, &[index], (0, 0, value, 100));
                check_bounds(&[100, 100], 2, &[index, index], (0, 0, value, 100));
            }
        }
    }
    check(i8::MIN, i8::MAX);
    check(i16::MIN, i16::MAX);
    check(i32::MIN, i32::MAX);
    check(i64::MIN, i64::MAX);
    check(u8::MIN, u8::MAX);
    check(u16::MIN, u16::MAX);
    check(u32::MIN, u32::MAX);
    check(u64::MIN, u64::MAX);
}

#[test]
fn axes_longer_than_the_range_of_the_index_type() {
    fn check<I: Index>(size: usize, index: I, position: usize) {
        let mut data = vec![0_u8; size];
        Scatter::nd()
            .in_place(
                TensorViewMut::contiguous(&mut data, &[size]).expect("data"),
                TensorView::contiguous(&[index], &[1, 1]).expect("one tuple"),
                TensorView::contiguous(&[1], &[1]).expect("one update"),
            )
            .unwrap_or_else(|error| panic!("{index:?} of {size}: {error}"));
        assert_eq!(
            data.iter().position(|&value| value == 1),
            Some(position),
            "{index:?}"
        );
    }
    // The size is not a value of the index type, so the crate must add it in a wider type.
    check(200, i8::MIN, 72);
    check(200, i8::MAX, 127);
    check(300, -1_i8, 299);
    check(300, u8::MAX, 255);
    check(70_000, -1_i16, 69_999);
    check(70_000, u16::MAX, 65_535);
}

#[test]
fn negative_indices_can_be_forbidden() {
    let [along, elements] = [Operator::Update { axis: 0 }, Operator::Elements { axis: 0 }];
    for operator in [Operator::Nd, along, elements] {
        let mut options = options(operator);
        options.negative_indices = false;
        let indices = if operator == Operator::Nd {
            numbers(&[3, 1], &[1_i32, -1, -9])
        } else {
            numbers(&[3], &[1_i32, -1, -9])
        };
        // -1 is the first error, because it comes before -9. With negative indices it would be
        // valid.
        let expected = ScatterError::IndexOutOfBounds {
            tuple: 1,
            axis: 0,
            index: -1,
            size: 4,
        };
        check_indices_refused::<i32>(&options, &[4], &indices, &[3], &expected);
    }
}

#[test]
fn errors_name_the_axis_of_data() {
    // Axis -2 of [2, 3, 4] is axis 1. The tuple is a position in `indices`.
    let expected = ScatterError::IndexOutOfBounds {
        tuple: 3,
        axis: 1,
        index: 3,
        size: 3,
    };
    let indices = numbers(&[2, 2], &[0_i64, -3, 2, 3]);
    let options = options(Operator::Update { axis: -2 });
    check_indices_refused::<f64>(&options, &[2, 3, 4], &indices, &[2, 2, 2, 4], &expected);
    // Batches without elements: nothing is written, but the index is checked.
    check_indices_refused::<f64>(&options, &[0, 3, 4], &indices, &[0, 2, 2, 4], &expected);
}

#[test]
fn errors_name_the_axis_of_single_elements() {
    let expected = ScatterError::IndexOutOfBounds {
        tuple: 2,
        axis: 1,
        index: -4,
        size: 3,
    };
    let indices = numbers(&[1, 4, 1], &[0_i64, -3, -4, 3]);
    let options = options(Operator::Elements { axis: 1 });
    check_indices_refused::<f64>(&options, &[1, 3, 1], &indices, &[1, 4, 1], &expected);
}

#[test]
fn duplicates_can_be_rejected() {
    let nd = Operator::Nd;
    let along = |axis| Operator::Update { axis };
    let elements = |axis| Operator::Elements { axis };
    let cases: [(Operator, Shape, Shape, &[i64], Repeat); 16] = [
        // Operator, data, indices, values, and the repeated tuple with the earlier tuple.
        (nd, &[5], &[4, 1], &[1, 2, 1, 2], (2, 0)),
        // The error names the first repeated tuple, here 2. Its earlier tuple is 1.
        (nd, &[5], &[4, 1], &[1, 2, 2, 1], (2, 1)),
        // One position, counted from the front and from the end.
        (nd, &[5], &[3, 1], &[4, 0, -1], (2, 0)),
        (nd, &[3, 4], &[3, 2], &[1, 2, 1, 3, -2, -2], (2, 0)),
        // A tuple without coordinates addresses the whole tensor.
        (nd, &[3, 4], &[2, 0], &[], (1, 0)),
        // Duplicates are errors also where windows are empty.
        (nd, &[3, 0], &[3, 1], &[0, 2, 0], (2, 0)),
        (along(1), &[2, 5], &[2, 2], &[1, 3, 4, 3], (3, 1)),
        (along(-1), &[2, 5], &[2], &[4, -1], (1, 0)),
        (along(1), &[0, 5], &[2], &[3, 3], (1, 0)),
        // A tuple is a position in all of `indices`.
        (elements(0), &[5], &[4], &[1, 2, 1, 2], (2, 0)),
        // An index that occurs in two rows is not a duplicate.
        (elements(1), &[2, 5], &[2, 3], &[0, 1, 2, 1, 4, -1], (5, 4)),
        (elements(0), &[5, 2], &[2, 2], &[1, 3, 4, -2], (3, 1)),
        // Rows with a repeated index: the error names their first element. In the second case, one
        // element of a row differs.
        (
            elements(0),
            &[5, 3],
            &[3, 3],
            &[2, 2, 2, 4, 4, 4, -3, -3, -3],
            (6, 0),
        ),
        (
            elements(0),
            &[5, 3],
            &[3, 3],
            &[2, 2, 2, 4, 4, 4, 1, 2, 2],
            (7, 1),
        ),
        (elements(0), &[5, 3], &[3, 1], &[2, 4, 2], (2, 0)),
        (
            elements(-2),
            &[2, 5, 2],
            &[2, 2, 2],
            &[0, 1, 1, 0, 3, 3, 3, 0],
            (6, 4),
        ),
    ];
    for (operator, data, shape, values, (tuple, earlier)) in cases {
        let tensor = Tensor::new(shape, values.to_vec());
        let indices = Strided::new(&tensor, Arrangement::Contiguous, 1, 99);
        let updates = operator.updates_shape(data, shape);
        let expected = ScatterError::DuplicateIndex { tuple, earlier };
        for reduction in Reduction::ALL {
            let mut options = Options::new(operator, reduction);
            options.duplicates = Duplicates::Reject;
            check_indices_refused::<i32>(&options, data, &indices, &updates, &expected);
        }
    }
}

/// Increasing destinations are distinct. A destination that does not increase must be found at
/// every position.
#[test]
fn a_repeat_anywhere_among_increasing_destinations_is_found() {
    const TUPLES: usize = 200;
    let mut options = options(Operator::Nd);
    options.duplicates = Duplicates::Reject;
    for tuple in 1..TUPLES {
        let mut values: Vec<i64> = (0..200).collect();
        values[tuple] -= 1;
        let indices = numbers(&[TUPLES, 1], &values);
        let earlier = tuple - 1;
        let expected = ScatterError::DuplicateIndex { tuple, earlier };
        let planned = indices.plan(&options, Layout::contiguous(&[TUPLES]));
        assert_eq!(planned.err(), Some(expected), "tuple {tuple}");
    }
}

#[test]
fn types_without_an_order_have_no_min_and_max() {
    #[cfg(feature = "complex")]
    {
        use num_complex::Complex;
        for reduction in [Reduction::Min, Reduction::Max] {
            let options = Options::new(Operator::Nd, reduction);
            let indices = numbers(&[1, 1], &[0_i64]);
            let element = DType::Complex64;
            let expected = ScatterError::UnsupportedReduction {
                reduction,
                dtype: element,
            };
            check_refused::<Complex<f32>>(&options, &[2], &indices, &[1], &expected);
            let element = DType::Complex128;
            let expected = ScatterError::UnsupportedReduction {
                reduction,
                dtype: element,
            };
            check_refused::<Complex<f64>>(&options, &[2], &indices, &[1], &expected);
            // This error comes before errors of the indices.
            check_refused::<Complex<f64>>(
                &options,
                &[2],
                &numbers(&[1, 1], &[9_i64]),
                &[1],
                &expected,
            );
            // The error comes when the plan is run, because a plan has no element type.
            let plan = indices.plan(&options, Layout::contiguous(&[2]));
            let mut data = filled::<Complex<f64>>(&[2]);
            let updates = filled::<Complex<f64>>(&[1]);
            let plan = plan.expect("the indices are valid");
            let got = Request::new(reduction)
                .run(&plan)
                .in_place(data.view_mut(), updates.view());
            assert_eq!(got, Err(expected), "planned, {reduction}");
        }
    }
}

#[test]
fn bool_has_no_mean() {
    let indices = numbers(&[1, 1], &[0_i64]);
    let (reduction, element) = (Reduction::Mean, DType::Bool);
    let expected = ScatterError::UnsupportedReduction {
        reduction,
        dtype: element,
    };
    let mut options = Options::new(Operator::Nd, reduction);
    check_refused::<bool>(&options, &[2], &indices, &[1], &expected);
    // The mean without self is undefined too.
    options.include_self = false;
    check_refused::<bool>(&options, &[2], &indices, &[1], &expected);
    let plan = indices.plan(&options, Layout::contiguous(&[2]));
    let plan = plan.expect("a plan has no element type");
    let mut data = filled::<bool>(&[2]);
    let got = Request::new(reduction)
        .run(&plan)
        .in_place(data.view_mut(), filled::<bool>(&[1]).view());
    assert_eq!(got, Err(expected), "planned");
}

#[test]
fn clones_can_only_be_replaced() {
    let indices = [0_i64];
    let indices = TensorView::contiguous(&indices, &[1, 1]).expect("one tuple");
    let updates = ["new".to_owned()];
    let updates = TensorView::contiguous(&updates, &[1]).expect("one update");
    let original = ["a".to_owned(), "b".to_owned()];
    for reduction in &Reduction::ALL[1..] {
        let expected = ScatterError::ReductionOfClones {
            reduction: *reduction,
        };
        let mut strings = original.clone();
        let data = TensorView::contiguous(&original, &[2]).expect("two strings");
        let mut output = TensorViewMut::contiguous(&mut strings, &[2]).expect("two strings");
        let scatter = Scatter::nd().reduction(*reduction);
        let got = scatter.in_place(Cloned(output.reborrow()), indices, Cloned(updates));
        assert_eq!(got.as_ref(), Err(&expected), "in place");
        let got = scatter.write_into(Cloned(data), indices, Cloned(updates), Cloned(output));
        assert_eq!(got.as_ref(), Err(&expected), "write into");
        let got = scatter.allocate(Cloned(data), indices, Cloned(updates));
        assert_eq!(got.as_ref(), Err(&expected), "allocate");
        assert_eq!(strings, original, "the output was written before the error");
    }
}

#[test]
fn shapes_come_before_bounds_and_bounds_before_duplicates() {
    let mut options = options(Operator::Nd);
    options.duplicates = Duplicates::Reject;
    // The shape, an index and a duplicate are wrong.
    let indices = numbers(&[3, 1], &[0_i64, 0, 9]);
    let shape = ScatterError::UpdatesShape {
        expected: vec![3],
        actual: vec![2],
        one_tuple: None,
    };
    check_refused::<i32>(&options, &[4], &indices, &[2], &shape);
    // The duplicate comes earlier, but bounds are checked first.
    let bounds = ScatterError::IndexOutOfBounds {
        tuple: 2,
        axis: 0,
        index: 9,
        size: 4,
    };
    check_indices_refused::<i32>(&options, &[4], &indices, &[3], &bounds);
}

/// Checks the error for many indices, which workers check in parts.
fn check_big(operator: Operator, bad: &[(usize, i64)], expected: Option<ScatterError>) {
    const TUPLES: usize = 400_000;
    let mut values: Vec<i64> = (0..TUPLES)
        .map(|i| i64::try_from(i).expect("the value fits"))
        .collect();
    for &(tuple, index) in bad {
        values[tuple] = index;
    }
    let shape = if operator == Operator::Nd {
        vec![TUPLES, 1]
    } else {
        vec![TUPLES]
    };
    let indices = numbers(&shape, &values);
    let data = Strided::new(
        &Tensor::new(&[TUPLES], vec![7_i32; TUPLES]),
        Arrangement::Contiguous,
        0,
        0,
    );
    for workers in Workers::ALL {
        workers.with(|pool| {
            let mut options = Options::new(operator, Request::new(Reduction::Add).pool(pool));
            options.duplicates = Duplicates::Reject;
            let mut output = data.clone();
            let got = indices
                .in_place(&options, output.view_mut(), data.view())
                .err();
            assert_eq!(got, expected, "{workers:?}");
            if expected.is_some() {
                assert!(
                    output.buffer == data.buffer,
                    "{workers:?}: the output was written before the error"
                );
            }
            let got = indices.plan(&options, data.layout()).err();
            assert_eq!(got, expected, "{workers:?}, planned");
        });
    }
}

#[test]
fn the_first_error_is_reported_at_every_number_of_workers() {
    let size = 400_000;
    let [along, elements] = [Operator::Update { axis: 0 }, Operator::Elements { axis: 0 }];
    for operator in [Operator::Nd, along, elements] {
        // Without a wrong index there is no error.
        check_big(operator, &[], None);
        // Errors in the last part, in the middle, and two near the front.
        let bad = [
            (399_999, -500_000),
            (250_000, 400_000),
            (77_778, -400_001),
            (77_777, 1 << 40),
        ];
        let expected = ScatterError::IndexOutOfBounds {
            tuple: 77_777,
            axis: 0,
            index: 1 << 40,
            size,
        };
        check_big(operator, &bad, Some(expected));
        // Duplicates whose earlier tuple is in the same part, and in another part.
        let bad = [(399_999, 5), (300_000, 299_999), (250_000, 3)];
        let expected = ScatterError::DuplicateIndex {
            tuple: 250_000,
            earlier: 3,
        };
        check_big(operator, &bad, Some(expected));
        // One duplicate among increasing destinations, at positions where parts may meet.
        for tuple in [64, 50_000, 100_000, 133_334, 200_000, 399_999] {
            let index = i64::try_from(tuple - 1).expect("the value fits");
            let earlier = tuple - 1;
            let expected = ScatterError::DuplicateIndex { tuple, earlier };
            check_big(operator, &[(tuple, index)], Some(expected));
        }
        // Errors of bounds come first, at any position.
        let bad = [(10, 9), (399_999, 400_000)];
        let expected = ScatterError::IndexOutOfBounds {
            tuple: 399_999,
            axis: 0,
            index: 400_000,
            size,
        };
        check_big(operator, &bad, Some(expected));
    }
}

#[test]
fn a_plan_serves_one_layout() {
    let indices = numbers(&[1, 1], &[2_i64]);
    let options = options(Operator::Nd);
    let plan = indices.plan(&options, Layout::contiguous(&[4, 3]));
    let plan = plan.expect("the indices are valid");
    let others = [
        // Other sizes, another rank, equal sizes in another order, and layouts with gaps.
        (Tensor::generate(&[3, 4], || 0), Arrangement::Contiguous),
        (Tensor::generate(&[5, 3], || 0), Arrangement::Contiguous),
        (Tensor::generate(&[4, 3, 1], || 0), Arrangement::Contiguous),
        (Tensor::generate(&[4, 3], || 0), Arrangement::Permuted),
        (Tensor::generate(&[4, 3], || 0), Arrangement::Padded),
        (Tensor::generate(&[4, 3], || 0), Arrangement::Reversed),
    ];
    for (tensor, arrangement) in others {
        let mut output = Strided::new(&tensor, arrangement, 1, 0);
        let updates = filled::<i32>(&[1, 3]);
        let data = output.clone();
        let results = [
            Request::new(Reduction::Add)
                .run(&plan)
                .in_place(output.view_mut(), updates.view()),
            Request::new(Reduction::Add).run(&plan).write_into(
                data.view(),
                updates.view(),
                output.view_mut(),
            ),
            Request::new(Reduction::Add)
                .run(&plan)
                .in_place(AnyViewMut::from(output.view_mut()), updates.view().into()),
        ];
        for got in results {
            match got {
                Err(ScatterError::PlanMismatch {
                    planned_shape,
                    planned_strides,
                    shape,
                    ..
                }) => {
                    assert_eq!(
                        (planned_shape, planned_strides),
                        (vec![4, 3], vec![3, 1]),
                        "planned"
                    );
                    assert_eq!(shape, tensor.shape, "given");
                }
                got => panic!("{:?} {arrangement:?}: {got:?}", tensor.shape),
            }
        }
        assert_eq!(
            output.buffer, data.buffer,
            "the output was written: {:?} {arrangement:?}",
            tensor.shape
        );
    }
}

#[test]
fn a_plan_accepts_every_spelling_of_its_layout() {
    let indices = numbers(&[1, 1], &[2_i64]);
    let updates = filled::<i32>(&[1, 1, 3]);
    let options = options(Operator::Nd);
    let shape = [4, 1, 3];
    let expected = {
        let mut expected = filled::<i32>(&shape).read();
        expected.values[6..9].copy_from_slice(&updates.read().values);
        expected
    };
    // Strides may be omitted or given. The stride of a dimension of size 1 has no effect.
    let spelled = [&[3, 3, 1][..], &[3, 99, 1], &[3, -1, 1], &[3, 0, 1]];
    let layouts = spelled.map(|strides| Layout::strided(&shape, strides).expect("three strides"));
    for layout in layouts.into_iter().chain([Layout::contiguous(&shape)]) {
        let plan = indices.plan(&options, layout).expect("valid indices");
        for arrangement in [Arrangement::Contiguous, Arrangement::Spelled] {
            let start = filled::<i32>(&shape).read();
            let mut output = Strided::new(&start, arrangement, 0, 0);
            Request::new(Reduction::None)
                .run(&plan)
                .in_place(output.view_mut(), updates.view())
                .unwrap_or_else(|error| panic!("{layout:?}, {arrangement:?}: {error}"));
            assert_eq!(output.read(), expected, "{layout:?}, {arrangement:?}");
        }
    }
}

#[test]
fn a_plan_checks_the_tensors_of_a_run() {
    let indices = numbers(&[1, 1], &[2_i64]);
    let options = options(Operator::Nd);
    let plan = indices.plan(&options, Layout::contiguous(&[4, 3]));
    let plan = plan.expect("the indices are valid");
    let mut data = filled::<i32>(&[4, 3]);
    let before = data.buffer.clone();
    let expected = ScatterError::UpdatesShape {
        expected: vec![1, 3],
        actual: vec![3],
        one_tuple: None,
    };
    let got = Request::new(Reduction::Add)
        .run(&plan)
        .in_place(data.view_mut(), filled::<i32>(&[3]).view());
    assert_eq!(got, Err(expected.clone()), "in place");
    let got = Request::new(Reduction::Add)
        .run(&plan)
        .allocate(data.view(), filled::<i32>(&[3]).view());
    assert_eq!(got, Err(expected), "allocate");
    let expected = ScatterError::DTypeMismatch {
        tensor: "updates",
        expected: DType::I32,
        actual: DType::F32,
    };
    let updates = filled::<f32>(&[1, 3]);
    let got = Request::new(Reduction::Add)
        .run(&plan)
        .in_place(AnyViewMut::from(data.view_mut()), updates.view().into());
    assert_eq!(got, Err(expected), "another type");
    assert_eq!(
        data.buffer, before,
        "the output was written before the error"
    );
}

/// Returns the errors of a typed read-only view and of a typed writable view.
fn strided_errors(
    len: usize,
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> [Option<ScatterError>; 2] {
    let mut buffer = vec![0_u16; len];
    let read = TensorView::strided(&buffer, offset, shape, strides).err();
    [
        read,
        TensorViewMut::strided(&mut buffer, offset, shape, strides).err(),
    ]
}

#[test]
fn views_stay_within_their_slice() {
    let outside: [(usize, usize, &[usize], &[isize]); 9] = [
        // Length of the slice, offset, shape, strides. The last element is past the end.
        (6, 0, &[7], &[1]),
        (6, 1, &[2, 3], &[3, 1]),
        (6, 0, &[2, 3], &[4, 1]),
        // One position before the front.
        (6, 1, &[3], &[-1]),
        (6, 5, &[2, 3], &[-4, -1]),
        // A scalar needs an element too.
        (6, 6, &[], &[]),
        (0, 0, &[1], &[0]),
        // An overflowing product must not wrap to a position inside the slice.
        (6, 0, &[3], &[isize::MAX]),
        (6, 0, &[usize::MAX / 4 + 2], &[4]),
    ];
    for (len, offset, shape, strides) in outside {
        let expected = ScatterError::OutsideSlice {
            offset,
            shape: shape.into(),
            strides: strides.into(),
            len,
        };
        for got in strided_errors(len, offset, shape, strides) {
            assert_eq!(
                got.as_ref(),
                Some(&expected),
                "{shape:?} {strides:?} at {offset} of {len}"
            );
        }
    }
    let inside: [(usize, usize, &[usize], &[isize]); 6] = [
        (6, 0, &[2, 3], &[3, 1]),
        (6, 5, &[2, 3], &[-3, -1]),
        (6, 2, &[2, 3], &[3, -1]),
        (6, 5, &[], &[]),
        // Views without elements access nothing, so any strides are valid.
        (0, 0, &[0, 9], &[100, 100]),
        // The stride of a dimension of size 1 is never used.
        (6, 0, &[1, 6], &[1000, 1]),
    ];
    for (len, offset, shape, strides) in inside {
        let got = strided_errors(len, offset, shape, strides);
        assert_eq!(
            got,
            [None, None],
            "{shape:?} {strides:?} at {offset} of {len}"
        );
    }
}

#[test]
fn views_have_a_length_and_a_stride_for_each_dimension() {
    let mut buffer = [0_i32; 6];
    for shape in [&[2, 2][..], &[7], &[0, 6], &[]] {
        let expected = ScatterError::SliceLength {
            shape: shape.into(),
            expected: shape.iter().product(),
            actual: 6,
        };
        let got = TensorView::contiguous(&buffer, shape).err();
        assert_eq!(got.as_ref(), Some(&expected), "{shape:?}");
        let got = TensorViewMut::contiguous(&mut buffer, shape).err();
        assert_eq!(got, Some(expected), "{shape:?}, to write");
    }
    for (shape, strides) in [(&[2, 3][..], &[1][..]), (&[6], &[1, 1]), (&[], &[1])] {
        let expected = ScatterError::StridesRank {
            shape: shape.into(),
            strides: strides.into(),
        };
        let got = Layout::strided(shape, strides).err();
        assert_eq!(got.as_ref(), Some(&expected), "{shape:?} {strides:?}");
        for got in strided_errors(6, 0, shape, strides) {
            assert_eq!(got.as_ref(), Some(&expected), "{shape:?} {strides:?}");
        }
    }
}

#[test]
fn shapes_fit_into_memory() {
    let large = 1 << (usize::BITS / 2);
    for shape in [
        &[usize::MAX, 2][..],
        &[large, large],
        &[large, large, large],
        &[usize::MAX],
    ] {
        let expected = Some(ScatterError::ShapeOverflow {
            shape: shape.into(),
        });
        assert_eq!(
            TensorView::<u8>::contiguous(&[], shape).err(),
            expected,
            "{shape:?}"
        );
        let strides = vec![0; shape.len()];
        let got = TensorView::strided(&[0_u8], 0, shape, &strides).err();
        assert_eq!(got, expected, "{shape:?}, one element for all");
    }
}

#[test]
fn outputs_do_not_overlap_themselves() {
    let overlapping: [(&[usize], &[isize]); 6] = [
        // All elements of a dimension are one element in memory.
        (&[2], &[0]),
        (&[2, 3], &[0, 1]),
        // Rows that share their ends.
        (&[2, 3], &[2, 1]),
        (&[2, 3], &[-2, 1]),
        // 3 = 3 * 1: element [1, 0] is also element [0, 3].
        (&[2, 4], &[3, 1]),
        // 2 * 3 = 3 * 2.
        (&[3, 4], &[3, 2]),
    ];
    for (shape, strides) in overlapping {
        let expected = ScatterError::SelfOverlap {
            shape: shape.into(),
            strides: strides.into(),
        };
        let [read, write] = strided_errors(40, 20, shape, strides);
        assert_eq!(read, None, "{shape:?} {strides:?}, to read");
        assert_eq!(write, Some(expected), "{shape:?} {strides:?}");
    }
    let distinct: [(&[usize], &[isize]); 5] = [
        // Rows that interleave without sharing an element.
        (&[2, 3], &[1, 2]),
        (&[3, 2], &[2, 3]),
        (&[2, 2, 2], &[-9, 4, -2]),
        // A dimension of size 1, and a dimension of size 0.
        (&[1, 4], &[0, 1]),
        (&[0, 4], &[0, 0]),
    ];
    for (shape, strides) in distinct {
        let got = strided_errors(40, 20, shape, strides);
        assert_eq!(got, [None, None], "{shape:?} {strides:?}");
    }
}

/// A view has more elements than positions, so some elements overlap. To find two of them is hard.
/// The check must end soon, with an error.
#[test]
fn overlaps_that_are_hard_to_decide_are_errors() {
    let mut random = Random::new(1);
    let shape = [2; 24];
    let strides: Vec<isize> = (0..24)
        .map(|_| 400_001 + random.below(200_000).cast_signed())
        .collect();
    let len = 1 + strides
        .iter()
        .map(|stride| stride.unsigned_abs())
        .sum::<usize>();
    assert!(len < 1 << 24, "two of 2^24 elements must overlap");
    let mut buffer = vec![0_u8; len];
    let got = TensorViewMut::strided(&mut buffer, 0, &shape, &strides).err();
    let expected = ScatterError::SelfOverlapUndecided {
        shape: shape.to_vec(),
        strides,
    };
    assert_eq!(got, Some(expected), "strides that are hard to decide");
}

/// Memory that several views share through one pointer.
struct Shared {
    values: Vec<i32>,
}

impl Shared {
    fn new(len: usize) -> Self {
        let values = (0..).take(len).collect();
        Self { values }
    }

    /// Calls `write_into` with views of these offsets and layouts.
    fn write_into(
        &mut self,
        [data, updates, output]: [(usize, Layout<'_>); 3],
    ) -> Result<(), ScatterError> {
        let indices = TensorView::contiguous(&[2_i64, 0], &[2, 1]).expect("two tuples");
        let start = self.values.as_mut_ptr();
        let element = DType::I32;
        let read = |(offset, layout)| {
            let first = start.wrapping_add(offset).cast_const().cast();
            // SAFETY: the tests' layouts stay inside `values`. Nothing else accesses it during the
            // call.
            unsafe { AnyView::from_raw_parts(first, element, layout) }.expect("a valid view")
        };
        let first = start.wrapping_add(output.0).cast();
        // SAFETY: the tests' layouts stay inside `values`. Nothing else accesses it during the
        // call.
        let output = unsafe { AnyViewMut::from_raw_parts(first, element, output.1) };
        let output = output.expect("a valid view");
        Scatter::nd().write_into(read(data), indices, read(updates), output)
    }
}

#[test]
fn an_output_shares_no_memory_with_inputs() {
    let [data, updates, output] = [[4, 3], [2, 3], [4, 3]];
    let [data, updates, output] = [&data, &updates, &output].map(|shape| Layout::contiguous(shape));
    let cases = [
        // Offsets of data, updates and output. The output overlaps the last element of data.
        ([0, 40, 11], "data"),
        ([11, 40, 0], "data"),
        // The output overlaps the last element of updates, then all updates.
        ([20, 0, 5], "updates"),
        ([20, 2, 0], "updates"),
    ];
    for ([d, u, o], tensor) in cases {
        let mut shared = Shared::new(60);
        let before = shared.values.clone();
        let got = shared.write_into([(d, data), (u, updates), (o, output)]);
        assert_eq!(
            got,
            Err(ScatterError::InputOverlap { tensor }),
            "{d} {u} {o}"
        );
        assert_eq!(
            shared.values, before,
            "the output was written before the error"
        );
    }
}

#[test]
fn the_address_of_data_with_other_strides_is_not_in_place() {
    let square = [3, 3];
    let transposed = Layout::strided(&square, &[1, 3]).expect("two strides");
    let updates_shape = [2, 3];
    let mut shared = Shared::new(40);
    let before = shared.values.clone();
    let got = shared.write_into([
        (0, transposed),
        (20, Layout::contiguous(&updates_shape)),
        (0, Layout::contiguous(&square)),
    ]);
    assert_eq!(
        got,
        Err(ScatterError::InputOverlap { tensor: "data" }),
        "transposed"
    );
    assert_eq!(
        shared.values, before,
        "the output was written before the error"
    );
}

#[test]
fn an_output_at_the_address_of_data_is_in_place() {
    let shape = [4, 3];
    let updates_shape = [2, 3];
    let mut shared = Shared::new(40);
    let got = shared.write_into([
        (0, Layout::contiguous(&shape)),
        (20, Layout::contiguous(&updates_shape)),
        (0, Layout::contiguous(&shape)),
    ]);
    assert_eq!(got, Ok(()), "same address, shape and strides");
    // Rows 2 and 0 received the values 20 to 22 and 23 to 25.
    assert_eq!(
        shared.values[..12],
        [23, 24, 25, 3, 4, 5, 20, 21, 22, 9, 10, 11],
        "in place"
    );
}

#[test]
fn interleaved_columns_share_nothing() {
    // Data, updates and output are columns 0, 1 and 2 of rows of three elements.
    let column = [4];
    let column = Layout::strided(&column, &[3]).expect("one stride");
    let updates = [2];
    let updates = Layout::strided(&updates, &[3]).expect("one stride");
    let mut shared = Shared::new(12);
    let got = shared.write_into([(0, column), (1, updates), (2, column)]);
    assert_eq!(got, Ok(()), "no byte is shared");
    // Updates 1 and 4 were written to rows 2 and 0. The other rows are copies of data.
    assert_eq!(
        shared.values,
        [0, 1, 4, 3, 4, 3, 6, 7, 1, 9, 10, 9],
        "columns"
    );
}

#[test]
fn in_place_shares_no_memory_with_updates_or_indices() {
    let mut values: Vec<i64> = vec![0, 1, 2, 3, 4, 5, 6, 7];
    let before = values.clone();
    let start: *mut u8 = values.as_mut_ptr().cast();
    let element = DType::I64;
    let [eight, two, tuples] = [&[8][..], &[2], &[2, 1]].map(Layout::contiguous);
    let apart = [1_i64, 2];
    let apart: *const u8 = apart.as_ptr().cast();
    for (tensor, indices, updates) in [
        ("indices", start.cast_const(), apart),
        ("updates", apart, start.wrapping_add(6 * 8).cast_const()),
    ] {
        // SAFETY: all layouts are inside the arrays above, which live during the call. Nothing else
        // accesses them.
        let (data, indices, updates) = unsafe {
            (
                AnyViewMut::from_raw_parts(start, element, eight).expect("a valid view"),
                AnyView::from_raw_parts(indices, element, tuples).expect("a valid view"),
                AnyView::from_raw_parts(updates, element, two).expect("a valid view"),
            )
        };
        let got = Scatter::nd().in_place(data, indices, updates);
        assert_eq!(got, Err(ScatterError::InputOverlap { tensor }), "{tensor}");
        assert_eq!(values, before, "the output was written before the error");
    }
}

#[test]
fn tensors_without_elements_overlap_nothing() {
    let mut shared = Shared::new(40);
    let shape = [0, 3];
    let empty = Layout::contiguous(&shape);
    // No tuples, because no index would be in bounds. All views begin at one address.
    let start = shared.values.as_mut_ptr().cast::<u8>();
    let none = [0, 1];
    // SAFETY: views without elements access no memory.
    let (data, updates, output) = unsafe {
        (
            AnyView::from_raw_parts(start, DType::I32, empty).expect("a valid view"),
            AnyView::from_raw_parts(start, DType::I32, empty).expect("a valid view"),
            AnyViewMut::from_raw_parts(start, DType::I32, empty).expect("a valid view"),
        )
    };
    let indices = TensorView::<i64>::contiguous(&[], &none).expect("no tuple");
    let got = Scatter::nd().write_into(data, indices, updates, output);
    assert_eq!(got, Ok(()), "nothing is shared");
}

#[test]
fn raw_parts_are_aligned_and_fit_into_memory() {
    let buffer = [0_u64; 4];
    let start: *const u8 = buffer.as_ptr().cast();
    let shape = [2];
    for element in DType::ALL {
        let misaligned = element.alignment() > 1;
        let place = start.wrapping_add(1);
        let size = element.size();
        let layout = if size < 16 {
            Layout::contiguous(&shape)
        } else {
            Layout::contiguous(&[1])
        };
        // SAFETY: two elements of at most 8 bytes from byte 1, or one of 16 bytes, are inside the
        // 32 bytes.
        let got = unsafe { AnyView::from_raw_parts(place, element, layout) }.err();
        let alignment = element.alignment();
        let expected = ScatterError::Misaligned {
            address: place.addr(),
            dtype: element,
            alignment,
        };
        assert_eq!(got, misaligned.then_some(expected), "{element}");
    }
    // The bytes exceed the address space, although the number of elements fits a `usize`.
    let shape = [usize::MAX / 4];
    let layout = Layout::strided(&shape, &[1]).expect("one stride");
    // SAFETY: the constructor returns an error, and no memory is read.
    let got = unsafe { AnyView::from_raw_parts(start, DType::F64, layout) }.err();
    assert_eq!(
        got,
        Some(ScatterError::ShapeOverflow {
            shape: shape.into()
        }),
        "bytes"
    );
}

#[test]
fn element_types_agree() {
    let mut output = filled::<f32>(&[4]);
    let before = output.buffer.clone();
    let data = filled::<f32>(&[4]);
    let updates = filled::<f32>(&[2]);
    let doubles = filled::<f64>(&[2]);
    let integers = numbers(&[2, 1], &[1_i64, 2]);
    let options = options(Operator::Nd);
    let mismatch = |tensor, expected, actual| ScatterError::DTypeMismatch {
        tensor,
        expected,
        actual,
    };

    let view = output.view_mut().into();
    let got = in_place(
        &options,
        view,
        integers.view().into(),
        doubles.view().into(),
    );
    let expected = mismatch("updates", DType::F32, DType::F64);
    assert_eq!(got, Err(expected), "updates");

    // Types of equal size are still different types.
    let words = filled::<u32>(&[4]);
    let view = output.view_mut().into();
    let word_updates = filled::<u32>(&[2]);
    let got = write_into(
        &options,
        words.view().into(),
        integers.view().into(),
        word_updates.view().into(),
        view,
    );
    let expected = mismatch("output", DType::U32, DType::F32);
    assert_eq!(got, Err(expected), "output");

    for (indices, actual) in [
        (AnyView::from(filled::<f32>(&[2, 1]).view()), DType::F32),
        (filled::<bool>(&[2, 1]).view().into(), DType::Bool),
    ] {
        let expected = ScatterError::IndexType { actual };
        let view = output.view_mut().into();
        let got = in_place(&options, view, indices, updates.view().into());
        assert_eq!(got.as_ref(), Err(&expected), "in place");
        let view = output.view_mut().into();
        let got = write_into(
            &options,
            data.view().into(),
            indices,
            updates.view().into(),
            view,
        );
        assert_eq!(got.as_ref(), Err(&expected), "write into");
        let got = Scatter::nd().plan(data.layout(), indices).err();
        assert_eq!(got.as_ref(), Some(&expected), "planned");
        let got = Scatter::along(0).plan(data.layout(), indices).err();
        assert_eq!(got, Some(expected), "planned along an axis");
    }
    assert_eq!(
        output.buffer, before,
        "the output was written before the error"
    );
}

/// A view of one element whose copy would exceed the address space.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_result_larger_than_memory_is_an_error() {
    let shape = [1 << 57];
    let data = TensorView::strided(&[1.0_f64], 0, &shape, &[0]).expect("one element for all");
    let indices = TensorView::contiguous(&[5_i64], &[1, 1]).expect("one tuple");
    let updates = TensorView::contiguous(&[2.0], &[1]).expect("one update");
    let expected = Err(ScatterError::OutOfMemory { bytes: 1 << 60 });
    let got = Scatter::nd().allocate(data, indices, updates);
    assert_eq!(got, expected, "one shot");
    let plan = Scatter::nd().plan(Layout::contiguous(&shape), indices);
    let got = plan
        .expect("a plan of one tuple")
        .run()
        .allocate(data, updates);
    assert_eq!(got, expected, "planned");

    let data = [1.0.to_string()];
    let data = TensorView::strided(&data, 0, &shape, &[0]).expect("one string for all");
    let updates = ["2".to_owned()];
    let updates = TensorView::contiguous(&updates, &[1]).expect("one update");
    let got = Scatter::nd().allocate(Cloned(data), indices, Cloned(updates));
    let refused = matches!(
        got,
        Err(ScatterError::OutOfMemory { .. } | ScatterError::ShapeOverflow { .. })
    );
    assert!(refused, "strings: {got:?}");
}

/// A plan has no element type. The layout of a plan may therefore be too large for any memory. Such
/// a plan can be made, but not run.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_plan_for_updates_larger_than_memory_can_be_made() {
    let shape = [4, 1 << 60];
    let indices = [1_i64; 64];
    let indices = TensorView::contiguous(&indices, &[64, 1]).expect("64 tuples");
    let plan = Scatter::nd().plan(Layout::contiguous(&shape), indices);
    let plan = plan.expect("the number of tuples is small");
    assert_eq!(
        plan.updates_shape(),
        [64, 1 << 60],
        "more elements than memory"
    );
    let got = plan.run().explain(DType::U8, true).map(drop);
    let shape = vec![64, 1 << 60];
    assert_eq!(
        got,
        Err(ScatterError::ShapeOverflow { shape }),
        "a run is an error"
    );
}

#[test]
fn tensors_larger_than_memory_are_not_explained() {
    let indices = TensorView::contiguous(&[1_i64, 0], &[2, 1]).expect("two tuples");
    let (long, far) = ([1 << (usize::BITS - 3)], [isize::MAX / 4]);
    for layout in [
        Layout::contiguous(&long),
        Layout::strided(&[2], &far).expect("one stride"),
    ] {
        let plan = Scatter::nd()
            .plan(layout, indices)
            .expect("the layout fits in bytes");
        for reduction in [Reduction::None, Reduction::Add] {
            for in_place in [true, false] {
                let run = plan.run().reduction(reduction);
                let explain = |element| run.explain(element, in_place);
                let small = explain(DType::Bool).expect("the value fits");
                assert!(small.to_string().contains("bytes"), "{small}");
                let got = explain(DType::F64).map(drop);
                let shape = layout.shape().to_vec();
                assert_eq!(
                    got,
                    Err(ScatterError::ShapeOverflow { shape }),
                    "{in_place}"
                );
            }
        }
    }
}

/// Checks that elements of a type are moved but not reduced, and that the error of each reduction
/// names the feature.
#[cfg(not(all(feature = "complex", feature = "float16", feature = "narrow-integers")))]
fn check_moved_but_not_reduced(dtype: DType, feature: &str) {
    let size = dtype.size();
    let (mut data, updates) = (vec![1_u8; 2 * size], vec![2_u8; size]);
    let mut run = |reduction| {
        let data = AnyViewMut::from_bytes(&mut data, dtype, Layout::line(2))?;
        let updates = AnyView::from_bytes(&updates, dtype, Layout::line(1))?;
        let index = TensorView::from(&[1_i64]);
        Scatter::along(0)
            .reduction(reduction)
            .in_place(data, index, updates)
    };
    let is_a_reduction = |reduction: &Reduction| *reduction != Reduction::None;
    for reduction in Reduction::ALL.into_iter().filter(is_a_reduction) {
        let error = run(reduction).expect_err("the feature is not enabled");
        assert_eq!(
            error.to_string(),
            format!(
                "reduction {reduction} is not defined for {dtype}; enable the feature `{feature}` of \
                 ndscatter, or use another reduction or type"
            )
        );
    }
    run(Reduction::None).expect("a move");
    let (first, second) = data.split_at(size);
    assert_eq!(first, vec![1; size], "unchanged");
    assert_eq!(second, updates, "moved");
}

#[cfg(not(feature = "complex"))]
#[test]
fn complex_numbers_are_moved_but_not_reduced() {
    check_moved_but_not_reduced(DType::Complex64, "complex");
    check_moved_but_not_reduced(DType::Complex128, "complex");
}

#[cfg(not(feature = "float16"))]
#[test]
fn halves_are_moved_but_not_reduced() {
    check_moved_but_not_reduced(DType::F16, "float16");
    check_moved_but_not_reduced(DType::BF16, "float16");
}

#[cfg(not(feature = "narrow-integers"))]
#[test]
fn narrow_integers_are_moved_but_not_reduced() {
    for dtype in [DType::I8, DType::I16, DType::U8, DType::U16] {
        check_moved_but_not_reduced(dtype, "narrow-integers");
    }
}

/// An error about gradients names a feature only if elements of the type have gradients with the
/// feature.
#[test]
fn errors_about_gradients_name_the_feature() {
    let text = |dtype| ScatterError::NoGradient { dtype }.to_string();
    for dtype in [DType::I8, DType::I16, DType::U8, DType::U16, DType::I64] {
        let expected = format!("{dtype} has no gradient; use floats or complex numbers");
        assert_eq!(text(dtype), expected);
    }
    #[cfg(not(feature = "float16"))]
    for dtype in [DType::F16, DType::BF16] {
        let expected = format!(
            "{dtype} has no gradient; enable the feature `float16` of ndscatter, or use floats or \
             complex numbers"
        );
        assert_eq!(text(dtype), expected);
    }
}
