//! Who runs the tasks of a call: the library's own pool, or the host's.

use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;

use ndscatter::Pool;
use ndscatter_host::{HostTasks, RayonThreads};

use crate::failure::Failure;
use crate::structs::{self, Sized32};

/// A host's parallel-for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_pool {
    /// sizeof(nds_pool) as the caller knows it.
    pub size: u32,
    /// How many tasks can run at once; 0 if that is not known.
    pub workers: u32,
    /// Handed to parallel_for.
    pub ctx: *mut c_void,
    /// Calls task(argument, index) with every index below `tasks`, each once,
    /// on any threads, and returns 0 when all have returned. Tasks do not wait
    /// for one another.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            tasks: usize,
            task: Option<unsafe extern "C" fn(argument: *mut c_void, index: usize)>,
            argument: *mut c_void,
        ) -> i32,
    >,
}

// SAFETY: `repr(C)`; integers and pointers, of which null is valid; fields end
// at 4, 8, and then once a pointer.
unsafe impl Sized32 for nds_pool {
    const NAME: &'static str = "nds_pool";
    // Without its function it is no pool.
    const ENDS: &'static [usize] = &[];
}

/// The threads of one call.
#[derive(Debug)]
pub(crate) enum Threads {
    Library,
    Host(Host),
}

impl Threads {
    /// # Safety
    ///
    /// `pool` is null or points to as many bytes as its `size` says; its
    /// function may be called with its `ctx` from the calling thread.
    pub(crate) unsafe fn new(pool: *const nds_pool) -> Result<Self, Failure> {
        if pool.is_null() {
            return Ok(Self::Library);
        }
        // SAFETY: the caller vouches for the bytes.
        let pool = unsafe { structs::read(pool) }?;
        if pool.parallel_for.is_none() {
            return Err(Failure::invalid(format_args!(
                "`nds_pool.parallel_for` is null"
            )));
        }
        Ok(Self::Host(Host {
            pool,
            tasks: HostTasks::default(),
        }))
    }

    /// Whether the host has said that it failed.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Host(host) if host.tasks.has_failed() => Err(Failure::internal(format_args!(
                "`nds_pool.parallel_for` failed; the output is incomplete"
            ))),
            _ => Ok(()),
        }
    }
}

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        match self {
            // Rayon's global pool is this library's alone: its rayon is not
            // that of anyone else in the process.
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
            // A host knows best how many calls it makes at once.
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

/// A host's pool during one call.
#[derive(Debug)]
pub(crate) struct Host {
    pool: nds_pool,
    tasks: HostTasks,
}

// SAFETY: `ctx` is only handed back to the host's function, and that only by
// the thread that makes the call; the rest is plain data and an atomic.
unsafe impl Sync for Host {}

impl Host {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let Some(parallel_for) = self.pool.parallel_for else {
            return;
        };
        self.tasks.run(task, |function, argument| {
            // SAFETY: `Threads::new` was promised that the function may be called so;
            // it returns when all its tasks have.
            let code = unsafe { parallel_for(self.pool.ctx, tasks, Some(function), argument) };
            code == 0
        });
    }
}
