//! Concurrent calls, nested calls, unusual pools, and elements whose clones panic. Results are
//! right, lost tasks are errors, and no element is dropped twice.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::api::Methods;
use crate::common::elements::{Palette, Ref, compare, is_exact};
use crate::common::harness::{Indices, Operator, Options};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::pools::{Sequential, Threads, Workers, rayon_pool};
use crate::common::random::Random;
use crate::common::request::Request;
use crate::common::{Tensor, scatter_nd};
use ndscatter::{
    AnyView, AnyViewMut, CallingThread, Cloned, Execution, Explanation, Gather, GatherPlan,
    GatherRun, Goal, Layout, Pool, Rayon, Reduction, Scatter, ScatterError, ScatterPlan,
    ScatterRun, Schedule, TensorView, TensorViewMut,
};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

#[test]
fn views_and_plans_cross_threads() {
    fn send_and_sync<T: Send + Sync>() {}
    fn forever<T: 'static>() {}
    send_and_sync::<ScatterPlan>();
    forever::<ScatterPlan>();
    send_and_sync::<Scatter<'_>>();
    send_and_sync::<GatherPlan>();
    forever::<GatherPlan>();
    send_and_sync::<Gather<'_>>();
    send_and_sync::<Execution<'_>>();
    send_and_sync::<ScatterRun<'_>>();
    send_and_sync::<GatherRun<'_>>();
    send_and_sync::<Explanation>();
    send_and_sync::<Layout<'_>>();
    send_and_sync::<TensorView<'_, String>>();
    send_and_sync::<TensorViewMut<'_, String>>();
    send_and_sync::<AnyView<'_>>();
    send_and_sync::<AnyViewMut<'_>>();
    send_and_sync::<ScatterError>();
}

/// One reduction for each way of combining updates: all in order, only the last, in parts, and by
/// destination.
const REDUCTIONS: [Reduction; 4] = [
    Reduction::Add,
    Reduction::None,
    Reduction::Max,
    Reduction::Mean,
];

/// Rows with duplicates. They are large enough that a pool runs several tasks.
struct Workload {
    data: Strided<f32>,
    indices: Strided<i64>,
    updates: Strided<f32>,
    expected: [(Reduction, Tensor<f32>); 4],
}

impl Workload {
    fn new(data: &[usize], tuples: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let indices = Tensor::generate(&[tuples, 1], || {
            i64::try_from(random.zipf(data[0])).expect("the row fits i64")
        });
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        let mut sample = |shape: &[usize]| {
            let tensor = Tensor::generate(shape, || f32::sample(Palette::Ordinary, &mut random));
            Strided::new(&tensor, Arrangement::Contiguous, 0, f32::sentinel())
        };
        let updates = sample(&Operator::Nd.updates_shape(data, &[tuples, 1]));
        let data = sample(data);
        let logical = indices.logical();
        let expected = REDUCTIONS.map(|reduction| {
            let (data, updates) = (data.read(), updates.read());
            let expected = Operator::Nd.expected(reduction, &data, &logical, &updates);
            (reduction, expected)
        });
        Self {
            data,
            indices,
            updates,
            expected,
        }
    }

    /// Creates a workload with 384,000 elements of updates.
    fn large(seed: u64) -> Self {
        Self::new(&[2000, 64], 6000, seed)
    }

    fn expected(&self, reduction: Reduction) -> &[f32] {
        let prepared = self.expected.iter().find(|(known, _)| *known == reduction);
        let (_, expected) = prepared.expect("a reduction of the workload");
        &expected.values
    }

    fn check_in_place(&self, execution: Request<'_>, reduction: Reduction) {
        let mut output = self.data.clone();
        let options = Options::new(Operator::Nd, execution);
        self.indices
            .in_place(&options, output.view_mut(), self.updates.view())
            .expect("the workload is valid");
        compare(
            &output.buffer,
            self.expected(reduction),
            is_exact(reduction),
        )
        .unwrap_or_else(|difference| panic!("{reduction}: {difference}"));
    }
}

/// A pool of four threads that other calls use at the same time. It counts its runs.
#[derive(Default)]
struct Crowded {
    runs: AtomicUsize,
    calls: AtomicUsize,
}

impl Pool for Crowded {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Threads(4).run(tasks, task);
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        Some(&self.calls)
    }
}

