//! Refused allocations on all threads of a call: each allocation of each operator, schedule and
//! method is refused once, on the calling thread or in a task of a pool.
//!
//! After an error, the outputs have their old values. No attempt leaves memory in use, apart from
//! scratch memory that `release_scratch` frees.
//!
//! The same calls, without refused allocations, run on threads with small stacks.
//!
//! Allocations of the pools themselves are not refused. Threads of the system and rayon end the
//! process if such an allocation fails.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ndscatter::{
    CacheMode, Cloned, Conversion, Duplicates, Execution, Forward, Gather, Gradients, Layout,
    MoveRows, Pool, Reduction, Scatter, ScatterError, Schedule, TensorView, TensorViewMut, Write,
    release_scratch,
};

use super::allocator::{Part, as_part, live_bytes, refused, refusing_everywhere};
use super::common::Tensor;
use super::common::api::{GatherOptions, Indices, Method, Methods, Options, Request};
use super::common::layouts::{Arrangement, Strided};
use super::common::operators::{Gatherer, Operator};
use super::common::pools::{Sequential, Threads};
use super::{DEEP, turn};

/// Number of tasks that pools with several workers have run.
static TASKS: AtomicUsize = AtomicUsize::new(0);

/// A pool whose own allocations are not refused.
struct Outside<P>(P);

impl<P: Pool> Pool for Outside<P> {
    fn workers(&self) -> Option<usize> {
        self.0.workers()
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        TASKS.fetch_add(tasks, Relaxed);
        as_part(Part::Other, || {
            self.0
                .run(tasks, &|index| as_part(Part::Task, || task(index)));
        });
    }
}

/// Pools of one worker, of a new thread for each task, and of three threads of rayon.
fn pools() -> [Box<dyn Pool>; 3] {
    let start = || {
        rayon::ThreadPoolBuilder::new()
            .num_threads(3)
            .build()
            .expect("threads can be started")
    };
    [
        Box::new(Sequential),
        Box::new(Outside(Threads(3))),
        Box::new(Outside(start())),
    ]
}

/// Environment variable of a process that makes each call once, without refused allocations.
const ONCE: &str = "NDSCATTER_TEST_ONCE";

/// Size in bytes of small stacks.
const SMALL_STACK: &str = "131072";

/// Makes all calls of this file on threads with small stacks: the calling threads, and the workers
/// of the pools. An overflow ends the process.
#[test]
fn small_stacks() {
    if std::env::var_os(ONCE).is_some() {
        return;
    }
    let _turn = turn();
    let this = std::env::current_exe().expect("the test binary has a path");
    // With one thread, the tests would run on the main thread, which has a large stack.
    let ran = std::process::Command::new(this)
        .args(["all_threads::", "--test-threads=2"])
        .env("RUST_MIN_STACK", SMALL_STACK)
        .env(ONCE, "1")
        .output()
        .expect("the test binary runs");
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(ran.status.success(), "{}{}", said[0], said[1]);
}

/// Makes a call once for each of its allocations, which is then refused. `start` has the outputs
/// before the call. The call may return a result in addition.
fn check<W: Clone + PartialEq, R: PartialEq + Debug>(
    name: &dyn Fn() -> String,
    start: &W,
    call: impl Fn(&mut W) -> Result<R, ScatterError>,
) {
    let mut wanted = start.clone();
    if std::env::var_os(ONCE).is_some() {
        let done = call(&mut wanted).map(drop);
        return done.unwrap_or_else(|error| panic!("{}: {error}", name()));
    }
    let expected = call(&mut wanted).unwrap_or_else(|error| panic!("{}: {error}", name()));
    let mut written = start.clone();
    let mut number = 1;
    let mut tries = 0;
    loop {
        release_scratch();
        written.clone_from(start);
        let before = live_bytes();
        let (got, is_refused) = refusing_everywhere(number, || call(&mut written));
        match got {
            Ok(got) => {
                let is_same = got == expected && written == wanted;
                assert!(is_same, "{}, {number}: another result", name());
            }
            Err(ScatterError::OutOfMemory { .. }) if is_refused => {
                assert!(written == *start, "{}, {number}: written", name());
            }
            Err(error) => panic!("{}, {number}: {error}", name()),
        }
        release_scratch();
        let leaked = leaked_since(before);
        if leaked != 0 {
            // The test harness may have allocated memory meanwhile. A leak of the call repeats.
            tries += 1;
            assert!(tries < 5, "{}, {number}: {leaked} bytes leaked", name());
            continue;
        }
        if !is_refused {
            return;
        }
        (number, tries) = (number + 1, 0);
    }
}

