//! Scratch memory: the memory that a call needs in addition to its tensors. Its size is
//! proportional to the tuples and to the workers, never to data. `explain` reports its size.

#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

mod common;

use std::alloc::{GlobalAlloc, Layout as Places, System};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use common::Tensor;
use common::api::{Methods, Options};
use common::elements::Ref;
use common::layouts::{Arrangement, Strided};
use common::operators::Operator;
use common::pools::rayon_pool;
use common::random::Random;
use common::request::Request;
use ndscatter::Reduction::{Add, Max, Mean};
use ndscatter::{
    Bounds, CallingThread, DType, Duplicates, Layout, Reduction, Scatter, ScatterPlan, Schedule,
    TensorView, TensorViewMut, release_scratch,
};

/// An allocator that counts the bytes that all threads have in use.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

fn given_back(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every method forwards its arguments to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Places) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Places) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Places, size: usize) -> *mut u8 {
        taken(size);
        given_back(layout.size());
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Places) {
        given_back(layout.size());
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that a call allocates.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Largest number of bytes in use at once.
    peak: usize,
    /// Bytes still in use after the call.
    kept: usize,
}

/// Runs `call` and measures the bytes that it adds to those in use before.
fn watch<R>(call: impl FnOnce() -> R) -> (R, Taken) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = call();
    let [peak, kept] =
        [&PEAK, &LIVE].map(|bytes| bytes.load(Ordering::Relaxed).saturating_sub(before));
    (result, Taken { peak, kept })
}

/// Lets one test run at a time, because the allocations of all threads are counted.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a new thread with an empty cache of scratch buffers.
fn apart<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    release_scratch();
    std::thread::scope(|scope| scope.spawn(work).join()).expect("calls are valid")
}

/// Bytes of scratch memory that a call may use per worker.
const WORKER_BYTES: usize = 1 << 20;

/// Tolerance in bytes for lists of workers and tasks, which the explanation does not count.
const SMALL_BYTES: usize = 64 << 10;

/// The distribution of destinations among the tuples.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    Distinct,
    Increasing,
    /// Ascending destinations, five tuples each.
    Repeating,
    /// Destinations near both ends of an axis. Most of the output then needs no physical memory.
    AtEnds,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    operator: Operator,
    data: &'static [usize],
    indices: &'static [usize],
    pattern: Pattern,
    /// Layout of updates.
    updates: Arrangement,
    /// Distance between skipped tuples: `Some(3)` puts every third tuple out of bounds.
    skipped: Option<usize>,
}

const fn nd(data: &'static [usize], indices: &'static [usize], pattern: Pattern) -> Case {
    Case {
        operator: Operator::Nd,
        data,
        indices,
        pattern,
        updates: Arrangement::Contiguous,
        skipped: None,
    }
}

/// Single elements. The sizes are above the thresholds for partitions and private copies.
const ELEMENTS: Case = nd(&[2_000_003], &[400_009, 1], Pattern::Uniform);
const DISTINCT: Case = nd(&[2_000_003], &[400_009, 1], Pattern::Distinct);
/// The number of destinations is so large that duplicates are detected by sorting.
const DISTINCT_OF_MANY: Case = nd(&[8_000_009], &[400_009, 1], Pattern::Distinct);
const INCREASING: Case = nd(&[2_000_003], &[400_009, 1], Pattern::Increasing);
const REPEATING: Case = nd(&[2_000_003], &[400_009, 1], Pattern::Repeating);
const THREE_COORDINATES: Case = nd(&[131, 127, 137], &[400_009, 3], Pattern::Uniform);
const HISTOGRAM: Case = nd(&[997], &[400_009, 1], Pattern::Uniform);
const SKIPPED: Case = Case {
    skipped: Some(3),
    ..ELEMENTS
};

