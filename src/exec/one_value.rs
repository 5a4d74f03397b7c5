//! Updates that are all one value: a few copies of it, side by side, stand for
//! any number of them, so that it takes no kernels of its own.
//!
//! Knows bytes. Knows nothing of where they are written.

#![expect(unsafe_code, reason = "reads the value at its address")]

use super::scratch::Scratch;
use crate::kernel::{ElementsFn, Spread};

/// Words of the copies that lie on the stack: so many that what a kernel does
/// before its first element, and stops short of before its last, is little.
const WORDS: usize = 1024;

/// Copies of a single element, for lists of numbers.
pub(crate) struct OneValue {
    copies: [u64; WORDS],
    len: usize,
}

impl OneValue {
    /// For lists of at most `wanted` numbers.
    ///
    /// # Safety
    ///
    /// At `value` lies an element of `size` plain bytes, initialised.
    pub(crate) unsafe fn new(value: *const u8, size: usize, wanted: usize) -> Self {
        let mut copies = [0_u64; WORDS];
        let len = (size_of_val(&copies) / size.max(1)).min(wanted);
        // SAFETY: handed on as it is.
        unsafe { fill(&mut copies, len * size, value, size) };
        Self { copies, len }
    }

    /// Has a kernel take the element of `size` bytes at `value` for each of the
    /// numbers. A function of its own, as the copies lie on the stack: among the
    /// locals of long lists whose updates are a slice, they cost those 5 percent.
    ///
    /// # Safety
    ///
    /// As for [`ElementsFn`], of plain bytes; the element is initialised.
    #[inline(never)]
    pub(crate) unsafe fn apply_once<O>(
        kernel: ElementsFn<O>,
        size: usize,
        dst: *mut u8,
        value: *const u8,
        numbers: &[O],
        spread: Spread,
    ) {
        // SAFETY: handed on as it is.
        unsafe { Self::new(value, size, numbers.len()).apply(kernel, dst, numbers, spread) }
    }

    /// Has a kernel take the value for each of the numbers.
    ///
    /// # Safety
    ///
    /// As for [`ElementsFn`], of elements like the value.
    pub(crate) unsafe fn apply<O>(
        &self,
        kernel: ElementsFn<O>,
        dst: *mut u8,
        numbers: &[O],
        spread: Spread,
    ) {
        for numbers in numbers.chunks(self.len.max(1)) {
            debug_assert!(numbers.len() <= self.len, "a copy for each number");
            // SAFETY: there is one; the caller vouches for the rest.
            unsafe { kernel(dst, self.copies.as_ptr().cast(), numbers, spread) };
        }
    }
}

/// A run of copies, in scratch memory: the source of every run of the updates.
pub(crate) struct OneRun(Vec<u64>);

impl OneRun {
    /// Longer runs are read one element at a time, as they lie.
    const BYTES: usize = 64 * 1024;

    /// `len` copies. `None` if these are too many, or without memory for them.
    ///
    /// # Safety
    ///
    /// At `value` lies an element of `size` plain bytes, initialised.
    pub(crate) unsafe fn new(value: *const u8, size: usize, len: usize) -> Option<Self> {
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| bytes <= Self::BYTES)?;
        // Elements of 16 bytes are aligned to 8 at most.
        let mut copies = <u64 as Scratch>::take(bytes.div_ceil(size_of::<u64>())).ok()?;
        // SAFETY: handed on as it is.
        unsafe { fill(&mut copies, bytes, value, size) };
        Some(Self(copies))
    }

    /// Where the copies lie.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Leaves the memory for the next call.
    pub(crate) fn put_back(self) {
        Scratch::put_back(self.0);
    }
}

/// Fills `bytes` of `words`, which are whole elements, with copies of the one at `value`.
///
/// # Safety
///
/// At `value` lies an element of `size` plain bytes, initialised.
unsafe fn fill(words: &mut [u64], bytes: usize, value: *const u8, size: usize) {
    let bytes = &mut bytemuck::cast_slice_mut(words)[..bytes];
    let mut done = size.min(bytes.len());
    // SAFETY: the caller vouches for the element; the copies are exclusive.
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
        let value: [u8; 16] = std::array::from_fn(|at| u8::try_from(at).expect("small") + 1);
        for size in [1, 2, 4, 8, 16] {
            // SAFETY: the value has so many bytes.
            let run = unsafe { OneRun::new(value.as_ptr(), size, 77) }.expect("little memory");
            let bytes: &[u8] = bytemuck::cast_slice(&run.0);
            for copy in bytes[..77 * size].chunks(size) {
                assert_eq!(copy, &value[..size], "a run of {size}");
            }
            run.put_back();
        }
    }
}
