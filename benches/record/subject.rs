//! A problem in memory: its tensors, its calls, and the plain loop that judges
//! them.

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

/// Runs of everything that is timed.
const RUNS: usize = 5;

/// A sample is of as many calls as take about so long.
const SAMPLE: Duration = Duration::from_millis(1);
const MOST_CALLS: u32 = 1000;

/// Sets of indices that calls take in turns, so that no branch learns one; of
/// long lists, which are too long for that, there is one.
const SETS: usize = 3;
const LONG: usize = 1 << 17;

/// No result: what a call out of place must not leave.
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

/// Something to time.
struct Contender {
    call: Call,
    execution: Execution<'static>,
    /// For each set, where plans are kept.
    plans: Option<Vec<ScatterPlan>>,
}

impl<'p, T: Number> Subject<'p, T> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let sets = if problem.tuples > LONG { 1 } else { SETS };
        let mut random = Random::new(problem.number as u64);
        // Of which products stay finite.
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
            // In place, pages that no tuple comes to are never touched.
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

    /// The schedule that runs with a fresh plan.
    fn schedule(&self, execution: Execution<'static>) -> Schedule {
        let plan = self.plan(0, execution);
        let run = plan.run().execution(execution);
        let explained = run.explain(T::DTYPE, self.problem.in_place);
        explained.expect("problems are valid").schedule()
    }

    /// What the crate does by itself on one worker and on all, once and with a plan.
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

    /// The default and every schedule that applies, on one worker and on all, once
    /// and with a plan; and with a plan the variants of kernels.
    fn contenders(&self, threads: usize) -> Vec<Contender> {
        let mut contenders = Vec::new();
        for workers in numbers_of_workers(threads) {
            let default = Execution::new().max_workers(workers);
            let mut executions = vec![(DEFAULT, default)];
            for schedule in Schedule::ALL {
                let forced = default.force_schedule(schedule);
                if self.is_one_of_its_own(schedule, workers) && self.schedule(forced) == schedule {
                    executions.push((schedule.as_str(), forced));
                }
            }
            for (name, execution) in executions {
                for is_planned in [false, true] {
                    contenders.push(self.contender(name, (workers, is_planned), execution));
                }
            }
            // By one schedule, so that nothing but kernels differ.
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

    /// With one worker, schedules that only divide are the serial one; with several,
    /// the serial one is that of one worker, unless there is data that all copy.
    fn is_one_of_its_own(&self, schedule: Schedule, workers: usize) -> bool {
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

    /// Times all, in turns, after each has given the bits of the plain loop.
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

    /// Panics unless every contender gives the bits of the plain loop. Returns
    /// what a run takes, about.
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
                true => written.a_difference(&self.target, &expected),
                false => a_difference(&self.target, &expected),
            };
            if let Some(at) = wrong {
                let (is, not) = (self.target[at], expected[at]);
                panic!(
                    "{:?}, {:?}: element {at} is {is:?}, not {not:?}",
                    self.problem, contender.call
                );
            }
        }
        estimates
    }

    /// What one tuple after another makes of the data.
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

    /// The data as it was, in place; out of place, nothing that could be a result.
    fn reset(&mut self, written: &Written) {
        if self.problem.in_place {
            written.fill(&mut self.target);
        } else {
            let target: &mut [T] = &mut self.target;
            (target.par_chunks_mut(CHUNK)).for_each(|chunk| chunk.fill(T::of(UNWRITTEN)));
        }
    }
}

/// The windows that tuples come to.
struct Written {
    /// Their numbers, each once.
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

    /// In place, what tuples come to begins as ones: products are none of zeros.
    fn fill<T: Number>(&self, data: &mut [T]) {
        for data in data.chunks_exact_mut(self.each) {
            for &number in &self.numbers {
                data[number * self.window..][..self.window].fill(T::of(1.0));
            }
        }
    }

    /// Only of windows that are written and some other elements: pages that nobody
    /// writes to are not touched.
    fn a_difference<T: Number>(&self, result: &[T], expected: &[T]) -> Option<usize> {
        let repetitions = (0..result.len()).step_by(self.each);
        let of_window = |first: usize| {
            let window = first..first + self.window;
            a_difference(&result[window.clone()], &expected[window]).map(|at| first + at)
        };
        let in_windows = repetitions.into_iter().find_map(|start| {
            let numbers = self.numbers.par_iter();
            numbers.find_map_any(|number| of_window(start + number * self.window))
        });
        let mut others = (0..result.len()).step_by(4099);
        in_windows.or_else(|| others.find(|&at| result[at].bits() != expected[at].bits()))
    }
}

/// Elements that are compared at once.
const CHUNK: usize = 1 << 14;

fn a_difference<T: Number>(result: &[T], expected: &[T]) -> Option<usize> {
    let pairs = |chunk: usize| {
        let end = result.len().min((chunk + 1) * CHUNK);
        let range = chunk * CHUNK..end;
        result[range.clone()].iter().zip(&expected[range])
    };
    let differs = |chunk: &usize| {
        // Without a branch for each.
        pairs(*chunk).fold(0, |all, (is, not)| all | (is.bits() ^ not.bits())) != 0
    };
    let chunk = match result.len() {
        0..=CHUNK => Some(0).filter(differs),
        len => (0..len.div_ceil(CHUNK)).into_par_iter().find_any(differs),
    }?;
    let within = pairs(chunk).position(|(is, not)| is.bits() != not.bits());
    within.map(|at| chunk * CHUNK + at)
}

/// One and all.
fn numbers_of_workers(threads: usize) -> Vec<usize> {
    let mut numbers = vec![1, threads];
    numbers.dedup();
    numbers
}

fn calls(estimate: Duration) -> u32 {
    let calls = SAMPLE.as_nanos() / estimate.as_nanos().max(1);
    u32::try_from(calls)
        .unwrap_or(MOST_CALLS)
        .clamp(1, MOST_CALLS)
}

fn time_of(mut samples: Vec<(Duration, Duration)>) -> Time {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).expect("years");
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
