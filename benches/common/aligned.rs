//! Tensors that begin on a cache line, as those of array libraries for
//! compute do. A plain `Vec` of that size begins 16 bytes into a page: every
//! row of 256 bytes then lies on five lines and not on four, and scatters of
//! such rows take a quarter longer.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Values that begin on a cache line.
pub(crate) struct Aligned<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy> Aligned<T> {
    pub(crate) fn new(value: T, len: usize) -> Self {
        let memory = vec![value; len + LINE / size_of::<T>()];
        Self {
            start: memory.as_ptr().align_offset(LINE),
            memory,
            len,
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.start..][..self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..][..self.len]
    }
}
