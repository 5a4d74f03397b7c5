//! A pool of rayon's threads inside a foreign host.

use std::sync::atomic::AtomicUsize;

use ndscatter::{Pool, Rayon};

use crate::DefaultMode;

/// A pool of rayon's threads whose tasks compute in the default floating-point mode.
///
/// A new thread may inherit another mode from the thread that started it. Each task therefore sets
/// the default mode itself ([`DefaultMode::enter`]) and restores the thread's mode at its end.
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
