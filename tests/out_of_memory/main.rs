//! A failed allocation is an error or a slower schedule, never an abort. The tests of this file
//! refuse allocations of the thread that makes a call. They make each large allocation of every
//! schedule fail once. For runs of kept plans, gradients and errors, they make each allocation of
//! any size fail once. `all_threads` refuses allocations on all threads of a call.

#![allow(
    unsafe_code,
    reason = "a global allocator is an unsafe trait, and tensors are passed as raw parts"
)]

mod all_threads;
mod allocator;
#[path = "../common/mod.rs"]
mod common;

use std::cell::RefCell;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use allocator::{COUNTDOWN, LARGE, LEAST};
use common::api::{Indices, Methods, Options};
use common::elements::{Palette, Ref};
use common::layouts::{Arrangement, Strided};
use common::operators::Operator;
use common::pools::Sequential;
use common::random::Random;
use common::request::Request;
use common::{Tensor, elements};
use ndscatter::{
    AnyViewMut, Bounds, CacheMode, Cloned, Conversion, DType, Duplicates, Forward, Gather,
    Gradients, MergeOrder, MoveRows, Packing, Reduction, Scatter, ScatterError, ScatterPlan,
    Schedule, ShardedPlan, Sharding, TensorView, TensorViewMut, Write, release_scratch,
};

/// Lets one test run at a time. Another test would otherwise use scratch buffers that this test
/// left in the cache.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `call` on a new thread with an empty cache of scratch buffers. Large allocation number
/// `number` is refused.
fn refusing<R: Send>(number: usize, call: impl FnOnce() -> R + Send) -> R {
    release_scratch();
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
            i64::try_from(row % data[0]).expect("the row fits i64")
        });
        let indices = Tensor::new(&[tuples, 1], rows.collect());
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        let logical = indices.logical();
        let expected = Operator::Nd.expected(reduction, &logical_data, &logical, &updates);
        Self {
            data: place(&logical_data),
            indices,
            updates: place(&updates),
            expected,
        }
    }

    /// Refuses each large allocation of the call in turn, until the call makes no more. Returns the
    /// number of refused allocations.
    fn check(&self, options: &Options<'_>) -> usize {
        for number in 1.. {
            let mut output = self.data.clone();
            let got = refusing(number, || {
                self.indices
                    .in_place(options, output.view_mut(), self.updates.view())
            });
            match got {
                Err(ScatterError::OutOfMemory { bytes }) => {
                    assert!(
                        bytes >= LARGE,
                        "{bytes} bytes are below the size that is refused"
                    );
                    assert!(
                        output.buffer == self.data.buffer,
                        "the output was written before the error"
                    );
                }
                // The call succeeded, perhaps with a fallback.
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
    release_scratch();
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
    let _turn = turn();
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
                // Single elements, and rows.
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
        "only {refused} large allocations: the test counts too few"
    );
}

/// A run of a kept plan. The plan is made before allocations are refused.
struct Run<'a> {
    workload: &'a Workload,
    execution: Request<'static>,
    reduction: Reduction,
    in_place: bool,
}