/// Rows.
const ROWS: Case = nd(&[50_021, 8], &[200_003, 1], Pattern::Uniform);
const DISTINCT_ROWS: Case = nd(&[250_007, 8], &[200_003, 1], Pattern::Distinct);
const CROWDED_ROWS: Case = nd(&[5003, 20], &[200_003, 1], Pattern::Uniform);
/// Rows of updates that are not evenly strided.
const PADDED_ROWS: Case = Case {
    updates: Arrangement::Padded,
    ..nd(&[50_021, 8], &[400, 500, 1], Pattern::Uniform)
};
const REPEATING_ROWS: Case = Case {
    pattern: Pattern::Repeating,
    ..ROWS
};

/// Much data and few tuples.
const FEW: Case = nd(&[8_000_009], &[1009, 1], Pattern::Uniform);
const FEW_ROWS: Case = nd(&[20_011, 256], &[101, 1], Pattern::Uniform);

/// More elements than a 32-bit number can count.
#[cfg(target_pointer_width = "64")]
const WIDE: Case = nd(&[(1 << 32) + 7], &[400_009, 1], Pattern::AtEnds);

/// Repetitions (batches), and strands (the lanes of an element scatter).
const BATCHES: Case = Case {
    operator: Operator::Update { axis: 1 },
    ..nd(&[4, 50_021, 2], &[200_003], Pattern::Uniform)
};
const LANES: Case = Case {
    operator: Operator::Elements { axis: 1 },
    ..nd(&[200, 5003], &[200, 2003], Pattern::Uniform)
};

/// The options of a call.
#[derive(Clone, Copy, Debug)]
struct Call {
    reduction: Reduction,
    forced: Option<Schedule>,
    workers: usize,
    in_place: bool,
}

impl Call {
    fn execution(self) -> Request<'static> {
        let execution = Request::new(self.reduction).pool(rayon_pool(self.workers));
        self.forced
            .map_or(execution, |schedule| execution.schedule(schedule))
    }

    /// Whether the call may sort tuples, to detect duplicates or to group tuples by destination.
    /// Without a forced schedule, any schedule may be chosen.
    fn may_sort(self) -> bool {
        matches!(
            self.forced,
            None | Some(Schedule::ByTuple | Schedule::LastWrite | Schedule::Grouped)
        ) || self.reduction == Reduction::Mean
    }

    /// Returns the limit in bytes for a call with this many tuples, including its plan.
    fn limit(self, tuples: usize, case: Case) -> usize {
        let number = if case.is_wide() { 32 } else { 16 };
        let sorting = if self.may_sort() { 8 } else { 0 };
        tuples * (number + sorting) + self.workers * WORKER_BYTES
    }
}

/// The measured bytes of a call and its plan, and the bytes that were explained.
struct Measured {
    case: Case,
    element: DType,
    call: Call,
    tuples: usize,
    /// Schedule that the explanation reports.
    schedule: Schedule,
    explained: usize,
    one_shot: usize,
    plan: Taken,
    runs: [usize; 2],
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (case, call) = (self.case, self.call);
        let form = if call.in_place {
            "in place"
        } else {
            "out of place"
        };
        let forced = call.forced.map_or("chosen", Schedule::as_str);
        writeln!(
            f,
            "{} of {}, {form}, {forced}, {} workers: {}",
            call.reduction, self.element, call.workers, self.schedule
        )?;
        let each = |bytes: usize| format!("{bytes} ({} a tuple)", bytes / self.tuples.max(1));
        write!(
            f,
            "    one-shot {}, plan {} (kept {}), runs {} and {}; explained {}, limit {}",
            each(self.one_shot),
            each(self.plan.peak),
            each(self.plan.kept),
            each(self.runs[0]),
            each(self.runs[1]),
            each(self.explained),
            each(call.limit(self.tuples, case)),
        )
    }
}

