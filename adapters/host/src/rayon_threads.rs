//! A pool of rayon's threads inside a foreign host.

use std::sync::atomic::AtomicUsize;

use ndscatter::{Pool, Rayon};

use crate::DefaultMode;

/// Rayon's threads. Each task runs in the default floating-point mode, because a thread inherits
/// the mode of the thread that started it.
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
