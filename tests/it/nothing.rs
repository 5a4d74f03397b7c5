//! Calls that move no element cost nothing, at any number of tuples, sequences or repetitions.
//! Shapes without elements may have sizes that no loop could finish. Errors are still found.

use std::sync::mpsc;
use std::time::Duration;

use ndscatter::{
    Bounds, CacheMode, Cloned, DType, Duplicates, Gather, Layout, Reduction, Scatter, ScatterError,
    TensorView, TensorViewMut,
};

const MANY: usize = 1 << (usize::BITS - 3);
/// A quarter of the address space.
const QUARTER: usize = 1 << (usize::BITS - 2);

/// Panics if `call` does not return within 20 seconds. Its thread is then left running.
fn returns(call: impl FnOnce() + Send + 'static) {
    let (done, returned) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        call();
        let _ = done.send(());
    });
    match returned.recv_timeout(Duration::from_secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a call did not return"),
        _ => thread.join().expect("the call does not panic"),
    }
}

fn data<'a>(shape: &'a [usize]) -> TensorViewMut<'a, f32> {
    TensorViewMut::contiguous(&mut [], shape).expect("no elements")
}

fn view<'a>(shape: &'a [usize]) -> TensorView<'a, f32> {
    TensorView::contiguous(&[], shape).expect("no elements")
}

/// Returns a list with one value, by the given strides.
fn many<'a>(value: &'a [i64; 1], shape: &'a [usize], strides: &'a [isize]) -> TensorView<'a, i64> {
    TensorView::strided(value, 0, shape, strides).expect("one value for all")
}

#[test]
fn rows_of_sequences_without_elements() {
    returns(|| {
        let (cache, starts) = (
            [MANY, 2, 0],
            TensorView::contiguous(&[0_i64], &[]).expect("one"),
        );
        for len in 0..=2 {
            let update = [MANY, len, 0];
            for mode in [CacheMode::Linear, CacheMode::Circular] {
                let scatter = Scatter::cache(1, mode).update_len(len);
                let done = scatter.in_place(data(&cache), starts, view(&update));
                assert_eq!(done, Ok(()), "{len}, {mode:?}");
                let got = scatter
                    .allocate(view(&cache), starts, view(&update))
                    .map(ndscatter::Tensor::into_vec);
                assert_eq!(got, Ok(vec![]), "{len}, {mode:?}, allocated");
                let plan = scatter
                    .plan(Layout::contiguous(&cache), starts)
                    .expect("a plan");
                let done = plan.run().in_place(data(&cache), view(&update));
                assert_eq!(done, Ok(()), "{len}, {mode:?}, planned");
                assert_eq!(plan.tuples(), MANY * len, "{len}: the number of tuples");
                assert_eq!(
                    plan.has_duplicates(),
                    Ok(false),
                    "{len}: no row has two tuples"
                );
            }
        }
        // Rows without elements before the last axis.
        let (cache, update) = ([MANY, 0, 2], [MANY, 0, 1]);
        let done = tensor_scatter(&cache, starts, &update);
        assert_eq!(done, Ok(()), "the last axis");
    });
}

fn tensor_scatter(
    cache: &[usize],
    starts: TensorView<'_, i64>,
    update: &[usize],
) -> Result<(), ScatterError> {
    let scatter = Scatter::cache(-1, CacheMode::Linear);
    scatter.in_place(data(cache), starts, view(update))
}

#[test]
fn positions_of_sequences_without_elements_are_checked() {
    returns(|| {
        let (cache, update) = ([MANY, 2, 0], [MANY, 2, 0]);
        let refused = |batch, index| {
            Err(ScatterError::WriteIndex {
                batch,
                index,
                update_len: 2,
                cache_len: 2,
                mode: CacheMode::Linear,
            })
        };
        let scatter = Scatter::cache(1, CacheMode::Linear);
        let shared = TensorView::contiguous(&[1_i64], &[]).expect("one for all");
        let got = scatter.in_place(data(&cache), shared, view(&update));
        assert_eq!(got, refused(0, 1), "one for all");
        let starts = TensorView::contiguous(&[0_i64, 0, -1], &[3]).expect("three");
        let got = scatter.in_place(data(&[3, 2, 0]), starts, view(&[3, 2, 0]));
        assert_eq!(got, refused(2, -1), "one position per sequence");
    });
}

