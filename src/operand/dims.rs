//! A list with one value per dimension.
//!
//! This module knows where the values are stored. Up to 8 values are stored inline. More values are
//! stored in an allocation, which may fail. This module does not know what the values mean.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::error::ScatterError;
use crate::memory::{out_of_memory, with_room};

/// A list with one value per dimension. Up to 8 values need no allocation. For more values, a
/// failed allocation returns an error and does not abort the process.
///
/// Small calls spend much of their time in loops over `Dims`. These loops were several times slower
/// with a general vector type with inline storage.
pub(crate) enum Dims<T> {
    Inline { values: [T; INLINE], len: usize },
    Heap(Vec<T>),
}

/// Maximum number of values that are stored inline.
const INLINE: usize = 8;

impl<T: Copy + Default> Dims<T> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self::Inline {
            values: [T::default(); INLINE],
            len: 0,
        }
    }

    /// Collects at most the first `most` values. If `most` values do not fit inline, memory for
    /// `most` values is allocated first.
    #[inline]
    pub(crate) fn collect(
        most: usize,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self, ScatterError> {
        let mut dims = if most > INLINE {
            Self::Heap(with_room(most)?)
        } else {
            Self::new()
        };
        for value in values.into_iter().take(most) {
            dims.push(value)?;
        }
        Ok(dims)
    }

    #[inline]
    pub(crate) fn copied(values: &[T]) -> Result<Self, ScatterError> {
        Self::collect(values.len(), values.iter().copied())
    }

    /// Appends a value.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), ScatterError> {
        match self {
            Self::Inline { values, len } if *len < INLINE => {
                values[*len] = value;
                *len += 1;
                Ok(())
            }
            _ => self.push_to_heap(value),
        }
    }

    #[cold]
    fn push_to_heap(&mut self, value: T) -> Result<(), ScatterError> {
        if let Self::Inline { values, .. } = self {
            let mut heap = with_room(2 * INLINE)?;
            heap.extend_from_slice(values);
            *self = Self::Heap(heap);
        }
        if let Self::Heap(values) = self {
            (values.try_reserve(1)).map_err(|_| out_of_memory::<T>(values.len() + 1))?;
            values.push(value);
        }
        Ok(())
    }

    /// Removes the value at `axis` and returns it.
    pub(crate) fn remove(&mut self, axis: usize) -> T {
        match self {
            Self::Inline { values, len } => {
                values[axis..*len].rotate_left(1);
                *len -= 1;
                values[*len]
            }
            Self::Heap(values) => values.remove(axis),
        }
    }

    /// Removes the values for which `keep` returns false. Calls `keep` for each value, from the
    /// last to the first.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for axis in (0..self.len()).rev() {
            if !keep(&self[axis]) {
                self.remove(axis);
            }
        }
    }

    /// Whether the values are stored inline, with room for at least `more` further values.
    pub(crate) fn is_inline_with(&self, more: usize) -> bool {
        matches!(self, Self::Inline { len, .. } if len + more <= INLINE)
    }

    /// Returns a copy without an allocation. The values of `self` must be stored inline.
    pub(crate) fn clone_inline(&self) -> Self {
        debug_assert!(self.is_inline_with(0), "a copy that needs an allocation");
        let mut copy = Self::new();
        if let Self::Inline { values, len } = &mut copy {
            *len = self.len().min(INLINE);
            values[..*len].copy_from_slice(&self[..*len]);
        }
        copy
    }
}

impl<T: Copy + Default> Default for Dims<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Dims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for Dims<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Inline { values, len } => &values[..*len],
            Self::Heap(values) => values,
        }
    }
}

impl<T> DerefMut for Dims<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Inline { values, len } => &mut values[..*len],
            Self::Heap(values) => values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dims;

    #[test]
    fn values_are_the_same_inline_and_on_the_heap() {
        for rank in 0..20 {
            let values: Vec<usize> = (0..rank).collect();
            let mut dims = Dims::copied(&values).expect("memory");
            assert_eq!(dims[..], values, "collected");
            let mut pushed = Dims::new();
            values
                .iter()
                .for_each(|&value| pushed.push(value).expect("memory"));
            assert_eq!(pushed[..], values, "pushed");
            assert_eq!(dims.is_inline_with(0), rank <= 8, "of rank {rank}");
            assert_eq!(dims.is_inline_with(1), rank < 8, "with one more");
            if rank > 0 {
                assert_eq!(pushed.remove(rank / 2), rank / 2, "from the middle");
                assert_eq!(pushed.len(), rank - 1, "one less");
            }
            dims.retain(|value| value % 3 == 0);
            let third: Vec<usize> = (0..rank).step_by(3).collect();
            assert_eq!(dims[..], third, "every third of {rank}");
        }
    }
}
