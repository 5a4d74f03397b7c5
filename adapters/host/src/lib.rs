//! Code that the adapters of ndscatter to different host runtimes share.
//!
//! This crate catches panics, so that no panic unwinds into the host. It sets the default
//! floating-point mode for each call from the host, so that the host's mode does not change
//! results. It runs tasks on rayon's threads or with the host's parallel-for function. It defines
//! the DLPack structs in which hosts exchange tensors.
//!
//! | module | knows |
//! |---|---|
//! | `float_mode` | the register of the floating-point mode |
//! | `parallel_for` | a host's parallel-for, which takes a function and a pointer |
//! | `rayon_threads` | rayon's threads, in the default floating-point mode |
//! | `dlpack` | DLPack's structs and codes |
//!
//! This crate contains no code for operators or for a particular host.

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

/// Error of [`cross`]: the call panicked. A panic in a call is a bug in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// Runs `call`, which a host requested, in the default floating-point mode and catches a panic of
/// `call`. Restores the previous mode of the calling thread afterwards.
///
/// # Errors
///
/// Returns [`Panicked`] if `call` panicked.
pub fn cross<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    let _mode = DefaultMode::enter();
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        // The payload of the panic is leaked, because its drop could panic again.
        std::mem::forget(payload);
        Panicked
    })
}