/// Returns the number of bytes that are in use in addition to `before`. Waits a while until there are
/// none, because a worker of rayon frees its job after the call has returned.
fn leaked_since(before: isize) -> isize {
    let mut left = 50;
    while live_bytes() != before && left > 0 {
        std::thread::sleep(Duration::from_millis(1));
        left -= 1;
    }
    live_bytes() - before
}

/// Runs the checks of one group of calls, with each pool. Requires a minimum number of refused
/// allocations, and of tasks that run on pools with several workers.
fn check_group(name: &str, least: [usize; 2], group: impl Fn(&dyn Pool)) {
    let _turn = turn();
    let (before, ran) = (refused(), TASKS.load(Relaxed));
    for pool in pools() {
        group(&*pool);
    }
    let [calls, tasks] = [0, 1].map(|part| refused()[part] - before[part]);
    let ran = TASKS.load(Relaxed) - ran;
    if std::env::var_os(ONCE).is_some() {
        return;
    }
    println!("{name}: {calls} allocations refused in calls, {tasks} in {ran} tasks");
    assert!(
        calls >= least[0],
        "only {calls} allocations: {name} counts too few"
    );
    assert!(
        ran >= least[1],
        "only {ran} tasks: {name} uses too few workers"
    );
}

/// A contiguous tensor of small whole numbers. Their sums are exact.
fn tensor(shape: &[usize]) -> Strided<f32> {
    let mut state = 7_u16;
    let tensor = Tensor::generate(shape, || {
        state = state.wrapping_mul(25_173).wrapping_add(13_849);
        f32::from(state >> 10)
    });
    Strided::new(&tensor, Arrangement::Contiguous, 0, 0.0)
}

/// Indices of a shape, with duplicates or distinct, for axes of these sizes.
fn indices(shape: &[usize], axes: &[(usize, usize)], is_distinct: bool) -> Strided<i64> {
    let mut number = 0;
    let mut next = || {
        let (tuple, (_, size)) = (number / axes.len(), axes[number % axes.len()]);
        number += 1;
        let step = if is_distinct { 7919 } else { tuple };
        i64::try_from(tuple * step % size).expect("sizes are small")
    };
    let tensor = Tensor::generate(shape, &mut next);
    Strided::new(&tensor, Arrangement::Contiguous, 0, 0)
}

fn describe(options: &Options<'_>) -> String {
    let (operator, request) = (options.operator, options.execution);
    // The text of an execution has all rates of the machine after the schedule.
    let mut execution = format!("{:?}", request.execution);
    execution.truncate(120);
    format!("{operator:?}, {}, {execution}", request.reduction)
}

/// An operator with the shapes of data and indices.
type Shapes<O> = (O, &'static [usize], &'static [usize]);

const SCATTERS: [Shapes<Operator>; 7] = [
    (Operator::Nd, &[3001], &[2000, 1]),
    (Operator::Nd, &[301, 40], &[600, 1]),
    (Operator::Update { axis: 1 }, &[3, 101, 8], &[300]),
    (Operator::Update { axis: 0 }, &DEEP, &[4]),
    (Operator::Elements { axis: 0 }, &[301, 40], &[64, 40]),
    (
        Operator::Cache {
            axis: 1,
            mode: CacheMode::Circular,
            len: 4,
        },
        &[40, 16, 30],
        &[40],
    ),
    (Operator::Paged, &[20, 16, 32], &[300]),
];

