//! Scratch memory that cannot be had is an error, never an abort: every large
//! allocation of every schedule is made to fail once.

#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::elements::{Palette, Ref};
use common::harness::{Indices, Operator, Options};
use common::layouts::{Arrangement, Strided};
use common::pools::Sequential;
use common::random::Random;
use common::request::Request;
use common::{Tensor, elements};
use ndscatter::{Duplicates, Reduction, ScatterError, Schedule};

/// Allocations from this size are counted, and can be refused.
const LARGE: usize = 4096;

/// Refuses one of the large allocations of the thread that asks for it.
struct Refusing;

thread_local! {
    /// Large allocations until one is refused; 0: none will be.
    static COUNTDOWN: Cell<usize> = const { Cell::new(0) };
}

fn refuses(size: usize) -> bool {
    if size < LARGE {
        return false;
    }
    COUNTDOWN.with(|countdown| {
        let left = countdown.get();
        countdown.set(left.saturating_sub(1));
        left == 1
    })
}

// SAFETY: hands everything to the system allocator, or returns null, which
// an allocator may.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Runs `call` on a new thread, which has no scratch memory kept from an
/// earlier call, with its large allocation number `number` refused.
fn refusing<R: Send>(number: usize, call: impl FnOnce() -> R + Send) -> R {
    let run = || {
        COUNTDOWN.set(number);
        let result = call();
        COUNTDOWN.set(0);
        result
    };
    std::thread::scope(|scope| scope.spawn(run).join()).expect("no panic without memory")
}

struct Workload {
    data: Strided<f32>,
    indices: Strided<i64>,
    updates: Strided<f32>,
    expected: Tensor<f32>,
}

impl Workload {
    fn new(reduction: Reduction, data: &[usize], tuples: usize, distinct: bool) -> Self {
        let mut random = Random::new(1);
        let place = |tensor: &Tensor<f32>| {
            Strided::new(tensor, Arrangement::Contiguous, 0, f32::sentinel())
        };
        let mut sample = |shape: &[usize]| {
            Tensor::generate(shape, || f32::sample(Palette::Ordinary, &mut random))
        };
        let logical_data = sample(data);
        let updates = sample(&Operator::Nd.updates_shape(data, &[tuples, 1]));
        let rows = (0..tuples).map(|tuple| {
            let row = if distinct {
                tuple * 7919
            } else {
                tuple * tuple
            };
            i64::try_from(row % data[0]).expect("it fits")
        });
        let indices = Tensor::new(&[tuples, 1], rows.collect());
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        let logical = Indices::<f32>::logical(&indices);
        let expected = Operator::Nd.expected(reduction, &logical_data, &logical, &updates);
        Self {
            data: place(&logical_data),
            indices,
            updates: place(&updates),
            expected,
        }
    }

    /// Refuses one large allocation after the other until the call has none
    /// left to refuse. Returns how many were refused.
    fn check(&self, options: &Options<'_>) -> usize {
        for number in 1.. {
            let mut output = self.data.clone();
            let got = refusing(number, || {
                self.indices
                    .in_place(options, output.view_mut(), self.updates.view())
            });
            match got {
                Err(ScatterError::OutOfMemory { bytes }) => {
                    assert!(bytes >= LARGE, "{bytes} bytes were not refused");
                    assert!(
                        output.buffer == self.data.buffer,
                        "written before it was refused"
                    );
                }
                // It went through, perhaps by another way.
                Ok(()) => {
                    elements::compare(&output.buffer, &self.expected.values, false)
                        .unwrap_or_else(|difference| panic!("allocation {number}: {difference}"));
                    if refusing_is_over(number, || {
                        self.indices
                            .in_place(options, output.view_mut(), self.updates.view())
                    }) {
                        return number - 1;
                    }
                }
                Err(error) => panic!("allocation {number}: {error}"),
            }
        }
        unreachable!("an endless loop")
    }
}

/// Whether `call` makes fewer than `number` large allocations.
fn refusing_is_over<R: Send>(number: usize, call: impl FnOnce() -> R + Send) -> bool {
    let run = || {
        COUNTDOWN.set(usize::MAX);
        drop(call());
        let made = usize::MAX - COUNTDOWN.get();
        COUNTDOWN.set(0);
        made < number
    };
    std::thread::scope(|scope| scope.spawn(run).join()).expect("no panic with memory")
}

#[test]
fn every_large_allocation_can_fail() {
    let mut refused = 0;
    for schedule in Schedule::ALL {
        for (reduction, distinct) in [
            (Reduction::None, false),
            (Reduction::Add, false),
            (Reduction::Add, true),
            (Reduction::Mean, false),
        ] {
            for duplicates in [Duplicates::Allow, Duplicates::Reject] {
                if duplicates == Duplicates::Reject && !distinct {
                    continue;
                }
                // Single elements and rows.
                for (data, tuples) in [(&[60_000][..], 40_000), (&[9_000, 32], 5_000)] {
                    let workload = Workload::new(reduction, data, tuples, distinct);
                    let execution = Request::new(reduction).pool(&Sequential).schedule(schedule);
                    let mut options = Options::new(Operator::Nd, execution);
                    options.duplicates = duplicates;
                    refused += workload.check(&options);
                }
            }
        }
    }
    assert!(
        refused > 10,
        "only {refused} large allocations were seen: does this test work?"
    );
}
