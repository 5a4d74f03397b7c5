//! Holds a problem in memory: its tensors, its calls, and the sequential reference loop that
//! checks their results.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use ndscatter::{Execution, Layout, ScatterPlan, Schedule, TensorView, TensorViewMut};
use rayon::prelude::*;

use super::file::{Call, DEFAULT, Time};
use super::problem::{Problem, Shapes};
use super::variants;
use crate::common::aligned::Aligned;
use crate::common::numbers::Number;
use crate::common::random::Random;

/// Samples of every call.
const RUNS: usize = 5;

/// Approximate duration of a sample, which repeats short calls.
const SAMPLE: Duration = Duration::from_millis(1);
/// Maximum calls per sample.
const MOST_CALLS: u32 = 1000;

/// Number of index sets. Calls rotate through them, so branch predictors cannot learn one.
const SETS: usize = 3;
/// Tuples above which a problem has one index set. Branch predictors cannot learn such a list.
const LONG: usize = 1 << 17;

/// Initial value of an output out of place. No result has it, so an element that a call did not
/// write is found.
const UNWRITTEN: f32 = 0.3;

/// A problem with elements of one type.
pub(crate) struct Subject<'p, T> {
    problem: &'p Problem,
    shapes: Shapes,
    indices: Vec<Vec<i64>>,
    data: Option<Aligned<T>>,
    updates: Aligned<T>,
    target: Aligned<T>,
}

/// A call to time.
struct Contender {
    call: Call,
    execution: Execution<'static>,
    /// Kept plans, one per index set. `None`: one-shot calls.
    plans: Option<Vec<ScatterPlan>>,
}

