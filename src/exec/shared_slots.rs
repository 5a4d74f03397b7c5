//! A buffer that several tasks fill together, each the positions it owns.

#![expect(
    unsafe_code,
    reason = "tasks write to one buffer at positions of their own"
)]

use std::marker::PhantomData;

/// A slice to be written at positions that tasks have shared out among them.
#[derive(Debug)]
pub(super) struct SharedSlots<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: it only hands out writes and chunks, whose callers own the positions.
unsafe impl<T: Send> Sync for SharedSlots<'_, T> {}

impl<'a, T> SharedSlots<'a, T> {
    pub(super) fn new(buffer: &'a mut [T]) -> Self {
        Self {
            start: buffer.as_mut_ptr(),
            len: buffer.len(),
            memory: PhantomData,
        }
    }

    /// Chunk `index` of those of `len` that the buffer is cut into; the last
    /// one may be shorter.
    ///
    /// # Safety
    ///
    /// No one else has this chunk, or one of another `len`.
    pub(super) unsafe fn chunk(&self, index: usize, len: usize) -> &'a mut [T] {
        let start = index.saturating_mul(len).min(self.len);
        let len = len.min(self.len - start);
        // SAFETY: both lie within the buffer, which is borrowed for `'a`; the
        // caller vouches for no one else having these elements.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// # Safety
    ///
    /// `position` is less than the length, and no other task writes it.
    pub(super) unsafe fn set(&self, position: usize, value: T)
    where
        T: Copy,
    {
        debug_assert!(position < self.len, "position past the buffer");
        // SAFETY: the caller vouches for the position.
        unsafe { self.start.add(position).write(value) };
    }

    /// Where the buffer begins, for a kernel that writes such positions.
    pub(super) fn start(&self) -> *mut T {
        self.start
    }
}
