//! What a call will do, for people and for tests.

use std::fmt;

use super::operands::operation;
use super::pipeline::check_reduction;
use super::plan_builder::Planning;
use super::route::{Choice, Facts, Numbers, Route};
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::{Context, Direction, Outlook, Workload};
use crate::execution::Execution;
use crate::machine::{Machine, MachineError};
use crate::memory::copied;
use crate::operand::{Elements, Layout};
use crate::plan::{Extents, Flat, Form, IndexPlan};
use crate::reduction::{Reducing, Reduction};
use crate::schedule::Schedule;

/// What a call does: the route it takes, and the schedule of its plan.
///
/// Made by [`Scatter::explain`](crate::Scatter::explain),
/// [`Gather::explain`](crate::Gather::explain), and by the runs of kept plans. Its `Display`
/// form is for people.
#[derive(Clone, Debug)]
pub struct Explanation {
    direction: Direction,
    dtype: DType,
    reduction: Reduction,
    copies: bool,
    shape: Vec<usize>,
    tuples: usize,
    repetitions: usize,
    window_elements: usize,
    runs: usize,
    run_elements: usize,
    joined: usize,
    distinct: Option<bool>,
    moved_bytes: usize,
    route: Route,
    outlook: Outlook,
    machine: Machine,
    /// Why the file that the environment names, if it does, cannot be used.
    unused: Option<&'static MachineError>,
}

/// A call to explain. Its tensors are contiguous. The numbered tensor alone has the layout
/// of the plan.
pub(crate) struct Explained<'a> {
    pub(crate) direction: Direction,
    pub(crate) plan: &'a IndexPlan,
    /// What the plan was made of; `None` for a plan that is kept.
    pub(crate) indices: Option<(&'a Form, &'a Layout<'a>, Planning)>,
    pub(crate) dtype: DType,
    pub(crate) reducing: Reducing,
    pub(crate) execution: &'a Execution<'a>,
    /// Whether data is copied to the output first.
    pub(crate) copies: bool,
    /// Whether the output is new memory.
    pub(crate) is_new: bool,
}

impl Explained<'_> {
    pub(crate) fn explain(&self) -> Result<Explanation, ScatterError> {
        let plan = self.plan;
        let elements = Elements::Plain(self.dtype);
        let operation = &operation(elements, self.reducing, self.execution)?;
        check_reduction(plan, operation.group.is_some())?;
        // What no view of such elements can be, no call can be given.
        let size = self.dtype.size();
        let numbered = plan.layout()?;
        let listed = Layout::contiguous(plan.updates_shape());
        let data = Layout::contiguous(plan.shape());
        let copied_data = self.copies.then_some(&data);
        for layout in [&numbered, &listed].into_iter().chain(copied_data) {
            layout.check(size)?;
        }
        let mut geometry = plan.geometry(&plan.own_binding(), &listed.all_strides()?)?;
        if self.direction == Direction::Gather {
            geometry = geometry.exchanged();
        }
        let strides = copied_data.map(Layout::all_strides).transpose()?;
        let copy = strides.map(|strides| plan.copy_geometry(&plan.own_binding(), &strides));
        let copy = copy.transpose()?;
        let facts = Facts {
            execution: self.execution,
            direction: self.direction,
            operation,
            numbered: &numbered,
            listed: &listed,
            copied: copied_data,
            is_new: self.is_new,
            flat: plan.flat(),
            numbers: Numbers::Plan {
                plan,
                is_kept: self.indices.is_none(),
            },
        };
        let choice = self.choice(&facts);
        let workers = self.execution.workers();
        let context = Context::new(self.indices.is_none(), self.is_new).on(workers.machine());
        let (direction, copy) = (self.direction, copy.as_ref());
        let work = Workload::new(direction, plan, &geometry, copy, operation, context);
        let distinct = match self.direction {
            Direction::Scatter => plan.detect_duplicate().ok().map(|found| found.is_none()),
            Direction::Gather => Some(true),
        };
        let outlook = Outlook::new(&work, &workers, choice.selection, distinct);
        let outlook = outlook.ok_or(ScatterError::OutOfMemory { bytes: 0 })?;
        let joins = geometry.joins && !outlook.taken.division.cuts_windows();
        Ok(Explanation {
            direction,
            dtype: self.dtype,
            reduction: self.reducing.reduction,
            copies: self.copies,
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
            route: choice.route,
            outlook,
            machine: workers.machine().clone(),
            unused: Machine::from_environment().and_then(|named| named.as_ref().err()),
        })
    }

    /// The choice of the call, given the facts of its plan.
    fn choice(&self, facts: &Facts<'_>) -> Choice {
        let Some((form, layout, planning)) = self.indices else {
            return facts.choose();
        };
        let extents = &Extents::new(form, self.plan.shape(), layout.shape());
        let flat = Flat::new(extents, facts.numbered, facts.listed);
        let numbers = Numbers::Indices {
            extents,
            layout,
            planning,
        };
        let call = Facts {
            flat: flat.as_ref(),
            numbers,
            ..*facts
        };
        call.choose().with_plan(form, self.plan, facts)
    }
}

impl Explanation {
    /// The route of the call. A [`Small`](Route::Small) call that rejects duplicates, and a
    /// [`Stream`](Route::Stream) without memory for a copy of the output, become
    /// [`Planned`](Route::Planned).
    pub fn route(&self) -> Route {
        self.route
    }

    /// The schedule that runs where the route is [`Planned`](Route::Planned).
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

    /// Bytes of memory that the schedule needs besides the tensors and the plan.
    /// Grouped runs need 8 bytes a tuple more where tuples are in order and
    /// their updates are not evenly spaced. The first run of a kept plan leaves 2 KiB
    /// more in it: what the schedule was chosen by.
    ///
    /// A [`Stream`](Route::Stream) has no plan and no schedule. It needs a copy of the output
    /// for each worker, and none where the output is new memory.
    pub fn scratch_bytes(&self) -> usize {
        self.outlook.scratch_bytes
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_call(f)?;
        writeln!(
            f,
            "  window     {} elements = {} run(s) of {}; {} tuples joined to the one before",
            self.window_elements, self.runs, self.run_elements, self.joined
        )?;
        writeln!(f, "  route      {}: {}", self.route, self.route.meaning())?;
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

impl Explanation {
    /// What the call is, and its tuples.
    fn write_call(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dtype, shape, tuples) = (self.dtype, &self.shape, self.tuples);
        if self.direction == Direction::Gather {
            writeln!(f, "gather from {dtype} {shape:?}")?;
            return writeln!(
                f,
                "  tuples     {tuples}, each {} time(s)",
                self.repetitions
            );
        }
        let form = match self.copies {
            true => "out of place",
            false => "in place",
        };
        let reduction = self.reduction;
        writeln!(
            f,
            "scatter of {dtype} {shape:?}, reduction {reduction}, {form}"
        )?;
        let distinct = match self.distinct {
            Some(true) => "distinct",
            Some(false) => "with duplicates",
            None => "duplicates unknown, as an allocation failed",
        };
        writeln!(
            f,
            "  tuples     {tuples} ({distinct}), each {} time(s)",
            self.repetitions
        )
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
