//! The errors of `scatter_elements` and `tensor_scatter`. Each method returns the same error with
//! its facts, and writes nothing.

use crate::common::Tensor;
use crate::common::api::Methods;
use crate::common::elements::Ref;
use crate::common::harness::{Method, Operator, Options, Problem, Round};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::pools::Workers;
use crate::common::refused::{check_indices_refused, check_refused, filled, numbers};
use crate::common::request::Request;
use ndscatter::{
    Bounds, CacheMode, Duplicates, Layout, Reduction, Scatter, ScatterError, TensorView,
    TensorViewMut, scatter_elements, tensor_scatter,
};

/// The sizes of a tensor's dimensions.
type Shape = &'static [usize];

fn elements(axis: isize) -> Options<'static> {
    Options::new(Operator::Elements { axis }, Reduction::Add)
}

fn cache(axis: isize, mode: CacheMode, len: usize) -> Options<'static> {
    Options::new(Operator::Cache { axis, mode, len }, Reduction::None)
}

fn zeros(shape: &[usize]) -> Strided<i64> {
    Strided::new(
        &Tensor::generate(shape, || 0),
        Arrangement::Contiguous,
        0,
        0,
    )
}

#[test]
fn indices_of_another_rank_than_data() {
    for (data, shape) in [
        (&[2, 3][..], &[2][..]),
        (&[2, 3], &[2, 3, 1]),
        (&[2], &[]),
        (&[6], &[2, 3]),
    ] {
        let expected = ScatterError::IndicesRankMismatch {
            rank: data.len(),
            indices: shape.len(),
        };
        check_indices_refused::<i32>(&elements(0), data, &zeros(shape), shape, &expected);
    }
}

#[test]
fn indices_that_are_longer_than_data() {
    for (axis, data, shape, (too_long, size, data_size)) in [
        (0, &[2, 3][..], &[2, 4][..], (1, 4, 3)),
        (1, &[2, 3], &[3, 9], (0, 3, 2)),
        (-2, &[2, 3, 4], &[2, 9, 5], (2, 5, 4)),
        // The error names the lowest axis.
        (1, &[2, 3, 4], &[3, 3, 5], (0, 3, 2)),
        // The shape is checked even without indices.
        (0, &[2, 3], &[0, 4], (1, 4, 3)),
        (0, &[2, 0], &[2, 1], (1, 1, 0)),
    ] {
        let expected = ScatterError::IndicesTooLong {
            axis: too_long,
            size,
            data_size,
        };
        check_indices_refused::<f32>(&elements(axis), data, &zeros(shape), shape, &expected);
    }
}

#[test]
fn an_axis_out_of_range() {
    for (axis, data) in [
        (2, &[2, 3][..]),
        (-3, &[2, 3]),
        (0, &[]),
        (isize::MIN, &[4]),
    ] {
        let rank = data.len();
        let expected = ScatterError::AxisOutOfRange { axis, rank };
        check_indices_refused::<i32>(&elements(axis), data, &zeros(data), data, &expected);
    }
    for (axis, data) in [(2, &[2, 3][..]), (-3, &[2, 3]), (isize::MAX, &[4, 2])] {
        let rank = data.len();
        let expected = ScatterError::AxisOutOfRange { axis, rank };
        let options = cache(axis, CacheMode::Linear, 1);
        check_indices_refused::<i32>(&options, data, &zeros(&data[..1]), &[1, 1], &expected);
    }
}