/// A scatter that is large enough for several workers without a forced schedule.
const LARGE_SCATTER: Shapes<Operator> = (Operator::Nd, &[3001, 64], &[9000, 1]);

/// Runs a scatter with every method, and with the plan of planned methods made in the call.
fn check_scatter(options: &Options<'_>, (data, tuples): (&[usize], &[usize]), is_distinct: bool) {
    let operator = options.operator;
    let indices = indices(tuples, &operator.axes(data, tuples), is_distinct);
    let updates = tensor(&operator.updates_shape(data, tuples));
    let data = tensor(data);
    for method in Method::ALL {
        let name = || format!("{method:?}, {}", describe(options));
        let mut start = data.clone();
        if !method.is_in_place() {
            start.buffer.fill(-7.0);
        }
        let layout = start.clone();
        check(&name, &start.buffer, |buffer| {
            let plan = || indices.plan(options, layout.layout());
            let plan = method.is_planned().then(plan).transpose()?;
            let output = TensorViewMut::contiguous(buffer, layout.shape())?;
            let inputs = (data.view(), updates.view());
            method.scatter(options, &indices, plan.as_ref(), inputs, output)
        });
    }
}

#[test]
fn scatters() {
    check_group("scatters", [3000, 10], |pool| {
        for (operator, data, tuples) in SCATTERS {
            let is_cache = matches!(operator, Operator::Cache { .. });
            let reductions = [Reduction::None, Reduction::Add, Reduction::Mean];
            let reductions = &reductions[..if is_cache { 1 } else { 3 }];
            for &reduction in reductions {
                for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
                    let request = Request::new(reduction).pool(pool).schedule(schedule);
                    let options = Options::new(operator, request);
                    check_scatter(&options, (data, tuples), false);
                }
            }
        }
    });
}

/// Scatters that sort in more ways: refused duplicates, and reductions without self.
#[test]
fn scatters_with_options() {
    check_group("options", [200, 10], |pool| {
        for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
            let request = Request::new(Reduction::Add).pool(pool).schedule(schedule);
            let mut options = Options::new(Operator::Nd, request);
            options.duplicates = Duplicates::Reject;
            check_scatter(&options, (&[3001], &[2000, 1]), true);
            options.duplicates = Duplicates::Allow;
            options.include_self = false;
            check_scatter(&options, (&[3001], &[2000, 1]), false);
        }
    });
}

/// Scatters that are large enough for several workers without a forced schedule.
#[test]
fn large_scatters() {
    check_group("large scatters", [30, 10], |pool| {
        for (data, tuples) in [
            (&[100_003][..], &[80_000, 1][..]),
            (&[3001, 64], &[9000, 1]),
        ] {
            for reduction in [Reduction::None, Reduction::Add] {
                let options = Options::new(Operator::Nd, Request::new(reduction).pool(pool));
                check_scatter(&options, (data, tuples), false);
            }
        }
    });
}

const GATHERS: [Shapes<Gatherer>; 6] = [
    (Gatherer::Nd { batch_dims: 0 }, &[301, 40], &[600, 1]),
    (
        Gatherer::Nd { batch_dims: 1 },
        &[4, 2001, 16],
        &[4, 9000, 1],
    ),
    (Gatherer::Along { axis: 0 }, &[5001, 64], &[9000]),
    (Gatherer::Along { axis: 0 }, &DEEP, &[4]),
    (Gatherer::Elements { axis: 0 }, &[5001, 64], &[5001, 64]),
    (Gatherer::Paged, &[200, 16, 64], &[9000]),
];

