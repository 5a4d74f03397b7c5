//! Panics in code of the caller: in the n-th clone of an element, in the n-th drop, and in a pool.
//!
//! After a panic, no element has been dropped twice. No element is lost, unless the method may leak
//! its result. The next call gives the right result. `it/concurrency` tests larger calls.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use common::api::Request;
use common::pools::{Sequential, Threads};
use ndscatter::{
    Cloned, Gather, Pool, Reduction, Scatter, ScatterError, Schedule, TensorView, TensorViewMut,
};

/// Counts the elements of one case, and chooses the clone or the drop that panics.
#[derive(Default)]
struct Ledger {
    made: AtomicUsize,
    dropped: AtomicUsize,
    dropped_twice: AtomicUsize,
    /// Number of clones until one panics, including that one. 0: none panics.
    until_clone: AtomicUsize,
    /// Number of drops until one panics, including that one. 0: none panics.
    until_drop: AtomicUsize,
}

/// Panics if the event that `countdown` counts is the chosen one.
fn count(countdown: &AtomicUsize) {
    let left = countdown.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
    if left == Ok(1) {
        // `panic!` would print its message.
        resume_unwind(Box::new("the chosen event"));
    }
}

struct Element<'l> {
    ledger: &'l Ledger,
    value: usize,
    is_dropped: AtomicBool,
}

impl<'l> Element<'l> {
    fn new(ledger: &'l Ledger, value: usize) -> Self {
        ledger.made.fetch_add(1, Relaxed);
        Self {
            ledger,
            value,
            is_dropped: AtomicBool::new(false),
        }
    }
}

impl Clone for Element<'_> {
    fn clone(&self) -> Self {
        count(&self.ledger.until_clone);
        Self::new(self.ledger, self.value)
    }
}

impl Drop for Element<'_> {
    fn drop(&mut self) {
        if self.is_dropped.swap(true, Relaxed) {
            self.ledger.dropped_twice.fetch_add(1, Relaxed);
        }
        self.ledger.dropped.fetch_add(1, Relaxed);
        count(&self.ledger.until_drop);
    }
}

/// A call with cloned elements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Allocate,
    WriteInto,
    InPlace,
    GatherAllocate,
    GatherInto,
}

const WAYS: [Way; 5] = [
    Way::Allocate,
    Way::WriteInto,
    Way::InPlace,
    Way::GatherAllocate,
    Way::GatherInto,
];

const ROWS: usize = 7;
const LEN: usize = 3;
const INDICES: [usize; 8] = [2, 0, 2, 6, 5, 5, 2, 1];

/// Makes a call with elements of `ledger`. Returns whether it panicked, and the values of the output
/// if it did not.
fn run(ledger: &Ledger, way: Way, request: Request<'_>) -> Option<Vec<usize>> {
    let make = |start, rows| -> Vec<_> {
        (start..start + rows * LEN)
            .map(|value| Element::new(ledger, value))
            .collect()
    };
    let (data, updates) = (make(0, ROWS), make(100, INDICES.len()));
    let is_gather = matches!(way, Way::GatherAllocate | Way::GatherInto);
    let rows = if is_gather { INDICES.len() } else { ROWS };
    let mut output = make(200, rows);
    let shapes = ([INDICES.len(), 1], [INDICES.len(), LEN], [rows, LEN]);
    let call = || -> Result<Option<Vec<usize>>, ScatterError> {
        let indices = TensorView::contiguous(&INDICES, &shapes.0)?;
        let data = Cloned(TensorView::contiguous(&data, &[ROWS, LEN])?);
        let updates = Cloned(TensorView::contiguous(&updates, &shapes.1)?);
        let target = Cloned(TensorViewMut::contiguous(&mut output, &shapes.2)?);
        let scatter = request.of(Scatter::nd());
        let gather = Gather::nd(0).execution(request.execution);
        let made = match way {
            Way::Allocate => scatter.allocate(data, indices, updates)?,
            Way::GatherAllocate => gather.allocate(data, indices)?,
            Way::WriteInto => {
                return scatter
                    .write_into(data, indices, updates, target)
                    .map(|()| None);
            }
            Way::InPlace => return scatter.in_place(target, indices, updates).map(|()| None),
            Way::GatherInto => return gather.write_into(data, indices, target).map(|()| None),
        };
        let values = made.iter().map(|element| element.value).collect();
        Ok(Some(values))
    };
    let made = catch_unwind(AssertUnwindSafe(call)).ok()?;
    let made = made.expect("a valid call");
    Some(made.unwrap_or_else(|| output.iter().map(|element| element.value).collect()))
}

