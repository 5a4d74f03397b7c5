//! The host's threads as a pool: its parallel-for, and how many tasks that runs at once.
//!
//! Knows threads and time. Knows nothing of tensors.

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

/// For how long a probe waits for a thread more. One that sleeps takes 50 microseconds
/// and more to come.
const PATIENCE: Duration = Duration::from_micros(200);

/// How many threads the host runs tasks on, which it tells nobody: as it was told to this
/// library, or as has been seen.
///
/// Fewer than there are processors may come because others keep them busy, so that runs look
/// again from time to time: the first, the second, the fourth and so on, and then each so many.
#[derive(Debug)]
pub(crate) struct Workers {
    /// The most that were seen at once, or what was told.
    most: AtomicUsize,
    /// Runs that have asked; `None` if it was told, and nobody looks.
    asked: Option<AtomicUsize>,
}

/// Runs after which one looks again, at the latest: 200 microseconds beside as many runs of a
/// millisecond are nothing.
const INTERVAL: usize = 1024;

impl Workers {
    pub(crate) fn new(told: Option<usize>) -> Self {
        Self {
            most: AtomicUsize::new(told.unwrap_or(0)),
            asked: told.is_none().then(AtomicUsize::default),
        }
    }

    /// The number, measured now where that is due.
    fn get(&self, probe: impl FnOnce(usize) -> usize) -> usize {
        if let Some(asked) = &self.asked {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let run = asked.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            let is_due = run.is_power_of_two() || run.is_multiple_of(INTERVAL);
            if is_due && self.most.load(Ordering::Relaxed) < processors {
                self.most.fetch_max(probe(processors), Ordering::Relaxed);
            }
        }
        self.most.load(Ordering::Relaxed).max(1)
    }
}

/// Runs at work inside hosts, in the whole process: sessions side by side share its
/// processors, whichever threads they have.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// The host's threads during one run.
#[derive(Debug)]
pub(crate) struct HostPool<'k> {
    api: Api,
    context: *const OrtKernelContext,
    workers: &'k Workers,
    tasks: HostTasks,
}

// SAFETY: the context is only handed to the host's parallel-for, by the thread that makes
// the run; the rest is shared as it is.
unsafe impl Sync for HostPool<'_> {}

impl<'k> HostPool<'k> {
    /// # Safety
    ///
    /// `context` is that of a run, which ends after this.
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

    /// Whether the host has failed to run tasks.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.tasks.has_failed() {
            return Err(Failure::internal(
                "the host's parallel-for failed; the output is incomplete",
            ));
        }
        Ok(())
    }

    /// How many threads come to a loop whose tasks wait for one another, for a while.
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

/// What a probe has seen.
struct Seen {
    threads: HashSet<ThreadId>,
    /// When the last one of them came.
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
            // SAFETY: `new` was promised that the run has not ended; the host returns when
            // all tasks have.
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
    fn a_number_that_was_told_is_not_measured() {
        let told = Workers::new(Some(3));
        for _ in 0..9 {
            assert_eq!(told.get(|_| panic!("a probe")), 3);
        }
    }

    #[test]
    fn runs_look_again_until_as_many_came_as_there_are_processors() {
        let workers = Workers::new(None);
        let probes = Cell::new(0);
        let get = |seen: usize| {
            workers.get(|_| {
                probes.set(probes.get() + 1);
                seen
            })
        };
        for _ in 0..100 {
            assert_eq!(get(0), 1, "busy: the calling thread at least");
        }
        assert_eq!(probes.get(), 7, "of runs 1, 2, 4 to 64");
        let enough = 1 << 20;
        let numbers: Vec<_> = (0..100).map(|_| get(enough)).collect();
        assert_eq!((numbers[0], numbers[99]), (1, enough));
        assert_eq!(probes.get(), 8, "and no more");
    }
}
