//! Reports the route and the schedule of a call before it runs, for people and for tests.
//!
//! This module calls the functions that choose the route and the schedule of a call. This module
//! writes no tensor. The only data that this module stores in a plan is the sample of destinations
//! from which schedules are chosen, and only a kept plan stores this sample.

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

/// Report of the route and the schedule of a call.
///
/// [`Scatter::explain`](crate::Scatter::explain), [`Gather::explain`](crate::Gather::explain),
/// [`ScatterRun::explain`](crate::ScatterRun::explain) and
/// [`GatherRun::explain`](crate::GatherRun::explain) return this report. The `Display` text of the
/// report is for people and may change between versions.
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
    /// Error of the file that the environment variable `NDSCATTER_MACHINE` names, if the crate
    /// cannot use the file.
    unused: Option<&'static MachineError>,
}

/// Call that is explained. The output of a scatter, or the data of a gather, has the layout of the
/// plan. All other tensors of the call are contiguous.
pub(crate) struct Explained<'a> {
    pub(crate) direction: Direction,
    pub(crate) plan: &'a IndexPlan,
    /// Form, layout of the indices, and options from which the plan was made, if the plan serves
    /// only this call. `None` for a kept plan.
    pub(crate) indices: Option<(&'a Form, &'a Layout<'a>, Planning)>,
    pub(crate) dtype: DType,
    pub(crate) reducing: Reducing,
    pub(crate) execution: &'a Execution<'a>,
    /// Whether the call first copies `data` to its output.
    pub(crate) copies: bool,
    /// Whether the output is new memory.
    pub(crate) is_new: bool,
}

impl Explained<'_> {
    /// Computes the report.
    pub(crate) fn explain(&self) -> Result<Explanation, ScatterError> {
        let plan = self.plan;
        let elements = Elements::Plain(self.dtype);
        let operation = &operation(elements, self.reducing, self.execution)?;
        check_reduction(plan, operation.group.is_some())?;
        // The checks below return an error if a tensor of the call with elements of `self.dtype`
        // would be too large for memory.
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

    /// Returns the route, and the selection of a schedule that applies if the call is planned.
    /// `facts` describe the call as an execution of `self.plan`. If the call has no kept plan, the
    /// function first chooses a route from the indices, as the call itself does.
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
    /// Returns the route of the call.
    ///
    /// The execution may fall back from two routes to [`Planned`](Route::Planned). A call on the
    /// route [`Small`](Route::Small) falls back if the call rejects duplicates and a fast check
    /// finds a possible duplicate. A call on the route [`Stream`](Route::Stream) falls back if
    /// there is no memory for a copy of the output.
    pub fn route(&self) -> Route {
        self.route
    }

    /// Returns the schedule that runs if the route is [`Planned`](Route::Planned).
    pub fn schedule(&self) -> Schedule {
        self.outlook.taken.schedule
    }

    /// Returns the number of tasks of the schedule. A single task runs on the calling thread.
    pub fn tasks(&self) -> usize {
        self.outlook.taken.division.tasks()
    }

    /// Returns the bytes of the windows of all tuples in all repetitions, plus the bytes of `data`
    /// that the call copies to its output.
    ///
    /// A schedule that omits overwritten updates, or combines updates before writing the results,
    /// writes fewer bytes than the returned number.
    pub fn bytes_written(&self) -> usize {
        self.moved_bytes
    }

    /// Returns the machine for which the schedule was chosen.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the maximum bytes of memory that the schedule needs in addition to the tensors and
    /// the plan.
    ///
    /// The returned number does not include two amounts of memory:
    ///
    /// - A grouped schedule needs 8 more bytes for each tuple under two conditions: the tuples are
    ///   in ascending order of destinations, and their updates are not at one constant stride.
    /// - The first call of a kept plan stores a sample of the plan's destination numbers, of 2 KiB,
    ///   in the plan. Schedules are chosen from this sample.
    ///
    /// A call on the route [`Stream`](Route::Stream) has no plan and no schedule, so the call needs
    /// another amount of memory than the returned number. A gather on this route needs no scratch
    /// memory. A scatter on this route whose workers have private copies of the output needs one
    /// copy for each of these workers. Any other scatter on this route needs one copy of the
    /// output, or no copy if the scatter may write the output before all indices are checked. A
    /// scatter may write the output early if the scatter copies no `data`, and either the output is
    /// new memory or the rule for bounds is not [`Bounds::Error`](crate::Bounds::Error).
    pub fn scratch_bytes(&self) -> usize {
        self.outlook.scratch_bytes
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_call(f)?;
        writeln!(
            f,
            "  window     {} elements in {} run(s) of {}; {} windows continue the previous one",
            self.window_elements, self.runs, self.run_elements, self.joined
        )?;
        writeln!(f, "  route      {}: {}", self.route, self.route.meaning())?;
        let taken = &self.outlook.taken;
        let condition = match self.route {
            Route::Planned => "",
            _ => "if planned: ",
        };
        writeln!(
            f,
            "  schedule   {condition}{}, {} task(s): {}; preparation: {}",
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
            "  bytes      {} written, at most {} of scratch memory",
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
    /// Writes the first two lines: the kind of the call, and its number of tuples.
    fn write_call(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dtype, shape, tuples) = (self.dtype, &self.shape, self.tuples);
        if self.direction == Direction::Gather {
            writeln!(f, "gather from {dtype} {shape:?}")?;
            return writeln!(
                f,
                "  tuples     {tuples}, in each of {} repetition(s)",
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
            "scatter into {dtype} {shape:?}, reduction {reduction}, {form}"
        )?;
        let distinct = match self.distinct {
            Some(true) => "distinct destinations",
            Some(false) => "with duplicates",
            None => "duplicates unknown: out of memory",
        };
        writeln!(
            f,
            "  tuples     {tuples} ({distinct}), in each of {} repetition(s)",
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
            "the plan keeps no result of the inspection"
        );
    }
}
