//! The host's threads as a pool.
//!
//! This module runs tasks with the host's parallel-for, and measures the number of the host's
//! threads. This module depends on threads and time, not on tensors.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use ndscatter::Pool;
use ndscatter_host::HostTasks;
use ort_sys::OrtKernelContext;

use crate::api::Api;
use crate::failure::Failure;

/// Timeout of a probe. A probe ([`HostPool::probe`]) counts the host's threads. A probe ends if no
/// further thread starts a task within this time. The timeout is longer than the wake-up time of a
/// sleeping thread, which is at least 50 microseconds.
const PATIENCE: Duration = Duration::from_micros(200);

/// The number of threads that run the host's tasks.
///
/// The host does not report this number. Either the session's options configure it, or probes
/// measure it. A *probe* runs tasks on the host's threads, and the tasks count these threads. A
/// probe may find fewer threads than processors, because other work keeps threads busy. The probe
/// is therefore repeated in later runs, until a probe finds as many threads as processors. Until
/// then, the runs with the numbers 1, 2, 4, 8 and so on (powers of 2) and the multiples of
/// [`INTERVAL`] make a probe. Only runs that may use several threads are counted.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Number of threads: the configured number, or the largest number of threads that a probe has
    /// found so far. The value is 0 before the first probe.
    most: AtomicUsize,
    /// Number of calls of [`Workers::get`] so far, or `None` if the number of threads is
    /// configured. A run of an operator calls `get` if the run may use several threads.
    requests: Option<AtomicUsize>,
}

/// Maximum number of runs from one probe to the next, while probes find fewer threads than
/// processors. A probe costs about 200 microseconds. This cost is negligible compared with 1024
/// runs of 1 ms each.
const INTERVAL: usize = 1024;

impl Workers {
    pub(crate) fn new(configured: Option<usize>) -> Self {
        Self {
            most: AtomicUsize::new(configured.unwrap_or(0)),
            requests: configured.is_none().then(AtomicUsize::default),
        }
    }

    /// Returns the number of threads, at least 1. If this run must make a probe (see [`Workers`]),
    /// calls `probe` with the number of processors. `probe` returns the number of threads that it
    /// found.
    fn get(&self, probe: impl FnOnce(usize) -> usize) -> usize {
        if let Some(requests) = &self.requests {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let run = requests.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            let is_due = run.is_power_of_two() || run.is_multiple_of(INTERVAL);
            if is_due && self.most.load(Ordering::Relaxed) < processors {
                self.most.fetch_max(probe(processors), Ordering::Relaxed);
            }
        }
        self.most.load(Ordering::Relaxed).max(1)
    }
}

/// Number of runs that are in progress in the process. One counter serves all sessions, because
/// concurrent sessions share the processors, although each session has its own threads.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// The host's threads as the pool of one run.
#[derive(Debug)]
pub(crate) struct HostPool<'k> {
    api: Api,
    context: *const OrtKernelContext,
    workers: &'k Workers,
    tasks: HostTasks,
}

// SAFETY: `context` is only passed to the host's parallel-for, and only by the thread on which the
// host called the operator. All other fields are `Sync`.
unsafe impl Sync for HostPool<'_> {}

impl<'k> HostPool<'k> {
    /// Returns the pool of a run.
    ///
    /// # Safety
    ///
    /// `context` belongs to a run that outlives the pool.
    pub(crate) unsafe fn new(
        api: Api,
        context: *const OrtKernelContext,
        workers: &'k Workers,
    ) -> Self {
        Self {
            api,
            context,
            workers,
            tasks: HostTasks::default(),
        }
    }

    /// Returns an error if the host's parallel-for has reported a failure, or if a task has
    /// panicked.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.tasks.has_failed() {
            return Err(Failure::internal(
                "the host's parallel-for failed or a task panicked; the output is incomplete",
            ));
        }
        Ok(())
    }

    /// Returns the number of the host's threads that start a task of this probe.
    ///
    /// Each task keeps its thread busy until the probe ends, so that other threads start the other
    /// tasks. The probe ends when the number of different threads that have started a task reaches
    /// the number of processors, whichever processors these threads run on. The probe also ends
    /// when no further thread has started a task within [`PATIENCE`].
    fn probe(&self, processors: usize) -> usize {
        let seen = Mutex::new(Seen {
            threads: HashSet::new(),
            last: Instant::now(),
        });
        let is_over = AtomicBool::new(false);
        self.run(4 * processors.max(4), &|_| {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            if let Ok(mut seen) = seen.lock()
                && seen.threads.try_reserve(1).is_ok()
                && seen.threads.insert(thread::current().id())
            {
                seen.last = Instant::now();
            }
            while !is_over.load(Ordering::Relaxed) {
                let is_enough = seen.lock().is_ok_and(|seen| {
                    seen.threads.len() >= processors || seen.last.elapsed() > PATIENCE
                });
                if is_enough {
                    is_over.store(true, Ordering::Relaxed);
                }
                std::hint::spin_loop();
            }
        });
        seen.into_inner().map_or(1, |seen| seen.threads.len())
    }
}

/// The threads that have started a task of a probe.
struct Seen {
    threads: HashSet<ThreadId>,
    /// Time at which the newest thread of `threads` started its first task.
    last: Instant,
}

impl Pool for HostPool<'_> {
    fn workers(&self) -> Option<usize> {
        Some(self.workers.get(|processors| self.probe(processors)))
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        Some(&RUNS)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.tasks.run(task, |function, argument| {
            // SAFETY: `context` is valid, because its run has not ended (contract of `new`). `task`
            // stays valid, because the host's parallel-for returns after all tasks have returned.
            unsafe {
                self.api
                    .parallel_for(self.context, tasks, function, argument)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::Workers;

    #[test]
    fn a_configured_number_is_not_measured() {
        let configured = Workers::new(Some(3));
        for _ in 0..9 {
            assert_eq!(configured.get(|_| panic!("a probe")), 3);
        }
    }

    #[test]
    fn probes_repeat_until_they_find_a_thread_per_processor() {
        let workers = Workers::new(None);
        let probes = Cell::new(0);
        let get = |seen: usize| {
            workers.get(|_| {
                probes.set(probes.get() + 1);
                seen
            })
        };
        for _ in 0..100 {
            assert_eq!(get(0), 1, "all busy: at least the calling thread");
        }
        assert_eq!(probes.get(), 7, "probes in the runs 1, 2, 4 to 64");
        let enough = 1 << 20;
        let numbers: Vec<_> = (0..100).map(|_| get(enough)).collect();
        assert_eq!((numbers[0], numbers[99]), (1, enough));
        assert_eq!(probes.get(), 8, "one more probe");
    }
}
