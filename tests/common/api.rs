//! Every call of the crate that the harness makes.
//!
//! This module builds the crate's operators from the harness's [`Operator`], and calls the crate by
//! each [`Method`]. A new operator, or a renamed item in the crate's interface, changes only this
//! module.

use std::sync::LazyLock;

use ndscatter::{
    Accumulate, AnyView, AnyViewMut, Bounds, Duplicates, Element, Execution, Explanation, Gather,
    GatherPlan, Goal, Index, InstructionSet, Layout, Machine, Pool, Reduction, Scatter,
    ScatterError, ScatterPlan, ScatterRun, Schedule, TensorView, TensorViewMut,
};

use super::Tensor;
use super::arithmetic::How;
use super::indices::{IndexRule, Refusals};
use super::layouts::Strided;
use super::operators::{Gatherer, Operator, Rules};

/// An element type at run time.
pub(crate) use ndscatter::DType;

/// A reduction, and the pool, the schedule and the instruction set of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'p> {
    pub(crate) reduction: Reduction,
    pub(crate) execution: Execution<'p>,
    /// Pool of the execution, from which [`Self::workers`] reads the number of workers.
    pool: Option<&'p dyn Pool>,
}

/// Machine for all choices of a schedule. A fixed machine makes the choices independent of the
/// machine that runs the tests.
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let text = "caches = 32768 1048576 33554432\nvendor = intel\nranged_tuples = 262144";
    text.parse().expect("a valid machine")
});

impl Request<'static> {
    pub(crate) fn new(reduction: Reduction) -> Self {
        Self {
            reduction,
            execution: Execution::new().machine(&MACHINE),
            pool: None,
        }
    }
}

impl From<Reduction> for Request<'static> {
    fn from(reduction: Reduction) -> Self {
        Self::new(reduction)
    }
}

impl<'p> Request<'p> {
    pub(crate) fn pool<'q>(self, pool: &'q dyn Pool) -> Request<'q>
    where
        'p: 'q,
    {
        Request {
            reduction: self.reduction,
            execution: self.execution.pool(pool),
            pool: Some(pool),
        }
    }

    /// Returns the number of workers that the pool reports.
    pub(crate) fn workers(self) -> Option<usize> {
        self.pool.and_then(Pool::workers)
    }

    pub(crate) fn max_workers(mut self, workers: usize) -> Self {
        self.execution = self.execution.max_workers(workers);
        self
    }

    /// Sets the goal, if there is one.
    pub(crate) fn goal(mut self, goal: impl Into<Option<Goal>>) -> Self {
        if let Some(goal) = goal.into() {
            self.execution = self.execution.goal(goal);
        }
        self
    }

    /// Forces the schedule, if there is one.
    pub(crate) fn schedule(mut self, schedule: impl Into<Option<Schedule>>) -> Self {
        if let Some(schedule) = schedule.into() {
            self.execution = self.execution.force_schedule(schedule);
        }
        self
    }

    /// Forces the instruction set, if there is one.
    pub(crate) fn instruction_set(mut self, set: impl Into<Option<InstructionSet>>) -> Self {
        if let Some(set) = set.into() {
            self.execution = self.execution.force_instruction_set(set);
        }
        self
    }

    /// Returns the operator with this reduction and this execution.
    pub(crate) fn of(self, scatter: Scatter<'_>) -> Scatter<'p> {
        scatter.reduction(self.reduction).execution(self.execution)
    }

    /// Returns a run of `plan` with this reduction, which replaces the plan's reduction.
    pub(crate) fn run<'q>(self, plan: &'q ScatterPlan) -> ScatterRun<'q>
    where
        'p: 'q,
    {
        (plan.run().reduction(self.reduction)).execution(self.execution)
    }
}