#[test]
fn goals_choose_the_workers_and_change_no_bit() {
    // Large enough that several workers are faster than one.
    let workload = Workload::new(&[20_000, 64], 60_000, 3);
    let cases = [
        (None, 0, true),
        (None, 3, false),
        (Some(Goal::Latency), 0, true),
        (Some(Goal::Latency), 3, true),
        (Some(Goal::Throughput), 0, false),
        (Some(Goal::Throughput), 3, false),
    ];
    for (goal, others, is_divided) in cases {
        for reduction in [Reduction::Add, Reduction::None] {
            let pool = Crowded::default();
            pool.calls.store(others, Ordering::Relaxed);
            let request = Request::new(reduction).goal(goal).pool(&pool);
            workload.check_in_place(request, reduction);
            let runs = pool.runs.load(Ordering::Relaxed);
            assert_eq!(runs > 0, is_divided, "{goal:?}, {others}, {reduction}");
            assert_eq!(
                pool.calls.load(Ordering::Relaxed),
                others,
                "the count of calls after the call"
            );
        }
    }
}

#[test]
fn one_plan_serves_many_threads_at_once() {
    let indices = Workload::large(1);
    let options = Options::new(Operator::Nd, Reduction::Add);
    let plan = indices.indices.plan(&options, indices.data.layout());
    let plan = plan.expect("the indices are valid");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (plan, workload) = (&plan, &indices);
            scope.spawn(move || {
                for round in 0..6 {
                    let reduction = [Reduction::Add, Reduction::None][(thread + round) % 2];
                    check_plan(plan, workload, reduction);
                }
            });
        }
    });
}

fn check_plan(plan: &ScatterPlan, workload: &Workload, reduction: Reduction) {
    let (data, updates) = (workload.data.view(), workload.updates.view());
    let allocated = (Request::new(reduction).run(plan))
        .allocate(data, updates)
        .expect("the workload is valid");
    let mut output = workload.data.clone();
    (Request::new(reduction).run(plan))
        .in_place(output.view_mut(), updates)
        .expect("the workload is valid");
    for result in [&allocated[..], &output.buffer[..]] {
        compare(result, workload.expected(reduction), is_exact(reduction))
            .unwrap_or_else(|difference| panic!("{reduction}: {difference}"));
    }
}

#[test]
fn a_plan_outlives_its_indices_and_moves_to_another_thread() {
    let workload = Workload::large(2);
    let plan = {
        let indices = workload.indices.clone();
        let options = Options::new(Operator::Nd, Reduction::Add);
        indices
            .plan(&options, workload.data.layout())
            .expect("valid indices")
    };
    let run = move || check_plan(&plan, &workload, Reduction::Add);
    std::thread::spawn(run)
        .join()
        .expect("the plan works on another thread");
}

#[test]
fn calls_nest_inside_rayon_tasks() {
    let workload = Workload::large(3);
    // A worker that waits for its tasks may start another call.
    for workers in [1, 2, 3] {
        rayon_pool(workers).install(|| {
            (0..40_usize).into_par_iter().for_each(|call| {
                let reduction = [Reduction::Add, Reduction::None][call % 2];
                workload.check_in_place(Request::new(reduction), reduction);
            });
        });
    }
}

#[test]
fn calls_nest_with_every_schedule() {
    let workload = Workload::large(4);
    rayon_pool(2).install(|| {
        let schedules = Schedule::ALL.into_par_iter();
        schedules
            .flat_map(|schedule| [schedule; 6])
            .for_each(|schedule| {
                for reduction in [Reduction::Add, Reduction::None] {
                    let execution = Request::new(reduction).schedule(schedule);
                    workload.check_in_place(execution, reduction);
                }
            });
    });
}

/// A pool that makes another scatter call after each task.
struct Busy<'w>(&'w Workload);

impl Pool for Busy<'_> {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let small = Request::new(Reduction::Add).pool(&CallingThread);
        for index in 0..tasks {
            task(index);
            self.0.check_in_place(small, Reduction::Add);
        }
    }
}

#[test]
fn a_pool_may_scatter_while_it_runs() {
    let workload = Workload::large(5);
    let small = Workload::new(&[50, 3], 700, 6);
    for schedule in Schedule::ALL {
        for reduction in [Reduction::Add, Reduction::None] {
            let pool = Busy(&small);
            let execution = Request::new(reduction).pool(&pool).schedule(schedule);
            workload.check_in_place(execution, reduction);
        }
    }
}

