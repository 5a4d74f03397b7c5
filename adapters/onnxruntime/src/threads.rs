//! The host's threads as a pool: its parallel-for, and how many tasks that runs at once.
//!
//! Knows threads and time. Knows nothing of tensors.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use ndscatter::Pool;
use ort_sys::OrtKernelContext;

use crate::api::Api;
use crate::failure::Failure;

/// For how long a probe waits for a thread more. One that sleeps takes 50 microseconds
/// and more to come.
const PATIENCE: Duration = Duration::from_micros(200);

/// Probes that may find fewer threads than there are processors before that is believed:
/// the host's threads may have been at work for another run.
const PROBES: usize = 3;

/// How many threads the host runs tasks on, which it tells nobody: as it was told to this
/// library, or as has been seen.
#[derive(Debug)]
pub(crate) struct Workers {
    /// The most that were seen at once, or what was told.
    most: AtomicUsize,
    /// Probes that are still to come.
    probes: AtomicUsize,
}

impl Workers {
    pub(crate) fn new(told: Option<usize>) -> Self {
        Self {
            most: AtomicUsize::new(told.unwrap_or(0)),
            probes: AtomicUsize::new(if told.is_some() { 0 } else { PROBES }),
        }
    }

    /// The number, measured now where it is not yet known.
    fn get(&self, probe: impl FnOnce(usize) -> usize) -> usize {
        let left = self.probes.load(Ordering::Relaxed);
        // Of several runs at once, one probes.
        let is_mine = left > 0
            && (self.probes)
                .compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let seen = probe(processors);
            self.most.fetch_max(seen, Ordering::Relaxed);
            if seen >= processors {
                self.probes.store(0, Ordering::Relaxed);
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
    failed: AtomicBool,
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
            failed: AtomicBool::new(false),
        }
    }

    /// Whether the host has failed to run tasks.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.failed.load(Ordering::Relaxed) {
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
        let has_run = ndscatter_host::parallel_for(task, |function, argument| {
            // SAFETY: `new` was promised that the run has not ended; the host returns when
            // all tasks have.
            unsafe {
                self.api
                    .parallel_for(self.context, tasks, function, argument)
            }
        });
        if !has_run {
            self.failed.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PROBES, Workers};

    #[test]
    fn a_number_that_was_told_is_not_measured() {
        let told = Workers::new(Some(3));
        let number = told.get(|_| panic!("a probe"));
        assert_eq!(number, 3);
    }

    #[test]
    fn the_most_of_a_few_probes_counts() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::new(None);
        // Busy threads come late; more than there are processors end it.
        assert_eq!(workers.get(|_| 0), 1);
        assert_eq!(workers.get(|processors| processors + 7), processors + 7);
        assert_eq!(workers.get(|_| panic!("a probe")), processors + 7);
        let quiet = Workers::new(None);
        for _ in 0..PROBES {
            quiet.get(|_| 0);
        }
        assert_eq!(quiet.get(|_| panic!("a probe")), 1);
    }
}
