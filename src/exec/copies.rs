//! Private copies of all windows that a call combines, one copy per worker, and the merge of the
//! copies.
//!
//! This module knows scratch memory, the kernels that set a copy to the identity of the reduction,
//! and the kernels that merge copies. This module does not know plans, nor which updates a worker
//! combines in its copy.

use std::ops::Range;

use smallvec::SmallVec;

use super::scratch::Scratch;
use super::tasks::Workers;
use super::tile::LINE_BYTES;
use crate::error::ScatterError;
use crate::kernel::identity::Private;
use crate::kernel::{Job, Kernels, Steps};
use crate::plan::signed;

/// Maximum number of jobs in one kernel call. A job is one run of consecutive elements to combine.
const JOBS: usize = 64;

/// Gap between two consecutive copies: three cache lines, in words of 8 bytes. A copy may begin
/// anywhere in a cache line. With this gap, two workers never share a cache line, nor a pair of
/// cache lines that the processor prefetches together.
const GAP_WORDS: usize = 3 * LINE_BYTES / size_of::<u64>();

/// Returns the number of 8-byte words of scratch memory for a private copy of `bytes` bytes,
/// including the gap after the copy. The memory is aligned to a word, which suffices: no element
/// type of a private copy is larger than a word or needs a larger alignment. A reduction uses
/// private copies only if private copies do not change the bits of its result.
pub(super) fn copy_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>()) + GAP_WORDS
}

/// Private copies in scratch memory, one per worker.
#[derive(Debug)]
pub(crate) struct Copies<'k> {
    private: Private,
    kernels: &'k Kernels,
    /// Number of windows in each copy, and number of elements in each window.
    windows: usize,
    len: usize,
    /// Words from the start of one copy to the start of the next copy, including the gap.
    words: usize,
    parts: usize,
    memory: Vec<u64>,
}

/// Location of the output's windows. The copies are merged into these windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    /// Address of window number 0.
    pub(crate) output: *mut u8,
    /// Elements from the start of one window to the start of the next window.
    pub(crate) unit: isize,
}

#[expect(unsafe_code, reason = "tasks share the address of one output")]
// SAFETY: only `Copies::merge` accesses memory through the address. The Safety section of
// `Copies::merge` requires that no other thread uses the merged windows during the call.
unsafe impl Sync for Merged {}

impl<'k> Copies<'k> {
    /// Takes scratch memory for `parts` copies. Each copy has `windows` windows of `len` elements.
    /// The values in this memory are arbitrary until [`Self::fill`] sets all elements to the
    /// identity of the reduction. `private` and `kernels` belong to the same operation.
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

    /// Returns the memory to the cache of scratch buffers.
    pub(crate) fn put_back(self) {
        Scratch::put_back(self.memory);
    }

    /// Sets all elements of each private copy to the identity of the reduction, and then runs
    /// `task` for this private copy. The arguments of `task` are the number of the private copy and
    /// the address of its first window. No other task uses the private copy while `task` runs.
    pub(crate) fn fill(
        &mut self,
        workers: &Workers<'_>,
        task: &(dyn Fn(usize, *mut u8) + Sync),
    ) -> Result<(), ScatterError> {
        // A scratch buffer may be longer than requested.
        let copies = &mut self.memory[..self.words * self.parts];
        workers.run_chunks(copies, self.words, &|index, copy| {
            clear(&self.private, self.kernels, copy, self.windows * self.len);
            task(index, copy.as_mut_ptr().cast());
        })
    }

    /// Combines the windows `numbers` of all copies with the same windows of an output. The copies
    /// are combined in ascending order of the copies' numbers.
    ///
    /// # Safety
    ///
    /// - `into` is the location of an output whose elements have the operation's type. The output
    ///   has the windows `numbers`, each contiguous and initialised.
    /// - No other thread reads or writes these windows during the call.
    ///
    /// # Panics
    ///
    /// Panics if `numbers` ends after the last window of a copy.
    #[expect(
        unsafe_code,
        reason = "calls kernels that need the caller's guarantees"
    )]
    pub(crate) unsafe fn merge(&self, into: Merged, numbers: Range<u64>) {
        assert!(
            numbers.end <= self.windows as u64,
            "the copies have fewer windows than are merged"
        );
        let copies = &self.memory[..self.words * self.parts];
        for copy in copies.chunks(self.words) {
            // SAFETY: each private copy has all windows, and `fill` has initialised each window.
            // The Safety section of `merge` requires that the output has the windows `numbers`,
            // initialised, and that no other thread uses these windows during the call.
            unsafe { self.merge_copy(copy.as_ptr().cast(), into, numbers.clone()) };
        }
    }

    /// Combines the windows `numbers` of one private copy with the same windows of an output.
    ///
    /// # Safety
    ///
    /// - `copy` is the address of a private copy with all windows, each initialised.
    /// - `into` is the location of an output whose elements have the operation's type. The output
    ///   has the windows `numbers`, each contiguous and initialised.
    /// - No other thread reads or writes these windows of the output during the call.
    #[expect(
        unsafe_code,
        reason = "calls kernels that need the caller's guarantees"
    )]
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
            // SAFETY: the Safety section of `merge_copy` requires that `copy` and the output have
            // the windows `numbers`, initialised, and that no other thread uses the output's
            // windows. Consecutive windows are contiguous in the copy and in the output, so one job
            // covers all windows.
            unsafe { merge(into.output, copy, &all, Steps::UNIT) };
            return;
        }
        for first in numbers.clone().step_by(JOBS) {
            let last = numbers.end.min(first + JOBS as u64);
            let jobs: SmallVec<[Job; JOBS]> = (first..last).map(|number| job(number, 1)).collect();
            // SAFETY: each job is one window of `numbers`. The Safety section of `merge_copy`
            // requires that `copy` and the output have this window, initialised, and that no other
            // thread uses the output's window.
            unsafe { merge(into.output, copy, &jobs, Steps::UNIT) };
        }
    }
}

/// Fills a copy with the identity of the reduction. A merge of the identity into a value leaves the
/// value unchanged.
///
/// # Panics
///
/// Panics if `copy` is shorter than `elements` elements.
fn clear(private: &Private, kernels: &Kernels, copy: &mut [u64], elements: usize) {
    assert!(
        elements.saturating_mul(kernels.size) <= size_of_val(copy),
        "the copy is shorter than its windows"
    );
    let all = Job {
        dst: 0,
        src: 0,
        len: elements,
    };
    let filling = Steps { dst: 1, src: 0 };
    #[expect(unsafe_code, reason = "writes elements of any type into words")]
    // SAFETY: the assertion above has checked that `elements` elements fit in `copy`. The identity
    // is one element.
    unsafe {
        (kernels.copy)(
            copy.as_mut_ptr().cast(),
            private.identity.as_ptr(),
            &[all],
            filling,
        );
    }
}
