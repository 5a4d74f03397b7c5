//! The scatter itself, through the type-erased layer of ndscatter.
//!
//! Knows operators and plans. Knows no element type.

use std::time::{Duration, Instant};

use ndscatter::{Execution, Explanation, Reduction, Scatter, ScatterError, ScatterPlan};
use rayon::ThreadPool;

use crate::array::Array;

/// The tensors of one scatter.
pub(crate) struct Inputs {
    pub(crate) data: Array,
    pub(crate) indices: Array,
    pub(crate) updates: Array,
    /// What to call them in a message.
    pub(crate) names: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    ScatterNd,
    ScatterUpdate { axis: isize },
}

/// What is to be done.
pub(crate) struct Job<'a> {
    pub(crate) operator: Operator,
    pub(crate) reduction: Reduction,
    pub(crate) in_place: bool,
    /// `None`: the global pool of rayon.
    pub(crate) pool: Option<&'a ThreadPool>,
    /// How often it is done, to time it.
    pub(crate) runs: usize,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) result: Array,
    pub(crate) explanation: Explanation,
    planning: Duration,
    /// At least one, in ascending order.
    running: Vec<Duration>,
    update_bytes: usize,
}

impl Job<'_> {
    /// Plans, and runs the plan.
    pub(crate) fn run(&self, inputs: Inputs) -> Result<Outcome, ScatterError> {
        let Inputs {
            data,
            indices,
            updates,
            ..
        } = inputs;
        let start = Instant::now();
        let plan = self.plan(&data, &indices)?;
        let planning = start.elapsed();
        let mut running = Vec::with_capacity(self.runs);
        for _ in 1..self.runs {
            running.push(self.run_once(&plan, data.duplicate(), &updates)?.1);
        }
        let (result, time) = self.run_once(&plan, data, &updates)?;
        running.push(time);
        running.sort_unstable();
        // Last, as it has the plan derive what a run may do without.
        let explanation = (plan.run())
            .execution(self.execution())
            .explain(result.dtype(), self.in_place)?;
        Ok(Outcome {
            result,
            explanation,
            planning,
            running,
            update_bytes: updates.bytes(),
        })
    }

    fn plan(&self, data: &Array, indices: &Array) -> Result<ScatterPlan, ScatterError> {
        // The result has the shape and strides of data, in place or not.
        let output = data.view()?.layout();
        let indices = indices.view()?;
        match self.operator {
            Operator::ScatterNd => Scatter::nd()
                .reduction(self.reduction)
                .execution(self.execution())
                .plan(output, indices),
            Operator::ScatterUpdate { axis } => Scatter::update(axis)
                .reduction(self.reduction)
                .execution(self.execution())
                .plan(output, indices),
        }
    }

    /// Returns the result and the time; in place, the result is `data`.
    fn run_once(
        &self,
        plan: &ScatterPlan,
        mut data: Array,
        updates: &Array,
    ) -> Result<(Array, Duration), ScatterError> {
        let (run, updates) = (plan.run().execution(self.execution()), updates.view()?);
        if self.in_place {
            let start = Instant::now();
            run.in_place(data.view_mut()?, updates)?;
            return Ok((data, start.elapsed()));
        }
        let mut output = data.blank();
        let start = Instant::now();
        run.write_into(data.view()?, updates, output.view_mut()?)?;
        Ok((output, start.elapsed()))
    }

    fn execution(&self) -> Execution<'_> {
        match self.pool {
            Some(pool) => Execution::new().pool(pool),
            None => Execution::new(),
        }
    }
}

impl Outcome {
    /// The times, as a line of text.
    pub(crate) fn timing(&self) -> String {
        let median = self.running[self.running.len() / 2];
        let rate = self.update_bytes as f64 / median.as_secs_f64().max(1e-9) / 1e9;
        let runs = match self.running.len() {
            1 => String::new(),
            runs => format!(" (median of {runs} runs)"),
        };
        format!(
            "  time       {:.1?} to plan, {median:.1?} to run{runs}: {rate:.2} GB/s of updates",
            self.planning
        )
    }
}
