//! Shared code of all adapters to foreign hosts.
//!
//! No panic unwinds into the host. Results are those of the default floating-point mode. Rayon or
//! the host's parallel-for runs the tasks. Hosts exchange tensors as DLPack structs.
//!
//! | module | knows |
//! |---|---|
//! | `float_mode` | the register of the floating-point mode |
//! | `parallel_for` | a host's parallel-for, which takes a function and a pointer |
//! | `rayon_threads` | rayon's threads, in the default floating-point mode |
//! | `dlpack` | DLPack's structs and codes |
//!
//! Knows nothing of operators or of a particular host.

#![allow(
    unsafe_code,
    reason = "registers of the processor, and pointers that pass through a host"
)]

pub mod dlpack;
mod float_mode;
mod parallel_for;
mod rayon_threads;

pub use float_mode::DefaultMode;
pub use parallel_for::{HostTask, HostTasks};
pub use rayon_threads::RayonThreads;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Error of a call of the library that panicked. Each panic is a bug in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// Runs a call from a host in the default floating-point mode and catches its panics. Restores the
/// host's mode afterwards.
///
/// # Errors
///
/// [`Panicked`] if the call panicked.
pub fn cross<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    let _mode = DefaultMode::enter();
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        // Dropping the payload could panic again.
        std::mem::forget(payload);
        Panicked
    })
}
