//! Read access to elements at a constant stride.
//!
//! This module uses only the address, the length, the stride and the dtype of the elements. It does
//! not depend on the owner of the memory.

use std::ops::Range;

use ndscatter::DType;

/// Elements of an array at a constant stride, for reading. A `Line` does not keep the memory of the
/// array alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    address: *const u8,
    len: usize,
    /// Distance between the addresses of consecutive elements, in units of the element size.
    stride: isize,
    dtype: DType,
}

// SAFETY: a `Line` only reads the elements, and the caller of `from_raw_parts` keeps the memory
// alive.
unsafe impl Send for Line {}
// SAFETY: as for `Send`.
unsafe impl Sync for Line {}

impl Line {
    /// # Safety
    ///
    /// `address` must be aligned for `dtype`. Element `i` is stored `i * stride` elements after
    /// `address`, for each `i` below `len`. All `len` elements must be readable until the last use
    /// of the `Line`.
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

    /// Returns element `number`. Returns `None` if `number` is not below `len`, or if the size of
    /// `T` is not the size of `dtype`.
    #[inline]
    pub(crate) fn get<T: Copy>(&self, number: usize) -> Option<T> {
        let exists = number < self.len && self.dtype.size() == size_of::<T>();
        let offset = number.cast_signed().wrapping_mul(self.stride);
        // SAFETY: `number` is below `len`, so the element is readable and aligned by the contract
        // of `from_raw_parts`.
        exists.then(|| unsafe { self.address.cast::<T>().wrapping_offset(offset).read() })
    }

    /// Reads the elements with the numbers in `range`, and passes each element to `take` once.
    /// Ignores numbers from `len` on. Reads nothing if the size of `T` is not the size of `dtype`.
    #[inline]
    pub(crate) fn read<T: Copy>(&self, range: Range<usize>, mut take: impl FnMut(T)) {
        let end = range.end.min(self.len);
        if self.dtype.size() != size_of::<T>() || range.start >= end {
            return;
        }
        let base = self.address.cast::<T>();
        if self.stride == 1 {
            for number in range.start..end {
                // SAFETY: `number` is below `end`, which is at most `len`. The rest is as in `get`.
                take(unsafe { base.add(number).read() });
            }
            return;
        }
        for number in range.start..end {
            // SAFETY: `number` is below `end`, which is at most `len`. The rest is as in `get`.
            take(unsafe { base.offset(number.cast_signed() * self.stride).read() });
        }
    }

    /// Reads the same elements as [`Self::read`], in the same order.
    ///
    /// If the stride is 1, passes slices of eight elements to `take` while at least eight elements
    /// remain, and passes each remaining element as a slice of length 1. If the stride is not 1,
    /// passes each element as a slice of length 1.
    #[inline]
    pub(crate) fn read_blocks<T: Copy>(&self, range: Range<usize>, mut take: impl FnMut(&[T])) {
        const BLOCK: usize = 8;
        let end = range.end.min(self.len);
        let mut first = range.start;
        if self.dtype.size() == size_of::<T>() && self.stride == 1 {
            while first + BLOCK <= end {
                let block = self.address.cast::<T>().wrapping_add(first);
                // SAFETY: `first + BLOCK` is at most `len`, so the eight elements from `first` on
                // are readable and aligned.
                let block = unsafe { block.cast::<[T; BLOCK]>().read() };
                take(&block);
                first += BLOCK;
            }
        }
        self.read(first..end, |value: T| take(&[value]));
    }
}
