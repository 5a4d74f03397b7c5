//! Runs numbered tasks on a pool. No task runs twice, whatever the pool does. If the pool skips or
//! repeats a task, the run returns an error.
//!
//! The module knows pools, numbers of workers and numbered tasks. The module does not know what a
//! task does.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::shared_slots::SharedSlots;
use super::tile::part;
use crate::error::ScatterError;
use crate::goal::Goal;
use crate::machine::Machine;
use crate::memory::with_room;
use crate::pool::{CallingThread, Pool};
use crate::sync::{AtomicU64, AtomicUsize};

/// Maximum number of tasks in one run. The array of [`Claims`] has one bit for each of these tasks.
/// More tasks would not distribute the load more evenly among the workers.
pub(crate) const MAX_TASKS: usize = 1024;

/// Maximum number of lanes in one run. A lane is a range of consecutive pieces, from which tasks
/// take one piece at a time. If there are more tasks than lanes, several tasks begin in one lane.
const MAX_LANES: usize = 64;

/// Number of workers that is assumed if a pool does not report a number. Work is divided into one
/// part per worker. Most schedules then cut each part into several pieces. A schedule whose total
/// work would grow with the number of pieces does not cut its parts.
const PARTS_IF_UNKNOWN: usize = 4;

/// A pool, and the number of its workers that a call may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers<'p> {
    pool: &'p dyn Pool,
    limit: usize,
    /// Number of calls that share the pool, including this call.
    callers: usize,
    /// The machine for which schedules are chosen. `None`: the current machine.
    machine: Option<&'p Machine>,
    /// The quantity that the choice of a schedule minimises. `None`: time, plus a small part of the
    /// CPU time.
    pub(crate) goal: Option<Goal>,
}

/// A call that runs on a pool. If the pool has a counter of running calls ([`Pool::calls`]), the
/// counter includes this call until this value is dropped.
#[derive(Debug)]
pub(crate) struct Call<'p> {
    workers: Workers<'p>,
    calls: Option<&'p AtomicUsize>,
}

impl<'p> Call<'p> {
    /// Begins a call on the pool of `workers`. If the pool has a counter of running calls, this
    /// call shares the pool's workers with the calls in the counter.
    pub(crate) fn begin(mut workers: Workers<'p>) -> Self {
        let calls = workers.pool.calls();
        // Relaxed ordering suffices: the number of calls is an estimate, and nothing else depends
        // on it. The addition saturates because a pool of the host may store any number in the
        // counter.
        let others = calls.map_or(0, |calls| calls.fetch_add(1, Ordering::Relaxed));
        workers.callers = others.saturating_add(1);
        Self { workers, calls }
    }

