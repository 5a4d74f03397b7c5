//! What every adapter keeps to inside a foreign host. Nothing unwinds into the host.
//! Results are those of the default floating-point mode. Rayon or the host's own
//! parallel-for runs the tasks. Hosts exchange tensors as DLPack.
//!
//! | module | knows |
//! |---|---|
//! | `float_mode` | the register of the floating-point mode |
//! | `parallel_for` | tasks through a host's parallel-for, which takes a function and a pointer |
//! | `rayon_threads` | rayon's threads, in the default mode |
//! | `dlpack` | DLPack's structs and codes |
//!
//! Knows nothing of operators, nor of any one host.

#![allow(
    unsafe_code,
    reason = "registers of the processor, and pointers through a host"
)]

pub mod dlpack;
mod float_mode;
mod parallel_for;
mod rayon_threads;

pub use float_mode::DefaultMode;
pub use parallel_for::{HostTask, HostTasks};
pub use rayon_threads::RayonThreads;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A call of the library has panicked, which is a bug in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// Runs a call from a host: in the default floating-point mode, which is the host's
/// again afterwards, and without letting a panic out.
///
/// # Errors
///
/// [`Panicked`] if it did.
pub fn cross<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    let _mode = DefaultMode::enter();
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        // Dropping what was thrown may throw again.
        std::mem::forget(payload);
        Panicked
    })
}
