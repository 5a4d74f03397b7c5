//! The scatter or the gather itself, through views whose element type is a
//! value.
//!
//! Knows plans and runs. Knows no element type, and nothing of shapes.

use std::fmt;
use std::time::{Duration, Instant};

use ndscatter::{Execution, Gather, Scatter, ScatterError, ScatterPlan};
use rayon::ThreadPool;

use crate::array::Array;

/// Runs are repeated until they have taken so long, ...
const ENOUGH: Duration = Duration::from_millis(20);

/// ... or they have, with the copies between them, ...
const PATIENCE: Duration = Duration::from_millis(200);

/// ... or there have been so many.
const MOST_RUNS: usize = 1001;

/// Data of more bytes is not copied to repeat a run in place.
const COPIED_BYTES: usize = 64 << 20;

/// The tensors of one call.
pub(crate) struct Inputs {
    pub(crate) data: Array,
    pub(crate) indices: Array,
    /// Of a scatter.
    pub(crate) updates: Option<Array>,
    /// What to call them in a message.
    pub(crate) names: String,
}

/// An operator, with what it means.
#[derive(Clone, Debug)]
pub(crate) enum Operator {
    Scatter(Scatter<'static>),
    Gather(Gather<'static>),
}

/// What is to be done.
pub(crate) struct Job<'a> {
    pub(crate) operator: Operator,
    /// A scatter into the memory of data.
    pub(crate) in_place: bool,
    /// `None`: the global pool of rayon.
    pub(crate) pool: Option<&'a ThreadPool>,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) result: Array,
    /// What was done, for people.
    pub(crate) explanation: String,
    pub(crate) timing: Timing,
    /// Tuples of indices that were skipped.
    pub(crate) skipped: usize,
}

/// Times of a plan and of its runs; `Display` is a line of text.
pub(crate) struct Timing {
    planning: Duration,
    /// At least one, in ascending order.
    running: Vec<Duration>,
    /// What was moved, and how much of it.
    moved: (&'static str, usize),
}

impl Job<'_> {
    /// Plans, and runs the plan.
    pub(crate) fn run(&self, inputs: Inputs) -> Result<Outcome, ScatterError> {
        match (&self.operator, &inputs.updates) {
            (Operator::Scatter(scatter), Some(updates)) => {
                self.scatter(scatter, inputs.data, &inputs.indices, updates)
            }
            (Operator::Gather(gather), None) => self.gather(gather, &inputs.data, &inputs.indices),
            _ => unreachable!("arguments were held against each other"),
        }
    }

    fn scatter(
        &self,
        scatter: &Scatter<'static>,
        data: Array,
        indices: &Array,
        updates: &Array,
    ) -> Result<Outcome, ScatterError> {
        let scatter = scatter.clone().execution(self.execution());
        let start = Instant::now();
        // The result has the shape and strides of data, in place or not.
        let plan = scatter.plan(data.view()?.layout(), indices.view()?)?;
        let planning = start.elapsed();
        let (result, running) = if self.in_place {
            self.in_place(&plan, data, updates)?
        } else {
            self.write_into(&plan, &data, updates)?
        };
        // Last, as it has the plan work out what a run may do without.
        let run = plan.run().execution(self.execution());
        let explanation = run.explain(result.dtype(), self.in_place)?.to_string();
        Ok(Outcome {
            result,
            explanation,
            timing: Timing::new(planning, running, ("updates", updates.bytes())),
            skipped: plan.skipped(),
        })
    }

    fn write_into(
        &self,
        plan: &ScatterPlan,
        data: &Array,
        updates: &Array,
    ) -> Result<(Array, Vec<Duration>), ScatterError> {
        let mut result = data.blank(data.shape())?;
        let run = plan.run().execution(self.execution());
        let times = repeated(|| {
            let start = Instant::now();
            run.write_into(data.view()?, updates.view()?, result.view_mut()?)?;
            Ok(start.elapsed())
        })?;
        Ok((result, times))
    }

    /// In data itself, from which a copy is taken to begin again with.
    fn in_place(
        &self,
        plan: &ScatterPlan,
        mut data: Array,
        updates: &Array,
    ) -> Result<(Array, Vec<Duration>), ScatterError> {
        let run = plan.run().execution(self.execution());
        let once = |data: &mut Array| {
            let start = Instant::now();
            run.in_place(data.view_mut()?, updates.view()?)?;
            Ok(start.elapsed())
        };
        if data.bytes() > COPIED_BYTES {
            let time = once(&mut data)?;
            return Ok((data, vec![time]));
        }
        let mut kept = data.blank(data.shape())?;
        kept.copy_from(&data);
        let times = repeated(|| {
            data.copy_from(&kept);
            once(&mut data)
        })?;
        Ok((data, times))
    }

    fn gather(
        &self,
        gather: &Gather<'static>,
        data: &Array,
        indices: &Array,
    ) -> Result<Outcome, ScatterError> {
        let gather = gather.clone().execution(self.execution());
        let start = Instant::now();
        let plan = gather.plan(data.view()?.layout(), indices.view()?)?;
        let planning = start.elapsed();
        let mut result = data.blank(plan.output_shape())?;
        let run = plan.run().execution(self.execution());
        let running = repeated(|| {
            let start = Instant::now();
            run.write_into(data.view()?, result.view_mut()?)?;
            Ok(start.elapsed())
        })?;
        let moved = ("results", result.bytes());
        Ok(Outcome {
            explanation: run.explain(data.dtype(), false)?.to_string(),
            timing: Timing::new(planning, running, moved),
            skipped: plan.skipped(),
            result,
        })
    }

    fn execution(&self) -> Execution<'_> {
        match self.pool {
            Some(pool) => Execution::new().pool(pool),
            None => Execution::new(),
        }
    }
}

/// Runs until there is something to measure, and at least once.
fn repeated(
    mut run: impl FnMut() -> Result<Duration, ScatterError>,
) -> Result<Vec<Duration>, ScatterError> {
    let (start, mut times) = (Instant::now(), Vec::new());
    loop {
        times.push(run()?);
        let has_enough = times.iter().sum::<Duration>() >= ENOUGH;
        if has_enough || start.elapsed() >= PATIENCE || times.len() == MOST_RUNS {
            return Ok(times);
        }
    }
}

impl Timing {
    /// Of at least one run.
    fn new(planning: Duration, mut running: Vec<Duration>, moved: (&'static str, usize)) -> Self {
        running.sort_unstable();
        Self {
            planning,
            running,
            moved,
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let median = self.running[self.running.len() / 2];
        write!(
            f,
            "  time       {:.1?} to plan, {median:.1?} to run",
            self.planning
        )?;
        match self.running.len() {
            1 => f.write_str(" (once)")?,
            runs => write!(f, " (median of {runs} runs)")?,
        }
        let (what, bytes) = self.moved;
        if bytes == 0 || median.is_zero() {
            return Ok(());
        }
        let rate = bytes as f64 / median.as_secs_f64();
        match rate {
            1e9.. => write!(f, ": {:.2} GB/s of {what}", rate * 1e-9),
            1e6.. => write!(f, ": {:.2} MB/s of {what}", rate * 1e-6),
            _ => write!(f, ": {:.2} kB/s of {what}", rate * 1e-3),
        }
    }
}
