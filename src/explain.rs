//! What a plan will do when it is run, for people and for tests.

use std::fmt;

use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::{Context, Direction, Outlook, Workload};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::machine::{Machine, MachineError};
use crate::memory::copied;
use crate::operand::Layout;
use crate::plan::IndexPlan;
use crate::reduction::Reduction;
use crate::schedule::Schedule;

/// What a run of a plan does. Made by
/// [`ScatterRun::explain`](crate::ScatterRun::explain), for updates and data
/// that are contiguous; its `Display` form is for people.
#[derive(Clone, Debug)]
pub struct Explanation {
    dtype: DType,
    reduction: Reduction,
    in_place: bool,
    shape: Vec<usize>,
    tuples: usize,
    repetitions: usize,
    window_elements: usize,
    runs: usize,
    run_elements: usize,
    joined: usize,
    distinct: Option<bool>,
    moved_bytes: usize,
    outlook: Outlook,
    machine: Machine,
    /// Why the file that the environment names, if it does, cannot be used.
    unused: Option<&'static MachineError>,
}

impl Explanation {
    pub(crate) fn new(
        plan: &IndexPlan,
        dtype: DType,
        operation: Operation,
        reduction: Reduction,
        execution: &Execution<'_>,
        in_place: bool,
        is_kept: bool,
    ) -> Result<Self, ScatterError> {
        // What no view of such elements can be, no run can be given.
        let updates_shape = plan.updates_shape();
        let size = dtype.size();
        Layout::strided(plan.shape(), plan.strides())?.check(size)?;
        Layout::contiguous(updates_shape).check(size)?;
        let contiguous = |shape: &[usize]| Layout::contiguous(shape).all_strides();
        let geometry = plan.geometry(&contiguous(updates_shape)?)?;
        let copy = if in_place {
            None
        } else {
            Layout::contiguous(plan.shape()).check(size)?;
            Some(plan.copy_geometry(&contiguous(plan.shape())?)?)
        };
        let workers = execution.workers();
        let context = Context::new(is_kept, false).on(workers.machine());
        let work = Workload::new(
            Direction::Scatter,
            plan,
            &geometry,
            copy.as_ref(),
            &operation,
            context,
        );
        let distinct = plan
            .look_for_duplicate()
            .ok()
            .map(|duplicate| duplicate.is_none());
        let outlook = Outlook::new(&work, &workers, execution.schedule, distinct);
        let outlook = outlook.ok_or(ScatterError::OutOfMemory { bytes: 0 })?;
        let joins = geometry.joins && !outlook.taken.division.cuts_windows();
        Ok(Self {
            dtype,
            reduction,
            in_place,
            shape: copied(plan.shape())?,
            tuples: plan.applied(),
            repetitions: geometry.outer.elements(),
            window_elements: geometry.window.elements(),
            runs: geometry.window.runs(),
            run_elements: geometry.window.run().size,
            joined: if joins {
                plan.tuples().saturating_sub(plan.facts().breaks + 1)
            } else {
                0
            },
            distinct,
            moved_bytes: work.bytes(),
            outlook,
            machine: workers.machine().clone(),
            unused: Machine::from_environment().and_then(|named| named.as_ref().err()),
        })
    }

    /// The schedule that will run.
    pub fn schedule(&self) -> Schedule {
        self.outlook.taken.schedule
    }

    /// Number of tasks that the work is divided into; one alone runs on the calling
    /// thread.
    pub fn tasks(&self) -> usize {
        self.outlook.taken.division.tasks()
    }

    /// Bytes of the windows of all updates, and of data that is copied. Schedules
    /// that leave out overwritten updates, or combine them first, write fewer.
    pub fn bytes_written(&self) -> usize {
        self.moved_bytes
    }

    /// What the schedule was chosen by.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Bytes of memory that the run needs besides its tensors and the plan.
    /// Grouped runs need 8 bytes a tuple more where tuples are in order and
    /// their updates are not evenly spaced. The first run of a kept plan leaves 2 KiB
    /// more in it: what the schedule was chosen by.
    pub fn scratch_bytes(&self) -> usize {
        self.outlook.scratch_bytes
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.in_place {
            "in place"
        } else {
            "out of place"
        };
        writeln!(
            f,
            "scatter of {} {:?}, reduction {}, {form}",
            self.dtype, self.shape, self.reduction
        )?;
        writeln!(
            f,
            "  tuples     {} ({}), each {} time(s)",
            self.tuples,
            match self.distinct {
                Some(true) => "distinct",
                Some(false) => "with duplicates",
                None => "duplicates unknown, as an allocation failed",
            },
            self.repetitions
        )?;
        writeln!(
            f,
            "  window     {} elements = {} run(s) of {}; {} tuples joined to the one before",
            self.window_elements, self.runs, self.run_elements, self.joined
        )?;
        let taken = &self.outlook.taken;
        writeln!(
            f,
            "  schedule   {}, {} task(s): {}; {}",
            taken.schedule,
            taken.division.tasks(),
            taken.division,
            taken.preparation.step
        )?;
        for (schedule, reason) in &self.outlook.others {
            writeln!(f, "             not {schedule}: {reason}")?;
        }
        writeln!(
            f,
            "  bytes      {} written, {} of scratch",
            self.moved_bytes, self.outlook.scratch_bytes
        )?;
        write!(f, "  machine    {}", self.machine)?;
        match self.unused {
            Some(error) => write!(f, "; NDSCATTER_MACHINE: {error}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Layout, Reduction, Scatter, TensorView};

    #[test]
    fn a_plan_learns_nothing_from_being_explained() {
        let indices = [2_i64, 0, 1];
        let plan = Scatter::nd()
            .plan(
                Layout::contiguous(&[3]),
                TensorView::contiguous(&indices, &[3, 1]).expect("three tuples"),
            )
            .expect("indices in range");
        let text = plan
            .run()
            .reduction(Reduction::Add)
            .explain(DType::F32, true)
            .expect("f32 can be added")
            .to_string();
        assert!(text.contains("distinct"), "{text}");
        assert!(
            !plan.indices().is_known_unique(),
            "found out, and kept to itself"
        );
    }
}