#[test]
fn updates_of_another_shape() {
    let cases: [(Options<'_>, Shape, Shape, Shape, Shape); 7] = [
        // Options, shapes of data and indices, expected shape of updates, actual shape of updates.
        (elements(0), &[4, 3], &[2, 3], &[2, 3], &[2, 2]),
        (elements(0), &[4, 3], &[2, 3], &[2, 3], &[3, 2]),
        (elements(0), &[4, 3], &[2, 3], &[2, 3], &[6]),
        // Updates must have the shape of indices, not the shape of data.
        (elements(1), &[4, 3], &[4, 2], &[4, 2], &[4, 3]),
        // No broadcasting, not even of a single row.
        (elements(0), &[4, 3], &[2, 1], &[2, 1], &[1, 1]),
        // Outside the axis, updates have the cache's sizes.
        (
            cache(1, CacheMode::Linear, 2),
            &[2, 4, 3],
            &[2],
            &[2, 2, 3],
            &[2, 2, 2],
        ),
        (
            cache(-1, CacheMode::Circular, 2),
            &[2, 4, 3],
            &[2],
            &[2, 4, 2],
            &[1, 4, 2],
        ),
    ];
    for (options, data, indices, expected, actual) in cases {
        let error = ScatterError::UpdatesShape {
            expected: expected.into(),
            actual: actual.into(),
            one_tuple: None,
        };
        check_refused::<f64>(&options, data, &zeros(indices), actual, &error);
    }
}

#[test]
fn updates_of_a_cache_of_another_rank() {
    for actual in [&[2, 1][..], &[2], &[], &[2, 1, 3, 1], &[1, 2, 1, 3]] {
        let options = cache(1, CacheMode::Linear, 1);
        let (data, updates) = (filled::<i32>(&[2, 4, 3]), filled::<i32>(actual));
        let mut output = data.clone();
        let got = zeros(&[2]).in_place(&options, output.view_mut(), updates.view());
        let refused = ScatterError::CacheUpdatesShape {
            cache: vec![2, 4, 3],
            axis: 1,
            actual: actual.to_vec(),
        };
        assert_eq!(got, Err(refused), "{actual:?}");
        assert_eq!(
            output.buffer, data.buffer,
            "{actual:?}: the output was written before the error"
        );
    }
}

#[test]
fn the_batch_axis_is_not_an_axis_of_positions() {
    for (axis, data) in [(0, &[2, 3][..]), (-2, &[2, 3]), (0, &[4]), (-1, &[4])] {
        let rank = data.len();
        let options = cache(axis, CacheMode::Linear, 1);
        let expected = ScatterError::BatchAxis { rank };
        check_indices_refused::<i32>(&options, data, &zeros(&data[..1]), data, &expected);
    }
    let got = Scatter::cache(-2, CacheMode::Linear).plan(
        Layout::contiguous(&[]),
        TensorView::contiguous(&[0_i64], &[]).expect("one index"),
    );
    assert!(got.is_err(), "data of rank 0: {got:?}");
}

#[test]
fn updates_longer_than_the_cache() {
    for mode in [CacheMode::Linear, CacheMode::Circular] {
        for (axis, update, update_len) in [(1, &[2, 5, 3][..], 5), (-1, &[2, 4, 4], 4)] {
            let cache_len = update_len - 1;
            let expected = ScatterError::UpdateTooLong {
                axis: if axis == 1 { 1 } else { 2 },
                update_len,
                cache_len,
            };
            // The error does not need a sequence.
            for batch in [2, 0] {
                let update = [&[batch], &update[1..]].concat();
                let data = [batch, 4, 3];
                let options = cache(axis, mode, update_len);
                check_indices_refused::<u8>(&options, &data, &zeros(&[batch]), &update, &expected);
            }
        }
    }
}

#[test]
fn write_indices_of_another_shape() {
    for actual in [&[1][..], &[3], &[2, 1], &[1, 1], &[0]] {
        let expected = ScatterError::WriteIndicesShape {
            batch: 2,
            actual: actual.into(),
        };
        let message = expected.to_string();
        assert!(
            message.contains(&format!("{actual:?}")),
            "{message} does not name {actual:?}"
        );
        let options = cache(1, CacheMode::Linear, 4);
        check_indices_refused::<i32>(&options, &[2, 4], &zeros(actual), &[2, 4], &expected);
    }
}

/// Checks an update of 2 positions in caches of 5.
fn check_write_indices(mode: CacheMode, indices: &[i64], refused: Option<(usize, i64)>) {
    let options = cache(1, mode, 2);
    let (data, updates) = (&[indices.len(), 5, 2], &[indices.len(), 2, 2]);
    let indices = numbers(&[indices.len()], indices);
    if let Some((batch, index)) = refused {
        let expected = ScatterError::WriteIndex {
            batch,
            index: index.into(),
            update_len: 2,
            cache_len: 5,
            mode,
        };
        check_indices_refused::<i32>(&options, data, &indices, updates, &expected);
        return;
    }
    let problem = Problem {
        indices: &indices,
        rounds: vec![Round {
            data: filled::<i32>(data),
            updates: filled(updates),
        }],
        output: Arrangement::Contiguous,
        margin: 1,
    };
    for method in Method::ALL {
        problem
            .check(method, &options)
            .unwrap_or_else(|difference| panic!("{mode:?}: {difference}"));
    }
}

#[test]
fn positions_in_a_cache() {
    let (linear, circular) = (CacheMode::Linear, CacheMode::Circular);
    // 3 is the last position with room for two. 4 has no room.
    check_write_indices(linear, &[0, 3], None);
    check_write_indices(linear, &[3, 4, 5], Some((1, 4)));
    // The error names the first wrong sequence.
    check_write_indices(linear, &[0, -1, 99], Some((1, -1)));
    // Added to the length, these positions would wrap to valid ones.
    check_write_indices(linear, &[i64::MAX], Some((0, i64::MAX)));
    check_write_indices(linear, &[i64::MAX - 1], Some((0, i64::MAX - 1)));
    check_write_indices(linear, &[i64::MIN], Some((0, i64::MIN)));
    // Circular caches accept every position that is not negative.
    check_write_indices(circular, &[0, 4, 5, 9, 1_000_003], None);
    check_write_indices(circular, &[i64::MAX, i64::MAX - 1], None);
    check_write_indices(circular, &[4, -1], Some((1, -1)));
    check_write_indices(circular, &[i64::MIN], Some((0, i64::MIN)));
}

#[test]
fn positions_beyond_signed_integers() {
    let options = cache(1, CacheMode::Linear, 1);
    let expected = ScatterError::WriteIndex {
        batch: 1,
        index: u64::MAX.into(),
        update_len: 1,
        cache_len: 5,
        mode: CacheMode::Linear,
    };
    let indices = numbers(&[2], &[0, u64::MAX]);
    check_indices_refused::<i32>(&options, &[2, 5], &indices, &[2, 1], &expected);
}

/// One position for all sequences is reported as the position of the first.
#[test]
fn a_shared_position_that_does_not_fit() {
    let options = cache(1, CacheMode::Linear, 2);
    let expected = ScatterError::WriteIndex {
        batch: 0,
        index: 4,
        update_len: 2,
        cache_len: 5,
        mode: CacheMode::Linear,
    };
    check_indices_refused::<i32>(
        &options,
        &[2, 5],
        &numbers(&[], &[4_i64]),
        &[2, 2],
        &expected,
    );
}

/// Nothing would be written, but the position is checked.
#[test]
fn positions_of_empty_windows() {
    let options = cache(1, CacheMode::Linear, 2);
    let expected = ScatterError::WriteIndex {
        batch: 1,
        index: 4,
        update_len: 2,
        cache_len: 5,
        mode: CacheMode::Linear,
    };
    let indices = numbers(&[2], &[3_i64, 4]);
    check_indices_refused::<i32>(&options, &[2, 5, 0], &indices, &[2, 2, 0], &expected);
}

#[test]
fn a_cache_has_neither_reduction_nor_clamp() {
    let check = |options: &Options<'_>, option| {
        let expected = ScatterError::UnsupportedOption { option };
        let indices = numbers(&[2], &[0_i64, 1]);
        check_indices_refused::<i32>(options, &[2, 4], &indices, &[2, 4], &expected);
    };
    for &reduction in &Reduction::ALL[1..] {
        let mut options = cache(1, CacheMode::Linear, 4);
        options.execution = reduction.into();
        check(&options, "reduction");
    }
    let mut options = cache(1, CacheMode::Circular, 4);
    options.bounds = Bounds::Clamp;
    check(&options, "bounds");
}

