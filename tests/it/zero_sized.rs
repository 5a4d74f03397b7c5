//! Elements of size 0. They are cloned and dropped like other elements, although they have no
//! separate addresses.

use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(miri))]
use crate::common::pools::{Sequential, rayon_pool};
use ndscatter::{
    CallingThread, Cloned, Duplicates, Execution, Gather, Layout, Pool, Scatter, Schedule,
    TensorView, TensorViewMut,
};

/// More tuples than a plan numbers on the stack.
const TUPLES: usize = 601;
const SLICES: usize = 7;

static CLONES: AtomicUsize = AtomicUsize::new(0);

/// An element that counts its clones.
struct Counted;

impl Clone for Counted {
    fn clone(&self) -> Self {
        CLONES.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

fn places(tuples: usize) -> Vec<i64> {
    (0..tuples)
        .map(|tuple| i64::try_from(tuple * 5 % SLICES).expect("small"))
        .collect()
}

/// Runs every method of a scatter of `updates` into slices of `window` elements, as a one-shot call
/// and with a plan. Returns the number of calls.
fn every_method<T: Clone + Send + Sync>(
    element: &T,
    tuples: usize,
    window: usize,
    execution: Execution<'_>,
) -> usize {
    let (shape, updates_shape, list) = ([SLICES, window], [tuples, window], [tuples, 1]);
    let mut output = vec![element.clone(); SLICES * window];
    let data = vec![element.clone(); SLICES * window];
    let updates = vec![element.clone(); tuples * window];
    let indices = places(tuples);
    let indices = TensorView::contiguous(&indices, &list).expect("indices");
    let updates = TensorView::contiguous(&updates, &updates_shape).expect("updates");
    let data = TensorView::contiguous(&data, &shape).expect("data");
    let scatter = Scatter::nd().execution(execution);
    let plan = scatter
        .plan(Layout::contiguous(&shape), indices)
        .expect("valid indices");
    let mut target = TensorViewMut::contiguous(&mut output, &shape).expect("an output");
    CLONES.store(0, Ordering::Relaxed);
    (scatter.in_place(Cloned(target.reborrow()), indices, Cloned(updates))).expect("in place");
    (scatter.write_into(
        Cloned(data),
        indices,
        Cloned(updates),
        Cloned(target.reborrow()),
    ))
    .expect("into");
    let made = (scatter.allocate(Cloned(data), indices, Cloned(updates))).expect("allocated");
    assert_eq!(
        made.len(),
        SLICES * window,
        "the number of elements of data"
    );
    let run = plan.run().execution(execution);
    (run.in_place(Cloned(target.reborrow()), Cloned(updates))).expect("planned, in place");
    (run.write_into(Cloned(data), Cloned(updates), Cloned(target))).expect("planned, into");
    let made = (run.allocate(Cloned(data), Cloned(updates))).expect("planned, allocated");
    assert_eq!(
        made.len(),
        SLICES * window,
        "the number of elements of data"
    );
    6
}

fn executions<'p>(pool: &'p dyn Pool) -> impl Iterator<Item = Execution<'p>> {
    let chosen = Execution::new().pool(pool);
    let forced = Schedule::ALL.map(|schedule| chosen.force_schedule(schedule));
    std::iter::once(chosen).chain(forced)
}

#[test]
fn scatters_of_units() {
    // Under Miri, one size must suffice. 70 tuples are more than a plan stores inline.
    let (lengths, windows): (&[usize], &[usize]) = if cfg!(miri) {
        (&[70], &[1])
    } else {
        (&[0, 1, 20, 100, TUPLES], &[0, 1, 3])
    };
    for execution in executions(&CallingThread) {
        for &tuples in lengths {
            for &window in windows {
                every_method(&(), tuples, window, execution);
            }
        }
    }
}

#[cfg(not(miri))]
#[test]
fn scatters_of_units_on_several_threads() {
    for execution in executions(rayon_pool(3)).chain(executions(&Sequential)) {
        every_method(&(), 5 * TUPLES, 1, execution);
        every_method(&(), TUPLES, 40, execution);
    }
}

/// In the order of the sequential loop, every update is cloned once. Out of place, every element of
/// data is cloned too.
#[test]
fn every_update_is_cloned() {
    let execution = Execution::new().pool(&CallingThread);
    for tuples in [20, 100, TUPLES] {
        let methods = every_method(&Counted, tuples, 1, execution);
        let copies = 4 * SLICES;
        assert_eq!(
            CLONES.load(Ordering::Relaxed),
            methods * tuples + copies,
            "{tuples} tuples"
        );
    }
}

#[test]
fn other_operators_and_options() {
    let mut output = [(); SLICES * 3];
    let indices = places(TUPLES);
    let updates = [(); 3 * TUPLES];
    let view = TensorView::contiguous(&indices, &[TUPLES]).expect("indices");
    let target = TensorViewMut::contiguous(&mut output, &[3, SLICES]).expect("an output");
    let updates_view = TensorView::contiguous(&updates, &[3, TUPLES]).expect("updates");
    (Scatter::along(1).in_place(Cloned(target), view, Cloned(updates_view))).expect("an axis");

    let wide = [places(TUPLES), places(TUPLES), places(TUPLES)].concat();
    let view = TensorView::contiguous(&wide, &[3, TUPLES]).expect("indices");
    let target = TensorViewMut::contiguous(&mut output, &[3, SLICES]).expect("an output");
    (Scatter::elements(1).in_place(Cloned(target), view, Cloned(updates_view))).expect("elements");

    // A reversed output, and one element for all updates.
    let view = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("indices");
    let target =
        TensorViewMut::strided(&mut output, SLICES - 1, &[SLICES], &[-1]).expect("an output");
    let fill = TensorView::strided(&updates, 0, &[TUPLES], &[0]).expect("updates");
    (Scatter::nd().in_place(Cloned(target), view, Cloned(fill))).expect("strides");

    let target = TensorViewMut::contiguous(&mut output[..SLICES], &[SLICES]).expect("an output");
    let rejecting = Scatter::nd().duplicates(Duplicates::Reject);
    let refused = rejecting.in_place(Cloned(target), view, Cloned(fill));
    assert!(refused.is_err(), "destinations repeat");
}

#[test]
fn gathers_of_units() {
    let data = [(); 3 * SLICES];
    let indices = places(TUPLES);
    let mut output = [(); 3 * TUPLES];
    let mut target = TensorViewMut::contiguous(&mut output, &[TUPLES, 3]).expect("an output");
    let rows = TensorView::contiguous(&data, &[SLICES, 3]).expect("data");
    let list = TensorView::contiguous(&indices, &[TUPLES]).expect("indices");
    (Gather::along(0).write_into(Cloned(rows), list, Cloned(target.reborrow()))).expect("rows");
    let tuples = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("indices");
    (Gather::nd(0).write_into(Cloned(rows), tuples, Cloned(target))).expect("slices");

    let wide = [places(TUPLES), places(TUPLES), places(TUPLES)].concat();
    let wide = TensorView::contiguous(&wide, &[3, TUPLES]).expect("indices");
    let data = TensorView::contiguous(&data, &[3, SLICES]).expect("data");
    let target = TensorViewMut::contiguous(&mut output, &[3, TUPLES]).expect("an output");
    (Gather::elements(1).write_into(Cloned(data), wide, Cloned(target))).expect("elements");
}
