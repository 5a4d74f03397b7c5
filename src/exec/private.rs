//! A copy of all windows for each worker, which combines consecutive tuples in
//! it; the copies are then combined with the output, in order.

use super::Call;
use super::choose::Choice;
use super::tasks::Workers;
use super::tile::{part, part_of_numbers};
use crate::error::ScatterError;
use crate::kernel::{Job, Private, Rows, RowsFn, RunsFn, Steps};
use crate::memory::zeroed;
use crate::plan::{Destinations, signed};

/// Jobs of one kernel call.
const JOBS: usize = 64;

/// What a worker's copy is made with.
struct PrivateKernels<'a> {
    private: Private,
    apply: RowsFn,
    numbers: &'a [u32],
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
        let windows = usize::try_from(self.plan.scale().count).unwrap_or(usize::MAX);
        let bytes = (windows.saturating_mul(self.geometry.window.elements()))
            .saturating_mul(self.row.size)
            .next_multiple_of(size_of::<u128>());
        let memory = zeroed::<u128>((bytes / size_of::<u128>()).saturating_mul(parts));
        let (Some(kernels), Ok(mut memory)) = (self.private_kernels(), memory) else {
            self.run_serial();
            return Ok(());
        };
        if let Some(copy) = &self.copy {
            self.copy_in_parallel(workers, copy)?;
        }
        let words = bytes / size_of::<u128>();
        for repetition in 0..self.geometry.outer.elements() {
            workers.run_chunks(&mut memory, words, &|index, copy| {
                self.combine_part(&kernels, copy, windows, repetition, (parts, index));
            })?;
            let memory = &memory;
            workers.run(parts, &|index| {
                let numbers = part_of_numbers(self.plan.scale().count, parts, index);
                for copy in memory.chunks(words) {
                    self.merge(kernels.private, copy, repetition, numbers.clone());
                }
            })?;
        }
        Ok(())
    }

    /// All windows fit in a copy, so that their numbers are narrow.
    fn private_kernels(&self) -> Option<PrivateKernels<'_>> {
        let Destinations::Narrow(numbers) = self.plan.destinations() else {
            return None;
        };
        Some(PrivateKernels {
            private: self.kernels.private()?,
            apply: self.row.apply_rows?,
            numbers,
        })
    }

    /// Combines one part of the tuples in a worker's copy.
    fn combine_part(
        &self,
        kernels: &PrivateKernels<'_>,
        copy: &mut [u128],
        windows: usize,
        repetition: usize,
        (parts, index): (usize, usize),
    ) {
        let len = self.geometry.window.elements();
        let tuples = part(self.plan.tuples(), parts, index);
        let (_, src) = self.geometry.repetition(repetition);
        let step = self.geometry.source_step().unwrap_or(0);
        let src = src + self.geometry.window.src + tuples.start.cast_signed() * step;
        let all = Job {
            dst: 0,
            src: 0,
            len: windows * len,
        };
        let filling = Steps { dst: 1, src: 0 };
        let copy: *mut u8 = copy.as_mut_ptr().cast();
        #[expect(unsafe_code, reason = "hands a worker's own copy to the kernels")]
        // SAFETY: the copy holds `windows` windows, apart from everything else,
        // and an identity is one element; numbers are less than `windows`;
        // `Call::new` vouches for the updates.
        unsafe {
            (self.row.copy)(copy, kernels.private.identity.as_ptr(), &[all], filling);
            let rows = Rows {
                unit: len.cast_signed(),
                step,
                len,
                sources: None,
                is_near: true,
            };
            (kernels.apply)(copy, self.updates_at(src), &kernels.numbers[tuples], rows);
        }
    }

    /// Combines the windows `numbers` of a copy with the output.
    fn merge(
        &self,
        private: Private,
        copy: &[u128],
        repetition: usize,
        numbers: std::ops::Range<u64>,
    ) {
        let len = self.geometry.window.elements();
        let (dst, _) = self.geometry.repetition(repetition);
        let dst = self.output_at(dst + self.geometry.window.dst);
        let merge: RunsFn = private.merge.apply;
        let mut jobs = [Job {
            dst: 0,
            src: 0,
            len,
        }; JOBS];
        let mut first = numbers.start;
        while first < numbers.end {
            let last = numbers.end.min(first + JOBS as u64);
            let mut used = 0;
            for (job, number) in jobs.iter_mut().zip(first..last) {
                job.dst = signed(number) * self.geometry.unit;
                job.src = signed(number) * len.cast_signed();
                used += 1;
            }
            #[expect(unsafe_code, reason = "hands a worker's own copy to the kernels")]
            // SAFETY: as above for the copy; every number is a window of the
            // output (`private_applies` asks for slices), which one task has.
            unsafe {
                merge(dst, copy.as_ptr().cast(), &jobs[..used], Steps::UNIT);
            }
            first = last;
        }
    }
}
