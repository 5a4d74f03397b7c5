//! Who runs a call: threads, and whether others of Python's run meanwhile.
//!
//! Knows Python's lock and pools. Knows nothing of arrays.

use ndscatter::{CallingThread, Execution, Pool, ScatterError};
use ndscatter_host::{RayonThreads, cross};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::panicked;

/// Calls that touch fewer elements, a few microseconds, keep Python's lock: to get it back
/// may take longer than they do.
const SMALL: usize = 4096;

/// Threads that a call may have.
pub(crate) fn workers() -> usize {
    RayonThreads.workers().unwrap_or(1)
}

/// What `threads=` means: all that there are, the calling one alone, or at most so many.
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
            "`threads` is {count}; give 1 or more, or None for all"
        ))),
    }
}

/// The pool of a call with so many threads.
pub(crate) fn pool(threads: Option<isize>) -> &'static dyn Pool {
    match threads {
        Some(1) => &CallingThread,
        _ => &RayonThreads,
    }
}

/// Runs a call that touches so many elements, without Python's lock unless it is small.
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
