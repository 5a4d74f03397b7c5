//! The pool of a call, and the release of Python's lock.
//!
//! Knows Python's global interpreter lock and pools. Does not know arrays.

use ndscatter::{CallingThread, Execution, Pool, ScatterError};
use ndscatter_host::{RayonThreads, cross};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::panicked;

/// Number of elements from which a call releases Python's lock.
///
/// A smaller call runs for a few microseconds. Acquiring the lock again may take longer.
const SMALL: usize = 4096;

/// Returns the largest number of threads of a call.
pub(crate) fn workers() -> usize {
    RayonThreads.workers().unwrap_or(1)
}

/// Returns the execution for the argument `threads`: the calling thread for 1, at most `threads`
/// threads for a larger number, all threads for `None`.
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

/// Returns the pool of a call with the argument `threads`.
pub(crate) fn pool(threads: Option<isize>) -> &'static dyn Pool {
    match threads {
        Some(1) => &CallingThread,
        _ => &RayonThreads,
    }
}

/// Runs a call on `elements` elements. Releases Python's lock meanwhile unless the call is small.
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
