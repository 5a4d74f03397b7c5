//! Tests of transfers with every schedule, and of the preparation of schedules.

#![allow(unsafe_code, reason = "calls kernels")]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::division::Division;
use super::sample::Sample;
use super::schedule::Stop;
use super::tasks::Workers;
use super::transfer::Divided;
use super::{Access, Buffers, Context, Direction, Outlook, Selection, Transfer, choice, run};
use crate::element::DType;
use crate::kernel::{InstructionSet, Job, Kernels, Operation, RowsForm, Steps, Streams};
use crate::machine::Machine;
use crate::plan::IndexPlan;
use crate::work;
use crate::{
    Bounds, CallingThread, Layout, Pool, Reduction, Scatter, ScatterPlan, Schedule, TensorView,
};

const SLICES: usize = 4096;
const LEN: usize = 1024;
const TUPLES: usize = 64;

/// Strides, in elements, of a contiguous tensor of rows with `LEN` elements each.
const STRIDES: [isize; 2] = [LEN.cast_signed(), 1];

/// Number of windows that were written by streaming stores.
static STREAMED: AtomicUsize = AtomicUsize::new(0);
/// Number of calls of the streaming kernel that prefetches the sources of its jobs.
static PREFETCHED: AtomicUsize = AtomicUsize::new(0);
/// Number of windows that a streaming kernel wrote although they share an element of the output
/// with an earlier window of the same kernel call.
static OVERLAPPING: AtomicUsize = AtomicUsize::new(0);

/// Returns the access of a call whose plan is not kept: an operation and the memory of the tensors.
fn once(operation: Operation, buffers: Buffers) -> Access {
    Access {
        operation,
        buffers,
        context: Context::new(false, false),
    }
}

fn plain() -> &'static Kernels {
    Kernels::plain(DType::F32, Reduction::None, InstructionSet::best()).expect("kernels that copy")
}

unsafe fn watched(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps) {
    for (position, job) in jobs.iter().enumerate() {
        let shares = |other: &Job| (job.dst - other.dst).unsigned_abs() < job.len;
        let is_twice = jobs[..position].iter().any(shares);
        OVERLAPPING.fetch_add(usize::from(is_twice), Ordering::Relaxed);
    }
    // The copy of data is one job of more than `LEN` elements, which is not counted.
    let windows = jobs.iter().filter(|job| job.len <= LEN).count();
    STREAMED.fetch_add(windows, Ordering::Relaxed);
    // SAFETY: the caller guarantees what the Safety section of the called function requires.
    unsafe { (plain().copy)(dst, src, jobs, steps) };
}

unsafe fn prefetching(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps) {
    PREFETCHED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller guarantees what the Safety section of the called function requires.
    unsafe { watched(dst, src, jobs, steps) };
}

/// A row of the kernel table whose streaming kernels count the windows that they write.
static WATCHED: LazyLock<Kernels> = LazyLock::new(|| Kernels {
    stream: Some(Streams {
        plain: watched,
        prefetching,
    }),
    ..*plain()
});

fn plan(place: impl Fn(usize) -> usize) -> ScatterPlan {
    let indices: Vec<i64> = (0..TUPLES)
        .map(|tuple| i64::try_from(place(tuple)).expect("it fits"))
        .collect();
    let indices = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("indices");
    (Scatter::nd().plan(Layout::contiguous(&[SLICES, LEN]), indices)).expect("indices in range")
}

/// Returns a transfer that moves `updates` to `output` by `kernels`. The tensors are contiguous and
/// have the plan's shapes. If `data` is `None`, the transfer is in place.
fn moves<'p>(
    plan: &'p IndexPlan,
    kernels: &'static Kernels,
    output: &'p mut [f32],
    updates: &'p [f32],
    data: Option<&'p [f32]>,
) -> Transfer<'p> {
    assert_eq!([output.len(), updates.len()], [SLICES * LEN, TUPLES * LEN]);
    assert!(data.is_none_or(|data| data.len() == SLICES * LEN));
    let buffers = Buffers {
        output: output.as_mut_ptr().cast(),
        source: updates.as_ptr().cast(),
        data: data.map(|data| data.as_ptr().cast()),
    };
    let own = plan.own_binding();
    let copy = data.map(|_| plan.copy_geometry(&own, &STRIDES).expect("few dims"));
    let geometry = plan.geometry(&own, &STRIDES).expect("few dims");
    // SAFETY: the tensors are contiguous, have the plan's shapes and are initialised. The returned
    // transfer borrows the tensors.
    unsafe {
        let access = once(Operation::moving(kernels), buffers);
        Transfer::new(Direction::Scatter, plan, access, geometry, copy)
    }
}

