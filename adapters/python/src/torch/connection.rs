//! PyTorch's C functions, and PyTorch's threads as a pool.
//!
//! This module calls two functions of PyTorch's stable C interface, and finds PyTorch's DLPack
//! function that describes a tensor. The module does not depend on operators.

#![allow(unsafe_code, reason = "functions of another library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ndscatter::{Pool, ScatterError};
use ndscatter_host::{HostTask, HostTasks, Panicked, cross};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::array::{Describe, describe_of};
use crate::failure::{Failure, panicked};

type Range = unsafe extern "C" fn(begin: i64, end: i64, context: *mut c_void);
type ParallelFor =
    unsafe extern "C" fn(begin: i64, end: i64, grain: i64, range: Range, *mut c_void) -> i32;
type GetNumThreads = unsafe extern "C" fn(*mut u32) -> i32;

/// The Python class `torch.Tensor`, and the functions of PyTorch that this module calls.
#[derive(Debug)]
pub(super) struct Connection {
    /// The Python class `torch.Tensor`.
    pub(super) tensor: Py<PyType>,
    pub(super) describe: Describe,
    parallel_for: ParallelFor,
    num_threads: GetNumThreads,
}

static CONNECTION: OnceLock<Connection> = OnceLock::new();

/// Whether this process is a child that was forked after [`connect`]. Such a child has none of the
/// threads of its parent.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

impl Connection {
    /// Returns the connection that [`connect`] has made, or `None` before the first call of
    /// [`connect`].
    pub(super) fn get() -> Option<&'static Self> {
        CONNECTION.get()
    }
}

#[cfg(unix)]
unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

#[cfg(unix)]
fn mark_forked_children() {
    unsafe extern "C" fn mark() {
        IS_FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: a child calls `mark` after a fork. `mark` only stores a number, which is allowed
    // there. This library is never unloaded, so `mark` stays valid. A failure (no memory) is
    // ignored: a forked child then waits for threads, as with PyTorch's own kernels.
    unsafe { pthread_atfork(None, None, Some(mark)) };
}

#[cfg(not(unix))]
fn mark_forked_children() {}

/// Returns the address of the symbol `name` of a library. Returns `None` if the process has not
/// loaded the library, or if the library has no such symbol.
#[cfg(unix)]
fn symbol(library: &str, name: &CStr) -> Option<*mut c_void> {
    const RTLD_NOW: c_int = 2;
    /// Flag of `dlopen`: `dlopen` returns a handle only if the library is already loaded.
    #[cfg(target_os = "linux")]
    const RTLD_NOLOAD: c_int = 4;
    #[cfg(not(target_os = "linux"))]
    const RTLD_NOLOAD: c_int = 0x10;
    let path = CString::new(library).ok()?;
    // SAFETY: `path` and `name` end with a zero byte. With `RTLD_NOLOAD`, `dlopen` loads no
    // library, so it runs no code of a library. The handle is never closed, so the symbol stays
    // valid.
    let found = unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW | RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}

#[cfg(not(unix))]
fn symbol(_: &str, _: &CStr) -> Option<*mut c_void> {
    None
}

/// Finds PyTorch's functions and stores them in `CONNECTION`. `tensor` is the Python class
/// `torch.Tensor`. `library` is the path of PyTorch's CPU library.
#[pyfunction]
pub(super) fn connect(tensor: &Bound<'_, PyType>, library: &str) -> PyResult<()> {
    if CONNECTION.get().is_some() {
        return Ok(());
    }
    let describe = describe_of(tensor)
        .ok_or_else(|| PyRuntimeError::new_err("PyTorch has no DLPack functions of version 1"))?;
    let missing = || {
        PyRuntimeError::new_err(format!(
            "{library} lacks `torch_parallel_for` or `torch_get_num_threads`"
        ))
    };
    let parallel_for = symbol(library, c"torch_parallel_for").ok_or_else(missing)?;
    let num_threads = symbol(library, c"torch_get_num_threads").ok_or_else(missing)?;
    // SAFETY: the stable header torch/csrc/stable/c/shim.h declares functions of these names with
    // these types.
    let connection = unsafe {
        Connection {
            tensor: tensor.clone().unbind(),
            describe,
            parallel_for: std::mem::transmute::<*mut c_void, ParallelFor>(parallel_for),
            num_threads: std::mem::transmute::<*mut c_void, GetNumThreads>(num_threads),
        }
    };
    // `set` fails if another thread has set `CONNECTION` meanwhile. The failure is ignored, because
    // that thread has set an equal value.
    if CONNECTION.set(connection).is_ok() {
        mark_forked_children();
    }
    Ok(())
}

/// A pool that runs tasks with PyTorch's parallel-for. Its number of workers is the number of
/// threads that `torch.set_num_threads` has set.
#[derive(Debug, Default)]
struct Threads {
    tasks: HostTasks,
}

/// Number of calls of the crate that currently run on PyTorch's threads. If several Python threads
/// make calls at the same time, the crate divides PyTorch's threads among these calls.
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        let connection = CONNECTION.get()?;
        // A forked child process has none of OpenMP's threads, and OpenMP would wait for them
        // forever. One worker means that the calling thread runs all tasks, without OpenMP.
        if IS_FORKED.load(Ordering::Relaxed) {
            return Some(1);
        }
        let mut threads = 1;
        // SAFETY: the function writes one `u32` to the pointer.
        let code = unsafe { (connection.num_threads)(&raw mut threads) };
        Some(if code == 0 { threads as usize } else { 1 })
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        Some(&CALLS)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let workers = self.workers().unwrap_or(1).min(tasks);
        let connection = CONNECTION.get().filter(|_| workers > 1);
        let Some(connection) = connection else {
            return (0..tasks).for_each(task);
        };
        self.tasks.run(task, |function, argument| {
            let shared = Shared {
                function,
                argument,
                next: AtomicUsize::new(0),
                tasks,
            };
            let context = (&raw const shared).cast_mut().cast::<c_void>();
            let workers = workers.cast_signed() as i64;
            // SAFETY: `parallel_for` calls `drain` with `context`, and returns only after all calls
            // of `drain` have returned. `shared` lives until after `parallel_for` has returned.
            unsafe { (connection.parallel_for)(0, workers, 1, drain, context) == 0 }
        });
    }
}

