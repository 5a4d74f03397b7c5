//! Runs tasks on a host's parallel-for, which takes a function and a pointer.
//!
//! Converts a closure to these two, and records failures and panics. Knows nothing of the host's
//! threads.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cross;

/// A task as a host calls it: a pointer that the host passes through, and the task's index.
pub type HostTask = unsafe extern "C" fn(argument: *mut c_void, index: usize);

/// The state that the tasks of one parallel-for share.
struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    panicked: AtomicBool,
}

/// The parallel-for runs of one call, and whether one of them failed.
#[derive(Debug, Default)]
pub struct HostTasks {
    failed: AtomicBool,
}

impl HostTasks {
    /// Runs `task` for each index that the host's parallel-for calls it with.
    ///
    /// `start` passes a function and its argument to the host. `start` must not return before every
    /// call of the function has returned. The result of `start` is whether the host succeeded. Each
    /// task runs in the default floating-point mode, whatever the mode of its thread.
    ///
    /// This function does not check that the host runs each task exactly once. `task` must check
    /// this.
    pub fn run(
        &self,
        task: &(dyn Fn(usize) + Sync),
        start: impl FnOnce(HostTask, *mut c_void) -> bool,
    ) {
        let job = Job {
            task,
            panicked: AtomicBool::new(false),
        };
        let argument = (&raw const job).cast_mut().cast();
        if !start(run_one, argument) || job.panicked.load(Ordering::Relaxed) {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the host has reported a failure or a task has panicked.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Runs one task. The host calls this function on any thread.
///
/// # Safety
///
/// `argument` comes from a [`HostTasks::run`] that has not returned.
unsafe extern "C" fn run_one(argument: *mut c_void, index: usize) {
    // SAFETY: `argument` points to the `Job` of a `HostTasks::run` that has not returned (contract
    // of this function).
    let job = unsafe { &*argument.cast_const().cast::<Job<'_>>() };
    if cross(|| (job.task)(index)).is_err() {
        job.panicked.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::HostTasks;

    #[test]
    fn a_panic_is_caught_and_reported() {
        let ran = AtomicUsize::new(0);
        let task = |index: usize| {
            ran.fetch_add(1, Ordering::Relaxed);
            assert_ne!(index, 1, "thrown");
        };
        let fails = |tasks| {
            let host = HostTasks::default();
            host.run(&task, |function, argument| {
                // SAFETY: the parallel-for that made the argument has not returned.
                (0..tasks).for_each(|index| unsafe { function(argument, index) });
                true
            });
            host.has_failed()
        };
        assert!(!fails(1), "no task panics");
        assert!(fails(3), "the second task panics");
        assert_eq!(ran.load(Ordering::Relaxed), 4, "the third task still runs");
        let host = HostTasks::default();
        host.run(&task, |_, _| false);
        assert!(host.has_failed(), "the host reports a failure");
    }
}
