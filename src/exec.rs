//! The executor. The executor chooses a schedule for a transfer and divides the work into tasks. No
//! two tasks write the same element. Each task passes its windows to the kernels.
//!
//! This module knows plans, tasks, pools, scratch memory and functions of the kernel table. This
//! module knows nothing of operators, index types or element types.

mod access;
mod choice;
mod context;
mod copies;
mod cost;
mod division;
pub(crate) mod one_value;
mod sample;
mod schedule;
pub(crate) mod scratch;
mod shared_slots;
mod sink;
pub(crate) mod small_transfer;
pub(crate) mod sources;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
mod thresholds;
mod tile;
mod transfer;
mod workload;

use smallvec::SmallVec;

pub(crate) use access::{Access, Buffers};
pub(crate) use choice::Selection;
pub(crate) use context::Context;
pub(crate) use copies::{Copies, Merged};
pub(crate) use schedule::{Candidate, Reason};
pub(crate) use tile::part;
pub(crate) use transfer::{GroupPass, Transfer};
pub(crate) use workload::{Direction, Sizes, Workload, is_mostly_overwritten};

use self::division::Division;
use self::schedule::{Step, Stop};
use self::tasks::Workers;
use self::transfer::Divided;
use crate::error::ScatterError;
use crate::pool::CallingThread;
use crate::schedule::Schedule;

/// Runs a transfer. The caller has excluded scatters into an empty output.
pub(crate) fn run(
    transfer: Transfer<'_>,
    workers: &Workers<'_>,
    selection: Selection,
) -> Result<(), ScatterError> {
    let work = transfer.workload();
    run_workload(transfer, work, workers, selection)
}

/// Runs a transfer. [`choice::choose`] lists the candidates, best first. A candidate is a schedule
/// with a division of the work. Candidates are tried in this order. The next candidate is tried if
/// the current candidate, before its first write, finds duplicates that its schedule does not
/// allow, or fails to allocate memory. Any other error ends the transfer.
fn run_workload(
    mut transfer: Transfer<'_>,
    mut work: Workload<'_>,
    workers: &Workers<'_>,
    selection: Selection,
) -> Result<(), ScatterError> {
    transfer.clear_skipped()?;
    // Small transfers use the kernel variants of a typical machine. Reading the variants of this
    // machine would cost too much time.
    if selection != Selection::Small {
        let mut context = transfer.access().context.on(workers.machine());
        context.variants = work.prefetch_variants(context.variants);
        work.context = context;
        transfer = transfer.with_context(context);
    }
    let mut undivided = Divided {
        transfer: &transfer,
        work: &work,
        division: Division::Whole,
        workers: *workers,
    };
    if transfer.moves_nothing() {
        undivided.copy_before()?;
        return undivided.multiply_after();
    }
    let mut failed = ScatterError::OutOfMemory { bytes: 0 };
    for candidate in &choice::choose(&work, workers, selection) {
        match candidate.run(&undivided) {
            Ok(()) => return Ok(()),
            Err(Stop::Duplicates) => {}
            Err(Stop::OutOfMemory(error)) => {
                // The pool may allocate memory for its tasks, and the process aborts if that
                // allocation fails. If a candidate (a schedule with a division of the work) has
                // failed to allocate memory, the remaining candidates therefore run on the calling
                // thread, without the pool.
                undivided.workers = Workers::new(&CallingThread, None);
                failed = error;
            }
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    Err(failed)
}

/// Runs a transfer that is one pass of the computation of a gradient. If `forced` is `None`, a
/// schedule is chosen by cost only if the transfer is not small.
pub(crate) fn run_pass(
    transfer: Transfer<'_>,
    workers: &Workers<'_>,
    forced: Option<Schedule>,
) -> Result<(), ScatterError> {
    if transfer.writes_nothing() {
        return Ok(());
    }
    let work = transfer.workload();
    let selection = Selection::new(forced, work.sizes().are_small(work.direction));
    run_workload(transfer, work, workers, selection)
}

/// Prediction for an execution: the schedule of the execution, and the memory that the execution
/// needs.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    /// The schedule that will run, unless an allocation fails.
    pub(crate) taken: Candidate,
    /// All other schedules, each with the reason why the execution does not use it.
    pub(crate) others: SmallVec<[(Schedule, Reason); Schedule::ALL.len()]>,
    /// Maximum bytes of memory that the execution needs. The maximum does not count the tensors,
    /// nor the plan that a one-shot call makes. The maximum includes the data that the first
    /// execution of a kept plan computes and stores in the plan.
    pub(crate) scratch_bytes: usize,
}

impl Outlook {
    /// Predicts which schedule will run `work`. `distinct` says whether all destinations are
    /// distinct, or is `None` if there was no memory to detect duplicates.
    ///
    /// Returns `None` if no candidate (schedule with a division of the work) can run.
    pub(crate) fn new(
        work: &Workload<'_>,
        workers: &Workers<'_>,
        selection: Selection,
        distinct: Option<bool>,
    ) -> Option<Self> {
        let candidates = choice::choose(work, workers, selection);
        let mut others = choice::refusals(work, workers, &candidates, selection);
        let mut scratch_bytes = 0;
        let mut taken: Option<Candidate> = None;
        for candidate in candidates {
            let schedule = candidate.schedule;
            if taken.is_some() {
                others.push((schedule, Reason("a better schedule can run")));
                continue;
            }
            scratch_bytes = scratch_bytes.max(candidate.preparation.bytes);
            let detects = candidate.preparation.step == Step::DetectDuplicates;
            match distinct {
                Some(false) if detects => {
                    others.push((schedule, Reason("destinations are not distinct")));
                }
                None if detects => others.push((schedule, Reason("out of memory"))),
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
