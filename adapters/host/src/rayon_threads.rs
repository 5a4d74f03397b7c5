//! Rayon's threads inside a foreign host.

use std::sync::atomic::AtomicUsize;

use ndscatter::{Pool, Rayon};

use crate::DefaultMode;

/// Rayon's threads, each task in the default floating-point mode: threads of a host's process
/// inherit the mode of the thread that started them.
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
