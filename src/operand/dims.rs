//! One value a dimension.
//!
//! Knows where such values lie: inline for the ranks that there are, else in
//! memory, which is asked for and not taken for granted.

use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

use crate::error::ScatterError;
use crate::memory::out_of_memory;

/// One value a dimension; up to rank 8 without an allocation. Beyond that,
/// memory that cannot be had is an error and no abort.
#[derive(Debug)]
pub(crate) struct Dims<T>(SmallVec<[T; INLINE]>);

/// So many values lie inline.
const INLINE: usize = 8;

impl<T> Dims<T> {
    pub(crate) fn new() -> Self {
        Self(SmallVec::new())
    }

    /// At most `most` values.
    #[inline]
    pub(crate) fn collect(
        most: usize,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self, ScatterError> {
        let mut dims = Self::new();
        dims.reserve(most)?;
        // Room is there: nothing is allocated here.
        dims.0.extend(values.into_iter().take(most));
        Ok(dims)
    }

    /// Puts a value at the end.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), ScatterError> {
        self.reserve(1)?;
        self.0.push(value);
        Ok(())
    }

    /// Takes the value at `axis` away.
    pub(crate) fn remove(&mut self, axis: usize) -> T {
        self.0.remove(axis)
    }

    /// Keeps the values that `keep` accepts.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|value| keep(value));
    }

    /// Whether all values lie inline, and as many more as `more` would.
    pub(crate) fn is_inline_with(&self, more: usize) -> bool {
        !self.0.spilled() && self.len() + more <= INLINE
    }

    /// A copy of values that lie inline, which takes no memory.
    pub(crate) fn clone_inline(&self) -> Self
    where
        T: Copy,
    {
        debug_assert!(self.is_inline_with(0), "a copy that takes memory");
        Self(SmallVec::from_slice(&self.0))
    }

    #[inline]
    fn reserve(&mut self, more: usize) -> Result<(), ScatterError> {
        let wanted = self.len() + more;
        (self.0.try_reserve(more)).map_err(|_| out_of_memory::<T>(wanted))
    }
}

impl<T: Copy> Dims<T> {
    #[inline]
    pub(crate) fn copied(values: &[T]) -> Result<Self, ScatterError> {
        Self::collect(values.len(), values.iter().copied())
    }
}

impl<T> Default for Dims<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Dims<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Dims<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