#[test]
fn a_plan_of_a_cache_reduces_nothing() {
    let options = cache(1, CacheMode::Circular, 4);
    let indices = numbers(&[2], &[0_i64, 3]);
    let plan = indices.plan(&options, Layout::contiguous(&[2, 4]));
    let plan = plan.expect("the indices are valid");
    let mut data = filled::<i32>(&[2, 4]);
    let before = data.buffer.clone();
    let got = Request::new(Reduction::Add)
        .run(&plan)
        .in_place(data.view_mut(), filled(&[2, 4]).view());
    let option = "reduction";
    assert_eq!(got, Err(ScatterError::UnsupportedOption { option }), "add");
    assert_eq!(
        data.buffer, before,
        "the output was written before the error"
    );
}

#[test]
fn the_functions_return_the_errors_of_the_builders() {
    let mut data = [1, 2, 3, 4];
    let got = scatter_elements(
        TensorViewMut::contiguous(&mut data, &[2, 2]).expect("data"),
        TensorView::contiguous(&[0_i64, 2], &[1, 2]).expect("indices"),
        TensorView::contiguous(&[5, 6], &[1, 2]).expect("updates"),
        0,
        Reduction::None,
    );
    let expected = ScatterError::IndexOutOfBounds {
        tuple: 1,
        axis: 0,
        index: 2,
        size: 2,
    };
    assert_eq!(got, Err(expected), "elements");
    let got = tensor_scatter(
        TensorViewMut::contiguous(&mut data, &[2, 2]).expect("data"),
        Some(TensorView::contiguous(&[0, 2], &[2]).expect("indices")),
        TensorView::contiguous(&[5, 6], &[2, 1]).expect("updates"),
        1,
        CacheMode::Linear,
    );
    let expected = ScatterError::WriteIndex {
        batch: 1,
        index: 2,
        update_len: 1,
        cache_len: 2,
        mode: CacheMode::Linear,
    };
    assert_eq!(got, Err(expected), "cache");
    assert_eq!(
        data,
        [1, 2, 3, 4],
        "the output was written before the error"
    );
}

