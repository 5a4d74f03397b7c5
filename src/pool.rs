//! Pools, which run the tasks of a call: rayon, the calling thread alone, or a host's parallel-for.
//!
//! The module knows tasks and workers. It does not know what a task does.

mod forks;
mod global;

use std::fmt;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Runs the tasks of a call.
///
/// Implement the trait to run all work on a host's threads. The runtime passes its own
/// parallel-for, and no second pool is started.
///
/// # Examples
///
/// ```
/// use ndscatter::{Execution, Pool, Reduction, Scatter, TensorView, TensorViewMut};
///
/// /// A stand-in for a host's pool with an unknown number of workers.
/// struct Host;
///
/// impl Pool for Host {
///     fn workers(&self) -> Option<usize> {
///         None
///     }
///
///     fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
///         std::thread::scope(|scope| {
///             for index in 0..tasks {
///                 scope.spawn(move || task(index));
///             }
///         });
///     }
/// }
///
/// let mut data = [0_i32; 4];
/// Scatter::nd()
///     .reduction(Reduction::Add)
///     .execution(Execution::new().pool(&Host))
///     .in_place(
///         TensorViewMut::contiguous(&mut data, &[4])?,
///         TensorView::contiguous(&[1_i64, 1, 3], &[3, 1])?,
///         TensorView::contiguous(&[10, 10, 5], &[3])?,
///     )?;
/// assert_eq!(data, [0, 20, 0, 5]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub trait Pool: Sync {
    /// Returns the number of tasks that can run at the same time. `None`: the number is unknown,
    /// and work is divided into four parts.
    fn workers(&self) -> Option<usize>;

    /// Calls `task` once with every number in `0..tasks`, in any order and on any threads. Returns
    /// when all these calls have returned.
    ///
    /// Tasks never wait for one another. If a pool skips or repeats a task, the call fails with
    /// [`ScatterError::PoolFailed`](crate::ScatterError::PoolFailed).
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));

    /// Returns a reference to a counter, the number of calls that are running on the pool. `None`:
    /// calls do not share the workers of the pool.
    ///
    /// The pool only stores the counter. The crate increments the counter when a call begins, and
    /// decrements it when the call ends. If n calls are running, including a call that begins, this
    /// call divides its work among an nth of the workers, but at least one. The counter changes no
    /// result.
    ///
    /// A pool that wraps another pool returns the counter of the other pool. The default is `None`:
    /// every call uses all workers.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::AtomicUsize;
    ///
    /// use ndscatter::Pool;
    ///
    /// struct Host {
    ///     threads: rayon::ThreadPool,
    ///     calls: AtomicUsize,
    /// }
    ///
    /// impl Pool for Host {
    ///     fn workers(&self) -> Option<usize> {
    ///         self.threads.workers()
    ///     }
    ///
    ///     fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
    ///         self.threads.run(tasks, task);
    ///     }
    ///
    ///     fn calls(&self) -> Option<&AtomicUsize> {
    ///         Some(&self.calls)
    ///     }
    /// }
    /// ```
    fn calls(&self) -> Option<&AtomicUsize> {
        None
    }

    /// For measurements: whether each piece of the work gets a separate task. Otherwise tasks
    /// take one piece after another, and a pool that runs its tasks one after another would run all
    /// pieces in the first task.
    #[doc(hidden)]
    fn sees_pieces(&self) -> bool {
        false
    }
}

/// The default pool. If the calling thread belongs to a rayon pool (as inside
/// [`rayon::ThreadPool::install`]), this is that pool. Otherwise it is rayon's global pool, which
/// is started if necessary.
///
/// Calls run on the calling thread, with the same results, while the global pool does not run jobs:
///
/// - If the threads of the global pool cannot all be started. In this case the crate does not make
///   the global pool, so the program can still start the global pool. The crate tries again to
///   start the global pool, at most once in 100 ms.
/// - If the program has tried to start the global pool and failed. Rayon makes that failure final.
/// - In a child that was forked from a process with a global pool. The child has the pool's memory
///   but none of its threads. A child that was forked before the pool was needed starts its own
///   pool.
///
/// A pool that the program has started is used as soon as it has run a test job.
///
/// Calls that run at the same time share the workers ([`Pool::calls`]). A call runs on its calling
/// thread alone if there are fewer than two workers per call when it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rayon;