/// Runs a plan out of place and returns the number of windows of updates that were written by
/// streaming stores.
fn streamed(plan: &ScatterPlan, schedule: Schedule, machine: &Machine) -> usize {
    let plan = plan.indices();
    let data = vec![0.0_f32; SLICES * LEN];
    let updates: Vec<f32> = (0..TUPLES * LEN).map(|at| at as f32).collect();
    let mut output = vec![1.0_f32; SLICES * LEN];
    STREAMED.store(0, Ordering::Relaxed);
    let transfer = moves(plan, &WATCHED, &mut output, &updates, Some(&data));
    let workers = Workers::new(&CallingThread, None).with_machine(Some(machine));
    run(transfer, &workers, Selection::Forced(schedule)).expect("no allocation is needed");
    let mut expected = data.clone();
    for tuple in 0..TUPLES {
        let slice = usize::try_from(plan.destinations().get(tuple)).expect("it fits");
        expected[slice * LEN..][..LEN].copy_from_slice(&updates[tuple * LEN..][..LEN]);
    }
    assert!(output == expected, "{schedule}");
    STREAMED.load(Ordering::Relaxed)
}

#[test]
fn windows_are_streamed_only_where_destinations_are_distinct() {
    let distinct = plan(|tuple| tuple * 77 % SLICES);
    let increasing = plan(|tuple| tuple * 5);
    let repeating = plan(|tuple| tuple * 77 % 40);
    let machine = |text: &str| text.parse::<Machine>().expect("a machine");
    let plain = machine("stream_prefetch = 0");
    for schedule in [
        Schedule::Serial,
        Schedule::ByColumn,
        Schedule::ByDestination,
    ] {
        let streamed = |plan| streamed(plan, schedule, &plain);
        assert_eq!(streamed(&distinct), TUPLES, "{schedule}: distinct");
        assert_eq!(streamed(&increasing), TUPLES, "{schedule}: in order");
        assert_eq!(streamed(&repeating), 0, "{schedule}: repeating");
    }
    assert_eq!(
        OVERLAPPING.load(Ordering::Relaxed),
        0,
        "streamed windows of one list share an element"
    );
    // The machine description decides whether windows are written by streaming stores, and by which
    // variant of the streaming kernel.
    assert_eq!(
        PREFETCHED.load(Ordering::Relaxed),
        0,
        "no list is prefetched"
    );
    let serial = |text| streamed(&distinct, Schedule::Serial, &machine(text));
    assert_eq!(
        serial("stream_prefetch = 1"),
        TUPLES,
        "all windows are streamed"
    );
    assert_ne!(
        PREFETCHED.load(Ordering::Relaxed),
        0,
        "lists are prefetched"
    );
    assert_eq!(
        serial("stream_bytes = 1000000000000"),
        0,
        "an output below `stream_bytes` is not streamed"
    );
}

/// A pool that reports the given number of workers. It runs its tasks one after another on the
/// calling thread, the last task first.
struct Reports(usize);

impl Pool for Reports {
    fn workers(&self) -> Option<usize> {
        Some(self.0)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).rev().for_each(task);
    }
}

