//! Plans, runs and times a scatter or a gather, through views whose dtype is known at run
//! time.
//!
//! Knows plans and their runs. Does not know element types or shapes.

use std::fmt;
use std::time::{Duration, Instant};

use ndscatter::{Execution, Gather, Scatter, ScatterError, ScatterPlan};
use rayon::ThreadPool;

use crate::array::Array;

/// Total time of the runs after which no further run starts.
const ENOUGH: Duration = Duration::from_millis(20);

/// Total time of the runs and of the copies between them after which no further run starts.
const PATIENCE: Duration = Duration::from_millis(200);

/// Largest number of runs.
const MOST_RUNS: usize = 1001;

/// Largest data, in bytes, that is copied in order to repeat a run in place.
const COPIED_BYTES: usize = 64 << 20;

/// The tensors of one call.
pub(crate) struct Inputs {
    pub(crate) data: Array,
    pub(crate) indices: Array,
    /// `None` for a gather.
    pub(crate) updates: Option<Array>,
    /// The names of the tensors, for messages.
    pub(crate) names: String,
}

/// An operator with its options.
#[derive(Clone, Debug)]
pub(crate) enum Operator {
    Scatter(Scatter<'static>),
    Gather(Gather<'static>),
}

/// An operator, and how it is run.
pub(crate) struct Job<'a> {
    pub(crate) operator: Operator,
    /// Whether a scatter writes into the memory of data.
    pub(crate) in_place: bool,
    /// `None`: the global pool of rayon.
    pub(crate) pool: Option<&'a ThreadPool>,
}

/// The result of a job, and how it was computed.
pub(crate) struct Outcome {
    pub(crate) result: Array,
    /// The text of `explain`.
    pub(crate) explanation: String,
    pub(crate) timing: Timing,
    /// Number of skipped tuples.
    pub(crate) skipped: usize,
}

/// Times of a plan and of its runs. `Display` gives one line of text.
pub(crate) struct Timing {
    planning: Duration,
    /// Time of each run, in ascending order. At least one.
    running: Vec<Duration>,
    /// Name and bytes of the tensor whose bytes per second are printed: the updates of a scatter, or
    /// the result of a gather.
    moved: (&'static str, usize),
}

impl Job<'_> {
    /// Makes a plan and runs it.
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
        // The result has the shape and strides of data, in place or not.
        let plan = scatter.plan(data.view()?.layout(), indices.view()?)?;
        let planning = start.elapsed();
        let (result, running) = if self.in_place {
            self.in_place(&plan, data, updates)?
        } else {
            self.write_into(&plan, &data, updates)?
        };
        // `explain` comes last: it computes facts of the plan that a run may not need.
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

    /// Runs in place. Each repetition starts from a copy of the original data.
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

/// Repeats a run until its times can be measured. Runs at least once.
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
    /// `running` has the time of at least one run.
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
