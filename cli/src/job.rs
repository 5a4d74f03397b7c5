//! Makes a plan of a scatter or gather, runs the plan and measures the times.
//!
//! This file depends on plans and their runs, but not on element types or shapes: it uses views
//! whose dtype is known at run time.

use std::fmt;
use std::time::{Duration, Instant};

use ndscatter::{Execution, Gather, Scatter, ScatterError, ScatterPlan};
use rayon::ThreadPool;

use crate::array::Array;

/// Limit of the sum of the times of the runs, without the copies between runs. After this time, no
/// further run starts.
const ENOUGH: Duration = Duration::from_millis(20);

/// Limit of the total time of the runs and of the copies between runs. After this time, no further
/// run starts.
const PATIENCE: Duration = Duration::from_millis(200);

/// Largest number of runs.
const MOST_RUNS: usize = 1001;

/// Largest size of data, in bytes, for which a run in place is repeated. Each repetition copies
/// data.
const COPIED_BYTES: usize = 64 << 20;

/// The tensors of one call.
pub(crate) struct Inputs {
    pub(crate) data: Array,
    pub(crate) indices: Array,
    /// `None` for a gather.
    pub(crate) updates: Option<Array>,
    /// The paths of the files of the tensors, or the name of the data set, for messages.
    pub(crate) names: String,
}

/// An operator with its options.
#[derive(Clone, Debug)]
pub(crate) enum Operator {
    Scatter(Scatter<'static>),
    Gather(Gather<'static>),
}

/// An operator, and the settings of its run.
pub(crate) struct Job<'a> {
    pub(crate) operator: Operator,
    /// Whether a scatter writes its result to the memory of data. A gather ignores this field.
    pub(crate) in_place: bool,
    /// The thread pool that runs the operator. `None`: the global pool of rayon.
    pub(crate) pool: Option<&'a ThreadPool>,
}

/// The result of a job, and a report on how it was computed.
pub(crate) struct Outcome {
    pub(crate) result: Array,
    /// The text that `explain` of the plan's run returned.
    pub(crate) explanation: String,
    pub(crate) timing: Timing,
    /// Number of skipped tuples.
    pub(crate) skipped: usize,
}

/// Times of making a plan and of each of its runs. `Display` writes one line of text.
pub(crate) struct Timing {
    planning: Duration,
    /// Times of the runs, sorted in ascending order. There is at least one time.
    running: Vec<Duration>,
    /// Name and size in bytes of the tensor that the printed bytes per second refer to: the updates
    /// of a scatter, or the result of a gather.
    moved: (&'static str, usize),
}

impl Job<'_> {
    /// Makes a plan of the operator and runs it, usually several times to measure the time.
    pub(crate) fn run(&self, inputs: Inputs) -> Result<Outcome, ScatterError> {
        match (&self.operator, &inputs.updates) {
            (Operator::Scatter(scatter), Some(updates)) => {
                self.scatter(scatter, inputs.data, &inputs.indices, updates)
            }
            (Operator::Gather(gather), None) => self.gather(gather, &inputs.data, &inputs.indices),
            _ => unreachable!("`arguments::check` requires updates of scatters alone"),
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
        // The plan is made for the layout of data, because the result has this layout, in place or
        // not.
        let plan = scatter.plan(data.view()?.layout(), indices.view()?)?;
        let planning = start.elapsed();
        let (result, running) = if self.in_place {
            self.in_place(&plan, data, updates)?
        } else {
            self.write_into(&plan, &data, updates)?
        };
        // `explain` is called after the timed runs, because it computes facts of the plan that a
        // run may not need.
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

    /// Runs the plan in place and returns the result and the times. Before each run, data is
    /// restored from a copy. If data is larger than [`COPIED_BYTES`], the plan runs once, without a
    /// copy.
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

/// Calls `run` one or more times and returns the times that `run` returns. No further call starts
/// if the sum of these times has reached [`ENOUGH`], if all calls with their copies have taken
/// [`PATIENCE`], or after [`MOST_RUNS`] calls.
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
    /// Sorts `running`, the times of the runs. `running` must not be empty.
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
