//! A pool that says it has many workers, runs its tasks in turn on the thread
//! that calls, and keeps what each took.
//!
//! Knows nothing of what tasks do.

use std::sync::{Mutex, MutexGuard};

use cpu_time::ThreadTime;
use ndscatter::Pool;

/// Nanoseconds of each task that a pool was given at once, in their order.
pub(crate) type Region = Vec<f64>;

/// So many workers, of whom one does everything.
pub(crate) struct Turns {
    workers: usize,
    regions: Mutex<Vec<Region>>,
}

impl Turns {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers,
            regions: Mutex::default(),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// The regions since the last time, in their order.
    pub(crate) fn take(&self) -> Vec<Region> {
        std::mem::take(&mut self.regions())
    }

    fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        (self.regions.lock()).expect("nothing panics that holds the lock")
    }
}

impl Pool for Turns {
    fn workers(&self) -> Option<usize> {
        Some(self.workers)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let mut region = Vec::with_capacity(tasks);
        // To read the clock takes as long as some hundred instructions: once a task.
        let mut last = ThreadTime::now();
        for index in 0..tasks {
            task(index);
            let now = ThreadTime::now();
            region.push(now.duration_since(last).as_secs_f64() * 1e9);
            last = now;
        }
        self.regions().push(region);
    }

    /// Else the first task would take the pieces of all.
    fn sees_pieces(&self) -> bool {
        true
    }
}