#[test]
fn a_choice_computes_nothing() {
    let plan = plan(|tuple| tuple * 77 % SLICES);
    let plan = plan.indices();
    let mut output = vec![1.0_f32; SLICES * LEN];
    let updates = vec![2.0_f32; TUPLES * LEN];
    let transfer = moves(plan, plain(), &mut output, &updates, None);
    work::take();
    let pool = Reports(8);
    let forced = Schedule::ALL.map(Selection::Forced);
    for selection in forced.into_iter().chain([Selection::Cheapest]) {
        let outlook = Outlook::new(
            &transfer.workload(),
            &Workers::new(&pool, None),
            selection,
            Some(true),
        );
        let outlook = outlook.expect("some schedule");
        let all = outlook.others.len() + 1;
        assert_eq!(all, Schedule::ALL.len(), "{selection:?}: every schedule");
    }
    assert_eq!(work::take(), [], "no pass over the tuples");
    assert!(!plan.is_known_unique(), "the plan keeps nothing");
}

#[test]
fn the_next_schedule_runs_where_one_cannot_be_prepared() {
    let plan = plan(|tuple| tuple * 77 % 40);
    let plan = plan.indices();
    let mut output = vec![1.0_f32; SLICES * LEN];
    let updates: Vec<f32> = (0..TUPLES * LEN).map(|at| at as f32).collect();
    let buffers = Buffers {
        output: output.as_mut_ptr().cast(),
        source: updates.as_ptr().cast(),
        data: None,
    };
    let own = plan.own_binding();
    let geometry = plan.geometry(&own, &STRIDES).expect("few dims");
    // SAFETY: the tensors are contiguous, have the plan's shapes and are initialised.
    let transfer = unsafe {
        let access = once(Operation::moving(plain()), buffers);
        Transfer::new(Direction::Scatter, plan, access, geometry, None)
    };
    let pool = Reports(3);
    let workers = Workers::new(&pool, None);
    let selection = Selection::Forced(Schedule::ByTuple);
    let work = transfer.workload();
    let candidates = choice::choose(&work, &workers, selection);
    let undivided = Divided {
        transfer: &transfer,
        work: &work,
        division: Division::Whole,
        workers,
    };
    let stopped = candidates[0].run(&undivided);
    assert!(matches!(stopped, Err(Stop::Duplicates)), "{stopped:?}");
    assert!(
        output.iter().all(|&value| value == 1.0),
        "nothing is written"
    );
    run(transfer, &workers, selection).expect("the serial schedule runs");
    let mut expected = vec![1.0_f32; SLICES * LEN];
    for tuple in 0..TUPLES {
        let slice = tuple * 77 % 40;
        expected[slice * LEN..][..LEN].copy_from_slice(&updates[tuple * LEN..][..LEN]);
    }
    assert!(output == expected, "all windows are written in order");
}

/// Runs gathers by every schedule, into results of several layouts, with and without skipped
/// tuples.
#[test]
fn gathers_by_every_schedule() {
    const ROWS: usize = 50;
    const WIDTH: usize = 6;
    let data: Vec<f32> = (0..ROWS * WIDTH).map(|at| at as f32).collect();
    for skipped in [usize::MAX, 5] {
        let rows: Vec<i64> = (0..30)
            .map(|tuple| {
                if tuple % skipped == 3 {
                    1000
                } else {
                    tuple * tuple % ROWS
                }
            })
            .map(|row| i64::try_from(row).expect("it fits"))
            .collect();
        let indices = TensorView::contiguous(&rows, &[30, 1]).expect("indices");
        let plan = Scatter::nd()
            .bounds(Bounds::Skip)
            .plan(Layout::contiguous(&[ROWS, WIDTH]), indices)
            .expect("skipped where out of bounds");
        let plan = plan.indices();
        let own = plan.own_binding();
        for strides in [[6_isize, 1], [9, 1], [1, 31], [12, 2]] {
            let at = |row: usize, column: usize| {
                let offset = row.cast_signed() * strides[0] + column.cast_signed() * strides[1];
                offset.cast_unsigned()
            };
            let mut expected = vec![-1.0; 400];
            for (tuple, &row) in rows.iter().enumerate() {
                for column in 0..WIDTH {
                    let row = usize::try_from(row).expect("not negative");
                    let value = data.get(row * WIDTH + column);
                    expected[at(tuple, column)] = value.copied().unwrap_or(0.0);
                }
            }
            for schedule in Schedule::ALL {
                for workers in [1, 2, 3, 7, 64] {
                    let mut result = vec![-1.0_f32; 400];
                    let geometry = plan.geometry(&own, &strides).expect("few dims");
                    // SAFETY: data has the plan's layout. The result has all elements of the plan's
                    // updates at these strides.
                    let transfer = unsafe {
                        let moving = Operation::moving(plain());
                        let buffers = Buffers {
                            output: result.as_mut_ptr().cast(),
                            source: data.as_ptr().cast(),
                            data: None,
                        };
                        let access = once(moving, buffers);
                        Transfer::new(Direction::Gather, plan, access, geometry, None)
                    };
                    let pool = Reports(workers);
                    let selection = Selection::Forced(schedule);
                    run(transfer, &Workers::new(&pool, None), selection).expect("no error");
                    assert_eq!(result, expected, "{schedule}, {workers}, {strides:?}");
                }
            }
        }
    }
}

