//! Every kind of pool that a caller may choose, including unusual pools.

use std::panic::resume_unwind;
use std::sync::OnceLock;

use ndscatter::{CallingThread, Pool, Rayon};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool that runs the tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Workers {
    /// A rayon pool of this many threads, entered by `install`.
    Installed(usize),
    /// A rayon pool of this many threads, passed as a pool.
    Given(usize),
    CallingThread,
    /// A pool that runs tasks in order on the calling thread, and reports no number of workers.
    Sequential,
    /// A thread for each task. The pool reports three workers.
    Threads,
    /// A pool that runs tasks in order on the calling thread, and reports this many workers.
    InOrder(usize),
}

impl Workers {
    pub(crate) const ALL: [Self; 8] = [
        Self::Installed(1),
        Self::Installed(2),
        Self::Installed(3),
        Self::Installed(8),
        Self::Given(2),
        Self::CallingThread,
        Self::Sequential,
        Self::Threads,
    ];

    /// Calls `run` with the pool.
    pub(crate) fn with<R: Send>(self, run: impl FnOnce(&dyn Pool) -> R + Send) -> R {
        match self {
            Self::Installed(workers) => rayon_pool(workers).install(|| run(&Rayon)),
            Self::Given(workers) => run(rayon_pool(workers)),
            Self::CallingThread => run(&CallingThread),
            Self::Sequential => run(&Sequential),
            Self::Threads => run(&Threads(3)),
            Self::InOrder(workers) => run(&InOrder(workers)),
        }
    }
}

/// Returns a pool of 1 to 64 rayon threads. Each pool is built once.
pub(crate) fn rayon_pool(workers: usize) -> &'static ThreadPool {
    static POOLS: [OnceLock<ThreadPool>; 65] = [const { OnceLock::new() }; 65];
    POOLS[workers].get_or_init(|| {
        let builder = ThreadPoolBuilder::new().num_threads(workers);
        builder.build().expect("threads can be started")
    })
}

/// A pool that runs tasks in order on the calling thread, and reports no number of workers.
pub(crate) struct Sequential;

impl Pool for Sequential {
    fn workers(&self) -> Option<usize> {
        None
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

/// A pool that runs tasks in order on the calling thread, and reports this many workers. It divides
/// work as threads do, without the time that threads take.
struct InOrder(usize);

impl Pool for InOrder {
    fn workers(&self) -> Option<usize> {
        Some(self.0)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        Sequential.run(tasks, task);
    }
}

/// A pool with a thread for each task. It reports this many workers.
pub(crate) struct Threads(pub(crate) usize);

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        Some(self.0)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            let start = |index| scope.spawn(move || task(index));
            let threads: Vec<_> = (0..tasks).map(start).collect();
            // The end of the scope does not wait for the destructors of thread-local values. A check
            // for leaks can run before them.
            for thread in threads {
                if let Err(panic) = thread.join() {
                    resume_unwind(panic);
                }
            }
        });
    }
}

/// A pool of three workers that never runs task 0.
#[derive(Debug)]
pub(crate) struct OmitsOne;

impl Pool for OmitsOne {
    fn workers(&self) -> Option<usize> {
        Some(3)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (1..tasks).for_each(task);
    }
}