#[test]
fn tuples_of_windows_without_elements() {
    returns(|| {
        // Without coordinates, each tuple addresses the whole tensor.
        let (shape, updates) = ([0], [QUARTER, 0]);
        let whole = TensorView::<i64>::contiguous(&[], &[QUARTER, 0]).expect("no indices");
        check(&shape, whole, &updates, QUARTER, Ok(true));
        // One coordinate for all tuples.
        let (shape, list) = ([5, 0], [MANY, 1]);
        let same = many(&[3], &list, &[0, 0]);
        check(&shape, same, &[MANY, 0], MANY, Ok(true));
        // A scatter without repetitions.
        let update = Scatter::along(1);
        let list = [MANY, 2];
        let done = update.in_place(
            data(&[0, 5]),
            many(&[4], &list, &[0, 0]),
            view(&[0, MANY, 2]),
        );
        assert_eq!(done, Ok(()), "no repetition");
    });
}

/// Checks all methods of `scatter_nd`, and the facts of its plan.
fn check(
    shape: &[usize],
    indices: TensorView<'_, i64>,
    updates: &[usize],
    tuples: usize,
    duplicates: Result<bool, ScatterError>,
) {
    for bounds in Bounds::ALL {
        let scatter = Scatter::nd().bounds(bounds).reduction(Reduction::Add);
        let done = scatter.in_place(data(shape), indices, view(updates));
        assert_eq!(done, Ok(()), "{bounds:?}");
        let done = scatter.write_into(view(shape), indices, view(updates), data(shape));
        assert_eq!(done, Ok(()), "{bounds:?}, written");
        let plan = scatter
            .plan(Layout::contiguous(shape), indices)
            .expect("a plan");
        assert_eq!(plan.tuples(), tuples, "{bounds:?}");
        assert_eq!(plan.has_duplicates(), duplicates, "{bounds:?}");
        let done = plan.run().in_place(data(shape), view(updates));
        assert_eq!(done, Ok(()), "{bounds:?}, planned");
        let explained = plan.run().explain(DType::F32, true);
        explained
            .expect("a call without work is explained")
            .to_string();
        let reject = scatter.clone().duplicates(Duplicates::Reject);
        let got = reject.in_place(data(shape), indices, view(updates));
        let (tuple, earlier) = (1, 0);
        let refused = ScatterError::DuplicateIndex { tuple, earlier };
        assert_eq!(
            got,
            Err(refused),
            "{bounds:?}: the second tuple is a duplicate of the first"
        );
    }
}

#[test]
fn indices_of_windows_without_elements_are_checked() {
    returns(|| {
        let list = [2, MANY / 2, 1];
        let bad = TensorView::strided(&[1_i64, 7], 0, &list, &[1, 0, 0]).expect("two values");
        let (shape, updates) = ([5, 0], [2, MANY / 2, 0]);
        let refused = ScatterError::IndexOutOfBounds {
            tuple: MANY / 2,
            axis: 0,
            index: 7,
            size: 5,
        };
        let scatter = Scatter::nd();
        let got = scatter.in_place(data(&shape), bad, view(&updates));
        assert_eq!(got.as_ref(), Err(&refused), "the first of the second half");
        let got = scatter.plan(Layout::contiguous(&shape), bad).map(drop);
        assert_eq!(got, Err(refused), "planned");
        let skip = Scatter::nd().bounds(Bounds::Skip);
        let plan = skip
            .plan(Layout::contiguous(&shape), bad)
            .expect("half of the tuples");
        assert_eq!(plan.tuples(), MANY / 2, "the other tuples are skipped");
        let negative = many(&[-1], &[MANY, 1], &[0, 0]);
        let forbidden = Scatter::nd().negative_indices(false);
        let got = forbidden.in_place(data(&shape), negative, view(&[MANY, 0]));
        let found = matches!(got, Err(ScatterError::IndexOutOfBounds { tuple: 0, .. }));
        assert!(found, "{got:?}");
    });
}

