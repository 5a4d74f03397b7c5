//! The atomics and the lock with which tasks and calls share state.
//!
//! In unit tests with `--cfg loom`, the types are those of loom, and the tests in `models` run the code
//! in every order of accesses that the memory model allows.

#[cfg(all(test, loom))]
use std::sync::atomic::Ordering;

#[cfg(all(test, loom))]
pub(crate) use loom::{
    sync::atomic::{AtomicU64, AtomicUsize},
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

/// A lock of loom that other threads also try to acquire while it is held. Loom itself does not run
/// another thread between the acquisition and the release of a lock. The accesses of `tries` make
/// loom run the other threads there.
#[cfg(all(test, loom))]
pub(crate) struct Mutex<T> {
    lock: loom::sync::Mutex<T>,
    tries: AtomicUsize,
}

#[cfg(all(test, loom))]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            lock: loom::sync::Mutex::new(value),
            tries: AtomicUsize::new(0),
        }
    }

    pub(crate) fn try_lock(&self) -> std::sync::TryLockResult<loom::sync::MutexGuard<'_, T>> {
        self.tries.fetch_add(1, Ordering::Relaxed);
        let guard = self.lock.try_lock();
        self.tries.fetch_add(1, Ordering::Relaxed);
        guard
    }
}
