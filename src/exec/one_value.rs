//! Updates that all have one value.
//!
//! A small block of copies of the value replaces the tensor of updates. Kernels read the copies
//! like ordinary updates, so no kernel needs a variant for updates of one value.
//!
//! This module reads the bytes of the single value of the updates, and makes the copies. This
//! module does not know which elements of the output the kernels update with these copies.

#![expect(unsafe_code, reason = "reads the value at its address")]

use super::scratch::Scratch;
use crate::kernel::{ElementsFn, Spread};

/// Length of the block of copies of a [`OneValue`], in words of 8 bytes. The block is stored on the
/// stack. One kernel call applies at most the copies of one block. A kernel call has an overhead
/// for the elements before its first full vector and after its last full vector. The block is long
/// enough to make this overhead small.
const WORDS: usize = 1024;

/// Contiguous copies of one element. Kernels read one copy as the update of each entry of a list of
/// destination numbers.
pub(crate) struct OneValue {
    copies: [u64; WORDS],
    len: usize,
}

impl OneValue {
    /// Makes copies of the element at `value`: `wanted` copies, or as many as fit in the block if
    /// `wanted` is larger.
    ///
    /// # Safety
    ///
    /// `value` is the address of an initialised element of `size` plain bytes.
    pub(crate) unsafe fn new(value: *const u8, size: usize, wanted: usize) -> Self {
        let mut copies = [0_u64; WORDS];
        let len = (size_of_val(&copies) / size.max(1)).min(wanted);
        // SAFETY: the caller guarantees that `value` is the address of an initialised element of
        // `size` plain bytes.
        unsafe { fill(&mut copies, len * size, value, size) };
        Self { copies, len }
    }

    /// Applies the element of `size` bytes at `value` as the update of each destination number in
    /// `numbers`.
    ///
    /// The function is not inlined, so that the block of copies is stored on the stack of this
    /// function only. When the block was a local variable of the code for long lists, calls whose
    /// updates are a slice, not one value, were 5 percent slower.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`ElementsFn`] requires, for plain elements of `size` bytes. The
    /// element at `value` is initialised.
    #[inline(never)]
    pub(crate) unsafe fn apply_once<O>(
        kernel: ElementsFn<O>,
        size: usize,
        dst: *mut u8,
        value: *const u8,
        numbers: &[O],
        spread: Spread,
    ) {
        // SAFETY: as `ElementsFn` requires, the caller guarantees two facts. The element at `value`
        // is initialised and has `size` bytes. The elements of `dst` at `numbers` are valid for
        // reads and writes.
        unsafe { Self::new(value, size, numbers.len()).apply(kernel, dst, numbers, spread) }
    }

    /// Applies the value as the update of each destination number in `numbers`.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`ElementsFn`] requires, for elements of the type of the copied
    /// value.
    pub(crate) unsafe fn apply<O>(
        &self,
        kernel: ElementsFn<O>,
        dst: *mut u8,
        numbers: &[O],
        spread: Spread,
    ) {
        for numbers in numbers.chunks(self.len.max(1)) {
            debug_assert!(numbers.len() <= self.len, "more numbers than copies");
            // SAFETY: the block has at least one copy per number. The caller guarantees that the
            // elements of `dst` at `numbers` are valid for reads and writes, as `ElementsFn`
            // requires.
            unsafe { kernel(dst, self.copies.as_ptr().cast(), numbers, spread) };
        }
    }
}

/// Contiguous copies of one element, in scratch memory. If all updates have one value, a scatter
/// reads these copies as the innermost run of every window of updates.
pub(crate) struct OneRun(Vec<u64>);

impl OneRun {
    /// Maximum bytes of the copies of the only element of the updates. If the innermost run of a
    /// window has more bytes, no copies are made. The transfer then reads this element again and
    /// again, at stride 0.
    const BYTES: usize = 64 * 1024;

    /// Makes `len` copies of the element at `value`. Returns `None` if `len` copies have more than
    /// [`Self::BYTES`] bytes, or if the allocation of the copies fails.
    ///
    /// # Safety
    ///
    /// `value` is the address of an initialised element of `size` plain bytes.
    pub(crate) unsafe fn new(value: *const u8, size: usize, len: usize) -> Option<Self> {
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| bytes <= Self::BYTES)?;
        // A buffer of `u64` is aligned for all elements: even elements of 16 bytes have an
        // alignment of at most 8.
        let mut copies = <u64 as Scratch>::take(bytes.div_ceil(size_of::<u64>())).ok()?;
        // SAFETY: the caller guarantees that `value` is the address of an initialised element of
        // `size` plain bytes.
        unsafe { fill(&mut copies, bytes, value, size) };
        Some(Self(copies))
    }

    /// Returns the address of the first copy.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Returns the memory of the copies to the cache of scratch buffers.
    pub(crate) fn put_back(self) {
        Scratch::put_back(self.0);
    }
}

/// Fills the first `bytes` bytes of `words` with copies of the element at `value`. `bytes` is a
/// multiple of `size`.
///
/// # Safety
///
/// `value` is the address of an initialised element of `size` plain bytes.
unsafe fn fill(words: &mut [u64], bytes: usize, value: *const u8, size: usize) {
    let bytes = &mut bytemuck::cast_slice_mut(words)[..bytes];
    let mut done = size.min(bytes.len());
    // SAFETY: the caller guarantees that the element at `value` is initialised and has `size`
    // bytes. `bytes` is an exclusive borrow, so the element and `bytes` do not overlap.
    unsafe { value.copy_to_nonoverlapping(bytes.as_mut_ptr(), done) };
    while done < bytes.len() {
        let more = done.min(bytes.len() - done);
        bytes.copy_within(..more, done);
        done += more;
    }
}

#[cfg(test)]
mod tests {
    use super::OneRun;

    #[test]
    fn all_copies_are_the_value() {
        let value: [u8; 16] = std::array::from_fn(|at| u8::try_from(at).expect("at most 15") + 1);
        for size in [1, 2, 4, 8, 16] {
            // SAFETY: `value` has 16 initialised bytes, and `size` is at most 16.
            let run =
                unsafe { OneRun::new(value.as_ptr(), size, 77) }.expect("memory for 77 copies");
            let bytes: &[u8] = bytemuck::cast_slice(&run.0);
            for copy in bytes[..77 * size].chunks(size) {
                assert_eq!(copy, &value[..size], "a run of elements of {size} bytes");
            }
            run.put_back();
        }
    }
}
