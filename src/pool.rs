//! Who runs the tasks of a call: rayon, the calling thread alone, or a host's
//! own parallel-for.
//!
//! Knows tasks and workers. Knows nothing of what a task does.

mod forks;
mod global;

use std::fmt;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Runs the tasks of a scatter.
///
/// Implement it to keep a host's threads to one pool: a runtime passes its own
/// parallel-for and no second pool is started beside it.
///
/// # Examples
///
/// ```
/// use ndscatter::{Execution, Pool, Reduction, Scatter, TensorView, TensorViewMut};
///
/// /// Stands for a host's pool whose number of workers is not known.
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
    /// How many tasks can run at the same time; `None` if that is not known, and
    /// work is then divided into four.
    fn workers(&self) -> Option<usize>;

    /// Calls `task` with every number in `0..tasks`, each once, in any order,
    /// on any threads, and returns when all have returned.
    ///
    /// Tasks never wait for one another. A pool that skips or repeats one
    /// makes the call fail with [`ScatterError::PoolFailed`](crate::ScatterError::PoolFailed).
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));

    /// Where the calls that are at work on the pool are counted, if they share its
    /// workers out: a call that begins as one of n divides its work among an nth of
    /// them, at least one. The crate counts up and down, and a pool has only to keep
    /// the number; one that hands on to another hands this on too. By default none
    /// is kept, and every call takes all workers. No result depends on it.
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

    /// For measurements: whether work that tasks take in pieces, each the next one when
    /// it is done with one, comes with a task for each piece instead. A pool that runs
    /// one task after another would else see the first of them do everything.
    #[doc(hidden)]
    fn sees_pieces(&self) -> bool {
        false
    }
}

/// The default: the rayon pool that the calling thread belongs to (as inside
/// [`rayon::ThreadPool::install`]), else rayon's global one, which is started
/// if nobody has done so.
///
/// Calls run on the calling thread, with the same results, for as long as the
/// global pool does not run jobs:
///
/// - Where its threads cannot all be started. Rayon is not asked for its pool
///   then, so that the program can still have it, and it is tried again, at
///   most once in 100 ms.
/// - Where the program itself has tried to start it and failed, which rayon
///   makes final.
/// - In a child that a process with a global pool has forked: it has the pool's
///   memory and none of its threads. A child that was forked before anyone
///   needed the pool starts its own.
///
/// A pool that the program has started is used once it has answered.
///
/// Calls side by side share its workers out ([`Pool::calls`]): one that begins
/// while as many others are at work as there are workers, or more, runs on the
/// thread that made it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rayon;

/// Calls at work on [`Rayon`].
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

/// Whether the calling thread is one of a rayon pool's. Asks no pool.
fn is_in_a_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// A rayon pool of the caller's. In a forked child, which has none of its
/// threads, it is the caller's to replace.
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

/// Takes tasks one by one until there are none, for the first so many threads
/// that come: others find nothing to do.
fn drain(tasks: usize, workers: usize, task: &(dyn Fn(usize) + Sync)) -> impl Fn() + Sync {
    let (came, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    move || {
        if came.fetch_add(1, Ordering::Relaxed) >= workers {
            return;
        }
        let taken = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        taken.take_while(|&index| index < tasks).for_each(task);
    }
}

/// Works on the calling thread, which is none of the pool's, as one of its
/// workers: to sleep meanwhile costs one wake-up more.
///
/// One worker more is woken than is needed beside it. A system may put a
/// worker that was asleep behind the calling thread, on the same core, and
/// leave it there: with one other worker, two tasks of a millisecond took two
/// in every second call after a pause (two cores). The one too many is turned
/// away ([`drain`]). Of a pool of one worker, none is woken.
fn share<'s>(scope: &rayon::Scope<'s>, workers: usize, tasks: usize, work: &'s (impl Fn() + Sync)) {
    let woken = if workers > 1 { tasks.min(workers) } else { 0 };
    for _ in 0..woken {
        scope.spawn(move |_| work());
    }
    work();
}

/// The calling thread and no other.
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

/// Asks the pool nothing: it might start its threads to answer.
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
        // Often, and each task for a while, so that one thread too many is seen.
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
                assert!(ran.iter().all(|&(_, thread)| thread == caller), "alone");
            }
            let mut others: Vec<_> = ran
                .iter()
                .map(|&(_, thread)| format!("{thread:?}"))
                .collect();
            others.sort_unstable();
            others.dedup();
            assert!(
                others.len() <= workers,
                "{workers}: no more threads than that"
            );
        }
    }
}
