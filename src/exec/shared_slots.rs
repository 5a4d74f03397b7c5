//! A buffer that several tasks fill concurrently. No two tasks write the same position.

#![expect(unsafe_code, reason = "tasks write one buffer at disjoint positions")]

use std::marker::PhantomData;

use super::tile::LINE_BYTES;
use crate::kernel::stream_lines;

/// A slice that several tasks write concurrently, at disjoint positions.
#[derive(Debug)]
pub(super) struct SharedSlots<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: the methods that access the slice are `unsafe`. The callers of these methods guarantee
// that no two tasks access the same position.
unsafe impl<T: Send> Sync for SharedSlots<'_, T> {}

impl<'a, T> SharedSlots<'a, T> {
    pub(super) fn new(buffer: &'a mut [T]) -> Self {
        Self {
            start: buffer.as_mut_ptr(),
            len: buffer.len(),
            memory: PhantomData,
        }
    }

    /// Returns chunk number `index` of the buffer, if the buffer is cut into chunks of `len`
    /// elements. The last chunk may be shorter.
    ///
    /// # Safety
    ///
    /// As long as the returned slice exists, nothing else accesses its elements. Two chunks with
    /// different `index` and equal `len` share no element. Chunks with different `len` may overlap.
    pub(super) unsafe fn chunk(&self, index: usize, len: usize) -> &'a mut [T] {
        let start = index.saturating_mul(len).min(self.len);
        let len = len.min(self.len - start);
        // SAFETY: `start` and `len` were clamped to the buffer, which is borrowed for `'a`. The
        // caller guarantees that nothing else accesses these elements.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// Copies `values` to the buffer, beginning at element `position`.
    ///
    /// # Safety
    ///
    /// The elements `position..position + values.len()` are in the buffer, and no other task
    /// accesses them.
    pub(super) unsafe fn copy(&self, position: usize, values: &[T])
    where
        T: Copy,
    {
        debug_assert!(
            position + values.len() <= self.len,
            "the elements are outside the buffer"
        );
        // SAFETY: the caller guarantees that the written elements are in the buffer, and that no
        // other task accesses them. `values` is a borrow of other memory.
        unsafe {
            values
                .as_ptr()
                .copy_to_nonoverlapping(self.start.add(position), values.len())
        };
    }

    /// Copies `values` to the buffer, beginning at element `position`. If the size of `values` is a
    /// multiple of the cache line size, the function uses streaming stores. The task that calls
    /// this function must call [`fence`](crate::kernel::fence) after its last write.
    ///
    /// # Safety
    ///
    /// As for [`Self::copy`]. The element at `position` is at the start of a cache line.
    #[inline(always)]
    pub(super) unsafe fn stream<const LEN: usize>(&self, position: usize, values: &[T; LEN])
    where
        T: Copy,
    {
        if !size_of_val(values).is_multiple_of(LINE_BYTES) {
            // SAFETY: the caller vouches for the elements.
            return unsafe { self.copy(position, values) };
        }
        debug_assert!(
            position + LEN <= self.len,
            "the elements are outside the buffer"
        );
        // SAFETY: the caller vouches for the elements and the alignment.
        unsafe {
            let to = self.start.add(position).cast();
            stream_lines(to, values.as_ptr().cast(), size_of_val(values));
        }
    }
}