impl Measured {
    /// Returns the checks that failed.
    fn faults(&self) -> Vec<&'static str> {
        let limit = self.call.limit(self.tuples, self.case);
        let (plan, explained) = (self.plan, self.explained);
        let needed = self.runs[0].max(self.one_shot.saturating_sub(plan.kept));
        let checks = [
            (self.one_shot <= limit, "a call needs too much"),
            (plan.peak <= limit, "a plan needs too much"),
            (
                plan.kept + self.runs[0] <= limit,
                "a plan and its run need too much",
            ),
            (
                self.one_shot <= plan.peak.max(plan.kept + explained) + SMALL_BYTES,
                "a call needs more than its plan and the explanation",
            ),
            (
                self.runs[0] <= explained + SMALL_BYTES,
                "the first run needs more than the explanation",
            ),
            (
                self.runs[1] <= explained + SMALL_BYTES,
                "the second run needs more than the explanation",
            ),
            (
                explained <= 2 * needed + SMALL_BYTES,
                "the explanation is much more than needed",
            ),
        ];
        let wrong = checks.iter().filter(|(is_right, _)| !is_right);
        wrong.map(|&(_, fault)| fault).collect()
    }
}

/// The tensors of a case in memory.
struct Subject<T> {
    case: Case,
    data: Vec<T>,
    output: Vec<T>,
    indices: Strided<i64>,
    updates: Strided<T>,
}

impl<T: Ref> Subject<T> {
    fn new(case: Case) -> Self {
        let updates = case.operator.updates_shape(case.data, case.indices);
        let updates = Tensor::generate(&updates, T::zero_value);
        let elements: usize = case.data.iter().product();
        // A buffer of zeros that is never written needs no physical memory.
        let kept = if case.is_wide() { 0 } else { elements };
        Self {
            data: vec![T::zero_value(); kept],
            output: vec![T::zero_value(); elements],
            indices: case.indices(),
            updates: Strided::new(&updates, case.updates, 0, T::zero_value()),
            case,
        }
    }

    fn options(&self, call: Call) -> Options<'static> {
        let is_skipping = self.case.skipped.is_some();
        Options {
            bounds: if is_skipping {
                Bounds::Skip
            } else {
                Bounds::Error
            },
            ..Options::new(self.case.operator, call.execution())
        }
    }

    fn plan(&self, call: Call) -> ScatterPlan {
        let layout = Layout::contiguous(self.case.data);
        let plan = self.indices.plan(&self.options(call), layout);
        plan.expect("valid indices")
    }

    /// Runs the call with a plan, or as a one-shot call.
    fn run(&mut self, call: Call, plan: Option<&ScatterPlan>) {
        let (options, execution, shape) = (self.options(call), call.execution(), self.case.data);
        let output = TensorViewMut::contiguous(&mut self.output, shape).expect("an output");
        let updates = self.updates.view();
        let data = || TensorView::contiguous(&self.data, shape).expect("data of that shape");
        let done = match (plan, call.in_place) {
            (None, true) => self.indices.in_place(&options, output, updates),
            (None, false) => self.indices.write_into(&options, data(), updates, output),
            (Some(plan), true) => execution.run(plan).in_place(output, updates),
            (Some(plan), false) => execution.run(plan).write_into(data(), updates, output),
        };
        done.expect("a valid call");
    }

    fn measure(&mut self, call: Call) -> Measured {
        // The explanation uses a separate plan, because it may store computed facts in its plan.
        let explanation = (call.execution().run(&self.plan(call)))
            .explain(T::DTYPE, call.in_place)
            .expect("the type has the reduction");
        let ((), one_shot) = apart(|| watch(|| self.run(call, None)));
        apart(|| {
            let (plan, taken) = watch(|| self.plan(call));
            let runs = [(); 2].map(|()| watch(|| self.run(call, Some(&plan))).1.peak);
            Measured {
                case: self.case,
                element: T::DTYPE,
                call,
                tuples: plan.tuples(),
                schedule: explanation.schedule(),
                explained: explanation.scratch_bytes(),
                one_shot: one_shot.peak,
                plan: taken,
                runs,
            }
        })
    }
}

