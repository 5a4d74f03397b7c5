//! A copy of all windows for each worker, which combines consecutive tuples in
//! it; the copies are then combined with the output, in order.

use super::Call;
use super::choose::Choice;
use super::scratch::Kept;
use super::tasks::Workers;
use super::tile::{LINE_BYTES, part, part_of_numbers};
use crate::error::ScatterError;
use crate::kernel::{Elements, Job, Kernels, Private, RowsFn, RowsForm, RunsFn, Spread, Steps};
use crate::plan::{Destinations, signed};

/// Jobs of one kernel call.
const JOBS: usize = 64;

/// Words between copies, which may begin anywhere in a line: so many that
/// workers share no line, nor two that are fetched together.
const GAP_WORDS: usize = 3 * LINE_BYTES / size_of::<u64>();

/// What a worker's copy is made with.
struct PrivateKernels<'a> {
    private: Private,
    rows: RowsFn,
    /// Where windows are single elements, with sources side by side.
    elements: Option<Elements>,
    numbers: &'a [u32],
}

/// Words of scratch memory for a copy of so many bytes, the gap behind it
/// included. A word is as long and as aligned as any element whose partial
/// results combine to the bits of the loop.
pub(crate) fn copy_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>()) + GAP_WORDS
}

impl Call<'_> {
    /// [`choose`](super::choose) has seen to it that windows are runs whose
    /// sources are evenly spaced. Without memory for the copies, the serial
    /// schedule needs none.
    pub(super) fn run_private(
        &self,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let parts = choice.grid.middle;
        let words = self.workload().copy_words();
        let memory = <u64 as Kept>::take(words.saturating_mul(parts));
        let (Some(kernels), Ok(mut memory)) = (self.private_kernels(), memory) else {
            self.run_serial();
            return Ok(());
        };
        let copies = &mut memory[..words * parts];
        if let Some(copy) = &self.copy {
            self.copy_in_parallel(workers, copy)?;
        }
        for repetition in 0..self.geometry.outer.elements() {
            workers.run_chunks(copies, words, &|index, copy| {
                self.combine_part(&kernels, copy, repetition, (parts, index));
            })?;
            let copies = &*copies;
            workers.run(parts, &|index| {
                let numbers = part_of_numbers(self.plan.scale().count, parts, index);
                for copy in copies.chunks(words) {
                    #[expect(unsafe_code, reason = "tasks merge windows of their own")]
                    // SAFETY: parts of the numbers are apart, and different
                    // numbers are different slices (`private_applies`).
                    unsafe {
                        self.merge(kernels.private, copy, repetition, numbers.clone());
                    }
                }
            })?;
        }
        Kept::put_back(memory);
        Ok(())
    }

    /// All windows fit in a copy, so that their numbers are narrow.
    fn private_kernels(&self) -> Option<PrivateKernels<'_>> {
        let Destinations::Narrow(numbers) = self.plan.destinations() else {
            return None;
        };
        let is_single =
            self.geometry.window.elements() == 1 && self.geometry.source_step() == Some(1);
        Some(PrivateKernels {
            private: self.operation.private()?,
            rows: self.kernels.apply_rows?,
            elements: self.kernels.apply_elements.filter(|_| is_single),
            numbers,
        })
    }

    /// Combines one part of the tuples in a worker's copy.
    fn combine_part(
        &self,
        kernels: &PrivateKernels<'_>,
        copy: &mut [u64],
        repetition: usize,
        (parts, index): (usize, usize),
    ) {
        let len = self.geometry.window.elements();
        let windows = usize::try_from(self.plan.scale().count).unwrap_or(0);
        let tuples = part(self.plan.tuples(), parts, index);
        let (_, src) = self.geometry.repetition(repetition);
        let step = self.geometry.source_step().unwrap_or(0);
        let src = src + self.geometry.window.src + tuples.start.cast_signed() * step;
        let (src, numbers) = (self.updates_at(src), &kernels.numbers[tuples]);
        kernels.private.clear(self.kernels, copy, windows * len);
        let copy: *mut u8 = copy.as_mut_ptr().cast();
        let rows = RowsForm {
            unit: len.cast_signed(),
            step,
            len,
            sources: None,
            is_near: true,
        };
        #[expect(unsafe_code, reason = "hands a worker's own copy to the kernels")]
        // SAFETY: the copy holds `windows` windows, apart from everything else
        // and initialised; numbers are less than `windows`; `Call::new` vouches
        // for the updates, which lie side by side where there are `elements`.
        unsafe {
            match kernels.elements {
                Some(elements) => (elements.u32)(copy, src, numbers, Spread::NEIGHBOURS),
                None => (kernels.rows)(copy, src, numbers, rows),
            }
        }
    }

    /// Combines the windows `numbers` of a copy with the output.
    ///
    /// # Safety
    ///
    /// They are slices of the output that no one else reads or writes in this
    /// repetition.
    #[expect(unsafe_code, reason = "hands a worker's own copy to the kernels")]
    unsafe fn merge(
        &self,
        private: Private,
        copy: &[u64],
        repetition: usize,
        numbers: std::ops::Range<u64>,
    ) {
        let len = self.geometry.window.elements();
        let (dst, _) = self.geometry.repetition(repetition);
        let dst = self.output_at(dst + self.geometry.window.dst);
        let merge: RunsFn = private.merge.apply;
        let job = |number: u64, windows: u64| Job {
            dst: signed(number) * self.geometry.unit,
            src: signed(number) * len.cast_signed(),
            len: usize::try_from(windows).unwrap_or(0) * len,
        };
        if self.geometry.unit == len.cast_signed() {
            let all = [job(numbers.start, numbers.end - numbers.start)];
            // SAFETY: as below, one behind the other.
            unsafe { merge(dst, copy.as_ptr().cast(), &all, Steps::UNIT) };
            return;
        }
        for first in numbers.clone().step_by(JOBS) {
            let last = numbers.end.min(first + JOBS as u64);
            let mut jobs = [job(first, 0); JOBS];
            let mut used = 0;
            for (slot, number) in jobs.iter_mut().zip(first..last) {
                *slot = job(number, 1);
                used += 1;
            }
            // SAFETY: the copy holds a window for every number; `Call::new`
            // vouches for the output, the caller for its slices.
            unsafe { merge(dst, copy.as_ptr().cast(), &jobs[..used], Steps::UNIT) };
        }
    }
}

impl Private {
    /// Fills a copy with `elements` values that an update replaces.
    ///
    /// # Panics
    ///
    /// If it is not long enough.
    pub(crate) fn clear(&self, kernels: &Kernels, copy: &mut [u64], elements: usize) {
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
        // SAFETY: so many elements have just been found to fit; an identity is
        // one element.
        unsafe {
            (kernels.copy)(
                copy.as_mut_ptr().cast(),
                self.identity.as_ptr(),
                &[all],
                filling,
            );
        }
    }
}
