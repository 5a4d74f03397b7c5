//! The thread pool that runs the tasks of a call: the pool of the library or a pool of the host.
//!
//! This file reads `nds_pool` and implements the trait `Pool` of the crate `ndscatter`. It does not
//! depend on operators or tensors.

use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;

use ndscatter::Pool;
use ndscatter_host::{HostTasks, RayonThreads};

use crate::failure::Failure;
use crate::structs::{self, Sized32};

/// Thread pool of the host, which runs tasks with the function `parallel_for`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_pool {
    /// Size of this struct in bytes: sizeof(nds_pool) in the header that the caller was compiled
    /// with.
    pub size: u32,
    /// Number of tasks that the pool can run at the same time, or 0 if the host does not know it.
    pub workers: u32,
    /// Pointer of the host that the library passes to each call of parallel_for.
    pub ctx: *mut c_void,
    /// Calls task(argument, index) exactly once for each index from 0 to tasks - 1, in any order
    /// and on any threads. Returns after all these calls have returned: 0 on success, another value
    /// on failure. No task waits for another task.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            tasks: usize,
            task: Option<unsafe extern "C" fn(argument: *mut c_void, index: usize)>,
            argument: *mut c_void,
        ) -> i32,
    >,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are integers and nullable
// pointers, so any bytes are valid field values. `ENDS` is empty.
unsafe impl Sized32 for nds_pool {
    const NAME: &'static str = "nds_pool";
    // A declared size below the full size is an error, because such a struct lacks the last field,
    // `parallel_for`, which is required.
    const ENDS: &'static [usize] = &[];
}

/// The thread pool that one call uses.
#[derive(Debug)]
pub(crate) enum Threads {
    Library,
    Host(Host),
}

impl Threads {
    /// Returns the pool of the library if `pool` is null. Otherwise returns the pool of the host
    /// that `pool` describes.
    ///
    /// # Safety
    ///
    /// `pool` is null or points to readable memory of the size that its field `size` declares.
    /// While the result lives, the calling thread may call the function `parallel_for` of `pool`
    /// with the pointer `ctx` of `pool`.
    pub(crate) unsafe fn new(pool: *const nds_pool) -> Result<Self, Failure> {
        if pool.is_null() {
            return Ok(Self::Library);
        }
        // SAFETY: `pool` is not null, so it points to readable memory of its declared size
        // (contract of this function).
        let pool = unsafe { structs::read(pool) }?;
        if pool.parallel_for.is_none() {
            return Err(Failure::invalid(format_args!(
                "`nds_pool.parallel_for` is null; set it to a function"
            )));
        }
        Ok(Self::Host(Host {
            pool,
            tasks: HostTasks::default(),
        }))
    }

    /// Returns an error if `parallel_for` of the host has returned a failure or a task on the
    /// host's pool has panicked.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Host(host) if host.tasks.has_failed() => Err(Failure::internal(format_args!(
                "`nds_pool.parallel_for` returned a failure or a task panicked; the output is \
                 incomplete"
            ))),
            _ => Ok(()),
        }
    }
}

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        match self {
            // This library contains a separate copy of rayon. Therefore, no other code of the
            // process uses the global pool of this copy.
            Self::Library => RayonThreads.workers(),
            Self::Host(host) => match host.pool.workers {
                0 => None,
                workers => usize::try_from(workers).ok(),
            },
        }
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        match self {
            Self::Library => RayonThreads.calls(),
            // `None`: the crate does not count the concurrent calls on this pool. The host decides
            // how they share its threads.
            Self::Host(_) => None,
        }
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        match self {
            Self::Library => RayonThreads.run(tasks, task),
            Self::Host(host) => host.run(tasks, task),
        }
    }
}

/// The pool of the host during one call, and whether a run of tasks on this pool failed.
#[derive(Debug)]
pub(crate) struct Host {
    pool: nds_pool,
    tasks: HostTasks,
}

// SAFETY: only `Host::run` uses `ctx`, to pass it to the host's function. Only the thread that
// makes the call runs `Host::run`. The other fields are plain data and an atomic.
unsafe impl Sync for Host {}

impl Host {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let Some(parallel_for) = self.pool.parallel_for else {
            return;
        };
        self.tasks.run(task, |function, argument| {
            // SAFETY: the contract of `Threads::new` allows this call. `parallel_for` returns after
            // all tasks have returned (docs/c.md), so `argument` outlives them.
            let code = unsafe { parallel_for(self.pool.ctx, tasks, Some(function), argument) };
            code == 0
        });
    }
}
