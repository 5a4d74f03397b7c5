//! Evenly strided elements, for reading one by one.
//!
//! Knows address, length, stride and dtype. Does not know the owner of the memory.

use std::ops::Range;

use ndscatter::DType;

/// Evenly strided elements of an array. A line does not keep the memory alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    address: *const u8,
    len: usize,
    /// Distance between two elements, in elements.
    stride: isize,
    dtype: DType,
}

// SAFETY: a line only reads, and the caller of `from_raw_parts` keeps the memory alive.
unsafe impl Send for Line {}
// SAFETY: as for `Send`.
unsafe impl Sync for Line {}

impl Line {
    /// # Safety
    ///
    /// `address` is aligned for `dtype`. From there, `len` elements of `dtype` are readable at a
    /// stride of `stride` elements, for as long as the line is read.
    pub(crate) unsafe fn from_raw_parts(
        address: *const u8,
        len: usize,
        stride: isize,
        dtype: DType,
    ) -> Self {
        Self {
            address,
            len,
            stride,
            dtype,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns element `number`, or `None` if it does not exist or `T` has another size.
    #[inline]
    pub(crate) fn get<T: Copy>(&self, number: usize) -> Option<T> {
        let exists = number < self.len && self.dtype.size() == size_of::<T>();
        let offset = number.cast_signed().wrapping_mul(self.stride);
        // SAFETY: element `number` is below `len`, so it is readable and aligned
        // (`from_raw_parts`).
        exists.then(|| unsafe { self.address.cast::<T>().wrapping_offset(offset).read() })
    }

    /// Reads each existing element of `range` once. Reads nothing if `T` has another size than an
    /// element.
    #[inline]
    pub(crate) fn read<T: Copy>(&self, range: Range<usize>, mut take: impl FnMut(T)) {
        let end = range.end.min(self.len);
        if self.dtype.size() != size_of::<T>() || range.start >= end {
            return;
        }
        let base = self.address.cast::<T>();
        if self.stride == 1 {
            for number in range.start..end {
                // SAFETY: as in `get`: `end` is at most `len`.
                take(unsafe { base.add(number).read() });
            }
            return;
        }
        for number in range.start..end {
            // SAFETY: as in `get`: `end` is at most `len`.
            take(unsafe { base.offset(number.cast_signed() * self.stride).read() });
        }
    }

    /// Reads the same elements as [`Self::read`]. If the stride is 1, blocks of eight elements are
    /// passed to `take`. All other elements are passed one by one.
    #[inline]
    pub(crate) fn read_blocks<T: Copy>(&self, range: Range<usize>, mut take: impl FnMut(&[T])) {
        const BLOCK: usize = 8;
        let end = range.end.min(self.len);
        let mut first = range.start;
        if self.dtype.size() == size_of::<T>() && self.stride == 1 {
            while first + BLOCK <= end {
                let block = self.address.cast::<T>().wrapping_add(first);
                // SAFETY: `first + BLOCK` is at most `len`, so all eight elements are readable and
                // aligned.
                let block = unsafe { block.cast::<[T; BLOCK]>().read() };
                take(&block);
                first += BLOCK;
            }
        }
        self.read(first..end, |value: T| take(&[value]));
    }
}
