//! A pool that runs tasks on rayon's threads in the process of a host.

use std::sync::atomic::AtomicUsize;

use ndscatter::{Pool, Rayon};

use crate::DefaultMode;

/// A pool that runs tasks on rayon's threads, each task in the default floating-point mode.
///
/// A thread of rayon may not be in the default mode, because a new thread may inherit the mode of
/// the thread that started it. Each task therefore sets the default mode ([`DefaultMode::enter`])
/// and restores the thread's previous mode when the task ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct RayonThreads;

impl Pool for RayonThreads {
    fn workers(&self) -> Option<usize> {
        Rayon.workers()
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        Rayon.calls()
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        Rayon.run(tasks, &|index| {
            let _mode = DefaultMode::enter();
            task(index);
        });
    }
}