impl<'p, T: Number> Subject<'p, T> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let sets = if problem.tuples > LONG { 1 } else { SETS };
        let mut random = Random::new(problem.number as u64);
        // Products of 1 and -1 stay finite.
        let values = [(); 61].map(|()| T::of(if random.below(2) == 0 { 1.0 } else { -1.0 }));
        let filled = |len: usize| {
            let mut result = Aligned::new(T::of(0.0), len);
            for chunk in result.chunks_mut(values.len()) {
                chunk.copy_from_slice(&values[..chunk.len()]);
            }
            result
        };
        Self {
            shapes: problem.shapes(),
            indices: (0..sets).map(|set| problem.indices(set)).collect(),
            // In place, memory pages that no tuple names are never touched.
            data: (!problem.in_place).then(|| filled(problem.data_len())),
            updates: filled(problem.updates_len()),
            target: Aligned::new(T::of(0.0), problem.data_len()),
            problem,
        }
    }

    fn views(&self, set: usize) -> (TensorView<'_, i64>, TensorView<'_, T>) {
        let indices = TensorView::contiguous(&self.indices[set], &self.shapes.indices);
        let updates = TensorView::contiguous(&self.updates, &self.shapes.updates);
        (indices.expect("indices"), updates.expect("updates"))
    }

    fn plan(&self, set: usize, execution: Execution<'static>) -> ScatterPlan {
        let scatter = self.problem.operator().execution(execution);
        let plan = scatter.plan(Layout::contiguous(&self.shapes.data), self.views(set).0);
        plan.expect("problems are valid")
    }

    /// Returns the schedule of a call with a fresh plan.
    fn schedule(&self, execution: Execution<'static>) -> Schedule {
        let plan = self.plan(0, execution);
        let run = plan.run().execution(execution);
        let explained = run.explain(T::DTYPE, self.problem.in_place);
        explained.expect("problems are valid").schedule()
    }

    /// Returns the crate's choices on one worker and on all, one-shot and with a kept plan.
    pub(crate) fn chosen(&self, threads: usize) -> Vec<Call> {
        let mut chosen = Vec::new();
        for workers in numbers_of_workers(threads) {
            let execution = Execution::new().max_workers(workers);
            let output = Layout::contiguous(&self.shapes.data);
            let scatter = self.problem.operator().execution(execution);
            let once = scatter
                .explain(output, self.views(0).0, T::DTYPE, self.problem.in_place)
                .expect("problems are valid")
                .schedule();
            for (is_planned, schedule) in [(false, once), (true, self.schedule(execution))] {
                chosen.push(Call {
                    schedule: schedule.as_str().into(),
                    workers,
                    is_planned,
                });
            }
        }
        chosen
    }

    /// Returns the calls to time, on one worker and on all. The default and every schedule that
    /// applies are timed one-shot and with a kept plan. Variants of kernels are timed with a kept
    /// plan.
    fn contenders(&self, threads: usize) -> Vec<Contender> {
        let mut contenders = Vec::new();
        for workers in numbers_of_workers(threads) {
            let default = Execution::new().max_workers(workers);
            let mut executions = vec![(DEFAULT, default)];
            for schedule in Schedule::ALL {
                let forced = default.force_schedule(schedule);
                if self.is_distinct(schedule, workers) && self.schedule(forced) == schedule {
                    executions.push((schedule.as_str(), forced));
                }
            }
            for (name, execution) in executions {
                for is_planned in [false, true] {
                    contenders.push(self.contender(name, (workers, is_planned), execution));
                }
            }
            // The schedule of variants is forced, so that only kernels differ.
            let forced = default.force_schedule(self.schedule(default));
            for variant in variants::of(self.problem) {
                let execution = forced.machine(&variant.machine);
                contenders.push(self.contender(&variant.name, (workers, true), execution));
            }
        }
        contenders
    }

    fn contender(
        &self,
        name: &str,
        (workers, is_planned): (usize, bool),
        execution: Execution<'static>,
    ) -> Contender {
        let sets = 0..self.indices.len();
        Contender {
            call: Call {
                schedule: name.into(),
                workers,
                is_planned,
            },
            execution,
            plans: is_planned.then(|| sets.map(|set| self.plan(set, execution)).collect()),
        }
    }

    /// Whether a schedule differs from all others with this number of workers. With one worker,
    /// schedules that only divide work equal the serial schedule. With several workers, the
    /// serial schedule equals that of one worker, unless all workers copy data.
    fn is_distinct(&self, schedule: Schedule, workers: usize) -> bool {
        use Schedule::{ByBatch, ByColumn, ByDestination, ByTuple, Serial};
        match schedule {
            ByBatch | ByTuple | ByColumn | ByDestination => workers > 1,
            Serial => workers == 1 || !self.problem.in_place,
            _ => true,
        }
    }

    fn run(&mut self, contender: &Contender, set: usize) {
        let mut target = std::mem::replace(&mut self.target, Aligned::new(T::of(0.0), 0));
        let output = TensorViewMut::contiguous(&mut target, &self.shapes.data).expect("target");
        let (indices, updates) = self.views(set);
        let data = (self.data.as_ref())
            .map(|data| TensorView::contiguous(data, &self.shapes.data).expect("data"));
        let result = if let Some(plans) = &contender.plans {
            let run = plans[set].run().execution(contender.execution);
            match data {
                Some(data) => run.write_into(data, updates, output),
                None => run.in_place(output, updates),
            }
        } else {
            let scatter = self.problem.operator().execution(contender.execution);
            match data {
                Some(data) => scatter.write_into(data, indices, updates, output),
                None => scatter.in_place(output, indices, updates),
            }
        };
        result.expect("problems are valid");
        self.target = target;
    }

    /// Checks all calls against the reference loop. Then times them, interleaved.
    pub(crate) fn times(&mut self, threads: usize) -> Vec<(Call, Time)> {
        let contenders = self.contenders(threads);
        let estimates = self.check(&contenders);
        let mut samples = vec![Vec::with_capacity(RUNS); contenders.len()];
        let sets = self.indices.len();
        for round in 0..RUNS {
            for turn in 0..contenders.len() {
                let which = (round + turn) % contenders.len();
                let calls = calls(estimates[which]);
                let (start, cpu) = (Instant::now(), ProcessTime::now());
                for call in 0..calls {
                    self.run(&contenders[which], (round + call as usize) % sets);
                }
                samples[which].push((start.elapsed() / calls, cpu.elapsed() / calls));
            }
        }
        let times = samples.into_iter().map(time_of);
        (contenders.into_iter().map(|contender| contender.call))
            .zip(times)
            .collect()
    }

    /// Panics unless every contender gives the bits of the reference loop. Returns the
    /// approximate time of one call of each.
    fn check(&mut self, contenders: &[Contender]) -> Vec<Duration> {
        let (destinations, window) = self.problem.destinations(0);
        let written = Written::new(&destinations, window, self.problem);
        let expected = self.expected(&destinations, &written);
        let mut estimates = Vec::new();
        for contender in contenders {
            self.reset(&written);
            let start = Instant::now();
            self.run(contender, 0);
            estimates.push(start.elapsed());
            let wrong = match self.problem.in_place {
                true => written.difference(&self.target, &expected),
                false => difference(&self.target, &expected),
            };
            if let Some(at) = wrong {
                let (is, not) = (self.target[at], expected[at]);
                panic!(
                    "{:?}, {:?}: element {at} is {is:?}; expected {not:?}",
                    self.problem, contender.call
                );
            }
        }
        estimates
    }

    /// Runs the sequential reference loop.
    fn expected(&self, destinations: &[usize], written: &Written) -> Aligned<T> {
        let mut result = Aligned::new(T::of(0.0), self.problem.data_len());
        match &self.data {
            Some(data) => result.copy_from_slice(data),
            None => written.fill(&mut result),
        }
        let each = result.len() / self.problem.repetitions;
        let window = written.window;
        let updates = self.updates.chunks_exact(destinations.len() * window);
        for (data, updates) in result.chunks_exact_mut(each).zip(updates) {
            for (&number, update) in destinations.iter().zip(updates.chunks_exact(window)) {
                let row = &mut data[number * window..][..window];
                for (value, &update) in row.iter_mut().zip(update) {
                    *value = value.combined(update, self.problem.reduction);
                }
            }
        }
        result
    }

    /// Resets the target: to the initial data in place, and to [`UNWRITTEN`] out of place.
    fn reset(&mut self, written: &Written) {
        if self.problem.in_place {
            written.fill(&mut self.target);
        } else {
            let target: &mut [T] = &mut self.target;
            (target.par_chunks_mut(CHUNK)).for_each(|chunk| chunk.fill(T::of(UNWRITTEN)));
        }
    }
}

