//! Holds a problem in memory, the ways to run it, and its expected result.

use ndscatter::{CallingThread, Execution, Explanation, Layout, ScatterPlan, Schedule};

use crate::common::aligned::Aligned;
use crate::common::inputs::{Form, Inputs};
use crate::common::numbers::Number;
use crate::forecast::Sample;
use crate::turns::Turns;

/// A problem with its first set of indices.
pub(crate) struct Subject<T> {
    inputs: Inputs<T>,
    /// Result of the sequential reference loop.
    expected: Vec<T>,
}

/// A way to run a problem with one number of workers.
pub(crate) struct Way {
    form: Form,
    turns: Turns,
    /// The kept plan. `None`: one-shot calls.
    plan: Option<ScatterPlan>,
    /// Forced schedule of calls with several workers.
    forced: Option<Schedule>,
}

impl Way {
    pub(crate) fn workers(&self) -> usize {
        self.turns.workers()
    }

    /// Returns the execution. One worker is the calling thread, for which work is not divided.
    fn execution(&self) -> Execution<'_> {
        if self.workers() == 1 {
            return Execution::new().pool(&CallingThread);
        }
        let execution = Execution::new().pool(&self.turns);
        match self.forced {
            Some(schedule) => execution.force_schedule(schedule),
            None => execution,
        }
    }
}

impl<T: Number> Subject<T> {
    pub(crate) fn new(inputs: Inputs<T>) -> Self {
        Self {
            expected: inputs.expected(0),
            inputs,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.inputs.workload.name
    }

    /// Returns the minimum bytes that a call moves.
    pub(crate) fn bytes(&self, form: Form) -> usize {
        self.inputs.traffic(form, 0).total()
    }

    /// Creates a way. Every way has its own plan, because the facts that a call stores in a plan
    /// depend on the number of workers.
    pub(crate) fn way(
        &self,
        form: Form,
        is_planned: bool,
        workers: usize,
        forced: Option<Schedule>,
    ) -> Way {
        Way {
            form,
            turns: Turns::new(workers),
            plan: is_planned.then(|| self.inputs.plan(0)),
            forced,
        }
    }

    /// Explains a call before it runs.
    pub(crate) fn explain(&self, way: &Way) -> Explanation {
        let in_place = way.form == Form::InPlace;
        let explained = match &way.plan {
            Some(plan) => (plan.run().execution(way.execution())).explain(T::DTYPE, in_place),
            None => (self.inputs.operator().execution(way.execution())).explain(
                Layout::contiguous(self.inputs.workload.data),
                self.inputs.indices_view(0),
                T::DTYPE,
                in_place,
            ),
        };
        explained.expect("problems are valid")
    }

    fn run(&self, way: &Way, target: &mut [T]) {
        let (inputs, execution) = (&self.inputs, way.execution());
        match &way.plan {
            Some(plan) => inputs.scatter_planned(plan, execution, way.form, target),
            None => inputs.scatter(execution, way.form, target, 0),
        };
    }

    pub(crate) fn sample(&self, way: &Way, target: &mut [T]) -> Sample {
        Sample::take(&way.turns, || self.run(way, target))
    }

    /// Allocates memory for a result.
    pub(crate) fn target(&self) -> Aligned<T> {
        self.inputs.target()
    }

    /// Panics unless a call gives the bits of the reference loop.
    pub(crate) fn check(&self, way: &Way, target: &mut [T]) {
        let run = |target: &mut [T]| self.run(way, target);
        self.inputs.check(way.form, target, &self.expected, run);
    }
}