#[test]
fn shapes_come_before_bounds_and_bounds_before_duplicates() {
    let mut options = elements(0);
    options.duplicates = Duplicates::Reject;
    // The shape, an index and a duplicate are wrong.
    let indices = numbers(&[2, 2], &[1_i64, 0, 1, 9]);
    let shape = ScatterError::UpdatesShape {
        expected: vec![2, 2],
        actual: vec![2, 1],
        one_tuple: None,
    };
    check_refused::<i32>(&options, &[4, 2], &indices, &[2, 1], &shape);
    let bounds = ScatterError::IndexOutOfBounds {
        tuple: 3,
        axis: 0,
        index: 9,
        size: 4,
    };
    check_indices_refused::<i32>(&options, &[4, 2], &indices, &[2, 2], &bounds);
    // An unsupported option is reported before a wrong position.
    let mut options = cache(1, CacheMode::Linear, 1);
    options.execution = Reduction::Add.into();
    let option = "reduction";
    let expected = ScatterError::UnsupportedOption { option };
    check_refused::<i32>(
        &options,
        &[2, 4],
        &numbers(&[2], &[0_i64, 9]),
        &[2, 1],
        &expected,
    );
}

/// A row that repeats its index is checked as one index. Errors count all elements of `indices`.
#[test]
fn the_first_error_among_many_rows() {
    const ROWS: usize = 4000;
    const COLUMNS: usize = 100;
    let check = |bad: &[(usize, i64)], expected: Option<ScatterError>| {
        let index = |i: usize| i64::try_from(i / COLUMNS).expect("the index fits i64");
        let mut values: Vec<i64> = (0..ROWS * COLUMNS).map(index).collect();
        for &(tuple, index) in bad {
            values[tuple] = index;
        }
        let indices = numbers(&[ROWS, COLUMNS], &values);
        let data = Tensor::new(&[ROWS, COLUMNS], vec![i32::sentinel(); ROWS * COLUMNS]);
        let data = Strided::new(&data, Arrangement::Contiguous, 0, 0);
        for workers in [1, 2, 3, 8].map(Workers::Installed) {
            workers.with(|pool| {
                let mut options = elements(0);
                options.execution = Request::new(Reduction::Add).pool(pool);
                options.duplicates = Duplicates::Reject;
                let mut output = data.clone();
                let got = indices.in_place(&options, output.view_mut(), data.view());
                assert_eq!(got.err(), expected, "{workers:?}");
                let untouched = output.buffer == data.buffer;
                assert!(
                    untouched || expected.is_none(),
                    "{workers:?}: the output was written before the error"
                );
                let got = indices.plan(&options, data.layout());
                assert_eq!(got.err(), expected, "{workers:?}, planned");
            });
        }
    };
    let row =
        |row: usize, index: i64| (row * COLUMNS..(row + 1) * COLUMNS).map(move |i| (i, index));
    let out = |tuple, index: i64| ScatterError::IndexOutOfBounds {
        tuple,
        axis: 0,
        index: index.into(),
        size: ROWS,
    };
    check(&[], None);
    // A wrong index in a whole row, and in one element of a row.
    let bad: Vec<_> = row(2500, 4000).chain(row(3999, -5000)).collect();
    check(&bad, Some(out(250_000, 4000)));
    check(
        &[(399_999, 1 << 40), (250_071, -4001)],
        Some(out(250_071, -4001)),
    );
    // Duplicate rows: the error names the first element of the first duplicate row.
    let bad: Vec<_> = row(3999, 7).chain(row(1234, 7)).collect();
    let (tuple, earlier) = (123_400, 700);
    check(&bad, Some(ScatterError::DuplicateIndex { tuple, earlier }));
    // A duplicate in one element of a row.
    let (tuple, earlier) = (399_950, 50);
    check(
        &[(399_950, 0)],
        Some(ScatterError::DuplicateIndex { tuple, earlier }),
    );
}

