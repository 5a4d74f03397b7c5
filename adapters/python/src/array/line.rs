//! Evenly spaced elements, to be read one by one.
//!
//! Knows where they lie. Knows nothing of who keeps them.

use std::ops::Range;

use ndscatter::DType;

/// Evenly spaced elements of an array, which must be kept meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    address: *const u8,
    len: usize,
    step: isize,
    dtype: DType,
}

// SAFETY: it only reads, and whoever made it keeps the array.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

impl Line {
    /// # Safety
    ///
    /// So many elements of the type lie there, aligned, `step` elements from one to the next,
    /// and are kept for as long as the line is read.
    pub(crate) unsafe fn from_raw_parts(
        address: *const u8,
        len: usize,
        step: isize,
        dtype: DType,
    ) -> Self {
        Self {
            address,
            len,
            step,
            dtype,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The element at a place, if there is one and `T` is as large as it.
    #[inline]
    pub(crate) fn get<T: Copy>(&self, number: usize) -> Option<T> {
        let is_there = number < self.len && self.dtype.size() == size_of::<T>();
        let place = number.cast_signed().wrapping_mul(self.step);
        // SAFETY: an element of the array, which is aligned.
        is_there.then(|| unsafe { self.address.cast::<T>().wrapping_offset(place).read() })
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

    /// The same in blocks of eight, but for the last.
    #[inline]
    pub(crate) fn read_blocks<T: Copy>(&self, range: Range<usize>, mut take: impl FnMut(&[T])) {
        const BLOCK: usize = 8;
        let end = range.end.min(self.len);
        let mut first = range.start;
        if self.dtype.size() == size_of::<T>() && self.step == 1 {
            while first + BLOCK <= end {
                let block = self.address.cast::<T>().wrapping_add(first);
                // SAFETY: eight elements of the array, which are aligned.
                let block = unsafe { block.cast::<[T; BLOCK]>().read() };
                take(&block);
                first += BLOCK;
            }
        }
        self.read(first..end, |value: T| take(&[value]));
    }
}
