//! The errors of gathers. Each method returns the same error with its facts, and writes nothing.

#![allow(
    unsafe_code,
    reason = "views of a foreign runtime are made from raw parts"
)]

use crate::common::Tensor;
use crate::common::by_hand::Values;
use crate::common::gather_harness::{GatherOptions, GatherProblem, Gatherer, Methods};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::refused::numbers;
use ndscatter::{AnyView, AnyViewMut, Bounds, DType, Gather, Layout, ScatterError, TensorView};

/// Checks shapes that are errors: every method and `output_shape` return the error, and nothing is
/// written.
fn check_shapes_refused(
    gatherer: Gatherer,
    data: &[usize],
    indices: &[usize],
    expected: &ScatterError,
) {
    let what = format!("{gatherer:?} of {data:?} by {indices:?}");
    let by_shape = match gatherer {
        Gatherer::Nd { batch_dims } => Gather::nd(batch_dims).output_shape(data, indices),
        Gatherer::Along { axis } => Gather::along(axis).output_shape(data, indices),
        Gatherer::Elements { axis } => Gather::elements(axis).output_shape(data, indices),
        Gatherer::Paged => Gather::paged().output_shape(data, indices),
    };
    assert_eq!(by_shape.as_ref(), Err(expected), "{what}: its shape");
    let options = GatherOptions::new(gatherer);
    let indices = Strided::new(
        &Tensor::generate(indices, || 0_i64),
        Arrangement::Contiguous,
        0,
        0,
    );
    let data = Strided::new(&Tensor::generate(data, || 1), Arrangement::Contiguous, 0, 0);
    let mut output = numbers(&[3], &[7, 8, 9]);
    let got = [
        indices.gather_into(&options, data.view(), output.view_mut()),
        indices.any_gather_into(&options, data.view(), output.view_mut()),
        indices.gather(&options, data.view()).map(drop),
        indices.plan_gather(&options, data.layout()).map(drop),
    ];
    for got in got {
        assert_eq!(got.as_ref(), Err(expected), "{what}");
    }
    assert_eq!(
        output.buffer,
        [7, 8, 9],
        "{what}: the output was written before the error"
    );
}

#[test]
fn axes_and_ranks_that_do_not_fit() {
    let elements = |axis| Gatherer::Elements { axis };
    let along = |axis| Gatherer::Along { axis };
    for axis in [2, -3, isize::MAX, isize::MIN] {
        let expected = ScatterError::AxisOutOfRange { axis, rank: 2 };
        check_shapes_refused(along(axis), &[2, 3], &[1], &expected);
        check_shapes_refused(elements(axis), &[2, 3], &[1, 1], &expected);
    }
    let expected = ScatterError::AxisOutOfRange { axis: 0, rank: 0 };
    check_shapes_refused(along(0), &[], &[1], &expected);
    for (data, indices) in [(&[2, 3][..], &[2][..]), (&[2], &[1, 1]), (&[2], &[])] {
        let expected = ScatterError::IndicesRankMismatch {
            rank: data.len(),
            indices: indices.len(),
        };
        check_shapes_refused(elements(0), data, indices, &expected);
    }
    let expected = ScatterError::IndicesTooLong {
        axis: 2,
        size: 5,
        data_size: 4,
    };
    check_shapes_refused(elements(1), &[2, 3, 4], &[2, 9, 5], &expected);
}

#[test]
fn batch_dims_that_do_not_fit() {
    let nd = |batch_dims| Gatherer::Nd { batch_dims };
    check_shapes_refused(nd(0), &[2], &[], &ScatterError::IndicesRank);
    for (data, indices, batch_dims) in [
        // The last dimension of indices is the coordinates, so it cannot be a batch dim.
        (&[2, 3][..], &[2][..], 1),
        (&[2, 3], &[2, 3], 2),
        // More batch dims than data has dims.
        (&[2], &[2, 2, 1], 2),
        (&[2, 3], &[2, 3, 1], usize::MAX),
    ] {
        let expected = ScatterError::BatchDims {
            batch_dims,
            data_rank: data.len(),
            indices_rank: indices.len(),
        };
        check_shapes_refused(nd(batch_dims), data, indices, &expected);
    }
    let expected = ScatterError::BatchShape {
        data: vec![2, 3],
        indices: vec![2, 4],
    };
    check_shapes_refused(nd(2), &[2, 3, 5], &[2, 4, 1], &expected);
    // No broadcasting.
    let expected = ScatterError::BatchShape {
        data: vec![2],
        indices: vec![1],
    };
    check_shapes_refused(nd(1), &[2, 3], &[1, 4, 1], &expected);
    for (data, indices, batch_dims, tuple_len) in [
        (&[2, 3][..], &[1, 3][..], 0, 3),
        // Tuples do not address the batch dims.
        (&[2, 3], &[2, 1, 2], 1, 2),
    ] {
        let k = indices[indices.len() - 1];
        assert_eq!(k, tuple_len, "coordinates of {indices:?}");
        let options = GatherOptions::new(nd(batch_dims));
        let data = Strided::new(&Tensor::generate(data, || 1), Arrangement::Contiguous, 0, 0);
        let indices = Tensor::generate(indices, || 0_i64);
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        let got = indices.gather(&options, data.view());
        let refused =
            matches!(got, Err(ScatterError::TupleLength { tuple_len, .. }) if tuple_len == k);
        assert!(refused, "{got:?}");
    }
}

