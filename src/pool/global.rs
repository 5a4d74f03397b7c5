//! Checks whether rayon's global pool can be used, without harm to the pool.
//!
//! Rayon makes its global pool once in a process. A failed start is final: every later use of the
//! pool panics, including uses by the program itself. A forked child has the pool's memory but none
//! of its threads, so jobs that it submits never run.
//!
//! The crate therefore starts the threads first and then asks rayon to make its pool of them. If
//! the program has already made the pool, the pool must first run a test job.
//!
//! The module knows rayon and forks. It does not know tasks.

use std::io;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::forks;

/// State of the pool. The state is an atomic, because a process may fork at any time, and a lock
/// that another thread holds would stay locked in the child.
static STATE: AtomicU8 = AtomicU8::new(UNTRIED);

/// No call has needed the pool yet, or its threads could not be started.
const UNTRIED: u8 = 0;
/// A thread is making the pool, or is testing an existing pool.
const STARTING: u8 = 1;
/// The pool has not run the test job in time. The pool may still run it later.
const SILENT: u8 = 2;
/// The pool runs jobs.
const USABLE: u8 = 3;
/// The pool will never run jobs. A start by the program has failed, or the pool belongs to a parent
/// process.
const GONE: u8 = 4;

/// Time of the last failed start of threads, in milliseconds of the system clock. 0: no start has
/// failed.
static REFUSED_AT: AtomicU64 = AtomicU64::new(0);

/// Minimum milliseconds between two attempts to start the threads.
const RETRY_MILLISECONDS: u64 = 100;

/// Maximum time that a call waits for the threads to start.
const START_TIMEOUT: Duration = Duration::from_millis(250);

/// Maximum time that an existing pool may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(20);

/// Checks whether the global pool runs jobs. Starts the pool if it was not started before.
pub(super) fn is_usable() -> bool {
    match STATE.load(Ordering::Acquire) {
        USABLE => true,
        UNTRIED | STARTING => start_pool(),
        _ => false,
    }
}

#[cold]
fn start_pool() -> bool {
    // Forks are watched before the pool has any threads that a child could lose.
    if may_start_now() && forks::watch(mark_gone_in_child) && replace_state(UNTRIED, STARTING) {
        // The pool is made on a separate thread. Rayon's own start may hang if the process was
        // forked while another thread was starting the pool.
        if thread::Builder::new().spawn(make_or_test_pool).is_err() {
            mark_refused();
        }
    }
    wait_for_answer(START_TIMEOUT);
    STATE.load(Ordering::Acquire) == USABLE
}

/// Replaces state `from` by `to`. Returns false if the state was another one.
fn replace_state(from: u8, to: u8) -> bool {
    STATE
        .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// Sleeps until the pool has answered. After the timeout, the function marks the pool as silent,
/// and no later call waits for the pool.
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

/// Marks the pool as unusable in a forked child, because its threads do not exist there. The
/// function runs before the fork returns in the child. Only atomics are safe at that time.
extern "C" fn mark_gone_in_child() {
    if STATE.load(Ordering::Relaxed) != UNTRIED {
        STATE.store(GONE, Ordering::Relaxed);
    }
}

fn mark_refused() {
    REFUSED_AT.store(milliseconds_now(), Ordering::Relaxed);
    STATE.store(UNTRIED, Ordering::Release);
}

/// Checks whether the last failed start of the threads is long enough ago for a new attempt.
fn may_start_now() -> bool {
    let refused_at = REFUSED_AT.load(Ordering::Relaxed);
    // The time since the last failed start. If the system clock was set back since that start, the
    // difference wraps around to a large number, and the threads may start at once.
    refused_at == 0 || milliseconds_now().wrapping_sub(refused_at) >= RETRY_MILLISECONDS
}

fn milliseconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Makes the pool, or tests the existing pool.
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
    // A pool exists already. The threads end because no worker is sent to them.
    drop(threads);
    // Rayon panics if an earlier start has failed.
    if catch_unwind(|| rayon::spawn(mark_usable)).is_err() {
        STATE.store(GONE, Ordering::Release);
        return;
    }
    wait_for_answer(ANSWER_TIMEOUT);
}

/// Marks the pool as usable. A pool that works runs this as a job.
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

/// Starts `count` threads that each wait for a worker. Returns `None` if a thread cannot be
/// started.
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

/// Sends a worker to its thread. This cannot fail: every thread waits for one worker and ends with
/// it.
fn send_worker(threads: &[SyncSender<ThreadBuilder>], worker: ThreadBuilder) -> io::Result<()> {
    let no_thread = || io::Error::other("no thread waits for this worker");
    let thread = threads.get(worker.index()).ok_or_else(no_thread)?;
    thread.send(worker).map_err(|_| no_thread())
}