/// An element that records the names of the threads that clone it.
#[derive(Debug)]
struct Witness(Arc<Mutex<HashSet<Option<String>>>>);

impl Clone for Witness {
    fn clone(&self) -> Self {
        let name = std::thread::current().name().map(str::to_owned);
        self.0
            .lock()
            .expect("no thread panics with the lock")
            .insert(name);
        Self(Arc::clone(&self.0))
    }
}

#[test]
fn tasks_run_in_the_installed_pool_and_in_no_other() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .thread_name(|index| format!("installed {index}"))
        .build()
        .expect("threads can be started");
    let seen = Arc::default();
    let updates: Vec<_> = (0..50_000).map(|_| Witness(Arc::clone(&seen))).collect();
    let mut data: Vec<_> = (0..50_000).map(|_| Witness(Arc::clone(&seen))).collect();
    let indices: Vec<i64> = (0..50_000).collect();
    pool.install(|| {
        Scatter::nd().in_place(
            Cloned(TensorViewMut::contiguous(&mut data, &[50_000]).expect("data")),
            TensorView::contiguous(&indices, &[50_000, 1]).expect("indices"),
            Cloned(TensorView::contiguous(&updates, &[50_000]).expect("updates")),
        )
    })
    .expect("the call is valid");
    let seen = seen.lock().expect("no thread panics with the lock");
    assert!(!seen.is_empty(), "nothing was cloned");
    for name in seen.iter() {
        let name = name.as_deref().unwrap_or("unnamed");
        assert!(name.starts_with("installed "), "thread {name} ran a task");
    }
}

/// What a safe pool may do with its tasks: errors, and behaviour that is unusual but allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    /// Runs the tasks in reverse order, which is allowed.
    Reverse,
    SkipLast,
    SkipAll,
    RepeatFirst,
    /// Runs task 0 instead of task 1. The number of calls is right.
    Mistake,
    /// Runs every task on two threads at the same time.
    AllTwiceAtOnce,
    /// Runs task numbers that do not exist.
    TooMany,
}

impl Habit {
    const ALL: [Self; 7] = [
        Self::Reverse,
        Self::SkipLast,
        Self::SkipAll,
        Self::RepeatFirst,
        Self::Mistake,
        Self::AllTwiceAtOnce,
        Self::TooMany,
    ];

    /// Returns the number of tasks that are completed, and the number of calls beyond one for each
    /// task.
    fn leaves(self, tasks: usize) -> (usize, usize) {
        match self {
            Self::Reverse => (tasks, 0),
            Self::SkipLast => (tasks - 1, 0),
            Self::SkipAll => (0, 0),
            Self::RepeatFirst => (tasks, 1),
            Self::Mistake => (tasks - 1, 1),
            Self::AllTwiceAtOnce => (tasks, tasks),
            Self::TooMany => (tasks, 2),
        }
    }
}

struct Odd {
    habit: Habit,
    /// Number of runs with at least two tasks. With one task, some habits do no harm.
    runs: AtomicUsize,
}

impl Pool for Odd {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if tasks < 2 {
            return (0..tasks).for_each(task);
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        match self.habit {
            Habit::Reverse => (0..tasks).rev().for_each(task),
            Habit::SkipLast => (0..tasks - 1).for_each(task),
            Habit::SkipAll => {}
            Habit::RepeatFirst => (0..tasks).chain([0]).for_each(task),
            Habit::Mistake => (0..tasks)
                .map(|i| if i == 1 { 0 } else { i })
                .for_each(task),
            Habit::AllTwiceAtOnce => std::thread::scope(|scope| {
                for index in 0..tasks {
                    scope.spawn(move || task(index));
                    scope.spawn(move || task(index));
                }
            }),
            Habit::TooMany => (0..tasks).chain([tasks, usize::MAX]).for_each(task),
        }
    }
}

/// Checks the result of a call with such a pool: an error where the pool lost or repeated tasks.
fn check_habit(
    habit: Habit,
    runs: usize,
    got: Result<Result<(), String>, ScatterError>,
    what: &str,
) {
    match got {
        Ok(compared) => {
            let harmless = runs == 0 || matches!(habit, Habit::Reverse | Habit::TooMany);
            assert!(harmless, "{what}: {habit:?} was not detected");
            compared.unwrap_or_else(|difference| panic!("{what}, {habit:?}: {difference}"));
        }
        Err(ScatterError::PoolFailed {
            tasks,
            completed,
            surplus,
        }) => {
            assert_ne!(habit, Habit::Reverse, "{what}: any order is allowed");
            let expected = habit.leaves(tasks);
            assert_eq!((completed, surplus), expected, "{what}, {habit:?}");
        }
        Err(error) => panic!("{what}, {habit:?}: {error}"),
    }
}

