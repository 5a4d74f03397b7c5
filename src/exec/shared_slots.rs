//! A buffer that several tasks fill together. Each task writes positions that no other task writes.

#![expect(unsafe_code, reason = "tasks write one buffer at disjoint positions")]

use std::marker::PhantomData;

/// A slice that tasks write at disjoint positions.
#[derive(Debug)]
pub(super) struct SharedSlots<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: the methods that access the slice are `unsafe`. Their callers establish that no two tasks
// access one position.
unsafe impl<T: Send> Sync for SharedSlots<'_, T> {}

impl<'a, T> SharedSlots<'a, T> {
    pub(super) fn new(buffer: &'a mut [T]) -> Self {
        Self {
            start: buffer.as_mut_ptr(),
            len: buffer.len(),
            memory: PhantomData,
        }
    }

    /// Returns chunk `index` of the buffer, which is cut into chunks of `len` elements. The last
    /// chunk may be shorter.
    ///
    /// # Safety
    ///
    /// As long as the returned slice exists, nothing else accesses its elements. Different chunks
    /// of one `len` share no element. Chunks of different `len` may overlap.
    pub(super) unsafe fn chunk(&self, index: usize, len: usize) -> &'a mut [T] {
        let start = index.saturating_mul(len).min(self.len);
        let len = len.min(self.len - start);
        // SAFETY: `start` and `len` were clamped to the buffer, which is borrowed for `'a`. The
        // caller establishes that nothing else accesses these elements.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// Writes `value` to the element at `position`.
    ///
    /// # Safety
    ///
    /// `position` is less than the length, and no other task accesses this element.
    pub(super) unsafe fn set(&self, position: usize, value: T)
    where
        T: Copy,
    {
        debug_assert!(position < self.len, "the position is outside the buffer");
        // SAFETY: the caller vouches for the position.
        unsafe { self.start.add(position).write(value) };
    }

    /// Returns the address of the buffer, for a kernel that writes positions of one task.
    pub(super) fn start(&self) -> *mut T {
        self.start
    }
}
