//! Tests of the hand-over between tasks under loom: each test runs in every order of accesses that
//! the memory model allows, for two or three threads.
//!
//! ```sh
//! tests/sanitizers.sh loom
//! ```

#![expect(
    unsafe_code,
    reason = "the tests write cells without a lock, as tasks write tensors"
)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::error::ScatterError;
use crate::exec::scratch::{Scratch, release_scratch};
use crate::exec::tasks::{Call, Workers};
use crate::pool::{Pool, drain};
use crate::sync::AtomicUsize;

/// Cells that tasks write without synchronisation. Loom panics if two accesses race.
struct Cells(Vec<UnsafeCell<usize>>);

// SAFETY: loom checks each access, and panics before a race.
unsafe impl Sync for Cells {}

impl Cells {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, cell: usize) {
        // SAFETY: loom checks that no other access races.
        self.0[cell].with_mut(|value| unsafe { *value += 1 });
    }

    fn values(&self) -> Vec<usize> {
        // SAFETY: loom checks that no other access races.
        let read = |cell: &UnsafeCell<usize>| cell.with(|value| unsafe { *value });
        self.0.iter().map(read).collect()
    }
}

/// How a pool of threads breaks its contract.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// Two threads run the last task.
    Repeats,
    /// The pool does not wait for its threads. It returns when a relaxed counter says that all tasks
    /// have ended.
    DoesNotJoin,
}

/// A pool that runs each task on a new thread, except the first one.
struct Threads(Fault);

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        Some(2)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        // SAFETY: all calls of `task` end before this method returns: it joins the threads, or waits
        // until the counter says that the calls have returned.
        let task: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(task) };
        let ended = Arc::new(AtomicUsize::new(0));
        let repeated = (self.0 == Fault::Repeats).then_some(tasks - 1);
        let threads: Vec<_> = (1..tasks)
            .chain(repeated)
            .map(|number| {
                let ended = Arc::clone(&ended);
                thread::spawn(move || {
                    task(number);
                    ended.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        task(0);
        if self.0 == Fault::DoesNotJoin {
            while ended.load(Ordering::Relaxed) < threads.len() {
                thread::yield_now();
            }
            return;
        }
        for thread in threads {
            thread.join().expect("no task panics");
        }
    }
}

/// Runs two tasks on a pool. Returns the result, and the cells in which the tasks have counted.
fn run_two(fault: Fault) -> (Result<(), ScatterError>, Cells) {
    let (pool, cells) = (Threads(fault), Cells::new(2));
    let done = Workers::new(&pool, None).run(2, &|number| cells.add(number));
    (done, cells)
}

#[test]
fn a_task_that_a_pool_repeats_runs_once() {
    loom::model(|| {
        let (done, ran) = run_two(Fault::Repeats);
        let failed = ScatterError::PoolFailed {
            tasks: 2,
            completed: 2,
            surplus: 1,
        };
        assert_eq!(done, Err(failed));
        assert_eq!(ran.values(), [1, 1]);
    });
}

#[test]
fn writes_of_tasks_are_visible_after_the_run() {
    loom::model(|| {
        let (done, ran) = run_two(Fault::Nothing);
        assert_eq!((done, ran.values()), (Ok(()), vec![1, 1]));
    });
}

/// If the pool makes no writes visible, the run fails, or the counter of completed tasks has made
/// them visible.
#[test]
fn writes_of_tasks_are_visible_after_a_run_that_succeeds() {
    loom::model(|| match run_two(Fault::DoesNotJoin) {
        (Ok(()), ran) => assert_eq!(ran.values(), [1, 1]),
        (Err(error), _) => assert!(matches!(error, ScatterError::PoolFailed { .. }), "{error}"),
    });
}

#[test]
fn each_piece_is_taken_once() {
    for pieces in [1, 3, 4] {
        loom::model(move || {
            let (pool, cells) = (Threads(Fault::Nothing), Cells::new(pieces));
            let done = Workers::new(&pool, None).run_pieces(2, pieces, &|piece| cells.add(piece));
            assert_eq!((done, cells.values()), (Ok(()), vec![1; pieces]));
        });
    }
}

#[test]
fn a_pool_thread_takes_each_task_once() {
    loom::model(|| {
        let cells = Arc::new(Cells::new(2));
        let work = {
            let cells = Arc::clone(&cells);
            // The reference must live for the whole model, because threads of loom are not scoped.
            let task: &'static _ = Box::leak(Box::new(move |number| cells.add(number)));
            Arc::new(drain(2, 2, task))
        };
        let other = Arc::clone(&work);
        let thread = thread::spawn(move || other());
        work();
        thread.join().expect("no task panics");
        assert_eq!(cells.values(), [1, 1]);
    });
}

/// A pool of four workers with a counter of running calls.
struct Counted(AtomicUsize);

impl Pool for Counted {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        Some(&self.0)
    }
}

#[test]
fn counted_calls_divide_the_workers() {
    loom::model(|| {
        let pool = Arc::new(Counted(AtomicUsize::new(0)));
        let call = |pool: &Counted| {
            let call = Call::begin(Workers::new(pool, None));
            let parts = call.workers().parts();
            assert!([1, 2, 4].contains(&parts), "{parts} parts of four workers");
            parts
        };
        let other = Arc::clone(&pool);
        let thread = thread::spawn(move || call(&other));
        call(&pool);
        thread.join().expect("no call panics");
        assert_eq!(call(&pool), 4, "the other calls have ended");
    });
}

/// A call with a scratch buffer. The call finds its own mark in the buffer.
fn call(mark: u32) {
    /// Number of elements of a buffer. All buffers belong to one cache.
    const LEN: usize = 8;

    let mut buffer = <u32 as Scratch>::take(LEN).expect("memory");
    buffer[0] = mark;
    thread::yield_now();
    assert_eq!(buffer[0], mark, "another call has written the buffer");
    Scratch::put_back(buffer);
}

#[test]
fn scratch_buffers_have_one_owner() {
    loom::model(|| {
        call(1);
        let thread = thread::spawn(|| call(2));
        call(3);
        thread.join().expect("no call panics");
        release_scratch();
    });
}

#[test]
fn scratch_buffers_are_released_during_a_call() {
    loom::model(|| {
        call(1);
        let thread = thread::spawn(release_scratch);
        call(2);
        thread.join().expect("no release panics");
        release_scratch();
    });
}