#[test]
fn pools_that_lose_or_repeat_tasks_are_detected() {
    let workload = Workload::large(7);
    let mut runs = [0; Habit::ALL.len()];
    for (habit, total) in Habit::ALL.into_iter().zip(&mut runs) {
        for schedule in Schedule::ALL.into_iter().map(Some).chain([None]) {
            for reduction in REDUCTIONS {
                let pool = Odd {
                    habit,
                    runs: AtomicUsize::new(0),
                };
                let execution = Request::new(reduction).pool(&pool);
                let execution = schedule.map_or(execution, |forced| execution.schedule(forced));
                let options = Options::new(Operator::Nd, execution);
                let what = format!("{schedule:?} {reduction}");
                let compared = |result: &[f32]| {
                    compare(result, workload.expected(reduction), is_exact(reduction))
                };

                let mut output = workload.data.clone();
                let got =
                    workload
                        .indices
                        .in_place(&options, output.view_mut(), workload.updates.view());
                let in_place = pool.runs.swap(0, Ordering::Relaxed);
                check_habit(
                    habit,
                    in_place,
                    got.map(|()| compared(&output.buffer)),
                    &what,
                );

                let (data, updates) = (workload.data.view(), workload.updates.view());
                let got = workload.indices.allocate(&options, data, updates);
                let allocated = pool.runs.into_inner();
                check_habit(habit, allocated, got.map(|output| compared(&output)), &what);
                *total += in_place + allocated;
            }
        }
    }
    for (habit, runs) in Habit::ALL.into_iter().zip(runs) {
        assert!(runs > 10, "{habit:?}: only {runs} runs with several tasks");
    }
}

#[test]
fn gathers_detect_lost_and_repeated_tasks() {
    let mut random = Random::new(10);
    let values = Tensor::generate(&[2000, 64], || f32::sample(Palette::Ordinary, &mut random));
    let data = TensorView::contiguous(&values.values, &values.shape).expect("data");
    let rows: Vec<u16> = (0..2000).cycle().step_by(7).take(30_000).collect();
    let indices = TensorView::contiguous(&rows, &[30_000, 1]).expect("indices");
    let gather = Gather::nd(0);
    let expected = gather.allocate(data, indices).expect("valid indices");
    for habit in Habit::ALL {
        let pool = Odd {
            habit,
            runs: AtomicUsize::new(0),
        };
        let execution = Execution::new().pool(&pool);
        let gather = gather.clone().execution(execution);
        let compared = |result: &[f32]| compare(result, &expected, true);
        let got = gather.allocate(data, indices);
        let runs = pool.runs.swap(0, Ordering::Relaxed);
        check_habit(habit, runs, got.map(|output| compared(&output)), "gather");
        let plan = gather.plan(data.layout(), indices).expect("valid indices");
        let got = plan.run().execution(execution).allocate(data);
        let planned = pool.runs.into_inner();
        check_habit(
            habit,
            planned,
            got.map(|output| compared(&output)),
            "planned",
        );
        assert!(
            runs > 0 && planned > 0,
            "{habit:?}: no run with several tasks"
        );
    }
}

/// Strings with duplicates, and the expected result.
struct Strings {
    data: Tensor<String>,
    indices: Tensor<i64>,
    updates: Tensor<String>,
    expected: Vec<String>,
}

impl Strings {
    fn new() -> Self {
        let mut random = Random::new(8);
        let mut number = 0;
        let mut text = |what: &str| {
            number += 1;
            format!("{what} {number}, too long to be stored inline")
        };
        let data = Tensor::generate(&[300, 7], || text("data"));
        let updates = Tensor::generate(&[4000, 7], || text("update"));
        let indices = Tensor::generate(&[4000, 1], || {
            i64::try_from(random.zipf(300)).expect("the row fits i64")
        });
        let logical = indices.values.iter().copied().map(i128::from).collect();
        let logical = Tensor::new(&indices.shape, logical);
        let expected = scatter_nd(&data, &logical, &updates, |_, update| update.clone());
        Self {
            data,
            indices,
            updates,
            expected: expected.values,
        }
    }

