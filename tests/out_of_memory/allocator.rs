//! An allocator that refuses one chosen allocation, and counts the bytes that are in use.
//!
//! The allocation is the n-th of the current thread, or the n-th of all threads that take part in a
//! call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Smallest size in bytes of the allocations that [`COUNTDOWN`] counts by default.
pub(crate) const LARGE: usize = 4096;

/// The part of a call that the current thread runs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Part {
    /// The call itself, on the thread that makes it.
    Call = 0,
    /// A task of a pool.
    Task = 1,
    /// Code outside of the crate. None of its allocations is refused.
    Other = 2,
}

thread_local! {
    /// Number of allocations of this thread until one is refused, including that one. 0: none is
    /// refused.
    pub(crate) static COUNTDOWN: Cell<usize> = const { Cell::new(0) };

    /// Smallest size in bytes that `COUNTDOWN` counts.
    pub(crate) static LEAST: Cell<usize> = const { Cell::new(LARGE) };

    static PART: Cell<Part> = const { Cell::new(Part::Other) };
}

/// Number of allocations of all parts of a call until one is refused, including that one. 0: none is
/// refused.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Number of allocations that were refused by `LEFT`: in calls, and in tasks.
static REFUSED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Number of bytes that all threads of the process use.
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Runs `run` as a part of a call.
pub(crate) fn as_part<R>(part: Part, run: impl FnOnce() -> R) -> R {
    let before = PART.replace(part);
    let result = run();
    PART.set(before);
    result
}

/// Makes a call. Refuses allocation `number` of all its parts. Returns the result of the call, and
/// whether an allocation was refused.
pub(crate) fn refusing_everywhere<R>(number: usize, call: impl FnOnce() -> R) -> (R, bool) {
    LEFT.store(number, Relaxed);
    let result = as_part(Part::Call, call);
    (result, LEFT.swap(0, Relaxed) == 0)
}

/// Returns the number of allocations that [`refusing_everywhere`] has refused so far: in calls, and in
/// tasks.
pub(crate) fn refused() -> [usize; 2] {
    REFUSED.each_ref().map(|count| count.load(Relaxed))
}

/// Returns the number of bytes that all threads of the process use.
pub(crate) fn live_bytes() -> isize {
    LIVE.load(Relaxed)
}

fn refuses(size: usize) -> bool {
    refuses_here(size) || refuses_everywhere()
}

fn refuses_here(size: usize) -> bool {
    if size < LEAST.get() {
        return false;
    }
    COUNTDOWN.with(|countdown| {
        let left = countdown.get();
        countdown.set(left.saturating_sub(1));
        left == 1
    })
}

fn refuses_everywhere() -> bool {
    let Some(refused) = REFUSED.get(PART.get() as usize) else {
        return false;
    };
    let last = LEFT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) == Ok(1);
    refused.fetch_add(usize::from(last), Relaxed);
    last
}

/// Counts an allocation that replaces `old` bytes by `new` bytes.
fn counted(memory: *mut u8, old: usize, new: usize) -> *mut u8 {
    if !memory.is_null() {
        LIVE.fetch_add(new.cast_signed() - old.cast_signed(), Relaxed);
    }
    memory
}

struct Refusing;

// SAFETY: every method forwards its arguments to the system allocator, or returns null, which is a
// valid result of an allocation.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        counted(unsafe { System.alloc(layout) }, 0, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        counted(unsafe { System.alloc_zeroed(layout) }, 0, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        let new = unsafe { System.realloc(old, layout, size) };
        counted(new, layout.size(), size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        counted(memory, layout.size(), 0);
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;