/// Options of a scatter: all of its inputs except the tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'p> {
    pub(crate) operator: Operator,
    pub(crate) execution: Request<'p>,
    pub(crate) duplicates: Duplicates,
    pub(crate) negative_indices: bool,
    pub(crate) bounds: Bounds,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
}

impl<'p> Options<'p> {
    pub(crate) fn new(operator: Operator, execution: impl Into<Request<'p>>) -> Self {
        Self {
            operator,
            execution: execution.into(),
            duplicates: Duplicates::Allow,
            negative_indices: true,
            bounds: Bounds::Error,
            include_self: true,
            accumulate: Accumulate::Native,
        }
    }

    /// Returns the part of the options that decides the result, for the reference.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            how: How {
                reduction: self.execution.reduction,
                include_self: self.include_self,
                accumulate: self.accumulate,
            },
            index: self.index_rule(),
        }
    }

    /// Whether the operator supports these options.
    pub(crate) fn is_supported(&self) -> bool {
        let is_cache = matches!(self.operator, Operator::Cache { .. });
        let is_plain = self.execution.reduction == Reduction::None && self.bounds != Bounds::Clamp;
        !is_cache || is_plain
    }

    fn index_rule(&self) -> IndexRule {
        IndexRule {
            negative: self.negative_indices,
            bounds: self.bounds,
        }
    }

    /// Returns the rules by which values of `indices` are errors.
    pub(crate) fn refusals(&self) -> Refusals {
        Refusals {
            rule: self.index_rule(),
            reject_duplicates: self.duplicates == Duplicates::Reject,
        }
    }

    /// Builds the crate's scatter with these options.
    pub(crate) fn scatter(&self) -> Scatter<'p> {
        let scatter = match self.operator {
            Operator::Nd => Scatter::nd(),
            Operator::Update { axis } => Scatter::along(axis),
            Operator::Elements { axis } => Scatter::elements(axis),
            Operator::Cache { axis, mode, len } => Scatter::cache(axis, mode).update_len(len),
            Operator::Paged => Scatter::paged(),
        };
        (self.execution.of(scatter))
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .negative_indices(self.negative_indices)
            .bounds(self.bounds)
    }

    /// Returns a run of a plan that was made with these options. The plan stores the operator, the
    /// reduction and the other rules, so only the execution is set again.
    pub(crate) fn run<'q>(&self, plan: &'q ScatterPlan) -> ScatterRun<'q>
    where
        'p: 'q,
    {
        plan.run().execution(self.execution.execution)
    }

    /// Explains such a run.
    pub(crate) fn explain(
        &self,
        plan: &ScatterPlan,
        dtype: DType,
        in_place: bool,
    ) -> Result<Explanation, ScatterError> {
        self.run(plan).explain(dtype, in_place)
    }
}

/// Options of a gather: all of its inputs except the tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherOptions<'p> {
    pub(crate) gatherer: Gatherer,
    pub(crate) execution: Execution<'p>,
    pub(crate) rule: IndexRule,
}

impl<'p> GatherOptions<'p> {
    pub(crate) fn new(gatherer: Gatherer) -> Self {
        Self {
            gatherer,
            execution: Execution::new(),
            rule: IndexRule::DEFAULT,
        }
    }

    pub(crate) fn bounds(self, bounds: Bounds) -> Self {
        let rule = IndexRule {
            bounds,
            ..self.rule
        };
        Self { rule, ..self }
    }

    /// Builds the crate's gather with these options.
    pub(crate) fn gather(&self) -> Gather<'p> {
        let gather = match self.gatherer {
            Gatherer::Nd { batch_dims } => Gather::nd(batch_dims),
            Gatherer::Along { axis } => Gather::along(axis),
            Gatherer::Paged => Gather::paged(),
            Gatherer::Elements { axis } => Gather::elements(axis),
        };
        gather
            .execution(self.execution)
            .negative_indices(self.rule.negative)
            .bounds(self.rule.bounds)
    }
}