    fn data(&self) -> TensorView<'_, String> {
        TensorView::contiguous(&self.data.values, &self.data.shape).expect("data")
    }

    fn updates(&self) -> TensorView<'_, String> {
        TensorView::contiguous(&self.updates.values, &self.updates.shape).expect("updates")
    }

    fn indices(&self) -> TensorView<'_, i64> {
        TensorView::contiguous(&self.indices.values, &self.indices.shape).expect("indices")
    }

    fn output<'o>(&'o self, output: &'o mut [String]) -> TensorViewMut<'o, String> {
        TensorViewMut::contiguous(output, &self.data.shape).expect("an output like data")
    }

    /// Runs all three methods, as one-shot calls and with a plan.
    fn run(&self, execution: Request<'_>) -> Result<[Vec<String>; 6], ScatterError> {
        let scatter = execution.of(Scatter::nd());
        let (data, indices, updates) = (self.data(), self.indices(), self.updates());
        let plan = scatter.plan(Layout::contiguous(&self.data.shape), indices)?;
        let old = || vec!["old".to_owned(); self.data.values.len()];
        let mut results = [(); 6].map(|()| old());
        let [one, two, three, four, five, six] = &mut results;
        *one = (scatter.allocate(Cloned(data), indices, Cloned(updates))?).into_vec();
        scatter.write_into(
            Cloned(data),
            indices,
            Cloned(updates),
            Cloned(self.output(two)),
        )?;
        three.clone_from(&self.data.values);
        scatter.in_place(Cloned(self.output(three)), indices, Cloned(updates))?;
        let run = execution.run(&plan);
        *four = (run.allocate(Cloned(data), Cloned(updates))?).into_vec();
        execution.run(&plan).write_into(
            Cloned(data),
            Cloned(updates),
            Cloned(self.output(five)),
        )?;
        six.clone_from(&self.data.values);
        execution
            .run(&plan)
            .in_place(Cloned(self.output(six)), Cloned(updates))?;
        Ok(results)
    }
}

#[test]
fn strings_with_duplicates() {
    let strings = Strings::new();
    for workers in Workers::ALL {
        for schedule in Schedule::ALL.into_iter().map(Some).chain([None]) {
            let results = workers.with(|pool| {
                let execution = Request::new(Reduction::None).pool(pool);
                let forced = schedule.map_or(execution, |forced| execution.schedule(forced));
                strings.run(forced)
            });
            let results = results.unwrap_or_else(|error| panic!("{workers:?}: {error}"));
            for (number, result) in results.iter().enumerate() {
                assert!(
                    *result == strings.expected,
                    "{workers:?} {schedule:?}, method {number}"
                );
            }
        }
    }
}

#[test]
fn strings_survive_odd_pools() {
    let strings = Strings::new();
    for habit in Habit::ALL {
        for schedule in Schedule::ALL {
            let pool = Odd {
                habit,
                runs: AtomicUsize::new(0),
            };
            let execution = Request::new(Reduction::None).pool(&pool).schedule(schedule);
            let scatter = execution.of(Scatter::nd());
            let mut output = strings.data.values.clone();
            let view = strings.output(&mut output);
            let got = scatter.in_place(Cloned(view), strings.indices(), Cloned(strings.updates()));
            let compare = |result: &Vec<String>| {
                let same = *result == strings.expected;
                if same {
                    Ok(())
                } else {
                    Err("the strings differ".to_owned())
                }
            };
            let runs = pool.runs.swap(0, Ordering::Relaxed);
            check_habit(
                habit,
                runs,
                got.map(|()| compare(&output)),
                &format!("{schedule}"),
            );
            // Each place holds one whole string, also after an error.
            let whole = output.iter().all(|text| text.ends_with("stored inline"));
            assert!(whole, "{habit:?} {schedule}: a string was torn");

            let got = scatter.allocate(
                Cloned(strings.data()),
                strings.indices(),
                Cloned(strings.updates()),
            );
            let runs = pool.runs.swap(0, Ordering::Relaxed);
            check_habit(
                habit,
                runs,
                got.map(|output| compare(&output.into_vec())),
                &format!("{schedule}"),
            );
        }
    }
}

