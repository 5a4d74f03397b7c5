//! Runs transfers: chooses a schedule, divides the work into tasks that share no
//! destination, and hands each task's windows to the kernels.
//!
//! Knows plans, tasks, pools, scratch memory and functions of the kernel table.
//! Knows nothing of operators, of the types of indices or of elements.

mod choice;
mod copies;
pub(crate) mod direct;
mod division;
mod places;
mod sample;
mod schedule;
pub(crate) mod scratch;
mod sink;
pub(crate) mod tasks;
mod thresholds;
mod tile;
mod transfer;
mod workload;

use smallvec::SmallVec;

pub(crate) use copies::{Copies, Merged};
pub(crate) use schedule::{Candidate, Reason};
pub(crate) use tile::part;
pub(crate) use transfer::{Buffers, Transfer};
pub(crate) use workload::{Direction, Workload};

use self::schedule::{Step, Stop};
use self::tasks::Workers;
use crate::error::ScatterError;
use crate::pool::CallingThread;
use crate::schedule::Schedule;

/// Runs a transfer. `forced` is used where it applies and keeps the bits.
pub(crate) fn run(
    transfer: &Transfer<'_>,
    workers: &Workers<'_>,
    forced: Option<Schedule>,
) -> Result<(), ScatterError> {
    if transfer.writes_nothing() {
        return Ok(());
    }
    transfer.clear_skipped()?;
    let work = transfer.workload();
    if transfer.moves_nothing() {
        return transfer.copy_before(&work, 1, workers);
    }
    let mut workers = *workers;
    let mut failed = ScatterError::OutOfMemory { bytes: 0 };
    for candidate in choice::choose(&work, &workers, forced) {
        match candidate.run(transfer, &work, &workers) {
            Ok(()) => return Ok(()),
            Err(Stop::Duplicates) => {}
            Err(Stop::OutOfMemory(error)) => {
                // What a pool allocates for its tasks might fail as well, and
                // abort.
                workers = Workers::new(&CallingThread, None);
                failed = error;
            }
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    Err(failed)
}

/// What a run will do, as far as that can be known before.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    /// The schedule that will run, unless an allocation fails.
    pub(crate) taken: Candidate,
    /// Every other schedule, and why it is not taken.
    pub(crate) others: SmallVec<[(Schedule, Reason); Schedule::ALL.len()]>,
    /// Most bytes that the run needs besides the tensors and a fresh plan, with
    /// what the first run of a plan works out and leaves in it.
    pub(crate) scratch_bytes: usize,
}

impl Outlook {
    /// `distinct`: whether no two tuples have one destination, if that could be
    /// found out.
    pub(crate) fn new(
        work: &Workload<'_>,
        workers: &Workers<'_>,
        forced: Option<Schedule>,
        distinct: Option<bool>,
    ) -> Option<Self> {
        let candidates = choice::choose(work, workers, forced);
        let mut others = choice::refusals(work, workers, &candidates, forced);
        let mut scratch_bytes = 0;
        let mut taken: Option<Candidate> = None;
        for candidate in candidates {
            let schedule = candidate.schedule;
            if taken.is_some() {
                others.push((schedule, Reason("another one comes before it")));
                continue;
            }
            scratch_bytes = scratch_bytes.max(candidate.preparation.bytes);
            let looks = candidate.preparation.step == Step::LookForDuplicates;
            match distinct {
                Some(false) if looks => {
                    others.push((schedule, Reason("destinations are not distinct")));
                }
                None if looks => others.push((schedule, Reason("an allocation fails"))),
                _ => taken = Some(candidate),
            }
        }
        Some(Self {
            taken: taken?,
            others,
            scratch_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "calls a kernel")]

    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::tasks::Workers;
    use super::{Buffers, Transfer, run};
    use crate::element::ElementType;
    use crate::kernel::{InstructionSet, Job, Kernels, Operation, Steps};
    use crate::{CallingThread, Layout, Reduction, ScatterNd, ScatterPlan, Schedule, TensorView};

    const SLICES: usize = 4096;
    const LEN: usize = 1024;
    const TUPLES: usize = 64;

    /// Windows that were streamed, and those of one list that had an element
    /// in common with an earlier one.
    static STREAMED: AtomicUsize = AtomicUsize::new(0);
    static TWICE: AtomicUsize = AtomicUsize::new(0);

    fn plain() -> &'static Kernels {
        Kernels::plain(ElementType::F32, Reduction::None, InstructionSet::best()).expect("copies")
    }

    unsafe fn watched(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps) {
        for (position, job) in jobs.iter().enumerate() {
            let shares = |other: &Job| (job.dst - other.dst).unsigned_abs() < job.len;
            let is_twice = jobs[..position].iter().any(shares);
            TWICE.fetch_add(usize::from(is_twice), Ordering::Relaxed);
        }
        // Data is one long job.
        let windows = jobs.iter().filter(|job| job.len <= LEN).count();
        STREAMED.fetch_add(windows, Ordering::Relaxed);
        // SAFETY: handed on as it is.
        unsafe { (plain().copy)(dst, src, jobs, steps) };
    }

    /// A row whose streaming copies are watched.
    static WATCHED: LazyLock<Kernels> = LazyLock::new(|| Kernels {
        stream: Some(watched),
        ..*plain()
    });

    fn plan(place: impl Fn(usize) -> usize) -> ScatterPlan {
        let indices: Vec<i64> = (0..TUPLES)
            .map(|tuple| i64::try_from(place(tuple)).expect("it fits"))
            .collect();
        let indices = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("indices");
        (ScatterNd::new().plan(Layout::contiguous(&[SLICES, LEN]), indices)).expect("in range")
    }

    /// Runs a plan out of place and returns how many windows were streamed
    /// beside the data.
    fn streamed(plan: &ScatterPlan, schedule: Schedule) -> usize {
        let plan = plan.indices();
        let strides = [LEN.cast_signed(), 1];
        let geometry = plan.geometry(&strides).expect("few dims");
        let copy = plan.copy_geometry(&strides).expect("few dims");
        let data = vec![0.0_f32; SLICES * LEN];
        let updates: Vec<f32> = (0..TUPLES * LEN).map(|at| at as f32).collect();
        let mut output = vec![1.0_f32; SLICES * LEN];
        STREAMED.store(0, Ordering::Relaxed);
        // SAFETY: contiguous tensors of the plan's shapes, initialised.
        let transfer = unsafe {
            Transfer::scatter(
                plan,
                Operation::moving(&WATCHED),
                Buffers {
                    output: output.as_mut_ptr().cast(),
                    updates: updates.as_ptr().cast(),
                    data: Some(data.as_ptr().cast()),
                },
                geometry,
                Some(copy),
            )
        };
        let workers = Workers::new(&CallingThread, None);
        run(&transfer, &workers, Some(schedule)).expect("no memory needed");
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
        for schedule in [
            Schedule::Serial,
            Schedule::ByColumn,
            Schedule::ByDestination,
        ] {
            assert_eq!(
                streamed(&distinct, schedule),
                TUPLES,
                "{schedule}: distinct"
            );
            assert_eq!(
                streamed(&increasing, schedule),
                TUPLES,
                "{schedule}: in order"
            );
            assert_eq!(streamed(&repeating, schedule), 0, "{schedule}: repeating");
        }
        assert_eq!(
            TWICE.load(Ordering::Relaxed),
            0,
            "not ordered with one another"
        );
    }
}
