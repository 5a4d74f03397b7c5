//! Evenly spaced elements, to be read one by one.
//!
//! Knows where they lie. Knows nothing of who keeps them.

use std::ops::Range;

use ndscatter::DType;

/// Evenly spaced elements of an array, which must be kept meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(super) address: *const u8,
    pub(super) len: usize,
    pub(super) step: isize,
    pub(super) dtype: DType,
}

// SAFETY: it only reads, and whoever made it keeps the array.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Reads those elements of the range that there are, each once. `T` is as large as an
    /// element.
    #[inline]
    pub(crate) fn read<T: Copy>(&self, range: Range<usize>, mut take: impl FnMut(T)) {
        let end = range.end.min(self.len);
        if self.dtype.size() != size_of::<T>() || range.start >= end {
            return;
        }
        let base = self.address.cast::<T>();
        if self.step == 1 {
            for number in range.start..end {
                // SAFETY: an element of the array, which is aligned.
                take(unsafe { base.add(number).read() });
            }
            return;
        }
        for number in range.start..end {
            // SAFETY: as above.
            take(unsafe { base.offset(number.cast_signed() * self.step).read() });
        }
    }
}
