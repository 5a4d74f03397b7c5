//! Runs tasks with a host's parallel-for, a function that takes a C function and a pointer.
//!
//! This module converts a Rust closure to a C function and a pointer, and records failures of the
//! parallel-for and panics of tasks. It contains no code for the host's threads.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cross;

/// The C function that a host calls once for each task. `argument` is the pointer that the
/// parallel-for received, unchanged. `index` is the index of the task.
pub type HostTask = unsafe extern "C" fn(argument: *mut c_void, index: usize);

/// The state that all tasks of one execution of a parallel-for share.
struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    panicked: AtomicBool,
}

/// Runs parallel-fors during one call of the library, and records whether any of them has failed.
#[derive(Debug, Default)]
pub struct HostTasks {
    failed: AtomicBool,
}

impl HostTasks {
    /// Runs a parallel-for of the host in which each index calls `task`.
    ///
    /// The argument `start` starts the host's parallel-for with the function and the pointer that
    /// it receives. The argument `start` must not return before every call of the function has
    /// returned. The argument `start` returns true if the host reports success, and false if the
    /// host reports a failure. Each task runs in the default floating-point mode, whatever the mode
    /// of the thread that runs the task.
    ///
    /// This function does not check that the host runs each index exactly once. The caller
    /// must check this, for example by counting in `task`.
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

    /// Whether the host has reported a failure or a task has panicked, in any parallel-for that
    /// this value has run.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Runs the task with the index `index`. The host may call this function on any thread.
///
/// # Safety
///
/// `argument` must be the pointer that a call of [`HostTasks::run`] has passed to its `start`. That
/// call must not have returned.
unsafe extern "C" fn run_one(argument: *mut c_void, index: usize) {
    // SAFETY: `argument` points to the `Job` of a call of `HostTasks::run` that has not returned
    // (contract of this function). Therefore the `Job` still lives.
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
                // SAFETY: `argument` comes from the `HostTasks::run` that calls this closure, so
                // that call has not returned.
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
