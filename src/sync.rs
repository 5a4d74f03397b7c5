//! The atomics and the lock with which tasks and calls share state.
//!
//! In unit tests with `--cfg loom`, the types are those of loom, and the tests in `models` run the code
//! in every order of accesses that the memory model allows.

#[cfg(all(test, loom))]
pub(crate) use loom::{
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize},
    },
    thread::yield_now,
};
#[cfg(not(all(test, loom)))]
pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize},
    },
    thread::yield_now,
};
