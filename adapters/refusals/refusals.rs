//! A global allocator that makes memory allocations of some crates fail, in a test of a Rust runtime.
//!
//! Only allocations of the crates in [`WATCHED`] fail. The allocations of the runtime succeed, because
//! Rust programs end if an allocation of a `Vec` or a `Box` fails. An allocation belongs to the crate
//! of the innermost function on the stack, without the functions of Rust's standard library and of
//! containers. Only allocations of the calling thread fail.

#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

// For each watched crate, the test gives its name and the size in bytes of the smallest allocation that
// may fail.
use super::WATCHED;

/// Crates whose functions allocate memory for their callers.
const CONTAINERS: [&str; 6] = ["alloc", "backtrace", "core", "hashbrown", "smallvec", "std"];

thread_local! {
    /// Number of watched allocations until one fails, including that one. 0: none fails.
    static COUNTDOWN: Cell<usize> = const { Cell::new(0) };

    /// Number of failed allocations of each watched crate.
    static FAILED: Cell<[usize; WATCHED.len()]> = const { Cell::new([0; WATCHED.len()]) };
}

/// Rank of the tensors, number of rows of the data, and number of written rows. Shapes of rank above 8
/// need memory in ndscatter.
pub(crate) const TABLES: [(usize, u16, usize); 3] = [(2, 20, 50), (2, 3000, 20_000), (10, 20, 50)];

/// Returns the shape of a table of rows with 8 elements.
pub(crate) fn table(rank: usize, rows: usize) -> Vec<usize> {
    let mut shape = vec![1; rank];
    shape[0] = rows;
    shape[rank - 1] = 8;
    shape
}

/// Makes a call once for each watched allocation, with this allocation failing, and once
/// without a failure. The error of a call must report the failed allocation. `is_right` checks the
/// other results.
///
/// `arguments` makes the arguments of one call. No allocation fails in it.
pub(crate) fn each<A, R, E: Debug>(
    arguments: impl Fn() -> A,
    call: impl Fn(A) -> Result<R, E>,
    is_right: impl Fn(&R) -> bool,
) {
    for number in 1.. {
        let given = arguments();
        ndscatter::release_scratch();
        COUNTDOWN.set(number);
        let result = call(given);
        let has_failed = COUNTDOWN.replace(0) == 0;
        match result {
            Ok(found) => assert!(is_right(&found), "allocation {number}: a wrong result"),
            Err(error) => {
                let text = format!("{error:?}");
                assert!(
                    has_failed && is_out_of_memory(&text),
                    "allocation {number}: {text}"
                );
            }
        }
        if !has_failed {
            return;
        }
    }
}

/// Prints how many allocations of each watched crate have failed on this thread. Each watched crate
/// must have failed allocations.
pub(crate) fn assert_that_all_crates_failed() {
    for ((name, _), failed) in WATCHED.iter().zip(FAILED.get()) {
        println!("{failed} failed allocations of {name}");
        assert!(failed > 0, "no allocation of {name} has failed");
    }
}

/// Whether the text of a runtime's error contains ndscatter's error, as a message or as a value.
fn is_out_of_memory(text: &str) -> bool {
    let is_message = text.contains("an allocation of") && text.contains("bytes failed");
    is_message || text.contains("OutOfMemory")
}

fn refuses(bytes: usize) -> bool {
    // The search on the stack allocates memory. These allocations are not counted.
    let left = COUNTDOWN.replace(0);
    if left == 0 {
        return false;
    }
    let watched = watched_crate(bytes);
    COUNTDOWN.set(left - usize::from(watched.is_some()));
    match watched {
        Some(number) if left == 1 => {
            let mut failed = FAILED.get();
            failed[number] += 1;
            FAILED.set(failed);
            true
        }
        _ => false,
    }
}

/// Returns the number of the watched crate of the innermost function on the stack, except containers.
/// Returns `None` if the function belongs to another crate, or the crate is not watched for allocations
/// of this size.
fn watched_crate(bytes: usize) -> Option<usize> {
    let mut found = None;
    backtrace::trace(|frame| {
        let mut is_container = true;
        backtrace::resolve_frame(frame, |symbol| {
            if let Some(name) = symbol.name() {
                let name = name.to_string();
                is_container &= CONTAINERS.contains(&crate_of(&name)) || is_of_allocator(&name);
                if !is_container && found.is_none() {
                    found = position(crate_of(&name), bytes);
                }
            }
        });
        is_container
    });
    found
}

fn position(name: &str, bytes: usize) -> Option<usize> {
    let is_watched = |&(watched, least): &(&str, usize)| name == watched && bytes >= least;
    WATCHED.iter().position(is_watched)
}

/// Whether a function belongs to this module or to the compiler's calls of the global allocator.
fn is_of_allocator(name: &str) -> bool {
    name.contains("refusals::") || name.contains("__rust")
}

/// Returns the crate of a function, which is the first name of its path. `<A as B>::f` and `<A>::f`
/// belong to the crate of `A`. If `A` is not in a crate, `<A as B>::f` belongs to the crate of `B`. A
/// name may contain the number of a crate in brackets.
fn crate_of(name: &str) -> &str {
    let name = name.trim_start_matches(['<', '&', '*', '[', '(']);
    let path = match name.split_once("::") {
        Some((first, _)) if first.contains(" as ") => first.rsplit(" as ").next(),
        Some((first, _)) => Some(first),
        None => None,
    };
    path.and_then(|path| path.split('[').next()).unwrap_or(name)
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
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;