/// The elements that are alive, and the number of the clone that panics.
#[derive(Default)]
struct Registry {
    born: AtomicUsize,
    live: Mutex<HashSet<usize>>,
    dropped_twice: AtomicUsize,
    clones: AtomicUsize,
    panics_at: AtomicUsize,
}

/// An element that detects when it is dropped twice.
struct Tracked {
    name: usize,
    registry: Arc<Registry>,
}

impl Tracked {
    fn new(registry: &Arc<Registry>) -> Self {
        let name = registry.born.fetch_add(1, Ordering::Relaxed);
        registry
            .live
            .lock()
            .expect("no thread panics with the lock")
            .insert(name);
        Self {
            name,
            registry: Arc::clone(registry),
        }
    }
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        let number = self.registry.clones.fetch_add(1, Ordering::Relaxed);
        if number == self.registry.panics_at.load(Ordering::Relaxed) {
            // `panic!` would print its message. `resume_unwind` does not.
            resume_unwind(Box::new("a clone failed"));
        }
        Self::new(&self.registry)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let was_alive = self
            .registry
            .live
            .lock()
            .is_ok_and(|mut live| live.remove(&self.name));
        if !was_alive {
            self.registry.dropped_twice.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum CloneMethod {
    Allocate,
    WriteInto,
    InPlace,
}

/// Makes one of the clones panic, and checks that each element has been dropped once afterwards.
fn check_panic(
    method: CloneMethod,
    schedule: Option<Schedule>,
    workers: Workers,
    panics_at: usize,
) {
    const ROWS: usize = 40;
    const TUPLES: usize = 120;
    const LEN: usize = 50;
    let what = format!("{method:?} {schedule:?} {workers:?}, clone {panics_at}");
    let registry = Arc::new(Registry::default());
    registry.panics_at.store(panics_at, Ordering::Relaxed);
    let make = |count: usize| -> Vec<_> { (0..count).map(|_| Tracked::new(&registry)).collect() };
    let (data, updates, mut output) = (make(ROWS * LEN), make(TUPLES * LEN), make(ROWS * LEN));
    let indices: Vec<i64> = (0..TUPLES)
        .map(|i| i64::try_from(i * i % ROWS).expect("the row fits i64"))
        .collect();

    let panicked = workers.with(|pool| {
        let execution = Request::new(Reduction::None).pool(pool);
        let execution = schedule.map_or(execution, |schedule| execution.schedule(schedule));
        let scatter = execution.of(Scatter::nd());
        let data = TensorView::contiguous(&data, &[ROWS, LEN]).expect("data");
        let indices = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("indices");
        let updates = TensorView::contiguous(&updates, &[TUPLES, LEN]).expect("updates");
        let target = TensorViewMut::contiguous(&mut output, &[ROWS, LEN]).expect("output");
        let call = || match method {
            CloneMethod::Allocate => scatter
                .allocate(Cloned(data), indices, Cloned(updates))
                .map(drop),
            CloneMethod::WriteInto => {
                scatter.write_into(Cloned(data), indices, Cloned(updates), Cloned(target))
            }
            CloneMethod::InPlace => scatter.in_place(Cloned(target), indices, Cloned(updates)),
        };
        catch_unwind(AssertUnwindSafe(call)).is_err()
    });
    let clones = registry.clones.load(Ordering::Relaxed);
    assert_eq!(
        panicked,
        clones > panics_at,
        "{what}: whether the call panicked"
    );
    drop((data, updates, output));
    let twice = registry.dropped_twice.load(Ordering::Relaxed);
    assert_eq!(twice, 0, "{what}: dropped twice");
    // A result that was not finished may leak its finished elements.
    let leaked = registry
        .live
        .lock()
        .expect("no thread panics with the lock")
        .len();
    let may_leak = panicked && matches!(method, CloneMethod::Allocate);
    assert!(leaked == 0 || may_leak, "{what}: {leaked} leaked");
}

#[test]
fn a_clone_that_panics_leaves_nothing_dropped_twice() {
    for method in [
        CloneMethod::Allocate,
        CloneMethod::WriteInto,
        CloneMethod::InPlace,
    ] {
        for schedule in Schedule::ALL.into_iter().map(Some).chain([None]) {
            for workers in [
                Workers::CallingThread,
                Workers::Installed(2),
                Workers::Given(8),
            ] {
                // The first clone, two in the middle, and none.
                for panics_at in [0, 777, 2222, usize::MAX] {
                    check_panic(method, schedule, workers, panics_at);
                }
            }
        }
    }
}

/// An element of size 0. Only its clones can be observed.
#[derive(Debug)]
struct Bodiless;

static BODILESS_CLONES: AtomicUsize = AtomicUsize::new(0);

impl Clone for Bodiless {
    fn clone(&self) -> Self {
        BODILESS_CLONES.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

#[test]
fn elements_without_bytes() {
    for schedule in Schedule::ALL.into_iter().map(Some).chain([None]) {
        let execution = Request::new(Reduction::None).pool(rayon_pool(2));
        let execution = schedule.map_or(execution, |schedule| execution.schedule(schedule));
        let mut data = vec![Bodiless; 6];
        BODILESS_CLONES.store(0, Ordering::Relaxed);
        (execution.of(Scatter::nd()))
            .in_place(
                Cloned(TensorViewMut::contiguous(&mut data, &[3, 2]).expect("data")),
                TensorView::contiguous(&[0_i64, 2, 1], &[3, 1]).expect("indices"),
                Cloned(TensorView::contiguous(&vec![Bodiless; 6], &[3, 2]).expect("updates")),
            )
            .unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        // `vec!` makes five more clones for the vector of updates.
        let clones = BODILESS_CLONES.load(Ordering::Relaxed);
        assert_eq!(clones, 5 + 6, "{schedule:?}: each update is cloned once");
    }
}

/// A pool that panics after half of its tasks.
struct Panicking;

impl Pool for Panicking {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks / 2).for_each(task);
        resume_unwind(Box::new("the pool failed"));
    }
}

#[test]
fn a_pool_that_panics_does_no_harm() {
    let workload = Workload::large(9);
    let strings = Strings::new();
    let mut panics = 0;
    for schedule in Schedule::ALL {
        let execution = Request::new(Reduction::None)
            .pool(&Panicking)
            .schedule(schedule);
        let options = Options::new(Operator::Nd, execution);
        let call = || {
            let (data, updates) = (workload.data.view(), workload.updates.view());
            workload.indices.allocate(&options, data, updates)
        };
        panics += usize::from(catch_unwind(AssertUnwindSafe(call)).is_err());
        let mut output = strings.data.values.clone();
        let call = || {
            let scatter = execution.of(Scatter::nd());
            let view = strings.output(&mut output);
            scatter.in_place(Cloned(view), strings.indices(), Cloned(strings.updates()))
        };
        panics += usize::from(catch_unwind(AssertUnwindSafe(call)).is_err());
        let whole = output.iter().all(|text| text.ends_with("stored inline"));
        assert!(whole, "{schedule}: a string was torn");
        // The next call succeeds.
        workload.check_in_place(Request::new(Reduction::Add), Reduction::Add);
    }
    assert!(panics > 4, "the pool panicked only {panics} times");
}

/// An element whose clone runs a scatter.
#[derive(Debug)]
struct Reentrant(i32);

impl Clone for Reentrant {
    fn clone(&self) -> Self {
        let mut sum = [self.0, 0];
        ndscatter::scatter_nd(
            TensorViewMut::contiguous(&mut sum, &[2]).expect("two elements"),
            TensorView::contiguous(&[0_i64; 100], &[100, 1]).expect("100 tuples"),
            TensorView::contiguous(&[1; 100], &[100]).expect("100 updates"),
            Reduction::Add,
        )
        .expect("the call is valid");
        Self(sum[0] - 100)
    }
}

#[test]
fn a_clone_may_scatter() {
    let updates: Vec<_> = (0..2000).map(Reentrant).collect();
    let indices: Vec<i64> = (0..2000).map(|i| i % 500).collect();
    for pool in [&Rayon as &dyn Pool, &Sequential, &Threads(2)] {
        let mut data: Vec<_> = (0..500).map(|_| Reentrant(-1)).collect();
        Scatter::nd()
            .execution(Execution::new().pool(pool))
            .in_place(
                Cloned(TensorViewMut::contiguous(&mut data, &[500]).expect("data")),
                TensorView::contiguous(&indices, &[2000, 1]).expect("indices"),
                Cloned(TensorView::contiguous(&updates, &[2000]).expect("updates")),
            )
            .expect("the call is valid");
        let last: Vec<i32> = data.iter().map(|element| element.0).collect();
        assert_eq!(
            last,
            (1500..2000).collect::<Vec<_>>(),
            "the last update of each destination"
        );
    }
}