#[test]
fn gathers() {
    check_group("gathers", [100, 10], |pool| {
        for (gatherer, data, tuples) in GATHERS {
            let mut options = GatherOptions::new(gatherer);
            options.execution = options.execution.pool(pool);
            let output = tensor(&gatherer.output_shape(data, tuples));
            let indices = indices(tuples, &gatherer.axes(data, tuples), false);
            let data = tensor(data);
            for method in Method::of_gathers() {
                let name = || format!("{method:?}, {options:?}");
                check(&name, &output.buffer, |buffer| {
                    let plan = || indices.plan_gather(&options, data.layout());
                    let plan = method.is_planned().then(plan).transpose()?;
                    let output = TensorViewMut::contiguous(buffer, output.shape())?;
                    method.gather(&options, &indices, plan.as_ref(), data.view(), output)
                });
            }
        }
    });
}

/// The tensors of a gradient.
struct Graded {
    gradient: Strided<f32>,
    data: Strided<f32>,
    updates: Strided<f32>,
    indices: Strided<i64>,
}

impl Graded {
    fn new((operator, data, tuples): Shapes<Operator>) -> Self {
        Self {
            gradient: tensor(data),
            data: tensor(data),
            updates: tensor(&operator.updates_shape(data, tuples)),
            indices: indices(tuples, &operator.axes(data, tuples), false),
        }
    }

    fn forward(&self) -> Forward<TensorView<'_, f32>> {
        Forward::new(self.data.view(), self.updates.view())
    }

    /// Runs every method that computes the gradients of a scatter.
    fn check(&self, options: &Options<'_>) {
        let scatter = options.scatter();
        let gradient = || self.gradient.view();
        let name = |what: &'static str| move || format!("{what}, {}", describe(options));
        let start = (self.data.buffer.clone(), self.updates.buffer.clone());
        check(&name("allocated"), &(), |()| {
            let made = scatter.backward(gradient(), self.forward(), self.indices.typed(), 0.5)?;
            Ok((made.0.into_vec(), made.1.into_vec()))
        });
        check(&name("into"), &start, |(data, updates)| {
            let data = TensorViewMut::contiguous(data, self.data.shape())?;
            let updates = TensorViewMut::contiguous(updates, self.updates.shape())?;
            let wanted = Gradients::new(data, updates);
            let indices = self.indices.typed();
            scatter.backward_into(gradient(), self.forward(), indices, 0.5, wanted)
        });
        check(&name("planned"), &start, |(data, updates)| {
            let plan = scatter.plan(self.data.layout(), self.indices.typed())?;
            let data = TensorViewMut::contiguous(data, self.data.shape())?;
            let updates = TensorViewMut::contiguous(updates, self.updates.shape())?;
            let wanted = Gradients::new(data, updates);
            let run = plan.run().execution(options.execution.execution);
            run.backward_into(gradient(), self.forward(), 0.5, wanted)
        });
        check(&name("saved"), &(), |()| {
            let updates = self.updates.view();
            let (made, saved) = scatter.forward(self.data.view(), self.indices.typed(), updates)?;
            let run = saved.run().execution(options.execution.execution);
            let of_updates = run.backward_updates(gradient(), self.forward(), 1.0)?;
            Ok((made.into_vec(), of_updates.into_vec()))
        });
        check(&name("forward in place"), &self.data.buffer, |data| {
            let data = TensorViewMut::contiguous(data, self.data.shape())?;
            let saved =
                scatter.forward_in_place(data, self.indices.typed(), self.updates.view())?;
            Ok(saved.bytes())
        });
    }
}

#[test]
fn gradients_of_scatters() {
    check_group("gradients of scatters", [1000, 10], |pool| {
        for shapes in SCATTERS.into_iter().chain([LARGE_SCATTER]) {
            let graded = Graded::new(shapes);
            let reductions = match shapes.0 {
                Operator::Cache { .. } => &[Reduction::None][..],
                Operator::Nd if shapes.1 == LARGE_SCATTER.1 => &[Reduction::Add, Reduction::Mul],
                _ => &Reduction::ALL,
            };
            for &reduction in reductions {
                let options = Options::new(shapes.0, Request::new(reduction).pool(pool));
                graded.check(&options);
            }
        }
    });
}

