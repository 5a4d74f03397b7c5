//! Private copies: one for each worker, of all windows that a call combines,
//! and how they are merged.
//!
//! Knows scratch memory and the kernels that clear and merge. Knows nothing of
//! plans, nor of which updates a worker combines in its copy.

use std::ops::Range;

use smallvec::SmallVec;

use super::scratch::Scratch;
use super::tasks::Workers;
use super::tile::LINE_BYTES;
use crate::error::ScatterError;
use crate::kernel::identity::Private;
use crate::kernel::{Job, Kernels, Steps};
use crate::plan::signed;

/// Jobs of one kernel call.
const JOBS: usize = 64;

/// Words between copies, which may begin anywhere in a line: so many that
/// workers share no line, nor two that are fetched together.
const GAP_WORDS: usize = 3 * LINE_BYTES / size_of::<u64>();

/// Words of scratch memory for a copy of so many bytes, the gap behind it
/// included. A word is as long and as aligned as any element whose partial
/// results combine to the bits of the loop.
pub(super) fn copy_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>()) + GAP_WORDS
}

/// A copy for each of some workers, in scratch memory.
#[derive(Debug)]
pub(crate) struct Copies<'k> {
    private: Private,
    kernels: &'k Kernels,
    /// Windows of a copy, and elements of a window.
    windows: usize,
    len: usize,
    /// Words from one copy to the next.
    words: usize,
    parts: usize,
    memory: Vec<u64>,
}

/// Where the windows of an output lie that copies are merged into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    /// That of number 0.
    pub(crate) output: *mut u8,
    /// Elements from one to the next.
    pub(crate) unit: isize,
}

#[expect(unsafe_code, reason = "tasks share the address of one output")]
// SAFETY: it is only used by `Copies::merge`, whose callers vouch for windows that no
// one else has.
unsafe impl Sync for Merged {}

impl<'k> Copies<'k> {
    /// `parts` copies of `windows` windows of `len` elements, with any content.
    /// `private` is that of the operation that `kernels` belong to.
    pub(crate) fn take(
        private: Private,
        kernels: &'k Kernels,
        (windows, len): (usize, usize),
        parts: usize,
    ) -> Result<Self, ScatterError> {
        let bytes = windows.saturating_mul(len).saturating_mul(kernels.size);
        let words = copy_words(bytes);
        Ok(Self {
            private,
            kernels,
            windows,
            len,
            words,
            parts,
            memory: Scratch::take(words.saturating_mul(parts))?,
        })
    }

    /// Leaves the memory for the next call.
    pub(crate) fn put_back(self) {
        Scratch::put_back(self.memory);
    }

    /// Clears the copies and hands each to a task of its own, with its number:
    /// the address of its first window, on which nothing else works meanwhile.
    pub(crate) fn fill(
        &mut self,
        workers: &Workers<'_>,
        task: &(dyn Fn(usize, *mut u8) + Sync),
    ) -> Result<(), ScatterError> {
        // Scratch memory may be longer.
        let copies = &mut self.memory[..self.words * self.parts];
        workers.run_chunks(copies, self.words, &|index, copy| {
            clear(&self.private, self.kernels, copy, self.windows * self.len);
            task(index, copy.as_mut_ptr().cast());
        })
    }

    /// Combines a range of windows of all copies, one copy after the other, with
    /// those of an output.
    ///
    /// # Safety
    ///
    /// - `into` says where an output of elements of the operation has those
    ///   windows, contiguous and initialised.
    /// - No one else reads or writes them meanwhile.
    ///
    /// # Panics
    ///
    /// If the copies have fewer windows.
    #[expect(unsafe_code, reason = "as the kernels that it calls")]
    pub(crate) unsafe fn merge(&self, into: Merged, numbers: Range<u64>) {
        assert!(numbers.end <= self.windows as u64, "windows of the copies");
        let copies = &self.memory[..self.words * self.parts];
        for copy in copies.chunks(self.words) {
            // SAFETY: the copy has all windows, each initialised by `fill`; the
            // caller vouches for those of the output.
            unsafe { self.merge_copy(copy.as_ptr().cast(), into, numbers.clone()) };
        }
    }

    /// # Safety
    ///
    /// As for [`Self::merge`], of one copy.
    #[expect(unsafe_code, reason = "as the kernels that it calls")]
    unsafe fn merge_copy(&self, copy: *const u8, into: Merged, numbers: Range<u64>) {
        let merge = self.private.merge.apply;
        let len = self.len.cast_signed();
        let job = |number: u64, windows: u64| Job {
            dst: signed(number) * into.unit,
            src: signed(number) * len,
            len: usize::try_from(windows).unwrap_or(0) * self.len,
        };
        if into.unit == len {
            let all = [job(numbers.start, numbers.end - numbers.start)];
            // SAFETY: handed on as it is: windows lie one behind the other.
            unsafe { merge(into.output, copy, &all, Steps::UNIT) };
            return;
        }
        for first in numbers.clone().step_by(JOBS) {
            let last = numbers.end.min(first + JOBS as u64);
            let jobs: SmallVec<[Job; JOBS]> = (first..last).map(|number| job(number, 1)).collect();
            // SAFETY: handed on as it is.
            unsafe { merge(into.output, copy, &jobs, Steps::UNIT) };
        }
    }
}

/// Fills a copy with elements that an update replaces.
///
/// # Panics
///
/// If it is not long enough.
fn clear(private: &Private, kernels: &Kernels, copy: &mut [u64], elements: usize) {
    assert!(
        elements.saturating_mul(kernels.size) <= size_of_val(copy),
        "a copy of all windows"
    );
    let all = Job {
        dst: 0,
        src: 0,
        len: elements,
    };
    let filling = Steps { dst: 1, src: 0 };
    #[expect(unsafe_code, reason = "writes elements into words")]
    // SAFETY: so many elements have just been found to fit; an identity is one
    // element.
    unsafe {
        (kernels.copy)(
            copy.as_mut_ptr().cast(),
            private.identity.as_ptr(),
            &[all],
            filling,
        );
    }
}