impl Run<'_> {
    fn plan(&self) -> ScatterPlan {
        let (data, options) = (
            &self.workload.data,
            Options::new(Operator::Nd, self.execution),
        );
        self.workload
            .indices
            .plan(&options, data.view().layout())
            .expect("memory for a plan")
    }

    fn run(&self, plan: &ScatterPlan, output: &mut Strided<f32>) -> Result<(), ScatterError> {
        let (output, updates) = (output.view_mut(), self.workload.updates.view());
        if self.in_place {
            self.execution.run(plan).in_place(output, updates)
        } else {
            let data = self.workload.data.view();
            self.execution.run(plan).write_into(data, updates, output)
        }
    }

    /// Refuses each allocation of any size in turn. Returns the number of refused allocations.
    fn check(&self) -> usize {
        let untouched = if self.in_place {
            self.workload.data.clone()
        } else {
            let shape = &self.workload.expected.shape;
            let sentinels = Tensor::generate(shape, f32::sentinel);
            Strided::new(&sentinels, Arrangement::Contiguous, 0, f32::sentinel())
        };
        for number in 1.. {
            let (plan, mut output) = (self.plan(), untouched.clone());
            release_scratch();
            LEAST.set(0);
            COUNTDOWN.set(number);
            let got = self.run(&plan, &mut output);
            // The countdown is above 0 if the run made fewer allocations than `number`.
            let is_over = COUNTDOWN.replace(0) > 0;
            LEAST.set(LARGE);
            match got {
                Ok(()) => {
                    elements::compare(&output.buffer, &self.workload.expected.values, false)
                        .unwrap_or_else(|difference| panic!("{self}, {number}: {difference}"));
                }
                // A mean has no schedule without scratch memory.
                Err(ScatterError::OutOfMemory { .. }) if self.reduction == Reduction::Mean => {
                    assert!(
                        output.buffer == untouched.buffer,
                        "{self}, {number}: the output was written before the error"
                    );
                }
                Err(error) => panic!("{self}, {number}: {error}"),
            }
            if is_over {
                return number - 1;
            }
        }
        unreachable!("an endless loop")
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.in_place { "in place" } else { "into" };
        let shape = &self.workload.expected.shape;
        write!(
            f,
            "{} of {shape:?} {form}, {:?}",
            self.reduction, self.execution
        )
    }
}

#[test]
fn every_allocation_of_a_run_can_fail() {
    let _turn = turn();
    let mut refused = 0;
    let forced = Schedule::ALL.map(Some).into_iter().chain([None]);
    for schedule in forced {
        for (reduction, distinct) in [
            (Reduction::None, false),
            (Reduction::None, true),
            (Reduction::Add, false),
            (Reduction::Add, true),
            (Reduction::Max, false),
            (Reduction::Mean, false),
        ] {
            let shapes: [(&[usize], usize); 4] = [
                (&[1009], 900),
                (&[5], 900),
                (&[997, 40], 300),
                (&[101, 2, 1, 3, 2, 1, 2, 5], 90),
            ];
            // Without a forced schedule, also calls that are large enough for several workers.
            let large: &[(&[usize], usize)] = match schedule {
                None => &[(&[300_007], 220_000), (&[20_011, 16], 60_000)],
                Some(_) => &[],
            };
            for &(data, tuples) in shapes.iter().chain(large) {
                let tuples = if distinct {
                    tuples.min(data[0])
                } else {
                    tuples
                };
                let workload = Workload::new(reduction, data, tuples, distinct);
                let execution = Request::new(reduction).pool(&Sequential);
                for in_place in [true, false] {
                    let run = Run {
                        workload: &workload,
                        execution: schedule
                            .map_or(execution, |schedule| execution.schedule(schedule)),
                        reduction,
                        in_place,
                    };
                    refused += run.check();
                }
            }
        }
    }
    assert!(
        refused > 100,
        "only {refused} allocations: the test counts too few"
    );
}

/// Refuses each allocation of `call` in turn, of any size. Returns the number of allocations.
fn check_call<R: PartialEq + fmt::Debug>(
    name: &str,
    call: impl Fn() -> Result<R, ScatterError>,
) -> usize {
    let expected = call();
    for number in 1.. {
        release_scratch();
        LEAST.set(0);
        COUNTDOWN.set(number);
        let got = call();
        let is_over = COUNTDOWN.replace(0) > 0;
        LEAST.set(LARGE);
        if !matches!(got, Err(ScatterError::OutOfMemory { .. })) {
            assert_eq!(got, expected, "{name}, {number}");
        }
        if is_over {
            return number - 1;
        }
    }
    unreachable!("an endless loop")
}

