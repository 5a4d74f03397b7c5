//! The thread pool that runs the tasks of a call: the pool of the library, or a pool of the host.
//!
//! This module reads `nds_pool` and implements the crate's `Pool`. It knows nothing of operators or
//! tensors.

use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;

use ndscatter::Pool;
use ndscatter_host::{HostTasks, RayonThreads};

use crate::failure::Failure;
use crate::structs::{self, Sized32};

/// A parallel-for function of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_pool {
    /// sizeof(nds_pool) in the caller's header.
    pub size: u32,
    /// Number of tasks that can run at once, or 0 if the host does not know it.
    pub workers: u32,
    /// Pointer that the library passes to parallel_for.
    pub ctx: *mut c_void,
    /// Calls task(argument, index) once for each index below `tasks`, on any threads. Returns 0
    /// after all tasks have returned, and another value on failure. Tasks do not wait for one
    /// another.
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
// pointers, so any bytes are valid. `ENDS` is empty.
unsafe impl Sized32 for nds_pool {
    const NAME: &'static str = "nds_pool";
    // A caller must declare the full size. The last field, `parallel_for`, is required, so a struct
    // that ends before this field is an error.
    const ENDS: &'static [usize] = &[];
}

/// The thread pool of one call.
#[derive(Debug)]
pub(crate) enum Threads {
    Library,
    Host(Host),
}

impl Threads {
    /// Returns the pool of the library for a null pointer, otherwise the pool of the host.
    ///
    /// # Safety
    ///
    /// `pool` is null or points to readable memory of the size that its `size` declares. The
    /// calling thread may call the function `parallel_for` of `pool` with the pointer `ctx` of
    /// `pool` while the result lives.
    pub(crate) unsafe fn new(pool: *const nds_pool) -> Result<Self, Failure> {
        if pool.is_null() {
            return Ok(Self::Library);
        }
        // SAFETY: `pool` is not null, so its bytes are readable (contract of this function).
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

    /// Returns an error if the host has reported a failure or a task has panicked.
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
            // Only this library uses this global pool: it contains a separate copy of rayon.
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
            // The host decides how concurrent calls share its threads.
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

/// A pool of the host during one call.
#[derive(Debug)]
pub(crate) struct Host {
    pool: nds_pool,
    tasks: HostTasks,
}

// SAFETY: `ctx` is only passed to the host's function, in `Host::run`, and only the thread that
// makes the call runs `Host::run`. The other fields are plain data and an atomic.
unsafe impl Sync for Host {}

impl Host {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let Some(parallel_for) = self.pool.parallel_for else {
            return;
        };
        self.tasks.run(task, |function, argument| {
            // SAFETY: the contract of `Threads::new` allows this call. The function returns after
            // all its tasks have returned, so `argument` outlives them.
            let code = unsafe { parallel_for(self.pool.ctx, tasks, Some(function), argument) };
            code == 0
        });
    }
}