/// Number of calls that are running on [`Rayon`].
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Pool for Rayon {
    fn calls(&self) -> Option<&AtomicUsize> {
        Some(&CALLS)
    }

    fn workers(&self) -> Option<usize> {
        let pooled = is_in_a_pool() || global::is_usable();
        Some(if pooled {
            rayon::current_num_threads()
        } else {
            1
        })
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if is_in_a_pool() {
            (0..tasks).into_par_iter().with_max_len(1).for_each(task);
            return;
        }
        if !global::is_usable() {
            return CallingThread.run(tasks, task);
        }
        let workers = rayon::current_num_threads();
        let work = drain(tasks, workers, task);
        rayon::in_place_scope(|scope| share(scope, workers, tasks, &work));
    }
}

/// Whether the calling thread belongs to a rayon pool. The function does not start a pool.
fn is_in_a_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// A rayon pool of the caller. In a forked child the pool has no threads, and the caller must
/// replace the pool.
impl Pool for rayon::ThreadPool {
    fn workers(&self) -> Option<usize> {
        Some(self.current_num_threads())
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if is_in_a_pool() {
            self.install(|| Rayon.run(tasks, task));
            return;
        }
        let workers = self.current_num_threads();
        let work = drain(tasks, workers, task);
        self.in_place_scope(|scope| share(scope, workers, tasks, &work));
    }
}

/// Returns a function that takes tasks one by one until none is left. Only the first `workers`
/// threads that call it take tasks.
fn drain(tasks: usize, workers: usize, task: &(dyn Fn(usize) + Sync)) -> impl Fn() + Sync {
    let (callers, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    move || {
        if callers.fetch_add(1, Ordering::Relaxed) >= workers {
            return;
        }
        let taken = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        taken.take_while(|&index| index < tasks).for_each(task);
    }
}

/// Runs tasks on the calling thread and on workers of the pool, although the calling thread does
/// not belong to the pool. If the calling thread slept instead, one more worker would have to wake
/// up.
///
/// The function wakes one more worker than are needed in addition to the calling thread. The system
/// may place a worker that wakes up behind the calling thread, on the same core, and leave it
/// there. With only one other worker, two tasks of 1 ms took 2 ms in every second call after a
/// pause (two cores). The surplus worker takes no task (see [`drain`]). If the pool has one worker,
/// none is woken.
fn share<'s>(scope: &rayon::Scope<'s>, workers: usize, tasks: usize, work: &'s (impl Fn() + Sync)) {
    let woken = if workers > 1 { tasks.min(workers) } else { 0 };
    for _ in 0..woken {
        scope.spawn(move |_| work());
    }
    work();
}

/// A pool that consists of the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallingThread;

impl Pool for CallingThread {
    fn workers(&self) -> Option<usize> {
        Some(1)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

/// Prints no details of the pool. A query of the details might start the threads of the pool.
impl fmt::Debug for dyn Pool + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;
    use std::time::Duration;

    use super::Pool;

    #[test]
    fn a_caller_from_outside_is_one_of_the_workers() {
        // Many runs, with tasks that take a while, reveal one thread too many.
        for workers in [1, 2, 3].repeat(20) {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(workers)
                .build()
                .expect("threads");
            let ran = Mutex::new(Vec::new());
            Pool::run(&pool, 20, &|index| {
                thread::sleep(Duration::from_micros(20));
                let thread = thread::current().id();
                ran.lock().expect("no task panics").push((index, thread));
            });
            let mut ran = ran.into_inner().expect("no task panics");
            ran.sort_unstable_by_key(|&(index, _)| index);
            let indices = ran.iter().map(|&(index, _)| index);
            assert!(indices.eq(0..20), "{workers}: each task once");
            let caller = thread::current().id();
            if workers == 1 {
                assert!(
                    ran.iter().all(|&(_, thread)| thread == caller),
                    "the caller runs all tasks alone"
                );
            }
            let mut others: Vec<_> = ran
                .iter()
                .map(|&(_, thread)| format!("{thread:?}"))
                .collect();
            others.sort_unstable();
            others.dedup();
            assert!(
                others.len() <= workers,
                "{workers}: more threads than workers"
            );
        }
    }
}