    pub(crate) fn workers(&self) -> &Workers<'p> {
        &self.workers
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(calls) = self.calls {
            calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<'p> Workers<'p> {
    /// Returns the workers of a call that shares `pool` with no other call. The call uses at most
    /// `limit` workers (`None`: at most [`MAX_TASKS`]). A call with the limit 1 runs on the calling
    /// thread, without `pool`.
    pub(crate) fn new(pool: &'p dyn Pool, limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(MAX_TASKS).clamp(1, MAX_TASKS);
        let pool = if limit == 1 { &CallingThread } else { pool };
        Self {
            pool,
            limit,
            callers: 1,
            machine: None,
            goal: None,
        }
    }

    /// Sets the machine for which schedules are chosen. `None`: the current machine.
    pub(crate) fn with_machine(self, machine: Option<&'p Machine>) -> Self {
        Self { machine, ..self }
    }

    /// Returns the machine for which schedules are chosen.
    pub(crate) fn machine(&self) -> &'p Machine {
        self.machine.unwrap_or_else(|| Machine::current())
    }

    /// Returns the number of parts to divide the work of the call into: usually the number of the
    /// pool's workers, divided by the number of calls that share the pool. The function queries the
    /// pool, which may start its threads, so small calls do not use this function.
    pub(crate) fn parts(&self) -> usize {
        let callers = match self.goal {
            Some(Goal::Throughput) => return 1,
            Some(Goal::Latency) => 1,
            None => self.callers,
        };
        let workers = self.pool.workers().unwrap_or(PARTS_IF_UNKNOWN);
        (workers / callers).clamp(1, self.limit)
    }

    /// Runs `task` once with every number in `0..tasks`. `tasks` is at most [`MAX_TASKS`]. If
    /// `tasks` is 1, the task runs on the calling thread.
    ///
    /// Returns an error if the pool has skipped or repeated a task. No task runs twice.
    pub(crate) fn run(
        &self,
        tasks: usize,
        task: &(dyn Fn(usize) + Sync),
    ) -> Result<(), ScatterError> {
        debug_assert!(tasks <= MAX_TASKS, "more tasks than `MAX_TASKS`");
        if tasks <= 1 {
            (0..tasks).for_each(task);
            return Ok(());
        }
        let claims = Claims::default();
        self.pool.run(tasks, &|index| {
            if claims.claim(index, tasks) {
                task(index);
                claims.done.fetch_add(1, Ordering::Release);
            }
        });
        claims.check(tasks)
    }

    /// Cuts `data` into chunks of `len` elements and runs `task` on each chunk. The number of
    /// chunks is at most [`MAX_TASKS`].
    pub(crate) fn run_chunks<T: Send>(
        &self,
        data: &mut [T],
        len: usize,
        task: &(dyn Fn(usize, &mut [T]) + Sync),
    ) -> Result<(), ScatterError> {
        let len = len.max(1);
        let tasks = data.len().div_ceil(len);
        let places = SharedSlots::new(data);
        self.run(tasks, &|index| {
            #[expect(
                unsafe_code,
                reason = "gives each task its chunk without a list of chunks"
            )]
            // SAFETY: `run` passes no chunk number twice, whatever the pool does (see `Claims`).
            // All tasks cut `data` into chunks of the same `len` elements, so chunks with different
            // numbers share no element.
            let chunk = unsafe { places.chunk(index, len) };
            task(index, chunk);
        })
    }

    /// Cuts `data` into chunks as [`Self::run_chunks`] does. Returns the result of `task` for each
    /// chunk, in the order of the chunks.
    pub(crate) fn map_chunks<T: Send, R: Send + Sync>(
        &self,
        data: &mut [T],
        len: usize,
        task: &(dyn Fn(usize, &mut [T]) -> R + Sync),
    ) -> Result<Vec<R>, ScatterError> {
        let chunks = data.len().div_ceil(len.max(1));
        let mut results: Vec<OnceLock<R>> = with_room(chunks)?;
        results.resize_with(chunks, OnceLock::new);
        self.run_chunks(data, len, &|index, chunk| {
            results[index].get_or_init(|| task(index, chunk));
        })?;
        let mut found = with_room(chunks)?;
        for result in results {
            // `run_chunks` has already returned an error if the pool did not run every chunk, so this
            // error is only a safeguard.
            found.push(result.into_inner().ok_or(ScatterError::PoolFailed {
                tasks: 1,
                completed: 0,
                surplus: 0,
            })?);
        }
        Ok(found)
    }

    /// Runs `task` once for every piece of the work, that is, with every number in `0..pieces`. The
    /// pool runs `tasks` tasks. The pieces are cut into lanes: ranges of consecutive pieces, one
    /// lane per task of the pool, but at most [`MAX_LANES`]. Each task of the pool takes pieces in
    /// order from one lane until the lane is empty, and then from the following lanes. A task that
    /// begins late therefore delays the call less: other tasks take pieces from its lane.
    ///
    /// In two cases, the pieces are not cut into lanes, and the pool runs one task for each piece.
    /// The first case is that `pieces` equals `tasks`. The second case is that `Pool::sees_pieces`
    /// returns true and there are at most [`MAX_TASKS`] pieces.
    pub(crate) fn run_pieces(
        &self,
        tasks: usize,
        pieces: usize,
        task: &(dyn Fn(usize) + Sync),
    ) -> Result<(), ScatterError> {
        let lanes = tasks.min(MAX_LANES);
        let are_shown = pieces <= MAX_TASKS && self.pool.sees_pieces();
        if pieces == tasks || are_shown {
            return self.run(pieces, task);
        }
        let taken: [_; MAX_LANES] = std::array::from_fn(|_| AtomicUsize::new(0));
        self.run(tasks, &|index| {
            for lane in (0..lanes).map(|at| (index + at) % lanes) {
                let lane_pieces = part(pieces, lanes, lane);
                let take = || taken[lane].fetch_add(1, Ordering::Relaxed);
                while let Some(piece) = lane_pieces.clone().nth(take()) {
                    task(piece);
                }
            }
        })
    }
}

/// Record of the tasks that a pool has run. The pool may be safe code of another crate, so no proof
/// of safety can rely on the pool. [`Claims::claim`] therefore refuses to run a task twice, and
/// [`Claims::check`] returns an error if the pool has skipped or repeated a task.
#[derive(Default)]
struct Claims {
    taken: [AtomicU64; MAX_TASKS / 64],
    done: AtomicUsize,
    surplus: AtomicUsize,
}

