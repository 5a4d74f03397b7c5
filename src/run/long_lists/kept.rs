//! Selects tuples of a block (consecutive tuples of a list whose indices have been checked). The
//! element number of a tuple is the number of its destination: the position of one element in the
//! output. A function selects the tuples whose element numbers are in a range, or the tuples that
//! are not skipped.
//!
//! The module knows the element numbers and the updates of a block. The module does not know which
//! worker applies the updates.

use std::ops::Range;

use super::{CHECKED_TUPLES, LongList};
use crate::exec::one_value::OneValue;
use crate::kernel::Spread;
use crate::kernel::filter::{Filtered, NoEntries, ValueEntries, filter};

/// Buffers for the selected tuples of a block (consecutive tuples of a list): the element numbers
/// of the tuples, and their updates of at most 8 bytes.
pub(super) struct Kept {
    numbers: [u32; CHECKED_TUPLES],
    values: [u64; CHECKED_TUPLES],
}

impl Kept {
    pub(super) fn new() -> Self {
        Self {
            numbers: [0; CHECKED_TUPLES],
            values: [0; CHECKED_TUPLES],
        }
    }

    /// Returns the entries of `numbers` (element numbers) that are in `range`, in the order of
    /// `numbers`.
    #[inline(always)]
    pub(super) fn numbers<N: Filtered<u32>>(
        &mut self,
        list: &LongList<'_>,
        numbers: &[N],
        range: &Range<u64>,
    ) -> &[u32] {
        let len = filter(list.set, numbers, range, &mut self.numbers, NoEntries);
        &self.numbers[..len]
    }

    /// Applies the updates whose destinations are in `range`. `numbers` has the element number of
    /// each update's destination, in the order of `updates`.
    ///
    /// # Safety
    ///
    /// - From `updates` on, one initialised update of `W` bytes for each entry of `numbers` can be
    ///   read.
    /// - Elements of `copy` have `W` bytes. The elements of `copy` whose numbers are in `range` are
    ///   valid for the reads and writes of the kernel, as `ElementsFn` requires.
    #[inline(always)]
    pub(super) unsafe fn apply_values<N: Filtered<u32>, const W: usize>(
        &mut self,
        list: &LongList<'_>,
        copy: *mut u8,
        (numbers, updates): (&[N], *const [u8; W]),
        range: &Range<u64>,
    ) {
        // SAFETY: the Safety section of this function requires that one initialised update for each
        // entry of `numbers` can be read from `updates` on.
        let values = unsafe { std::slice::from_raw_parts(updates, numbers.len()) };
        let (kept_values, _) = bytemuck::cast_slice_mut::<_, u8>(&mut self.values).as_chunks_mut();
        let entries = ValueEntries {
            values,
            kept: kept_values,
        };
        let len = filter(list.set, numbers, range, &mut self.numbers, entries);
        let (values, spread) = (self.values.as_ptr().cast(), Spread::NEIGHBOURS);
        // SAFETY: `filter` has stored one update for each number that it selected. The buffer is
        // aligned for elements of at most 8 bytes. The Safety section of this function requires
        // that the elements of `copy` in `range` are valid for the kernel's reads and writes.
        unsafe { (list.kernel.u32)(copy, values, &self.numbers[..len], spread) };
    }
}

/// Methods for blocks with skipped tuples. The number that marks a skipped tuple is not an element
/// number of the output, so the function [`filter`] does not select this number.
impl LongList<'_> {
    /// Applies the updates of the tuples of a block, except skipped tuples. The argument `first` is
    /// the first tuple of the block. The argument `numbers` has the element number of each tuple's
    /// destination, or the mark of a skipped tuple.
    ///
    /// # Safety
    ///
    /// - As for [`Self::run`], with `copy` in place of the output. The elements of `copy` are
    ///   initialised, and valid for reads and writes.
    /// - From tuple `first` on, there is one update for each entry of `numbers`.
    /// - The entries of `numbers` for tuples that are not skipped are element numbers of `copy`.
    /// - Updates have at most 8 bytes.
    #[inline(never)]
    pub(super) unsafe fn apply_others(&self, copy: *mut u8, first: usize, numbers: &[u32]) {
        // SAFETY: the Safety section of this function requires that the elements of `copy` are
        // initialised and valid for reads and writes. The section also requires that one update of
        // `size` bytes can be read for each tuple.
        unsafe {
            match self.operation.kernels.size {
                1 => self.apply_others_of::<1>(copy, first, numbers),
                2 => self.apply_others_of::<2>(copy, first, numbers),
                4 => self.apply_others_of::<4>(copy, first, numbers),
                _ => self.apply_others_of::<8>(copy, first, numbers),
            }
        }
    }

    /// Implements [`Self::apply_others`] for updates of `W` bytes.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_others`]. Updates have `W` bytes.
    unsafe fn apply_others_of<const W: usize>(&self, copy: *mut u8, first: usize, numbers: &[u32]) {
        debug_assert_eq!(W, self.operation.kernels.size, "bytes of an update");
        let updates = self.buffers.source.cast::<[u8; W]>().wrapping_add(first);
        // SAFETY: there is one update for each tuple. `apply_values` applies only the tuples whose
        // element numbers are in `all_elements`, that is, below the number of elements of `copy`.
        // The Safety section of `apply_others` requires that the elements of `copy` are initialised
        // and valid for reads and writes.
        unsafe { Kept::new().apply_values(self, copy, (numbers, updates), &self.all_elements()) };
    }

    /// Applies `one`, the single value of all updates, to the destination of each tuple of a block,
    /// except skipped tuples. The argument `numbers` has the element number of each tuple's
    /// destination, or the mark of a skipped tuple.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_others`].
    #[inline(never)]
    pub(super) unsafe fn apply_one_value_to_others(
        &self,
        one: &OneValue,
        copy: *mut u8,
        numbers: &[u32],
    ) {
        let mut kept = Kept::new();
        let numbers = kept.numbers(self, numbers, &self.all_elements());
        // SAFETY: `Kept::numbers` has returned only numbers in `all_elements`, that is, below the
        // number of elements of `copy`. The Safety section of `apply_others` requires that the
        // elements of `copy` are initialised and valid for reads and writes.
        unsafe { one.apply(self.kernel.u32, copy, numbers, Spread::NEIGHBOURS) };
    }

    /// Returns the range of all element numbers. `Facts::can_stream` has checked that all element
    /// numbers fit in 32 bits.
    fn all_elements(&self) -> Range<u64> {
        debug_assert!(self.flat.elements <= u32::MAX as usize, "too many elements");
        0..self.flat.elements as u64
    }
}