#[test]
fn outputs_of_another_shape() {
    let along = GatherOptions::new(Gatherer::Along { axis: 0 });
    let data = numbers(&[3, 2], &[1, 2, 3, 4, 5, 6]);
    // An index out of bounds is reported after errors of shapes.
    let indices = numbers(&[2], &[1_i64, 9]);
    for actual in [&[2][..], &[4], &[2, 2, 1], &[2, 3], &[1, 2, 2]] {
        let output = Tensor::generate(actual, || 7);
        let mut output = Strided::new(&output, Arrangement::Contiguous, 1, 8);
        let before = output.buffer.clone();
        let expected = ScatterError::OutputShape {
            expected: vec![2, 2],
            actual: actual.into(),
        };
        let message = expected.to_string();
        assert!(
            message.contains(&format!("{actual:?}")),
            "{message} does not name {actual:?}"
        );
        let got = indices.gather_into(&along, data.view(), output.view_mut());
        assert_eq!(got.as_ref(), Err(&expected), "{actual:?}");
        let got = indices.any_gather_into(&along, data.view(), output.view_mut());
        assert_eq!(got, Err(expected), "any, {actual:?}");
        assert_eq!(
            output.buffer, before,
            "the output was written before the error"
        );
    }
}

#[test]
fn types_agree() {
    let data = numbers(&[2], &[1.0_f32, 2.0]);
    let indices = numbers(&[2], &[1_i64, 0]);
    let mut words = numbers(&[2], &[1_u32, 2]);
    let got = Gather::along(0).write_into(
        data.view().into(),
        indices.view(),
        AnyViewMut::from(words.view_mut()),
    );
    let expected = ScatterError::DTypeMismatch {
        tensor: "output",
        expected: DType::F32,
        actual: DType::U32,
    };
    assert_eq!(got, Err(expected), "output");
    let mut output = numbers(&[2], &[1.0_f32, 2.0]);
    let got = Gather::along(0).write_into(
        data.view().into(),
        AnyView::from(data.view()),
        AnyViewMut::from(output.view_mut()),
    );
    let actual = DType::F32;
    assert_eq!(got, Err(ScatterError::IndexType { actual }), "indices");
    assert_eq!(
        words.buffer,
        [1, 2],
        "the output was written before the error"
    );
}

#[test]
fn an_output_shares_no_memory_with_inputs() {
    let mut values: Vec<i64> = vec![0, 1, 2, 3, 4, 5];
    let before = values.clone();
    let start: *mut u8 = values.as_mut_ptr().cast();
    let [three, two] = [[3], [2]];
    let [three, two] = [&three, &two].map(|shape| Layout::contiguous(shape));
    let element = DType::I64;
    // Offsets of data (3 elements), indices (2) and output (2), in elements.
    for (data, indices, output, tensor) in [
        (0, 4, 2, "data"),
        (1, 4, 0, "data"),
        // A gather cannot write to the address of its data.
        (0, 4, 0, "data"),
        (3, 0, 1, "indices"),
    ] {
        let at = |offset: usize| start.wrapping_add(8 * offset);
        // SAFETY: all layouts are inside `values`, which lives during the call. Nothing else
        // accesses it.
        let (data, indices, output) = unsafe {
            (
                AnyView::from_raw_parts(at(data), element, three).expect("a valid view"),
                AnyView::from_raw_parts(at(indices), element, two).expect("a valid view"),
                AnyViewMut::from_raw_parts(at(output), element, two).expect("a valid view"),
            )
        };
        let gather = Gather::along(0).bounds(Bounds::Clamp);
        let got = gather.write_into(data, indices, output);
        assert_eq!(got, Err(ScatterError::InputOverlap { tensor }), "{tensor}");
        assert_eq!(values, before, "the output was written before the error");
    }
}