impl Claims {
    fn claim(&self, index: usize, tasks: usize) -> bool {
        let bit = 1 << (index % 64);
        let fresh =
            index < tasks && self.taken[index / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0;
        if !fresh {
            self.surplus.fetch_add(1, Ordering::Relaxed);
        }
        fresh
    }

    fn check(&self, tasks: usize) -> Result<(), ScatterError> {
        let done = self.done.load(Ordering::Acquire);
        let surplus = self.surplus.load(Ordering::Relaxed);
        if done == tasks && surplus == 0 {
            return Ok(());
        }
        Err(ScatterError::PoolFailed {
            tasks,
            completed: done,
            surplus,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Call, MAX_TASKS, Workers};
    use crate::goal::Goal;
    use crate::pool::Pool;

    /// A pool that reports six workers and has a counter of running calls. The pool runs no task.
    #[derive(Default)]
    struct Shared(AtomicUsize);

    impl Pool for Shared {
        fn workers(&self) -> Option<usize> {
            Some(6)
        }

        fn run(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {
            unreachable!("the test runs no task");
        }

        fn calls(&self) -> Option<&AtomicUsize> {
            Some(&self.0)
        }
    }

    #[test]
    fn every_piece_is_taken_once() {
        let pool = crate::pool::CallingThread;
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        let threads = threads.expect("threads can be started");
        for pool in [&pool as &dyn Pool, &threads] {
            for (tasks, pieces) in [(1, 1), (2, 16), (3, 7), (5, 3), (64, 512), (100, 800)] {
                let taken: Vec<_> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
                let run = Workers::new(pool, None).run_pieces(tasks, pieces, &|piece| {
                    taken[piece].fetch_add(1, Ordering::Relaxed);
                });
                assert!(run.is_ok(), "{tasks} tasks");
                let once = taken.iter().all(|taken| taken.load(Ordering::Relaxed) == 1);
                assert!(once, "{tasks} tasks, {pieces} pieces");
            }
        }
    }

    /// A pool that runs its tasks one after another, in descending order of their numbers.
    struct Backwards;

    impl Pool for Backwards {
        fn workers(&self) -> Option<usize> {
            Some(3)
        }

        fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
            (0..tasks).rev().for_each(task);
        }
    }

    #[test]
    fn a_task_without_pieces_takes_pieces_of_others() {
        let order = Mutex::new(Vec::new());
        let run = Workers::new(&Backwards, None).run_pieces(3, 7, &|piece| {
            order.lock().expect("no task panics").push(piece);
        });
        assert_eq!(run, Ok(()));
        let order = order.into_inner().expect("no task panics");
        assert_eq!(
            order,
            [5, 6, 0, 1, 2, 3, 4],
            "the task that runs first takes all pieces"
        );
    }

    #[test]
    fn concurrent_calls_share_the_workers() {
        let pool = Shared::default();
        let begin = |limit| Call::begin(Workers::new(&pool, limit));
        let parts = |call: &Call<'_>| call.workers().parts();
        let first = begin(None);
        let second = begin(None);
        let alone = begin(Some(1));
        assert_eq!([&first, &second, &alone].map(parts), [6, 3, 1]);
        let others: Vec<_> = (0..8).map(|_| begin(None)).collect();
        let parts_of_others: Vec<_> = others.iter().map(parts).collect();
        assert_eq!(
            parts_of_others,
            [2, 1, 1, 1, 1, 1, 1, 1],
            "each call has at least one worker"
        );
        let with_goal = |goal| {
            let mut workers = Workers::new(&pool, None);
            workers.goal = Some(goal);
            parts(&Call::begin(workers))
        };
        assert_eq!([Goal::Latency, Goal::Throughput].map(with_goal), [6, 1]);
        drop((first, others, alone));
        let third = begin(Some(2));
        assert_eq!(parts(&third), 2, "at most its limit");
        drop((second, third));
        assert_eq!(pool.0.load(Ordering::Relaxed), 0, "all calls have ended");
        pool.0.store(usize::MAX, Ordering::Relaxed);
        assert_eq!(
            parts(&begin(None)),
            1,
            "a counter that the crate did not set"
        );
    }

    /// A pool that reports two workers and records the number of tasks of each run.
    struct Counting {
        sees_pieces: bool,
        runs: Mutex<Vec<usize>>,
    }

    impl Pool for Counting {
        fn workers(&self) -> Option<usize> {
            Some(2)
        }

        fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
            (self.runs.lock().expect("no task panics")).push(tasks);
            (0..tasks).for_each(task);
        }

        fn sees_pieces(&self) -> bool {
            self.sees_pieces
        }
    }

    #[test]
    fn a_pool_that_sees_pieces_is_given_each() {
        for (sees_pieces, items, tasks) in [
            (false, 7, 2),
            (true, 7, 7),
            (true, MAX_TASKS, MAX_TASKS),
            (true, MAX_TASKS + 1, 2),
        ] {
            let pool = Counting {
                sees_pieces,
                runs: Mutex::default(),
            };
            let ran = Mutex::new(Vec::new());
            let task = |item| ran.lock().expect("no task panics").push(item);
            let done = Workers::new(&pool, None).run_pieces(2, items, &task);
            assert_eq!(done, Ok(()));
            let ran = ran.into_inner().expect("no task panics");
            assert!(ran.into_iter().eq(0..items), "{items} items, each once");
            let runs = pool.runs.into_inner().expect("no task panics");
            assert_eq!(runs, [tasks], "{items} items, {sees_pieces}");
        }
    }
}
