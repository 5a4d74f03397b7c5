//! Checks whether rayon's global pool can be used, and makes this pool if the program has not made
//! it.
//!
//! Rayon makes its global pool once in a process. If rayon cannot start a thread of the pool, the
//! failure is final: every later use of the pool panics, including uses by the program itself. A
//! forked child has the pool's memory but none of the pool's threads, so jobs that the child
//! submits never run.
//!
//! The crate therefore first starts all threads itself, and then makes rayon's global pool from
//! these threads. If a thread cannot be started, the crate does not call rayon, so rayon has
//! recorded no failure. The program can therefore still make the pool, and a later call of the
//! crate tries again. If the program has already made the pool, the crate uses the pool only after
//! the pool has run a test job.
//!
//! The module knows rayon and forks. The module does not know the tasks of a call.

use std::io;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::forks;

/// State of the pool. The state is an atomic without a lock. A process may fork at any time, and a
/// lock that another thread holds during the fork would stay locked in the child.
static STATE: AtomicU8 = AtomicU8::new(UNTRIED);

/// No call has needed the pool yet, or the last attempt to start its threads has failed.
const UNTRIED: u8 = 0;
/// A thread is making the pool, or is testing an existing pool.
const STARTING: u8 = 1;
/// The pool was not ready within [`START_TIMEOUT`], or did not run the test job within
/// [`ANSWER_TIMEOUT`]. The pool may still become usable later.
const SILENT: u8 = 2;
/// The pool runs jobs.
const USABLE: u8 = 3;
/// The pool will never run jobs in this process. A start by the program has failed, or the process
/// is a forked child and the pool's threads exist only in its parent.
const GONE: u8 = 4;

/// Time of the last failed attempt to start the threads, in milliseconds of the system clock. 0: no
/// attempt has failed.
static REFUSED_AT: AtomicU64 = AtomicU64::new(0);

/// Minimum milliseconds between a failed attempt to start the threads and the next attempt.
const RETRY_MILLISECONDS: u64 = 100;

/// Maximum time that a call waits until the pool is made, or until an existing pool is tested.
const START_TIMEOUT: Duration = Duration::from_millis(250);

/// Maximum time until an existing pool runs the test job.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(20);

/// Checks whether the global pool runs jobs. Starts the pool if no call has started it before.
pub(super) fn is_usable() -> bool {
    match STATE.load(Ordering::Acquire) {
        USABLE => true,
        UNTRIED | STARTING => start_pool(),
        _ => false,
    }
}

#[cold]
fn start_pool() -> bool {
    // The fork handler is registered before the pool has any threads that a child would lack.
    if may_start_now() && forks::watch(mark_gone_in_child) && replace_state(UNTRIED, STARTING) {
        // The pool is made on a separate thread, so that the calling thread cannot hang. Rayon's
        // own start may hang in a child that was forked while its parent was starting the pool.
        if thread::Builder::new().spawn(make_or_test_pool).is_err() {
            mark_refused();
        }
    }
    wait_for_answer(START_TIMEOUT);
    STATE.load(Ordering::Acquire) == USABLE
}

/// Changes the state from `from` to `to`. Returns false if the state was not `from`.
fn replace_state(from: u8, to: u8) -> bool {
    STATE
        .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// Sleeps while the state is [`STARTING`], but at most for `timeout`. After the timeout, the
/// function marks the pool as silent. Calls do not wait for a silent pool.
fn wait_for_answer(timeout: Duration) {
    let start = Instant::now();
    while STATE.load(Ordering::Acquire) == STARTING {
        if start.elapsed() > timeout {
            replace_state(STARTING, SILENT);
            return;
        }
        thread::sleep(Duration::from_micros(50));
    }
}

/// Marks the pool as unusable in a forked child, because the child has no threads of the pool. The
/// state [`UNTRIED`] stays: the child can start its own pool. The function runs before the fork
/// returns in the child. Only atomics are safe at that time.
extern "C" fn mark_gone_in_child() {
    if STATE.load(Ordering::Relaxed) != UNTRIED {
        STATE.store(GONE, Ordering::Relaxed);
    }
}

fn mark_refused() {
    REFUSED_AT.store(milliseconds_now(), Ordering::Relaxed);
    STATE.store(UNTRIED, Ordering::Release);
}

/// Checks whether the last failed attempt to start the threads is long enough ago for a new one.
fn may_start_now() -> bool {
    let refused_at = REFUSED_AT.load(Ordering::Relaxed);
    // The difference is the time since the last failed attempt. If the system clock was set back
    // after that attempt, the difference wraps around to a large number, and the function returns
    // true.
    refused_at == 0 || milliseconds_now().wrapping_sub(refused_at) >= RETRY_MILLISECONDS
}

fn milliseconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Makes the pool. If the program has already made a pool, tests this pool.
fn make_or_test_pool() {
    let Some(threads) = waiting_threads(default_threads()) else {
        return mark_refused();
    };
    let count = threads.len();
    let made = ThreadPoolBuilder::new()
        .num_threads(count)
        .spawn_handler(|worker| send_worker(&threads, worker))
        .build_global();
    if made.is_ok() {
        STATE.store(USABLE, Ordering::Release);
        return;
    }
    // The program has made the pool, or has failed to. The new threads end without a worker.
    drop(threads);
    // `rayon::spawn` panics if an earlier start of the pool has failed.
    if catch_unwind(|| rayon::spawn(mark_usable)).is_err() {
        STATE.store(GONE, Ordering::Release);
        return;
    }
    wait_for_answer(ANSWER_TIMEOUT);
}

/// Marks the pool as usable. This function is the test job, so only a pool that works runs it.
fn mark_usable() {
    if !replace_state(STARTING, USABLE) {
        replace_state(SILENT, USABLE);
    }
}

/// Returns the default number of threads of rayon's global pool.
fn default_threads() -> usize {
    let given = |name| std::env::var(name).ok()?.parse::<usize>().ok();
    let count = match given("RAYON_NUM_THREADS").or_else(|| given("RAYON_RS_NUM_CPUS")) {
        Some(count @ 1..) => count,
        _ => thread::available_parallelism().map_or(1, usize::from),
    };
    count.min(rayon::max_num_threads())
}

/// Starts `count` threads. Each thread waits for a worker of rayon and runs it. Returns `None` if a
/// thread cannot be started.
fn waiting_threads(count: usize) -> Option<Vec<SyncSender<ThreadBuilder>>> {
    let start = |index| {
        let (give, take) = sync_channel::<ThreadBuilder>(1);
        let wait = move || {
            if let Ok(worker) = take.recv() {
                worker.run();
            }
        };
        let name = format!("rayon-{index}");
        let started = thread::Builder::new().name(name).spawn(wait);
        started.is_ok().then_some(give)
    };
    (0..count).map(start).collect()
}

/// Sends a worker of rayon to its thread. Sending cannot fail: every thread waits for one worker.
fn send_worker(threads: &[SyncSender<ThreadBuilder>], worker: ThreadBuilder) -> io::Result<()> {
    let no_thread = || io::Error::other("no thread waits for this worker");
    let thread = threads.get(worker.index()).ok_or_else(no_thread)?;
    thread.send(worker).map_err(|_| no_thread())
}
