//! Tasks through a host's parallel-for, which takes a function and a pointer.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cross;

/// A task as hosts have it: an argument that is handed on, and a number.
pub type HostTask = unsafe extern "C" fn(argument: *mut c_void, index: usize);

/// What one parallel-for runs.
struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    panicked: AtomicBool,
}

/// Tasks that a host's parallel-for runs during one call, and whether that has failed.
#[derive(Debug, Default)]
pub struct HostTasks {
    failed: AtomicBool,
}

impl HostTasks {
    /// Runs `task` for the numbers that a host's parallel-for calls it with. `start` hands a
    /// function and its argument to the host. It returns after the last call of the function,
    /// and says whether the host succeeded. Each task has the default floating-point mode,
    /// whatever that of its thread.
    ///
    /// Which tasks ran, and that none ran twice, is for `task` to check.
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

    /// Whether the host has failed, or a task has panicked.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// One task, on whatever thread the host runs it.
///
/// # Safety
///
/// `argument` is that of a [`HostTasks::run`] that has not returned.
unsafe extern "C" fn run_one(argument: *mut c_void, index: usize) {
    // SAFETY: the caller vouches for it.
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
    fn a_panic_stays_inside_and_is_told() {
        let ran = AtomicUsize::new(0);
        let task = |index: usize| {
            ran.fetch_add(1, Ordering::Relaxed);
            assert_ne!(index, 1, "thrown");
        };
        let fails = |tasks| {
            let host = HostTasks::default();
            host.run(&task, |function, argument| {
                // SAFETY: inside the parallel-for that made the argument.
                (0..tasks).for_each(|index| unsafe { function(argument, index) });
                true
            });
            host.has_failed()
        };
        assert!(!fails(1), "no task panics");
        assert!(fails(3), "the second one does");
        assert_eq!(ran.load(Ordering::Relaxed), 4, "and the third still runs");
        let host = HostTasks::default();
        host.run(&task, |_, _| false);
        assert!(host.has_failed(), "the host has failed");
    }
}