#[test]
fn an_index_out_of_bounds() {
    let out = |tuple, axis, index, size| ScatterError::IndexOutOfBounds {
        tuple,
        axis,
        index,
        size,
    };
    let cases: [(Gatherer, &[usize], Values<'_, i64>, ScatterError); 5] = [
        // Tuples are counted over all batches. The axis is an axis of data.
        (
            Gatherer::Nd { batch_dims: 1 },
            &[2, 3, 4],
            (&[2, 2, 2], &[0, 0, 2, -4, -3, 3, 1, 4]),
            out(3, 2, 4, 4),
        ),
        // The error names the lowest axis of the first tuple.
        (
            Gatherer::Nd { batch_dims: 0 },
            &[3, 4],
            (&[2, 2], &[-4, 9, 5, 0]),
            out(0, 0, -4, 3),
        ),
        (
            Gatherer::Along { axis: -1 },
            &[2, 3],
            (&[2, 2], &[0, 2, 3, -9]),
            out(2, 1, 3, 3),
        ),
        (
            Gatherer::Elements { axis: 0 },
            &[2, 3],
            (&[2, 2], &[0, 1, -2, i64::MIN]),
            out(3, 0, i128::from(i64::MIN), 2),
        ),
        // The window is empty, but the index is checked.
        (
            Gatherer::Along { axis: 0 },
            &[2, 0],
            (&[2], &[1, 2]),
            out(1, 0, 2, 2),
        ),
    ];
    for (gatherer, data, (shape, values), expected) in cases {
        let indices = numbers(shape, values);
        let data = Strided::new(&Tensor::generate(data, || 1), Arrangement::Contiguous, 0, 0);
        let problem = GatherProblem {
            indices: &indices,
            data: [data.clone(), data],
            output: Arrangement::Contiguous,
            margin: 0,
        };
        let refused = problem.check_all_refused(&GatherOptions::new(gatherer), &expected);
        refused.unwrap_or_else(|difference| panic!("{gatherer:?}: {difference}"));
    }
}

#[test]
fn a_plan_serves_one_layout_of_data() {
    let indices = numbers(&[2], &[1_i64, 0]);
    let options = GatherOptions::new(Gatherer::Along { axis: 0 });
    let plan = indices.plan_gather(&options, Layout::contiguous(&[3, 2]));
    let plan = plan.expect("valid indices");
    let mut output = numbers(&[2, 2], &[5, 6, 7, 8]);
    for (shape, arrangement) in [
        (&[2, 3][..], Arrangement::Contiguous),
        (&[4, 2], Arrangement::Contiguous),
        (&[6], Arrangement::Contiguous),
        (&[3, 2], Arrangement::Permuted),
        (&[3, 2], Arrangement::Padded),
        (&[3, 2], Arrangement::ZeroLast),
    ] {
        let data = Strided::new(&Tensor::generate(shape, || 1), arrangement, 1, 2);
        let got = [
            plan.run().write_into(data.view(), output.view_mut()),
            plan.run()
                .write_into(data.view().into(), AnyViewMut::from(output.view_mut())),
            plan.run().allocate(data.view()).map(drop),
        ];
        for got in got {
            match got {
                Err(ScatterError::PlanMismatch {
                    planned_shape,
                    shape: given,
                    ..
                }) => {
                    assert_eq!(planned_shape, [3, 2], "planned");
                    assert_eq!(given, shape, "given");
                }
                got => panic!("{shape:?} {arrangement:?}: {got:?}"),
            }
        }
    }
    // The output may have any layout, but must have its shape.
    let data = numbers(&[3, 2], &[1, 2, 3, 4, 5, 6]);
    let mut other = numbers(&[4], &[1, 2, 3, 4]);
    let got = plan.run().write_into(data.view(), other.view_mut());
    let expected = ScatterError::OutputShape {
        expected: vec![2, 2],
        actual: vec![4],
    };
    assert_eq!(got, Err(expected), "another output");
    assert_eq!(
        output.buffer,
        [5, 6, 7, 8],
        "the output was written before the error"
    );
}

/// A view of one element whose copy would exceed the address space.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_result_larger_than_memory_is_an_error() {
    let shape = [1 << 57];
    let data = TensorView::strided(&[1.0_f64], 0, &shape, &[0]).expect("one element for all");
    let indices = TensorView::<i64>::contiguous(&[], &[1, 0]).expect("the whole tensor");
    let expected = Err(ScatterError::OutOfMemory { bytes: 1 << 60 });
    let got = Gather::nd(0).allocate(data, indices);
    assert_eq!(got, expected, "one shot");
    let plan = Gather::nd(0).plan(data.layout(), indices);
    let plan = plan.expect("a plan of one tuple");
    assert_eq!(plan.run().allocate(data), expected, "planned");
}

/// Sizes whose product exceeds the address space.
#[test]
fn outputs_of_too_many_elements() {
    let indices = [0_i64];
    // The square has more elements than the address space has bytes.
    let size = 1 << (usize::BITS / 2 + 8);
    let many = [size];
    let indices = TensorView::strided(&indices, 0, &many, &[0]).expect("one index for all");
    let wide = [1, size];
    let data = TensorView::strided(&[1_u8], 0, &wide, &[0, 0]).expect("one element for all");
    let got = Gather::along(0).allocate(data, indices);
    let shape = vec![size, size];
    assert_eq!(
        got,
        Err(ScatterError::ShapeOverflow { shape }),
        "the square of the size"
    );
}