/// Indices of an element scatter for more tuples than a loop could count. The repeated dim is one
/// of the list, or one of the window.
#[test]
fn repeated_indices_without_elements_are_compared_once() {
    returns(|| {
        for values in [[0_i64, 0], [0, 1]] {
            let shape = [1, MANY / 2, 2];
            let indices = TensorView::strided(&values, 0, &shape, &[0, 0, 1]).expect("values");
            check_empty(&Scatter::elements(0), &[0, MANY / 2, 2], indices);
        }
        let shape = [2, MANY / 4, 1, 2];
        let values = [0_i64, 0, 1, 1];
        let indices = TensorView::strided(&values, 0, &shape, &[2, 0, 0, 1]).expect("values");
        check_empty(&Scatter::elements(2), &[2, MANY / 4, 0, 2], indices);
    });
}

#[test]
fn an_axis_without_positions_has_no_tuples() {
    returns(|| {
        let list = many(&[0], &[MANY / 8], &[0]);
        check_empty(&Scatter::along(0), &[0, 5], list);
        let list = many(&[0], &[MANY / 8, 1], &[0, 0]);
        check_empty(&Scatter::nd(), &[0, 5], list);
    });
}

/// Checks data without elements, where no index is in bounds.
fn check_empty(scatter: &Scatter<'_>, shape: &[usize], indices: TensorView<'_, i64>) {
    let updates_shape = scatter
        .updates_shape(shape, indices.shape())
        .expect("valid shapes");
    let updates = TensorView::splat(&1.0, &updates_shape).expect("one value");
    let got = scatter.in_place(data(shape), indices, updates);
    let found = matches!(
        got,
        Err(ScatterError::IndexOutOfBounds {
            tuple: 0,
            index: 0,
            size: 0,
            ..
        })
    );
    assert!(found, "{got:?}");
    let skip = scatter.clone().bounds(Bounds::Skip);
    let done = skip.in_place(data(shape), indices, updates);
    assert_eq!(done, Ok(()), "all are skipped");
    let plan = (skip.plan(Layout::contiguous(shape), indices)).expect("a plan of nothing");
    assert_eq!(plan.tuples(), 0, "all are skipped");
    assert!(plan.skipped() > 0, "skipped tuples are counted");
    let done = plan.run().in_place(data(shape), updates);
    assert_eq!(done, Ok(()), "planned");
}

#[test]
fn skipped_tuples_before_the_first_applied_tuple_cost_nothing() {
    returns(|| {
        let values = [7_i64, 1];
        let list = [2, MANY / 2, 1];
        let far = TensorView::strided(&values, 0, &list, &[1, 0, 0]).expect("two values");
        let skip = Scatter::nd().bounds(Bounds::Skip);
        let plan = (skip.plan(Layout::contiguous(&[5, 0]), far)).expect("half of the tuples");
        assert_eq!(plan.tuples(), MANY / 2, "the other tuples are skipped");
        assert_eq!(plan.has_duplicates(), Ok(true), "one value is repeated");
        let reject = skip.duplicates(Duplicates::Reject);
        let got = reject.plan(Layout::contiguous(&[5, 0]), far).map(drop);
        let (tuple, earlier) = (MANY / 2 + 1, MANY / 2);
        assert_eq!(got, Err(ScatterError::DuplicateIndex { tuple, earlier }));
        let far = TensorView::strided(&values, 0, &list[..2], &[1, 0]).expect("two values");
        let gather = Gather::along(0).bounds(Bounds::Skip);
        let plan = gather.plan(Layout::contiguous(&[5, 0]), far).map(drop);
        assert_eq!(plan, Ok(()), "a gather");
    });
}

#[test]
fn sizes_next_to_a_size_of_zero_do_not_overflow() {
    let cache = [1, 0, 1, QUARTER];
    let start = [-1_i64];
    let skip = Scatter::cache(2, CacheMode::Linear).bounds(Bounds::Skip);
    let done = skip.in_place(data(&cache), TensorView::from(&start), view(&cache));
    assert_eq!(done, Ok(()), "an idle sequence without heads");
    let list = TensorView::<i64>::contiguous(&[], &[0]).expect("no indices");
    let plan = Scatter::along(0).plan(Layout::contiguous(&[0, QUARTER]), list);
    let plan = plan.expect("a plan of nothing");
    let explained = plan.run().explain(DType::F32, true);
    assert!(explained.is_ok(), "{explained:?}");
}

