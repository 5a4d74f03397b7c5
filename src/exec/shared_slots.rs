//! A buffer that several tasks fill together. Each task writes positions that no other task writes.

#![expect(unsafe_code, reason = "tasks write one buffer at disjoint positions")]

use std::marker::PhantomData;

use super::tile::LINE_BYTES;
use crate::kernel::stream_lines;

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

    /// Copies `values` to the elements from `position` on.
    ///
    /// # Safety
    ///
    /// The buffer has these elements, and no other task accesses them.
    pub(super) unsafe fn copy(&self, position: usize, values: &[T])
    where
        T: Copy,
    {
        debug_assert!(
            position + values.len() <= self.len,
            "the elements are outside the buffer"
        );
        // SAFETY: the caller vouches for the elements. `values` is a borrow of other memory.
        unsafe {
            values
                .as_ptr()
                .copy_to_nonoverlapping(self.start.add(position), values.len())
        };
    }

    /// Copies `values` to the elements from `position` on. If `values` are whole cache lines, the
    /// function writes them with streaming stores. The task then calls
    /// [`fence`](crate::kernel::fence) after its last write.
    ///
    /// # Safety
    ///
    /// As for [`Self::copy`]. The first element begins a cache line.
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