/// The outputs of one gradient with a separate backward pass after a forward pass in place.
#[test]
fn gradients_after_a_forward_pass_in_place() {
    check_group("saved windows", [5, 10], |pool| {
        let graded = Graded::new(LARGE_SCATTER);
        let options = Options::new(Operator::Nd, Request::new(Reduction::Mul).pool(pool));
        let mut data = graded.data.clone();
        let saved = options.scatter().forward_in_place(
            data.view_mut(),
            graded.indices.typed(),
            graded.updates.view(),
        );
        let saved = saved.expect("a valid call");
        let run = saved.run().execution(options.execution.execution);
        check(&|| "saved".to_owned(), &(), |()| {
            let forward = Forward::updates(graded.updates.view());
            let made = run.backward(graded.gradient.view(), forward, 0.5)?;
            Ok((made.0.into_vec(), made.1.into_vec()))
        });
    });
}

#[test]
fn gradients_of_gathers() {
    check_group("gradients of gathers", [30, 10], |pool| {
        for (gatherer, data, tuples) in GATHERS {
            let mut options = GatherOptions::new(gatherer);
            options.execution = options.execution.pool(pool);
            let gradient = tensor(&gatherer.output_shape(data, tuples));
            let indices = indices(tuples, &gatherer.axes(data, tuples), false);
            let (gather, shape, output) = (options.gather(), data, tensor(data));
            let name = || format!("{options:?}");
            check(&name, &(), |()| {
                let made = gather.backward(gradient.view(), shape, indices.typed(), 0.5)?;
                Ok(made.into_vec())
            });
            check(&name, &output.buffer, |data| {
                let data = TensorViewMut::contiguous(data, shape)?;
                gather.backward_into(gradient.view(), indices.typed(), 0.5, data)
            });
            check(&name, &output.buffer, |data| {
                let plan = gather.plan(Layout::contiguous(shape), indices.typed())?;
                let data = TensorViewMut::contiguous(data, shape)?;
                let run = plan.run().execution(options.execution);
                run.backward_into(gradient.view(), 0.5, data)
            });
        }
    });
}

/// Distinct rows. A write of duplicates is not divided among workers.
const LARGE_WRITE: Shapes<Operator> = (Operator::Nd, &[9001, 64], &[9000, 1]);

/// Writes of 8-bit floats to two tensors with one list of indices, with and without a plan.
#[test]
fn converting_writes() {
    check_group("converting writes", [20, 10], |pool| {
        for (operator, data, tuples) in SCATTERS.into_iter().chain([LARGE_WRITE]) {
            if matches!(operator, Operator::Cache { .. } | Operator::Elements { .. }) {
                continue;
            }
            let options = Options::new(operator, Request::new(Reduction::None).pool(pool));
            let scatter = options.scatter();
            let indices = indices(tuples, &operator.axes(data, tuples), true);
            let updates = tensor(&operator.updates_shape(data, tuples));
            let len = data.iter().product();
            let start = (vec![7_u8; len], vec![7_u8; len]);
            let conversion = Conversion::new();
            let name = |what: &'static str| move || format!("{what}, {}", describe(&options));
            check(&name("write_all"), &start, |(first, second)| {
                let [first, second] = [first, second].map(|to| TensorViewMut::contiguous(to, data));
                let mut writes =
                    [first?, second?].map(|to| Write::new(to, updates.view()).convert(conversion));
                scatter.write_all(indices.typed(), &mut writes)
            });
            check(&name("convert"), &start.0, |to| {
                let to = TensorViewMut::contiguous(to, data)?;
                let scatter = options.scatter().convert(conversion);
                scatter.in_place(to, indices.typed(), updates.view())
            });
            let plan = scatter.plan(Layout::contiguous(data), indices.typed());
            let plan = plan.expect("a valid call");
            let run = || options.run(&plan);
            check(&name("planned"), &start, |(first, second)| {
                let [first, second] = [first, second].map(|to| TensorViewMut::contiguous(to, data));
                let mut writes =
                    [first?, second?].map(|to| Write::new(to, updates.view()).convert(conversion));
                run().write_all(&mut writes)
            });
            check(&name("planned, one"), &start.0, |to| {
                let to = TensorViewMut::contiguous(to, data)?;
                run().convert(conversion).in_place(to, updates.view())
            });
        }
    });
}