/// Windows that tuples name.
struct Written {
    /// Distinct numbers of the windows, ascending.
    numbers: Vec<usize>,
    window: usize,
    /// Elements of a repetition of the data.
    each: usize,
}

impl Written {
    fn new(destinations: &[usize], window: usize, problem: &Problem) -> Self {
        let mut numbers = destinations.to_vec();
        numbers.par_sort_unstable();
        numbers.dedup();
        Self {
            numbers,
            window,
            each: problem.data_len() / problem.repetitions,
        }
    }

    /// Fills the written windows with ones, which are the initial data in place. Products of
    /// zeros would show no errors.
    fn fill<T: Number>(&self, data: &mut [T]) {
        for data in data.chunks_exact_mut(self.each) {
            for &number in &self.numbers {
                data[number * self.window..][..self.window].fill(T::of(1.0));
            }
        }
    }

    /// Returns the offset of a difference. Compares the written windows, and every 4099th
    /// element.
    fn difference<T: Number>(&self, result: &[T], expected: &[T]) -> Option<usize> {
        let repetitions = (0..result.len()).step_by(self.each);
        let of_window = |first: usize| {
            let window = first..first + self.window;
            difference(&result[window.clone()], &expected[window]).map(|at| first + at)
        };
        let in_windows = repetitions.into_iter().find_map(|start| {
            let numbers = self.numbers.par_iter();
            numbers.find_map_any(|number| of_window(start + number * self.window))
        });
        let mut others = (0..result.len()).step_by(4099);
        in_windows.or_else(|| others.find(|&at| result[at].bits() != expected[at].bits()))
    }
}

/// Elements that are filled or compared at once.
const CHUNK: usize = 1 << 14;

/// Returns the offset of a difference.
fn difference<T: Number>(result: &[T], expected: &[T]) -> Option<usize> {
    let pairs = |chunk: usize| {
        let end = result.len().min((chunk + 1) * CHUNK);
        let range = chunk * CHUNK..end;
        result[range.clone()].iter().zip(&expected[range])
    };
    let differs = |chunk: &usize| {
        // One branch per chunk, not one per element.
        pairs(*chunk).fold(0, |all, (is, not)| all | (is.bits() ^ not.bits())) != 0
    };
    let chunk = match result.len() {
        0..=CHUNK => Some(0).filter(differs),
        len => (0..len.div_ceil(CHUNK)).into_par_iter().find_any(differs),
    }?;
    let within = pairs(chunk).position(|(is, not)| is.bits() != not.bits());
    within.map(|at| chunk * CHUNK + at)
}

/// Returns one and `threads`, without a duplicate.
fn numbers_of_workers(threads: usize) -> Vec<usize> {
    let mut numbers = vec![1, threads];
    numbers.dedup();
    numbers
}

/// Returns the calls per sample.
fn calls(estimate: Duration) -> u32 {
    let calls = SAMPLE.as_nanos() / estimate.as_nanos().max(1);
    u32::try_from(calls)
        .unwrap_or(MOST_CALLS)
        .clamp(1, MOST_CALLS)
}

fn time_of(mut samples: Vec<(Duration, Duration)>) -> Time {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).expect("less than 2^64 ns");
    samples.sort_unstable_by_key(|&(_, cpu)| cpu);
    let cpu = samples[samples.len() / 2].1;
    samples.sort_unstable();
    let [least, median, most] =
        [0, samples.len() / 2, samples.len() - 1].map(|at| nanoseconds(samples[at].0));
    Time {
        median,
        least,
        most,
        cpu: nanoseconds(cpu),
    }
}