/// Sizes and strides of data with more dims than are stored inline. No two dims can be merged.
const DEEP: [usize; 10] = [3, 2, 2, 2, 2, 2, 2, 2, 2, 2];
const DEEP_STRIDES: [isize; 10] = [4000, 1300, -600, 280, -130, 60, -28, 13, -6, 2];
const DEEP_LEN: usize = 12_000;

/// Offset of the first element in a buffer of `DEEP_LEN` elements.
const DEEP_OFFSET: usize = 1000;

#[test]
fn tensors_of_many_dims_report_failed_allocations() {
    let _turn = turn();
    let data = vec![7.0_f32; DEEP_LEN];
    let rows = [2_i64, 0, 2, 1];
    let updates = vec![1.0_f32; 4 * 512];
    let mut shape = DEEP;
    shape[0] = 4;
    let alone = ndscatter::Execution::new().pool(&Sequential);
    let view = || TensorView::strided(&data, DEEP_OFFSET, &DEEP, &DEEP_STRIDES);
    let (indices, values) = (
        || TensorView::contiguous(&rows, &[4]),
        || TensorView::contiguous(&updates, &shape),
    );
    let output = RefCell::new(data.clone());
    // Returns a checksum of the result. The closure itself allocates nothing.
    let in_place = |call: &dyn Fn(TensorViewMut<'_, f32>) -> Result<(), ScatterError>| {
        let output = &mut *output.borrow_mut();
        output.copy_from_slice(&data);
        let target = TensorViewMut::strided(output, DEEP_OFFSET, &DEEP, &DEEP_STRIDES)?;
        let done = call(target);
        assert!(
            done.is_ok() || *output == data,
            "the output was written before the error"
        );
        let bits = output.iter().map(|value| u64::from(value.to_bits()));
        done.map(|()| bits.fold(0, |sum: u64, bits| sum.rotate_left(7) ^ bits))
    };
    let mut refused = 0;
    for reduction in [Reduction::None, Reduction::Add, Reduction::Mean] {
        let scatter = (Scatter::along(0).reduction(reduction)).execution(alone);
        let name = format!("{reduction}");
        refused += check_call(&name, || scatter.allocate(view()?, indices()?, values()?));
        refused += check_call(&name, || {
            in_place(&|target| scatter.in_place(target, indices()?, values()?))
        });
        refused += check_call(&name, || {
            let plan = scatter.plan(view()?.layout(), indices()?)?;
            let run = plan.run().execution(alone);
            run.explain(DType::F32, false)?;
            in_place(&|target| run.in_place(target, values()?))
        });
    }
    let gather = Gather::along(0).execution(alone);
    refused += check_call("gather", || gather.allocate(view()?, indices()?));
    refused += check_call("gather, planned", || {
        let plan = gather.plan(view()?.layout(), indices()?)?;
        plan.run().execution(alone).allocate(view()?)
    });
    let skip = gather.clone().bounds(Bounds::Skip);
    let outside = [2_i64, 9, 1, -9];
    refused += check_call("gather that skips", || {
        skip.allocate(view()?, TensorView::contiguous(&outside, &[4])?)
    });
    refused += check_call("clones", || {
        let texts = [0_u8, 1, 2].map(Some);
        let data = TensorView::strided(&texts, 0, &DEEP, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        let update = [None];
        let updates = TensorView::strided(&update, 0, &shape, &[0; 10])?;
        (Scatter::along(0).execution(alone)).allocate(Cloned(data), indices()?, Cloned(updates))
    });
    assert!(
        refused > 100,
        "only {refused} allocations: the test counts too few"
    );
}

/// Moves of rows of tensors of many dims and of foreign tensors. The lists have skipped moves,
/// duplicates, chains and cycles.
#[test]
fn moves_report_failed_allocations() {
    let _turn = turn();
    let alone = ndscatter::Execution::new().pool(&Sequential);
    let moves = MoveRows::along(0).bounds(Bounds::Skip).execution(alone);
    let deep = RefCell::new(vec![7.0_f32; DEEP_LEN]);
    let (from, to) = ([2_i64, 0, -1, 0, 1], [1_i64, 2, 0, 2, 0]);
    let lists = || (TensorView::from(&from), TensorView::from(&to));
    // Returns a checksum of the result. The closure itself allocates nothing.
    let run = |memory: &RefCell<Vec<f32>>,
               call: &dyn Fn(&mut [f32]) -> Result<(), ScatterError>| {
        let memory = &mut *memory.borrow_mut();
        let old = || (0..1009_u16).cycle().map(f32::from);
        (memory.iter_mut().zip(old())).for_each(|(value, old)| *value = old);
        let done = call(memory);
        let is_untouched = memory.iter().zip(old()).all(|(&value, old)| value == old);
        assert!(
            done.is_ok() || is_untouched,
            "a tensor was written before the error"
        );
        let bits = memory.iter().map(|value| u64::from(value.to_bits()));
        done.map(|()| bits.fold(0, |sum: u64, bits| sum.rotate_left(7) ^ bits))
    };
    let mut refused = check_call("many dims", || {
        run(&deep, &|memory| {
            let view = TensorViewMut::strided(memory, DEEP_OFFSET, &DEEP, &DEEP_STRIDES)?;
            moves.in_place([view], lists().0, lists().1)
        })
    });
    refused += check_call("many dims, planned", || {
        let plan = moves.plan(3, lists().0, lists().1)?;
        run(&deep, &|memory| {
            let view = TensorViewMut::strided(memory, DEEP_OFFSET, &DEEP, &DEEP_STRIDES)?;
            plan.run().execution(alone).in_place([view])
        })
    });
    // A large call: 600 moves of 512 rows of 1200 bytes, in two foreign tensors.
    let (rows, len) = (512, 300);
    let large = RefCell::new(vec![0.0_f32; 2 * rows * len]);
    let of = |scale: usize| -> Vec<usize> { (0..600).map(|at| at * scale % rows).collect() };
    let (from, to) = (of(5), of(3));
    let shape = [rows, len];
    refused += check_call("large", || {
        run(&large, &|memory| {
            let layout = ndscatter::Layout::contiguous(&shape);
            let start: *mut u8 = memory.as_mut_ptr().cast();
            let view = |at: usize| {
                // SAFETY: the tensor is one of the two halves of `memory`, which only the call
                // accesses.
                unsafe { AnyViewMut::from_raw_parts(start.add(at), DType::F32, layout) }
            };
            let views = [view(0)?, view(4 * rows * len)?];
            moves.in_place(views, TensorView::from(&from), TensorView::from(&to))
        })
    });
    assert!(
        refused > 40,
        "only {refused} allocations: the test counts too few"
    );
}

/// Plans for tables that are divided among parts, with each way to pack the updates.
#[test]
fn sharded_plans_report_failed_allocations() {
    let _turn = turn();
    let indices: Vec<i64> = (0..300).map(|at| at * at % 97).collect();
    let machine = "numbered_tuples = 0".parse().expect("a machine");
    let execution = ndscatter::Execution::new()
        .pool(&Sequential)
        .machine(&machine);
    let sums = (Scatter::along(0).reduction(Reduction::Add)).execution(execution);
    let last = Scatter::along(0).execution(execution);
    // The number of entries of each part, and a checksum of the lists.
    let of = |plan: ShardedPlan| {
        let (Packing::Gather { order: list } | Packing::Scatter { slots: list, .. }) =
            plan.packing();
        let sum = |list: &[i64]| list.iter().fold(0, |sum: i64, at| sum.rotate_left(3) ^ at);
        (plan.range(2), sum(list), sum(plan.destinations()))
    };
    let mut refused = 0;
    let starts = || Sharding::starts(&[0, 5, 5, 90]);
    for sharding in [Sharding::blocks(4), Sharding::modulo(4), starts()] {
        let sharding = sharding.expect("valid parts");
        let rows = || TensorView::from(&indices);
        refused += check_call("each tuple", || {
            sums.shard(&[97], rows(), &sharding).map(of)
        });
        refused += check_call("sums", || {
            sums.shard_combined(&[97], rows(), &sharding).map(of)
        });
        refused += check_call("last writes", || {
            last.shard_combined(&[97], rows(), &sharding).map(of)
        });
    }
    refused += check_call("starts", || starts().map(|sharding| sharding.parts()));
    refused += check_call("merge order", || {
        MergeOrder::new(&[2, 3]).map(|order| order.len())
    });
    assert!(
        refused > 100,
        "only {refused} allocations: the test counts too few"
    );
}

/// A failed allocation of a gradient is an error, and nothing has been written.
#[test]
fn gradients_report_failed_allocations() {
    let _turn = turn();
    let data = vec![7.0_f32; DEEP_LEN];
    let rows = [2_i64, 0, 2, 9];
    let values = vec![1.0_f32; 4 * 512];
    let mut shape = DEEP;
    shape[0] = 4;
    let alone = ndscatter::Execution::new().pool(&Sequential);
    let view = || TensorView::strided(&data, DEEP_OFFSET, &DEEP, &DEEP_STRIDES);
    let indices = || TensorView::contiguous(&rows, &[4]);
    let updates = || TensorView::contiguous(&values, &shape);
    let written = RefCell::new((data.clone(), values.clone()));
    let mut refused = 0;
    for reduction in Reduction::ALL {
        let scatter = Scatter::along(0).reduction(reduction);
        let scatter = scatter.bounds(Bounds::Skip).execution(alone);
        let name = format!("{reduction}");
        refused += check_call(&name, || {
            let forward = Forward::new(view()?, updates()?);
            let made = scatter.backward(view()?, forward, indices()?, 0.5)?;
            Ok((made.0.into_vec(), made.1.into_vec()))
        });
        refused += check_call(&name, || {
            let (of_data, of_updates) = &mut *written.borrow_mut();
            of_data.fill(9.0);
            of_updates.fill(9.0);
            let target = TensorViewMut::strided(of_data, DEEP_OFFSET, &DEEP, &DEEP_STRIDES)?;
            let wanted = Gradients::new(target, TensorViewMut::contiguous(of_updates, &shape)?);
            let forward = Forward::new(view()?, updates()?);
            let done = scatter.backward_into(view()?, forward, indices()?, 0.5, wanted);
            let (of_data, of_updates) = (&of_data[..], &of_updates[..]);
            let is_untouched = || of_data.iter().chain(of_updates).all(|&value| value == 9.0);
            assert!(
                done.is_ok() || is_untouched(),
                "the output was written before the error"
            );
            done
        });
        refused += check_call(&name, || {
            let (data, _) = &mut *written.borrow_mut();
            data.fill(9.0);
            let target = TensorViewMut::strided(data, DEEP_OFFSET, &DEEP, &DEEP_STRIDES)?;
            let done = scatter.forward_in_place(target, indices()?, updates()?);
            let is_untouched = || data.iter().all(|&value| value == 9.0);
            assert!(
                done.is_ok() || is_untouched(),
                "the output was written before the error"
            );
            let run = done?;
            let made = run.run().execution(alone).backward_updates(
                view()?,
                Forward::updates(updates()?),
                1.0,
            )?;
            Ok(made.into_vec())
        });
    }
    assert!(
        refused > 300,
        "only {refused} allocations: the test counts too few"
    );
}

/// Errors contain shapes, which may need memory. If that allocation fails, the error is
/// `OutOfMemory`.
#[test]
fn errors_with_shapes_report_failed_allocations() {
    let _turn = turn();
    let (data, rows) = ([1_i32, 2, 3, 4], [0_i64, 1]);
    let view = |shape| TensorView::contiguous(&data, shape);
    let tuples = || TensorView::contiguous(&rows, &[2, 1]);
    let scatter = Scatter::nd();
    let mut refused = check_call("a slice's length", || view(&[3]).map(drop));
    refused += check_call("a shape that overflows", || {
        view(&[usize::MAX, 2]).map(drop)
    });
    refused += check_call("strides", || {
        TensorView::strided(&data, 0, &[2, 2], &[1]).map(drop)
    });
    refused += check_call("outside", || {
        TensorView::strided(&data, 2, &[2, 2], &[2, 1]).map(drop)
    });
    refused += check_call("an output on itself", || {
        let mut output = data;
        TensorViewMut::strided(&mut output, 0, &[2, 2], &[1, 1]).map(drop)
    });
    refused += check_call("updates", || {
        scatter.allocate(view(&[4])?, tuples()?, view(&[4])?)
    });
    refused += check_call("data and output", || {
        let mut output = [0; 3];
        let (data, updates) = (view(&[4])?, TensorView::contiguous(&data[..2], &[2])?);
        let output = TensorViewMut::contiguous(&mut output, &[3])?;
        scatter.write_into(data, tuples()?, updates, output)
    });
    refused += check_call("another layout than planned", || {
        let plan = scatter.plan(ndscatter::Layout::contiguous(&[4]), tuples()?)?;
        let updates = TensorView::contiguous(&data[..2], &[2])?;
        plan.run().allocate(view(&[2, 2])?, updates)
    });
    refused += check_call("an output of a gather", || {
        let mut output = [0; 3];
        let output = TensorViewMut::contiguous(&mut output, &[3])?;
        ndscatter::Gather::nd(0).write_into(view(&[4])?, tuples()?, output)
    });
    refused += check_call("positions", || {
        let cache = Scatter::cache(1, CacheMode::Linear);
        let starts = TensorView::contiguous(&rows[..1], &[1])?;
        cache.allocate(view(&[2, 2])?, starts, view(&[2, 2])?)
    });
    assert!(
        refused >= 15,
        "only {refused} allocations: the test counts too few"
    );
}

/// Two writes with one list of slots: data of many dims with duplicates and a scale, and data in
/// another order. A failed allocation of any size leaves both unchanged.
#[test]
fn converting_writes_report_failed_allocations() {
    let _turn = turn();
    let slots = [0_i64, 5, -1, 5, 3];
    let updates = vec![1.5_f32; 5 * 256];
    let mut updates_shape = [2; 9];
    updates_shape[0] = 5;
    let scale = [0.5_f32; 2];
    let write = |conversion: Conversion<'_>, first: &mut [u8], second: &mut [u8]| {
        let deep = TensorViewMut::strided(first, DEEP_OFFSET, &DEEP, &DEEP_STRIDES)?;
        let updates = TensorView::contiguous(&updates, &updates_shape)?;
        let shape = [3, 2, 2, 2, 2, 2, 2, 2, 2, 2];
        let other = TensorViewMut::contiguous(second, &shape)?;
        Scatter::paged().write_all(
            TensorView::from(&slots),
            &mut [deep, other].map(|data| Write::new(data, updates).convert(conversion)),
        )
    };
    let zero_point = [3_i32];
    let conversion = Conversion::new()
        .scale(TensorView::from(&scale))
        .zero_point(TensorView::from(&zero_point));
    let buffers = RefCell::new((vec![7_u8; DEEP_LEN], vec![7_u8; 3 * 512]));
    let allocations = check_call("write_all", || {
        // The call makes all allocations.
        let mut buffers = buffers.borrow_mut();
        let (first, second) = &mut *buffers;
        first.fill(7);
        second.fill(7);
        let done = write(conversion, first, second);
        let is_unchanged = first.iter().chain(&*second).all(|&byte| byte == 7);
        assert_eq!(done.is_err(), is_unchanged, "all or nothing");
        done
    });
    assert!(allocations > 10, "only {allocations} allocations");
}