/// The tasks of one parallel-for. The threads share the counter `next`, which is the number of the
/// next task that no thread has taken.
struct Shared {
    function: HostTask,
    argument: *mut c_void,
    next: AtomicUsize,
    tasks: usize,
}

/// Takes and runs tasks of a parallel-for until no task is left. PyTorch may call this function
/// several times on one thread. The second and later calls on that thread find no task and return.
///
/// # Safety
///
/// `context` must point to the [`Shared`] of a parallel-for that has not returned.
unsafe extern "C" fn drain(_: i64, _: i64, context: *mut c_void) {
    // SAFETY: the caller guarantees that `context` points to a `Shared` that still lives.
    let shared = unsafe { &*context.cast_const().cast::<Shared>() };
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= shared.tasks {
            break;
        }
        // SAFETY: `HostTasks::run` made `argument` for this parallel-for. The parallel-for has not
        // returned, so `argument` is still valid.
        unsafe { (shared.function)(shared.argument, index) };
    }
}

/// Why a call of the crate on PyTorch's threads has no result.
#[derive(Debug)]
pub(super) enum NoResult {
    /// The crate refused the call with an error.
    Error(ScatterError),
    /// A task of the crate panicked on the calling thread. A panic is always a bug in ndscatter.
    Panic(Panicked),
    /// PyTorch's parallel-for failed or a task panicked on another thread. The output may have
    /// changed.
    ParallelFor,
}

impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Panic(_) => f.write_str("internal error: this is a bug in ndscatter"),
            Self::ParallelFor => f.write_str(
                "PyTorch's parallel-for failed, and the result is incomplete; do not use the output",
            ),
        }
    }
}

/// Runs `call` on PyTorch's threads. The calling thread must not hold Python's lock while it waits
/// for other threads, unless no other thread needs the lock.
pub(super) fn run<T>(
    call: impl FnOnce(&dyn Pool) -> Result<T, ScatterError>,
) -> Result<T, NoResult> {
    let threads = Threads::default();
    let done = cross(|| call(&threads));
    match done {
        Err(panic) => Err(NoResult::Panic(panic)),
        Ok(_) if threads.tasks.has_failed() => Err(NoResult::ParallelFor),
        Ok(done) => done.map_err(NoResult::Error),
    }
}

/// Runs `call` on PyTorch's threads. This function releases Python's lock during the call.
pub(super) fn run_detached<T: Send>(
    py: Python<'_>,
    call: impl FnOnce(&dyn Pool) -> Result<T, ScatterError> + Send,
) -> PyResult<T> {
    py.detach(|| run(call)).map_err(exception)
}

/// Converts a failed call to a Python exception.
pub(super) fn exception(failed: NoResult) -> PyErr {
    match failed {
        NoResult::Error(error) => Failure(error).into(),
        NoResult::Panic(panic) => panicked(panic),
        NoResult::ParallelFor => PyRuntimeError::new_err(failed.to_string()),
    }
}
