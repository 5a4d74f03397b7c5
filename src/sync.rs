//! The atomics and the lock with which tasks and calls share state.
//!
//! With `--cfg loom`, the types are those of loom. The tests in `models` then run the code in every
//! order of accesses that the memory model allows.

#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(not(loom))]
pub(crate) use std::sync::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;