/// Makes a call once for each of its clones and drops, which then panics. Returns the number of
/// panics.
fn check(way: Way, request: Request<'_>, countdown: fn(&Ledger) -> &AtomicUsize) -> usize {
    let expected = run(&Ledger::default(), way, request);
    for number in 1.. {
        let what = format!("{way:?}, {request:?}, event {number}");
        let ledger = Ledger::default();
        countdown(&ledger).store(number, Relaxed);
        // A drop may also panic after the call, when the tensors are dropped.
        let got = catch_unwind(AssertUnwindSafe(|| run(&ledger, way, request)));
        let is_over = countdown(&ledger).swap(0, Relaxed) > 0;
        if is_over {
            assert_eq!(got.ok().flatten(), expected, "{what}: no panic");
        } else {
            assert!(!matches!(got, Ok(Some(_))), "{what}: the panic was lost");
        }
        let [made, dropped, twice] = [&ledger.made, &ledger.dropped, &ledger.dropped_twice];
        assert_eq!(twice.load(Relaxed), 0, "{what}: dropped twice");
        let leaked = made.load(Relaxed) - dropped.load(Relaxed);
        // The result of a gather that was not finished leaks its finished elements.
        let may_leak = way == Way::GatherAllocate && !is_over;
        assert!(leaked == 0 || may_leak, "{what}: {leaked} leaked");
        assert_eq!(
            run(&Ledger::default(), way, request),
            expected,
            "{what}: the next call"
        );
        if is_over {
            return number - 1;
        }
    }
    unreachable!("an endless loop")
}

fn check_everywhere(countdown: fn(&Ledger) -> &AtomicUsize) -> usize {
    let mut panics = 0;
    for way in WAYS {
        for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
            for pool in [&Sequential as &dyn Pool, &Threads(3)] {
                let request = Request::new(Reduction::None).pool(pool).schedule(schedule);
                panics += check(way, request, countdown);
            }
        }
    }
    panics
}

#[test]
fn every_clone_can_panic() {
    let panics = check_everywhere(|ledger| &ledger.until_clone);
    println!("{panics} clones panicked");
    assert!(panics > 1000, "only {panics} clones panicked");
}

#[test]
fn every_drop_can_panic() {
    let panics = check_everywhere(|ledger| &ledger.until_drop);
    println!("{panics} drops panicked");
    assert!(panics > 1000, "only {panics} drops panicked");
}

/// A pool that panics before its tasks, after half of them, in a task, or after all.
#[derive(Clone, Copy, Debug)]
enum Panics {
    Before,
    Between,
    After,
    /// The pool panics on one of its threads, while other threads run tasks.
    OnAThread,
}

impl Pool for Panics {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let fail = || resume_unwind(Box::new("the pool failed"));
        match self {
            Self::Before => fail(),
            Self::Between => (0..tasks / 2).for_each(task),
            Self::After => (0..tasks).for_each(task),
            Self::OnAThread => Threads(4).run(tasks + 1, &|index| match index < tasks {
                true => task(index),
                false => fail(),
            }),
        }
        fail()
    }
}

#[test]
fn a_pool_can_panic_at_any_time() {
    const ELEMENTS: usize = 300_007;
    let indices: Vec<usize> = (0..200_000).map(|i| i * i % ELEMENTS).collect();
    let updates: Vec<u32> = (0..200_000).collect();
    let call = |output: &mut Vec<u32>, request: Request<'_>| {
        let output = TensorViewMut::contiguous(output, &[ELEMENTS]).expect("data");
        let indices = TensorView::contiguous(&indices, &[200_000, 1]).expect("indices");
        let updates = TensorView::contiguous(&updates, &[200_000]).expect("updates");
        request.of(Scatter::nd()).in_place(output, indices, updates)
    };
    let mut expected = vec![7; ELEMENTS];
    let request = Request::new(Reduction::Add);
    call(&mut expected, request.pool(&Sequential)).expect("a valid call");
    let mut panics = 0;
    for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
        for pool in [
            Panics::Before,
            Panics::Between,
            Panics::After,
            Panics::OnAThread,
        ] {
            let request = request.schedule(schedule);
            let mut output = vec![7; ELEMENTS];
            let got = catch_unwind(AssertUnwindSafe(|| call(&mut output, request.pool(&pool))));
            panics += usize::from(got.is_err());
            // The output is unspecified after the panic. The next call uses the same scratch memory.
            let mut output = vec![7; ELEMENTS];
            call(&mut output, request.pool(&Threads(3))).expect("a valid call");
            assert!(output == expected, "{pool:?}, {schedule:?}: the next call");
        }
    }
    assert!(panics > 12, "the pool panicked only {panics} times");
}
