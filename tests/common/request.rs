//! What a test asks of a scatter: what it means, and who runs it.

use ndscatter::{
    Accumulate, Execution, InstructionSet, Pool, Reduction, Scatter, ScatterPlan, ScatterRun,
    Schedule,
};

use super::arithmetic::How;

/// A meaning and an execution, given to operators and to runs of plans alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'p> {
    pub(crate) how: How,
    pub(crate) execution: Execution<'p>,
}

impl Request<'static> {
    pub(crate) fn new(how: impl Into<How>) -> Self {
        Self {
            how: how.into(),
            execution: Execution::new(),
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
            how: self.how,
            execution: self.execution.pool(pool),
        }
    }

    pub(crate) fn schedule(mut self, schedule: Schedule) -> Self {
        self.execution = self.execution.schedule(schedule);
        self
    }

    pub(crate) fn instruction_set(mut self, set: InstructionSet) -> Self {
        self.execution = self.execution.instruction_set(set);
        self
    }

    pub(crate) fn max_workers(mut self, workers: usize) -> Self {
        self.execution = self.execution.max_workers(workers);
        self
    }

    pub(crate) fn reduction(mut self, reduction: Reduction) -> Self {
        self.how.reduction = reduction;
        self
    }

    pub(crate) fn include_self(mut self, include_self: bool) -> Self {
        self.how.include_self = include_self;
        self
    }

    pub(crate) fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.how.accumulate = accumulate;
        self
    }

    /// The operator that means and runs so.
    pub(crate) fn of(self, scatter: Scatter<'_>) -> Scatter<'p> {
        scatter
            .reduction(self.how.reduction)
            .include_self(self.how.include_self)
            .accumulate(self.how.accumulate)
            .execution(self.execution)
    }

    /// The run that means and runs so, whatever the plan was made with.
    pub(crate) fn run<'q>(self, plan: &'q ScatterPlan) -> ScatterRun<'q>
    where
        'p: 'q,
    {
        plan.run()
            .reduction(self.how.reduction)
            .include_self(self.how.include_self)
            .accumulate(self.how.accumulate)
            .execution(self.execution)
    }
}
