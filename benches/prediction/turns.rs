//! A pool that claims a number of workers, runs all tasks one by one on the calling thread, and
//! records the time of each.
//!
//! Knows nothing of the work of tasks.

use std::sync::{Mutex, MutexGuard};

use cpu_time::ThreadTime;
use ndscatter::Pool;

/// Nanoseconds of each task of one `Pool::run`, in order.
pub(crate) type Region = Vec<f64>;

/// Pool that claims `workers` workers and runs everything on the calling thread.
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

    /// Returns the regions since the last call of this method, in order.
    pub(crate) fn take(&self) -> Vec<Region> {
        std::mem::take(&mut self.regions())
    }

    fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        (self.regions.lock()).expect("a lock that no panic poisoned")
    }
}

impl Pool for Turns {
    fn workers(&self) -> Option<usize> {
        Some(self.workers)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let mut region = Vec::with_capacity(tasks);
        // Reading the clock costs about a hundred instructions, so it is read once per task.
        let mut last = ThreadTime::now();
        for index in 0..tasks {
            task(index);
            let now = ThreadTime::now();
            region.push(now.duration_since(last).as_secs_f64() * 1e9);
            last = now;
        }
        self.regions().push(region);
    }

    /// Requests one task per piece. Otherwise the first task would take all pieces.
    fn sees_pieces(&self) -> bool {
        true
    }
}