#[test]
fn moves_of_rows() {
    check_group("moves of rows", [20, 10], |pool| {
        // Rows of single elements, and rows that are moved by several workers.
        for (shape, moves) in [([3001, 1], 2000), ([2001, 300], 1900)] {
            let execution = Execution::new().pool(pool);
            let operator = MoveRows::along(0).execution(execution);
            let from = indices(&[moves], &[(0, shape[0])], false);
            let to = indices(&[moves], &[(0, shape[0])], true);
            let start = tensor(&shape).buffer;
            check(&|| format!("in place, {shape:?}"), &start, |rows| {
                let rows = TensorViewMut::contiguous(rows, &shape)?;
                operator.in_place([rows], from.typed(), to.typed())
            });
            check(&|| format!("planned, {shape:?}"), &start, |rows| {
                let plan = operator.plan(shape[0], from.typed(), to.typed())?;
                let rows = TensorViewMut::contiguous(rows, &shape)?;
                plan.run().execution(execution).in_place([rows])
            });
        }
    });
}

/// Counted references: a clone allocates nothing, and a lost element is a leak.
#[test]
fn cloned_elements() {
    check_group("cloned elements", [50, 10], |pool| {
        const SHAPE: [usize; 2] = [301, 40];
        let make = |count| -> Vec<Arc<usize>> { (0..count).map(Arc::new).collect() };
        let (data, updates) = (make(301 * 40), make(600 * 40));
        let indices = indices(&[600, 1], &[(0, 301)], false);
        let tensors = || -> Result<_, ScatterError> {
            let data = TensorView::contiguous(&data, &SHAPE)?;
            Ok((data, TensorView::contiguous(&updates, &[600, 40])?))
        };
        let start = make(301 * 40);
        for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
            let request = Request::new(Reduction::None).pool(pool).schedule(schedule);
            let scatter = request.of(Scatter::nd());
            let name = || format!("clones, {request:?}");
            check(&name, &(), |()| {
                let (data, updates) = tensors()?;
                let made = scatter.allocate(Cloned(data), indices.typed(), Cloned(updates))?;
                Ok(made.into_vec())
            });
            check(&name, &start, |output| {
                let output = TensorViewMut::contiguous(output, &SHAPE)?;
                let (data, updates) = tensors()?;
                let indices = indices.typed();
                scatter.write_into(Cloned(data), indices, Cloned(updates), Cloned(output))
            });
            check(&name, &start, |output| {
                let output = TensorViewMut::contiguous(output, &SHAPE)?;
                scatter.in_place(Cloned(output), indices.typed(), Cloned(tensors()?.1))
            });
        }
        let gather = Gather::nd(0).execution(Execution::new().pool(pool));
        check(&|| "gathered clones".to_owned(), &(), |()| {
            let made = gather.allocate(Cloned(tensors()?.0), indices.typed())?;
            Ok(made.into_vec())
        });
        let is_single = |element: &Arc<usize>| Arc::strong_count(element) == 1;
        let are_single = data.iter().chain(&updates).all(is_single);
        assert!(are_single, "a clone was not dropped");
    });
}
