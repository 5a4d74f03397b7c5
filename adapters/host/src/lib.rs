//! What every adapter keeps to inside a foreign host: nothing unwinds into it,
//! results are those of the default floating-point mode, and the host's own
//! parallel-for runs the tasks.
//!
//! Knows closures and threads. Knows nothing of tensors, of ndscatter, nor of
//! any one host.

#![allow(
    unsafe_code,
    reason = "registers of the processor, and pointers through a host"
)]

mod float_mode;
mod parallel_for;

pub use float_mode::DefaultMode;
pub use parallel_for::{HostTask, parallel_for};

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
