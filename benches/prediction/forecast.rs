//! What a call would take with more workers, from what its tasks took one by
//! one.
//!
//! Knows times, and nothing of the calls that took them.

use cpu_time::ThreadTime;

use crate::common::contenders::Time;
use crate::turns::{Region, Turns};

/// What one call took.
pub(crate) struct Sample {
    /// Nanoseconds outside all regions.
    serial: f64,
    regions: Vec<Region>,
}

impl Sample {
    /// Runs a call on `turns`, or on no pool.
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

/// Calls with so many workers, in nanoseconds.
pub(crate) struct Forecast {
    pub(crate) workers: usize,
    pub(crate) serial: f64,
    pub(crate) regions: Vec<Region>,
}

impl Forecast {
    /// Of the medians of samples of one call, at least one.
    ///
    /// # Panics
    ///
    /// If they were not divided alike.
    pub(crate) fn new(workers: usize, samples: &[Sample]) -> Self {
        let first = &samples[0].regions;
        let tasks = |regions: &[Region]| regions.iter().map(Vec::len).collect::<Vec<_>>();
        for sample in samples {
            let (is, was) = (tasks(&sample.regions), tasks(first));
            assert_eq!(is, was, "a call is divided as it was before");
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

    /// What all workers do together.
    pub(crate) fn work(&self) -> f64 {
        self.serial + self.regions.iter().flatten().sum::<f64>()
    }

    /// Until the call returns, if workers do not hinder one another.
    pub(crate) fn time(&self) -> f64 {
        let spans = self.regions.iter().map(|tasks| span(tasks, self.workers));
        self.serial + spans.sum::<f64>()
    }

    /// The part of that during which workers wait for the last one of a region.
    pub(crate) fn imbalance(&self) -> f64 {
        self.time() - self.serial - (self.work() - self.serial) / self.workers as f64
    }
}

/// Until the last of these tasks is done, if every worker takes the next one when
/// it is done with one.
pub(crate) fn span(tasks: &[f64], workers: usize) -> f64 {
    let mut busy_until = vec![0.0; workers];
    for task in tasks {
        let first_free = busy_until.iter_mut().min_by(|a, b| f64::total_cmp(a, b));
        *first_free.expect("one worker at least") += task;
    }
    busy_until.into_iter().fold(0.0, f64::max)
}