/// Indices of any type.
pub(crate) trait Indices: Sync {
    /// Returns the logical tensor for the reference.
    fn logical(&self) -> Tensor<i128>;
    /// Returns a view whose type is known at compile time.
    fn typed(&self) -> ndscatter::Indices<'_>;
    /// Returns a view whose type is known at run time.
    fn any(&self) -> AnyView<'_>;
}

impl<I: Index + Into<i128>> Indices for Strided<I> {
    fn logical(&self) -> Tensor<i128> {
        let Tensor { shape, values } = self.read();
        Tensor::new(&shape, values.into_iter().map(Into::into).collect())
    }

    fn typed(&self) -> ndscatter::Indices<'_> {
        self.view().into()
    }

    fn any(&self) -> AnyView<'_> {
        self.view().into()
    }
}

/// The crate's methods for scatters and gathers, with indices of any type.
pub(crate) trait Methods: Indices {
    fn allocate<T: Element>(
        &self,
        options: &Options<'_>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        let made = options.scatter().allocate(data, self.typed(), updates);
        made.map(ndscatter::Tensor::into_vec)
    }

    fn write_into<T: Element>(
        &self,
        options: &Options<'_>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        (options.scatter()).write_into(data, self.typed(), updates, output)
    }

    fn in_place<T: Element>(
        &self,
        options: &Options<'_>,
        data: TensorViewMut<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError> {
        options.scatter().in_place(data, self.typed(), updates)
    }

    fn plan(&self, options: &Options<'_>, output: Layout<'_>) -> Result<ScatterPlan, ScatterError> {
        options.scatter().plan(output, self.typed())
    }

    fn gather<T: Element>(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        let made = options.gather().allocate(data, self.typed());
        made.map(ndscatter::Tensor::into_vec)
    }

    fn gather_into<T: Element>(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        options.gather().write_into(data, self.typed(), output)
    }

    fn any_gather_into<T: Element>(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let (data, output) = (AnyView::from(data), AnyViewMut::from(output));
        options.gather().write_into(data, self.any(), output)
    }

    fn plan_gather(
        &self,
        options: &GatherOptions<'_>,
        data: Layout<'_>,
    ) -> Result<GatherPlan, ScatterError> {
        options.gather().plan(data, self.typed())
    }
}

impl<S: Indices + ?Sized> Methods for S {}

pub(crate) fn write_into(
    options: &Options<'_>,
    data: AnyView<'_>,
    indices: AnyView<'_>,
    updates: AnyView<'_>,
    output: AnyViewMut<'_>,
) -> Result<(), ScatterError> {
    options.scatter().write_into(data, indices, updates, output)
}

pub(crate) fn in_place(
    options: &Options<'_>,
    data: AnyViewMut<'_>,
    indices: AnyView<'_>,
    updates: AnyView<'_>,
) -> Result<(), ScatterError> {
    options.scatter().in_place(data, indices, updates)
}

/// A method of the crate that runs a scatter or a gather. `Any` marks calls with views whose dtype
/// is known at run time. `Planned` marks runs of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Method {
    Allocate,
    WriteInto,
    InPlace,
    AnyWriteInto,
    AnyInPlace,
    PlannedAllocate,
    PlannedWriteInto,
    PlannedInPlace,
    AnyPlannedWriteInto,
    AnyPlannedInPlace,
}

/// The result of a call: the tensor that the crate allocated, or `None` where the call wrote to an
/// output.
pub(crate) type Made<T> = Result<Option<Vec<T>>, ScatterError>;

impl Method {
    pub(crate) const ALL: [Self; 10] = [
        Self::Allocate,
        Self::WriteInto,
        Self::InPlace,
        Self::AnyWriteInto,
        Self::AnyInPlace,
        Self::PlannedAllocate,
        Self::PlannedWriteInto,
        Self::PlannedInPlace,
        Self::AnyPlannedWriteInto,
        Self::AnyPlannedInPlace,
    ];