#[test]
fn only_a_kept_plan_keeps_the_sample() {
    let plan = plan(|tuple| tuple * 77 % 40);
    let plan = plan.indices();
    let mut output = vec![1.0_f32; SLICES * LEN];
    let (data, updates) = (vec![0.0_f32; SLICES * LEN], vec![2.0_f32; TUPLES * LEN]);
    let mut run_once = |is_kept| {
        let transfer = moves(plan, plain(), &mut output, &updates, Some(&data));
        let workers = Workers::new(&CallingThread, None);
        let transfer = transfer.with_context(Context::new(is_kept, false));
        run(transfer, &workers, Selection::Cheapest).expect("some schedule");
    };
    run_once(false);
    assert!(
        plan.sample.get::<Sample>().is_none(),
        "a plan that is not kept has no sample"
    );
    run_once(true);
    let kept = plan
        .sample
        .get::<Sample>()
        .expect("the first run stores the sample");
    run_once(true);
    let again = plan.sample.get::<Sample>().expect("the sample remains");
    assert!(std::ptr::eq(kept, again), "the sample is taken once");
}

/// Number of calls of the kernel for rows in which the kernel was to prefetch the updates.
static ROWS_PREFETCHED: AtomicUsize = AtomicUsize::new(0);

unsafe fn watched_rows(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>) {
    let is_prefetched = form.sources.is_some() && form.prefetches_sources;
    ROWS_PREFETCHED.fetch_add(usize::from(is_prefetched), Ordering::Relaxed);
    let rows = plain().apply_rows.expect("rows of plain bytes");
    // SAFETY: the caller guarantees what the Safety section of the called function requires.
    unsafe { rows(dst, src, numbers, form) };
}

#[test]
fn far_updates_that_are_read_with_gaps_are_prefetched() {
    static WATCHED_ROWS: LazyLock<Kernels> = LazyLock::new(|| Kernels {
        apply_rows: Some(watched_rows),
        stream: None,
        ..*plain()
    });
    let plan = plan(|tuple| tuple * 77 % SLICES);
    let data = vec![0.0_f32; SLICES * LEN];
    let updates = vec![2.0_f32; TUPLES * LEN];
    let mut output = vec![1.0_f32; SLICES * LEN];
    let mut prefetched = |schedule, near: u64, far: usize| {
        let text = format!("near_bytes = {near}\nfar_bytes = {far}");
        let machine: Machine = text.parse().expect("a machine");
        let workers = Workers::new(&CallingThread, None).with_machine(Some(&machine));
        let transfer = moves(
            plan.indices(),
            &WATCHED_ROWS,
            &mut output,
            &updates,
            Some(&data),
        );
        run(transfer, &workers, Selection::Forced(schedule)).expect("no allocation is needed");
        ROWS_PREFETCHED.swap(0, Ordering::Relaxed) > 0
    };
    let (by_destination, bytes) = (Schedule::ByDestination, size_of_val(&*updates));
    assert!(
        prefetched(by_destination, u64::MAX, bytes),
        "near windows, far updates"
    );
    assert!(
        !prefetched(by_destination, u64::MAX, bytes + 1),
        "near windows, near updates"
    );
    assert!(prefetched(by_destination, 0, bytes + 1), "far windows");
    assert!(!prefetched(Schedule::Serial, 0, 0), "updates in order");
}
