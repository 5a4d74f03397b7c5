//! Whether rayon's global pool can be used, found out without harm to it.
//!
//! Rayon makes that pool once in a process. A start that fails is final: every
//! later use of the pool panics, the program's own included. And a forked
//! child has the pool's memory but none of its threads: what it hands over is
//! never run. So threads are started before rayon is asked to make its pool of
//! them, and a pool that was there already has to answer first.
//!
//! Knows rayon and forks. Knows nothing of tasks.

use std::io;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::forks;

/// What is known of the pool: atomics alone, as a fork may come at any time and
/// a lock that another thread holds stays locked in the child.
static STATE: AtomicU8 = AtomicU8::new(UNTRIED);

/// Nobody has needed it yet, or its threads could not be had.
const UNTRIED: u8 = 0;
/// A thread is about to find out.
const STARTING: u8 = 1;
/// It has not answered; it may still do so.
const SILENT: u8 = 2;
/// It runs jobs.
const USABLE: u8 = 3;
/// It never will: a start that was not ours has failed, or it is that of a
/// parent process.
const GONE: u8 = 4;

/// When threads could last not be had, in milliseconds of the system's clock.
static REFUSED_AT: AtomicU64 = AtomicU64::new(0);

/// Threads that could not be had are not asked for again before that.
const RETRY_MILLISECONDS: u64 = 100;

/// How long a call waits for threads to start before it does without them.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a pool that was there already may take to answer.
const PATIENCE_FOR_AN_ANSWER: Duration = Duration::from_millis(20);

/// Whether jobs handed to the global pool are run; starts it if nobody has.
pub(super) fn is_usable() -> bool {
    match STATE.load(Ordering::Acquire) {
        USABLE => true,
        UNTRIED | STARTING => try_to_start(),
        _ => false,
    }
}

#[cold]
fn try_to_start() -> bool {
    // Forks are watched from before there is anything to lose.
    if may_try_now() && forks::watch(lost_in_a_child) && changed(UNTRIED, STARTING) {
        // On a thread of its own: rayon's own start may hang, where a process
        // was forked while another of its threads was at it.
        if thread::Builder::new().spawn(find_out).is_err() {
            refused();
        }
    }
    wait_while_starting(PATIENCE);
    STATE.load(Ordering::Acquire) == USABLE
}

/// Replaces one state by another, if it is that one.
fn changed(from: u8, to: u8) -> bool {
    STATE
        .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// Sleeps until there is an answer. Where there is none in time, nobody waits
/// for it any more.
fn wait_while_starting(patience: Duration) {
    let start = Instant::now();
    while STATE.load(Ordering::Acquire) == STARTING {
        if start.elapsed() > patience {
            changed(STARTING, SILENT);
            return;
        }
        thread::sleep(Duration::from_micros(50));
    }
}

/// In a forked child: of a pool that has been asked for, the threads are not
/// there. Runs between a fork and its return, where only atomics are safe.
extern "C" fn lost_in_a_child() {
    if STATE.load(Ordering::Relaxed) != UNTRIED {
        STATE.store(GONE, Ordering::Relaxed);
    }
}

fn refused() {
    REFUSED_AT.store(now(), Ordering::Relaxed);
    STATE.store(UNTRIED, Ordering::Release);
}

fn may_try_now() -> bool {
    let refused_at = REFUSED_AT.load(Ordering::Relaxed);
    // A clock that was set back is no reason to wait for it.
    refused_at == 0 || now().wrapping_sub(refused_at) >= RETRY_MILLISECONDS
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Makes the pool, or finds out what the pool that is there is good for.
fn find_out() {
    let Some(threads) = waiting_threads(threads_wanted()) else {
        return refused();
    };
    let count = threads.len();
    let made = ThreadPoolBuilder::new()
        .num_threads(count)
        .spawn_handler(|worker| hand_over(&threads, worker))
        .build_global();
    if made.is_ok() {
        STATE.store(USABLE, Ordering::Release);
        return;
    }
    // There is one already: these threads end, as nobody hands them a worker.
    drop(threads);
    // Rayon panics where an earlier start has failed.
    if catch_unwind(|| rayon::spawn(answer)).is_err() {
        STATE.store(GONE, Ordering::Release);
        return;
    }
    wait_while_starting(PATIENCE_FOR_AN_ANSWER);
}

/// What a pool does that is alive.
fn answer() {
    if !changed(STARTING, USABLE) {
        changed(SILENT, USABLE);
    }
}

/// As many as rayon's global pool has if nobody says otherwise.
fn threads_wanted() -> usize {
    let given = |name| std::env::var(name).ok()?.parse::<usize>().ok();
    let count = match given("RAYON_NUM_THREADS").or_else(|| given("RAYON_RS_NUM_CPUS")) {
        Some(count @ 1..) => count,
        _ => thread::available_parallelism().map_or(1, usize::from),
    };
    count.min(rayon::max_num_threads())
}

/// Threads that wait for a worker to be; none if they are not all to be had.
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

/// Cannot fail, as every thread waits for one worker and ends with it.
fn hand_over(threads: &[SyncSender<ThreadBuilder>], worker: ThreadBuilder) -> io::Result<()> {
    let no_thread = || io::Error::other("no thread waits");
    let thread = threads.get(worker.index()).ok_or_else(no_thread)?;
    thread.send(worker).map_err(|_| no_thread())
}