impl Case {
    fn indices(&self) -> Strided<i64> {
        let mut random = Random::new(21);
        let axes = self.operator.axes(self.data, self.indices);
        let tuples = self.operator.tuples(self.indices);
        let places = (0..tuples).flat_map(|tuple| axes.iter().map(move |&(_, size)| (tuple, size)));
        let values = places.map(|(tuple, size)| {
            let is_skipped = self.skipped.is_some_and(|skipped| tuple % skipped == 0);
            let index = match self.pattern {
                _ if is_skipped => size,
                Pattern::Uniform => random.below(size),
                // 7919 is a prime that divides no size in this file.
                Pattern::Distinct => tuple * 7919 % size,
                Pattern::Increasing => tuple,
                Pattern::Repeating => tuple / 5,
                Pattern::AtEnds if tuple % 2 == 0 => random.below(100_000),
                Pattern::AtEnds => size - 1 - random.below(100_000),
            };
            i64::try_from(index).expect("sizes are small")
        });
        let tensor = Tensor::new(self.indices, values.collect());
        Strided::new(&tensor, Arrangement::Contiguous, 0, 0)
    }

    fn is_wide(self) -> bool {
        self.data.iter().product::<usize>() > u32::MAX as usize
    }

    /// Checks every forced schedule, and the chosen one, on this many workers.
    fn check<T: Ref>(self, reductions: &[Reduction], workers: usize) {
        let _turn = turn();
        let mut subject = Subject::<T>::new(self);
        let mut faults = Vec::new();
        for &reduction in reductions {
            for forced in Schedule::ALL.into_iter().map(Some).chain([None]) {
                for in_place in [true, false] {
                    if self.is_wide() && !in_place {
                        continue;
                    }
                    let call = Call {
                        reduction,
                        forced,
                        workers,
                        in_place,
                    };
                    let measured = subject.measure(call);
                    let found = measured.faults();
                    if !found.is_empty() {
                        faults.push(format!("{measured}\n    {}", found.join("; ")));
                    }
                }
            }
        }
        let (count, faults) = (faults.len(), faults.join("\n"));
        assert!(faults.is_empty(), "{count} calls of {self:?}:\n{faults}");
    }
}

#[test]
fn elements_of_1_byte() {
    ELEMENTS.check::<u8>(&[Reduction::None, Add], 2);
}

