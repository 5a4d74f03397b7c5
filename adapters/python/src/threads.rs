//! Choice of the thread pool for a call, and release of Python's global interpreter lock during a
//! call.
//!
//! This module does not know arrays.

use ndscatter::{CallingThread, Execution, Pool, ScatterError};
use ndscatter_host::{RayonThreads, cross};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::panicked;

/// Minimum number of elements of a call that releases Python's global interpreter lock.
///
/// A call on fewer elements runs for a few microseconds. After a release, a thread may wait longer
/// than this time until it acquires the lock again.
const SMALL: usize = 4096;

/// Returns the number of threads of the thread pool, which is the largest number of threads that a
/// call can use.
pub(crate) fn workers() -> usize {
    RayonThreads.workers().unwrap_or(1)
}

/// Returns the execution for the argument `threads` of a Python function. For 1, the call runs on
/// the calling thread. For a larger number, the call runs on at most `threads` threads of the
/// thread pool. For `None`, the call may use all threads of the pool. Any other number is an error.
pub(crate) fn execution(threads: Option<isize>) -> PyResult<Execution<'static>> {
    let execution = Execution::new();
    match threads {
        None => Ok(execution.pool(&RayonThreads)),
        Some(1) => Ok(execution.pool(&CallingThread)),
        Some(count @ 2..) => {
            let execution = execution.pool(&RayonThreads);
            Ok(execution.max_workers(count.unsigned_abs()))
        }
        Some(count) => Err(PyValueError::new_err(format!(
            "`threads` is {count}; pass 1 or more, or None for all threads"
        ))),
    }
}

/// A pool with at most a given number of workers.
pub(crate) struct Threads {
    pool: &'static dyn Pool,
    limit: usize,
}

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        self.pool.workers().map(|workers| workers.min(self.limit))
    }

    /// Runs at most `tasks` tasks at the same time. The callers run one task for each worker.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.pool.run(tasks, task);
    }
}

/// Returns the pool for the argument `threads` of a Python function. The pool is the calling thread
/// for 1, and all threads for `None`. For a larger number, the pool is at most `threads` threads of
/// the thread pool.
pub(crate) fn pool(threads: Option<isize>) -> Threads {
    let limit = threads.map_or(usize::MAX, isize::unsigned_abs);
    let pool: &'static dyn Pool = match threads {
        Some(1) => &CallingThread,
        _ => &RayonThreads,
    };
    Threads { pool, limit }
}

/// Runs a call that processes `elements` elements. Releases Python's global interpreter lock during
/// the call if there are at least [`SMALL`] elements.
#[inline]
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    elements: usize,
    call: impl FnOnce() -> Result<T, ScatterError> + Send,
) -> PyResult<Result<T, ScatterError>> {
    let done = match elements < SMALL {
        true => cross(call),
        false => py.detach(|| cross(call)),
    };
    done.map_err(panicked)
}