    /// Returns the methods of gathers: all that do not write in place.
    pub(crate) fn of_gathers() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|method| !method.is_in_place())
    }

    pub(crate) fn is_in_place(self) -> bool {
        matches!(
            self,
            Self::InPlace | Self::AnyInPlace | Self::PlannedInPlace | Self::AnyPlannedInPlace
        )
    }

    pub(crate) fn is_planned(self) -> bool {
        matches!(
            self,
            Self::PlannedAllocate
                | Self::PlannedWriteInto
                | Self::PlannedInPlace
                | Self::AnyPlannedWriteInto
                | Self::AnyPlannedInPlace
        )
    }

    /// Whether the crate allocates the output and chooses its layout.
    pub(crate) fn allocates(self) -> bool {
        matches!(self, Self::Allocate | Self::PlannedAllocate)
    }

    /// Runs a scatter. `plan` is `Some` for planned methods. For methods in place, `output`
    /// contains the data.
    pub(crate) fn scatter<T: Element>(
        self,
        options: &Options<'_>,
        indices: &dyn Indices,
        plan: Option<&ScatterPlan>,
        (data, updates): (TensorView<'_, T>, TensorView<'_, T>),
        output: TensorViewMut<'_, T>,
    ) -> Made<T> {
        let written = match self {
            Self::Allocate => return indices.allocate(options, data, updates).map(Some),
            Self::WriteInto => indices.write_into(options, data, updates, output),
            Self::InPlace => indices.in_place(options, output, updates),
            Self::AnyWriteInto => {
                let (data, updates) = (data.into(), updates.into());
                write_into(options, data, indices.any(), updates, output.into())
            }
            Self::AnyInPlace => in_place(options, output.into(), indices.any(), updates.into()),
            _ => {
                let run = options.run(plan.expect("a planned method has a plan"));
                return self.run(&run, (data, updates), output);
            }
        };
        written.map(|()| None)
    }

    /// Runs a plan of a scatter with a planned method.
    pub(crate) fn run<T: Element>(
        self,
        run: &ScatterRun<'_>,
        (data, updates): (TensorView<'_, T>, TensorView<'_, T>),
        output: TensorViewMut<'_, T>,
    ) -> Made<T> {
        let written = match self {
            Self::PlannedAllocate => {
                return run
                    .allocate(data, updates)
                    .map(|made| Some(made.into_vec()));
            }
            Self::PlannedWriteInto => run.write_into(data, updates, output),
            Self::PlannedInPlace => run.in_place(output, updates),
            Self::AnyPlannedWriteInto => run.write_into(
                AnyView::from(data),
                AnyView::from(updates),
                AnyViewMut::from(output),
            ),
            Self::AnyPlannedInPlace => run.in_place(AnyViewMut::from(output), updates.into()),
            _ => panic!("{self:?} has no plan"),
        };
        written.map(|()| None)
    }

    /// Runs a gather. `plan` is `Some` for planned methods.
    pub(crate) fn gather<T: Element>(
        self,
        options: &GatherOptions<'_>,
        indices: &dyn Indices,
        plan: Option<&GatherPlan>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Made<T> {
        let plan = || plan.expect("a planned method has a plan");
        let run = || plan().run().execution(options.execution);
        let written = match self {
            Self::Allocate => return indices.gather(options, data).map(Some),
            Self::PlannedAllocate => {
                return run().allocate(data).map(|made| Some(made.into_vec()));
            }
            Self::WriteInto => indices.gather_into(options, data, output),
            Self::AnyWriteInto => indices.any_gather_into(options, data, output),
            Self::PlannedWriteInto => run().write_into(data, output),
            Self::AnyPlannedWriteInto => {
                run().write_into(AnyView::from(data), AnyViewMut::from(output))
            }
            _ => panic!("gathers have no method {self:?}"),
        };
        written.map(|()| None)
    }
}