#[test]
fn plans_serve_one_layout() {
    let indices = numbers(&[1, 2], &[2_i64, 0]);
    let plans = [
        indices.plan(&elements(0), Layout::contiguous(&[4, 3])),
        numbers(&[4], &[0_i64, 1, 2, 3]).plan(
            &cache(1, CacheMode::Circular, 3),
            Layout::contiguous(&[4, 3]),
        ),
    ];
    for (plan, updates) in plans.into_iter().zip([[1, 2], [4, 3]]) {
        let plan = plan.expect("the indices are valid");
        for (shape, arrangement) in [
            (&[3, 4][..], Arrangement::Contiguous),
            (&[12], Arrangement::Contiguous),
            (&[4, 3], Arrangement::Permuted),
            (&[4, 3], Arrangement::Padded),
        ] {
            let tensor = Tensor::generate(shape, || 1);
            let mut output = Strided::new(&tensor, arrangement, 1, 2);
            let before = output.buffer.clone();
            let updates = filled::<i32>(&updates);
            let got = Request::new(Reduction::None)
                .run(&plan)
                .in_place(output.view_mut(), updates.view());
            let refused = matches!(&got, Err(ScatterError::PlanMismatch { planned_shape, shape: given, .. })
                if planned_shape == &[4, 3] && given == shape);
            assert!(refused, "{shape:?} {arrangement:?}: {got:?}");
            assert_eq!(
                output.buffer, before,
                "the output was written before the error"
            );
        }
        // Updates whose shape differs from the plan's shape.
        let mut output = filled::<i32>(&[4, 3]);
        let got = Request::new(Reduction::None)
            .run(&plan)
            .in_place(output.view_mut(), filled(&[2, 2]).view());
        let expected = ScatterError::UpdatesShape {
            expected: updates.into(),
            actual: vec![2, 2],
            one_tuple: None,
        };
        assert_eq!(got, Err(expected), "updates");
    }
}