#[test]
fn duplicates_of_windows_without_elements_are_found() {
    let list = |values: &'static [i64]| (values, [values.len(), 1]);
    for (values, expected) in [
        (&[0_i64, 2, 4][..], None),
        (&[4, 2, -3], Some((2, 1))),
        (&[4, -1, 4], Some((1, 0))),
    ] {
        let (values, shape) = list(values);
        let indices = TensorView::contiguous(values, &shape).expect("a list");
        let reject = Scatter::nd().duplicates(Duplicates::Reject);
        let expected = expected.map_or(Ok(()), |(tuple, earlier)| {
            Err(ScatterError::DuplicateIndex { tuple, earlier })
        });
        let got = reject.in_place(data(&[5, 0]), indices, view(&[3, 0]));
        assert_eq!(got, expected, "{values:?}");
    }
}

#[test]
fn repetitions_without_tuples() {
    returns(|| {
        let none = TensorView::<i64>::contiguous(&[], &[0]).expect("no index");
        let done = Scatter::along(1).in_place(data(&[MANY, 2, 0]), none, view(&[MANY, 0, 0]));
        assert_eq!(done, Ok(()), "no tuples");
        // Elements of size 0 may have equally large shapes.
        let mut units = vec![(); MANY];
        let output = TensorViewMut::contiguous(&mut units, &[MANY / 2, 2]).expect("units");
        let updates = TensorView::contiguous(&[], &[MANY / 2, 0]).expect("none");
        let done = Scatter::along(1).in_place(Cloned(output), none, Cloned(updates));
        assert_eq!(done, Ok(()), "units");
        let plan = Scatter::along(1).plan(Layout::contiguous(&[MANY / 2, 2]), none);
        let output = TensorViewMut::contiguous(&mut units, &[MANY / 2, 2]).expect("units");
        let done = plan
            .expect("a plan")
            .run()
            .in_place(Cloned(output), Cloned(updates));
        assert_eq!(done, Ok(()), "units, planned");
    });
}

#[test]
fn gathers_without_elements() {
    returns(|| {
        let whole = TensorView::<i64>::contiguous(&[], &[QUARTER, 0]).expect("no indices");
        let got = Gather::nd(0)
            .allocate(view(&[0]), whole)
            .map(ndscatter::Tensor::into_vec);
        assert_eq!(got, Ok(vec![]), "whole tensors");
        let batches = MANY / 8;
        let (shape, list) = ([batches, 5, 0], [batches, 1]);
        let indices = many(&[4], &list, &[0, 0]);
        let got = Gather::nd(1)
            .allocate(view(&shape), indices)
            .map(ndscatter::Tensor::into_vec);
        assert_eq!(got, Ok(vec![]), "batch dims");
        let plan = Gather::nd(1)
            .plan(Layout::contiguous(&shape), indices)
            .expect("a plan");
        assert_eq!(
            plan.run()
                .allocate(view(&shape))
                .map(ndscatter::Tensor::into_vec),
            Ok(vec![]),
            "batch dims, planned"
        );
        let rows = many(&[4], &[MANY], &[0]);
        let got = Gather::along(0)
            .allocate(view(&[5, 0]), rows)
            .map(ndscatter::Tensor::into_vec);
        assert_eq!(got, Ok(vec![]), "rows");
        let got = Gather::along(0).allocate(view(&[4, 0]), rows);
        assert!(got.is_err(), "the indices are checked");
    });
}

#[test]
fn element_scatters_without_elements() {
    returns(|| {
        let shape = [0, MANY];
        let none = TensorView::<i64>::contiguous(&[], &shape).expect("no indices");
        let done = Scatter::elements(1).in_place(data(&shape), none, view(&shape));
        assert_eq!(done, Ok(()), "along the long axis");
        let done = Scatter::elements(0).in_place(data(&shape), none, view(&shape));
        assert_eq!(done, Ok(()), "along the empty axis");
    });
}