#[test]
fn elements_of_4_bytes() {
    ELEMENTS.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn elements_of_8_bytes() {
    ELEMENTS.check::<f64>(&[Reduction::None, Add], 2);
}

#[cfg(feature = "complex")]
#[test]
fn elements_of_16_bytes() {
    ELEMENTS.check::<num_complex::Complex<f64>>(&[Reduction::None, Add], 2);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn elements_with_wide_numbers() {
    WIDE.check::<u8>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn distinct_elements() {
    DISTINCT.check::<f32>(&[Reduction::None, Add], 2);
}

#[test]
fn distinct_elements_of_many() {
    DISTINCT_OF_MANY.check::<f32>(&[Reduction::None, Add], 2);
}

#[test]
fn increasing_elements() {
    INCREASING.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn elements_in_order() {
    REPEATING.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn rows_in_order() {
    REPEATING_ROWS.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn three_coordinates() {
    THREE_COORDINATES.check::<f32>(&[Add], 2);
}

#[test]
fn histograms() {
    HISTOGRAM.check::<f32>(&[Reduction::None, Add, Max], 2);
}

#[test]
fn histograms_of_integers() {
    HISTOGRAM.check::<i32>(&[Add, Mean], 2);
}

#[test]
fn eight_workers_and_elements() {
    ELEMENTS.check::<f32>(&[Add], 8);
}

#[test]
fn eight_workers_and_a_histogram() {
    HISTOGRAM.check::<i32>(&[Add], 8);
}

#[test]
fn eight_workers_and_rows() {
    ROWS.check::<f32>(&[Reduction::None, Mean], 8);
}

#[test]
fn skipped_tuples() {
    SKIPPED.check::<f32>(&[Reduction::None, Add], 2);
}

#[test]
fn rows() {
    ROWS.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn crowded_rows() {
    CROWDED_ROWS.check::<f32>(&[Reduction::None, Max], 2);
}

#[test]
fn distinct_rows() {
    DISTINCT_ROWS.check::<f32>(&[Reduction::None, Add], 2);
}

#[test]
fn rows_of_padded_updates() {
    PADDED_ROWS.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn much_data_and_few_elements() {
    FEW.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn much_data_and_few_rows() {
    FEW_ROWS.check::<f32>(&[Reduction::None, Add, Mean], 2);
}

#[test]
fn batches() {
    BATCHES.check::<f32>(&[Reduction::None, Add], 2);
}

#[test]
fn lanes() {
    LANES.check::<f32>(&[Reduction::None, Add], 2);
}

/// Rejecting duplicates requires a detection of duplicates.
#[test]
fn plans_that_refuse_duplicates() {
    let _turn = turn();
    for case in [DISTINCT, DISTINCT_OF_MANY, DISTINCT_ROWS] {
        let indices = case.indices();
        let call = Call {
            reduction: Add,
            forced: Some(Schedule::ByTuple),
            workers: 2,
            in_place: true,
        };
        let mut options = Options::new(case.operator, call.execution());
        options.duplicates = Duplicates::Reject;
        let planned = || indices.plan(&options, Layout::contiguous(case.data));
        let (plan, taken) = apart(|| watch(planned));
        let tuples = plan.expect("distinct destinations").tuples();
        assert!(
            taken.peak <= call.limit(tuples, case),
            "{case:?} took {taken:?}"
        );
        assert!(
            taken.kept <= 4 * tuples + SMALL_BYTES,
            "{case:?} keeps {taken:?}"
        );
    }
}

/// Largest number of bytes of scratch memory that a process keeps.
const KEPT_BYTES: usize = 256 << 20;

/// Runs a call on the calling thread with the schedule by partition, which needs about 32 MiB.
fn call_once(indices: &[i32], updates: &[u64]) {
    let tuples = indices.len();
    let mut data = vec![0_u64; 1 << 16];
    let execution = Request::new(Add)
        .pool(&CallingThread)
        .schedule(Schedule::ByPartition);
    let done = execution.of(Scatter::nd()).in_place(
        TensorViewMut::contiguous(&mut data, &[1 << 16]).expect("data"),
        TensorView::contiguous(indices, &[tuples, 1]).expect("indices"),
        TensorView::contiguous(updates, &[tuples]).expect("updates"),
    );
    done.expect("a valid call");
}

/// Threads that made calls and then stay idle.
#[test]
fn idle_threads_keep_little_scratch_memory() {
    const THREADS: usize = 24;
    const TUPLES: usize = 1 << 20;

    let _turn = turn();
    release_scratch();
    let indices: Vec<i32> = (0..1_i32 << 20)
        .map(|tuple| tuple.wrapping_mul(7919) & 0xffff)
        .collect();
    let updates = vec![1_u64; TUPLES];
    let before = LIVE.load(Ordering::Relaxed);
    // All threads call at the same time, so that no call finds the buffer of another. The second
    // round of calls finds buffers in the cache.
    let together = Barrier::new(THREADS + 1);
    let kept = || LIVE.load(Ordering::Relaxed).saturating_sub(before);
    let (called, released) = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..2 {
                    together.wait();
                    call_once(&indices, &updates);
                    together.wait();
                }
                together.wait();
            });
        }
        for _ in 0..4 {
            together.wait();
        }
        let called = kept();
        release_scratch();
        let released = kept();
        together.wait();
        (called, released)
    });
    assert!(
        called <= KEPT_BYTES + THREADS * SMALL_BYTES,
        "{called} bytes"
    );
    assert!(
        called >= KEPT_BYTES / 16,
        "{called} bytes: the cache keeps too little"
    );
    assert!(released <= THREADS * SMALL_BYTES, "{released} bytes");
}
