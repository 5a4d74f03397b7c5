//! Allocations that return an error if memory is exhausted. The standard library would end the
//! process instead.

use std::alloc::{Layout, alloc};

use crate::failure::Failure;

/// Returns an empty list with room for `count` values. Fails if memory is exhausted.
pub(crate) fn with_room<T>(count: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    match list.try_reserve_exact(count) {
        Ok(()) => Ok(list),
        Err(_) => Err(Failure::out_of_memory(count.saturating_mul(size_of::<T>()))),
    }
}

/// Moves a value to the heap. Fails if memory is exhausted.
pub(crate) fn boxed<T>(value: T) -> Result<Box<T>, Failure> {
    const { assert!(size_of::<T>() > 0, "an allocation has at least one byte") };
    let layout = Layout::new::<T>();
    // SAFETY: the size of `T` is not 0, as `alloc` requires (checked at compile time above).
    let place = unsafe { alloc(layout) }.cast::<T>();
    if place.is_null() {
        return Err(Failure::out_of_memory(layout.size()));
    }
    // SAFETY: `place` is a new allocation with the size and alignment of `T`. It comes from the
    // global allocator, with which `Box` frees its memory.
    unsafe {
        place.write(value);
        Ok(Box::from_raw(place))
    }
}
