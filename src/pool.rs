//! Pools that run the tasks of a call: a rayon pool, the calling thread alone, or the parallel-for
//! of a host program.
//!
//! The module distributes tasks to workers. The module does not depend on what a task does.

mod forks;
mod global;

use std::fmt;
use std::iter;
use std::sync::atomic::Ordering;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::sync::AtomicUsize;

/// A pool that runs the tasks of a call.
///
/// Implement the trait to run all work on the threads of a host program. The implementation calls
/// the parallel-for of the host, and this crate starts no second pool.
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
    /// Returns the number of tasks that the pool can run at the same time. `None`: the number is
    /// unknown, and the crate assumes four workers.
    fn workers(&self) -> Option<usize>;

    /// Calls `task` once for each number in `0..tasks`, with that number as the argument. The calls
    /// may run in any order and on any threads. The method returns after all these calls have
    /// returned.
    ///
    /// Tasks never wait for one another. If a pool skips or repeats a task, the call of this crate
    /// fails with [`ScatterError::PoolFailed`](crate::ScatterError::PoolFailed).
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));

    /// Returns a reference to a counter of the calls of this crate that are running on the pool. If
    /// the result is `None`, each call divides its work as if it ran alone.
    ///
    /// The pool only stores the counter. This crate increments the counter when a call begins on
    /// the pool, and decrements the counter when the call ends. If n calls are running when a call
    /// begins, this call included, the call usually divides its work among 1/n of the workers, but
    /// at least one. With a [`Goal`](crate::Goal), the call can use another number of workers. The
    /// counter does not change the results of calls.
    ///
    /// A pool that wraps another pool should return the counter of the wrapped pool, if there is
    /// one. The default implementation returns `None`.
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

    /// For measurements only. Returns true if each piece of the work should be a separate task of
    /// the pool. If false, each task takes pieces in a loop until no piece is left. A pool that
    /// runs its tasks one after another would then run all pieces in the first task.
    #[doc(hidden)]
    fn sees_pieces(&self) -> bool {
        false
    }
}

/// The default pool. If the calling thread belongs to a rayon pool (as inside
/// [`rayon::ThreadPool::install`]), tasks run on that pool. Otherwise tasks run on rayon's global
/// pool. The crate starts the global pool if necessary.
///
/// While the global pool cannot run tasks, calls run on the calling thread, with the same results.
/// The usual reasons are:
///
/// - Some threads of the global pool could not be started. The crate then does not create the
///   global pool, so the program can still create it. Later calls try to start the threads again,
///   at most once in 100 ms.
/// - The program has tried to start the global pool, and the start has failed. Rayon does not allow
///   a second start.
/// - The process is a forked child, and its parent had a global pool before the fork. The child has
///   the memory of that pool, but none of its threads. If the parent had no global pool before the
///   fork, the child starts a global pool when a call needs it.
///
/// If the program has started the global pool, the crate first submits a test job to the pool.
/// Until the test job has run, calls run on the calling thread. Afterwards, calls use the pool.
///
/// Calls that run at the same time share the workers ([`Pool::calls`]). When a call begins, the
/// number of workers is divided by the number of running calls. If the quotient is less than 2, the
/// call usually runs on its calling thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rayon;

/// Number of calls that are running on the pool [`Rayon`].
#[cfg(not(all(test, loom)))]
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Pool for Rayon {
    #[cfg(not(all(test, loom)))]
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

/// Whether the calling thread belongs to a rayon pool. This check does not start a pool.
fn is_in_a_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// A rayon pool that the caller has made. After a fork, the pool has no threads in the child
/// process. The child must make a new pool.
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

/// Returns a function that a thread calls to run tasks: it takes one task after another until no
/// task is left. Only the first `workers` calls of the function take tasks. Later calls return at
/// once.
pub(crate) fn drain(
    tasks: usize,
    workers: usize,
    task: &(dyn Fn(usize) + Sync),
) -> impl Fn() + Sync {
    let (callers, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    move || {
        if callers.fetch_add(1, Ordering::Relaxed) >= workers {
            return;
        }
        let taken = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        taken.take_while(|&index| index < tasks).for_each(task);
    }
}

/// Runs tasks on workers of the pool and on the calling thread, which does not belong to the pool.
/// If the calling thread only waited, the pool would have to wake one more worker.
///
/// If the pool has at least two workers, the function wakes one worker more than the tasks need in
/// addition to the calling thread. The reason is that the operating system may place a worker that
/// wakes up on the core of the calling thread and leave the worker waiting there. When only the
/// needed worker was woken on a machine with two cores, two tasks of 1 ms took 2 ms in every second
/// call after a pause. The thread that calls `work` last takes no task (see [`drain`]). If the pool
/// has one worker, the function wakes no worker.
fn share<'s>(scope: &rayon::Scope<'s>, workers: usize, tasks: usize, work: &'s (impl Fn() + Sync)) {
    let woken = if workers > 1 { tasks.min(workers) } else { 0 };
    for _ in 0..woken {
        scope.spawn(move |_| work());
    }
    work();
}

/// A pool without other threads: all tasks run on the calling thread, in ascending order.
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

/// Prints no details of the pool, because a query of the details might start the threads of the
/// pool.
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
        // The pool might use one thread too many only in some runs. So each pool size is tested 20
        // times, and each task sleeps for 20 µs.
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
