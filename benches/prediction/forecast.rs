//! Predicts the time of a call with several workers from the times of its single tasks.
//!
//! Knows times only. Knows nothing of the calls.

use cpu_time::ThreadTime;

use crate::common::contenders::Time;
use crate::turns::{Region, Turns};

/// Times of one call.
pub(crate) struct Sample {
    /// Nanoseconds outside of all regions.
    serial: f64,
    regions: Vec<Region>,
}

impl Sample {
    /// Times a call that runs on the pool `turns`, or on no pool.
    pub(crate) fn take(turns: &Turns, call: impl FnOnce()) -> Self {
        turns.take();
        let start = ThreadTime::now();
        call();
        let all = start.elapsed().as_secs_f64() * 1e9;
        let regions = turns.take();
        let parallel: f64 = regions.iter().flatten().sum();
        Self {
            serial: all - parallel,
            regions,
        }
    }
}

/// Median times of a call that was divided for a number of workers, in nanoseconds.
pub(crate) struct Forecast {
    pub(crate) workers: usize,
    pub(crate) serial: f64,
    pub(crate) regions: Vec<Region>,
}

impl Forecast {
    /// Computes the medians of at least one sample of one call.
    ///
    /// # Panics
    ///
    /// If two samples have different numbers of regions or tasks.
    pub(crate) fn new(workers: usize, samples: &[Sample]) -> Self {
        let first = &samples[0].regions;
        let tasks = |regions: &[Region]| regions.iter().map(Vec::len).collect::<Vec<_>>();
        for sample in samples {
            let (is, was) = (tasks(&sample.regions), tasks(first));
            assert_eq!(is, was, "tasks per region of two samples");
        }
        let median =
            |of: &dyn Fn(&Sample) -> f64| Time::of(samples.iter().map(of).collect()).median;
        let regions = first.iter().enumerate().map(|(region, tasks)| {
            let task = |task: usize| median(&|sample| sample.regions[region][task]);
            (0..tasks.len()).map(task).collect()
        });
        Self {
            workers,
            serial: median(&|sample| sample.serial),
            regions: regions.collect(),
        }
    }

    /// Returns the nanoseconds of work of all workers together.
    pub(crate) fn work(&self) -> f64 {
        self.serial + self.regions.iter().flatten().sum::<f64>()
    }

    /// Returns the predicted nanoseconds of the call, if workers do not slow each other down.
    pub(crate) fn time(&self) -> f64 {
        let spans = self.regions.iter().map(|tasks| span(tasks, self.workers));
        self.serial + spans.sum::<f64>()
    }

    /// Returns the nanoseconds that a worker waits, on average, for the last tasks of all
    /// regions.
    pub(crate) fn imbalance(&self) -> f64 {
        self.time() - self.serial - (self.work() - self.serial) / self.workers as f64
    }
}

/// Returns the time until the last task ends, if every worker takes the next task as soon as it
/// is free.
pub(crate) fn span(tasks: &[f64], workers: usize) -> f64 {
    let mut busy_until = vec![0.0; workers];
    for task in tasks {
        let first_free = busy_until.iter_mut().min_by(|a, b| f64::total_cmp(a, b));
        *first_free.expect("at least one worker") += task;
    }
    busy_until.into_iter().fold(0.0, f64::max)
}
