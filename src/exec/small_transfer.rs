//! Small transfers of rows at even distances, on the calling thread.
//!
//! No loops to set up, no schedule to choose, nothing to allocate: what a call
//! costs whose work is a few hundred bytes.

#![expect(unsafe_code, reason = "hands the memory of one call to its kernels")]

use super::access::Buffers;
use super::workload::Direction;
use crate::kernel::{
    Group, GroupFn, GroupRun, Job, Operation, RowsForm, RunsFn, Sources, Spread, Steps,
};
use crate::machine::Variants;
use crate::plan::{Flat, signed};

/// Jobs and groups of one kernel call.
const JOBS: usize = 32;
const GROUPS: usize = 8;

/// Most tuples that are sorted into groups here.
const SORTED: usize = 64;

/// The tuples of a small transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TupleNumbers<'a> {
    /// The number of each that is applied.
    pub(crate) numbers: &'a [u32],
    /// Their positions in the list, where some are skipped.
    pub(crate) positions: Option<&'a [u32]>,
}

/// Whether a transfer can be run here, however many bytes it touches.
#[inline(always)] // As all that is on the way of the smallest calls.
pub(crate) fn can_run(flat: &Flat, operation: &Operation) -> bool {
    let is_sorted = !operation.needs_groups || flat.tuples <= SORTED;
    is_sorted && u32::try_from(flat.slices).is_ok()
}

/// A transfer that [`can_run`] allows.
#[derive(Debug)]
pub(crate) struct SmallTransfer<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) flat: &'a Flat,
    pub(crate) tuples: TupleNumbers<'a>,
}

impl SmallTransfer<'_> {
    /// Runs the transfer. Windows of a gather's result that no position names become zeros.
    ///
    /// # Safety
    ///
    /// - `flat` says where the elements of the numbered and of the listed tensor lie, which
    ///   are those of `operation`. A scatter has `buffers.output` numbered and
    ///   `buffers.source` listed. A gather has them the other way round.
    /// - `output` is this call's alone, shares no byte with the others, and is
    ///   initialised in place or where `operation` clones.
    /// - If there is data to copy, both it and the output hold `flat.elements` elements
    ///   side by side.
    /// - Every number is less than `flat.slices`, every position less than
    ///   `flat.tuples`; without positions there are as many numbers.
    /// - Where a gather skips tuples, elements are plain bytes, and bytes of zero are a valid
    ///   element.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, direction: Direction, buffers: Buffers) {
        // SAFETY: handed on as it is.
        unsafe {
            match direction {
                Direction::Scatter => self.scatter(buffers),
                Direction::Gather => self.gather(buffers),
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(always)]
    unsafe fn scatter(&self, buffers: Buffers) {
        let output: *mut u8 = buffers.output.cast();
        if let Some(data) = buffers.data {
            let all = Job {
                dst: 0,
                src: 0,
                len: self.flat.elements,
            };
            // SAFETY: both hold that many elements and share no byte.
            unsafe { (self.operation.kernels.copy)(output, data, &[all], Steps::UNIT) };
        }
        for outer in 0..self.repetitions(!self.tuples.numbers.is_empty()) {
            let (numbered, listed) = self.origin(outer);
            let dst = output.wrapping_offset(numbered);
            let src = buffers.source.wrapping_offset(listed);
            // SAFETY: a repetition of the tensors that the caller vouches for.
            unsafe {
                match self.operation.group.filter(|_| self.operation.needs_groups) {
                    Some(kernel) => self.fold(kernel, dst, src),
                    None => self.apply(dst, src),
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline]
    unsafe fn gather(&self, buffers: Buffers) {
        let kernels = self.operation.kernels;
        let clears = self.tuples.positions.is_some();
        for outer in 0..self.repetitions(clears || !self.tuples.numbers.is_empty()) {
            let (numbered, listed) = self.origin(outer);
            let dst = buffers.output.cast::<u8>().wrapping_offset(listed);
            let src = buffers.source.wrapping_offset(numbered);
            // SAFETY: a repetition of the tensors that the caller vouches for.
            unsafe {
                match (kernels.gather_rows, self.tuples.positions) {
                    (Some(rows), None) => rows(dst, src, self.tuples.numbers, self.rows()),
                    (_, positions) => {
                        self.clear(dst, positions);
                        self.apply_runs(kernels.copy, Direction::Gather, dst, src);
                    }
                }
            }
        }
    }

    /// The number of repetitions in which anything is written: none where windows
    /// have no elements, as there may then be more than one could count to.
    fn repetitions(&self, has_windows: bool) -> usize {
        self.check();
        if has_windows && self.flat.run > 0 {
            self.flat.outer
        } else {
            0
        }
    }

    /// What the loops rely on, once more.
    fn check(&self) {
        let (TupleNumbers { numbers, positions }, flat) = (self.tuples, self.flat);
        let below = |list: &[u32], end: usize| list.iter().all(|&value| (value as usize) < end);
        debug_assert!(below(numbers, flat.slices), "numbers of slices");
        // The list may leave out tuples that move nothing.
        let moves = flat.outer > 0 && flat.run > 0 && flat.slices > 0;
        let are_listed = match positions {
            Some(positions) => below(positions, flat.tuples) && positions.len() == numbers.len(),
            None => numbers.len() == flat.tuples,
        };
        debug_assert!(are_listed || !moves, "positions in the list");
    }

    /// Where a repetition begins on either side, in bytes.
    fn origin(&self, outer: usize) -> (isize, isize) {
        let outer = (outer * self.operation.kernels.size).cast_signed();
        (
            outer * self.flat.outer_numbered,
            outer * self.flat.outer_listed,
        )
    }

    /// Whether a cache holds all that numbers spread over, on a typical machine: there is
    /// no time to ask for this one.
    fn is_near(&self) -> bool {
        let distance = self.flat.unit.unsigned_abs() * self.operation.kernels.size;
        self.flat.slices.saturating_mul(distance) as u64 <= Variants::TYPICAL.near_bytes
    }

    fn rows(&self) -> RowsForm<'_> {
        let is_near = self.is_near();
        RowsForm {
            unit: self.flat.unit,
            step: self.flat.step,
            len: self.flat.run,
            sources: self.tuples.positions,
            is_near,
            prefetches_sources: !is_near,
        }
    }

    /// # Safety
    ///
    /// As for [`Self::run`], from a repetition's first elements on.
    #[inline(always)]
    unsafe fn apply(&self, dst: *mut u8, src: *const u8) {
        let (kernels, flat) = (self.operation.kernels, self.flat);
        let spread = Spread {
            scale: flat.unit,
            is_near: self.is_near(),
        };
        let are_side_by_side =
            (flat.step == 1 || flat.tuples == 1) && self.tuples.positions.is_none();
        let elements = kernels
            .apply_elements
            .filter(|_| flat.run == 1 && are_side_by_side);
        match (elements, kernels.apply_rows) {
            // SAFETY: one element a number, below `slices`, and as many updates
            // side by side as numbers.
            (Some(elements), _) => unsafe { (elements.u32)(dst, src, self.tuples.numbers, spread) },
            // SAFETY: as above, with rows of `flat.run` elements.
            (None, Some(rows)) => unsafe { rows(dst, src, self.tuples.numbers, self.rows()) },
            // SAFETY: likewise.
            (None, None) => unsafe { self.apply_runs(kernels.apply, Direction::Scatter, dst, src) },
        }
    }

    /// Elements that are cloned or have no kernel for rows, and gathers that
    /// skip tuples.
    ///
    /// # Safety
    ///
    /// As for [`RunsFn`], with a run of `flat.run` neighbours for each tuple that
    /// is applied: numbered around one address, listed around the other.
    #[inline(never)]
    unsafe fn apply_runs(
        &self,
        kernel: RunsFn,
        direction: Direction,
        dst: *mut u8,
        src: *const u8,
    ) {
        let mut jobs = [Job {
            dst: 0,
            src: 0,
            len: self.flat.run,
        }; JOBS];
        for (block, numbers) in self.tuples.numbers.chunks(JOBS).enumerate() {
            let jobs = &mut jobs[..numbers.len()];
            for (at, (job, &number)) in jobs.iter_mut().zip(numbers).enumerate() {
                let numbered = (number as usize).cast_signed() * self.flat.unit;
                let listed = self.position(block * JOBS + at).cast_signed() * self.flat.step;
                (job.dst, job.src) = match direction {
                    Direction::Scatter => (numbered, listed),
                    Direction::Gather => (listed, numbered),
                };
            }
            // SAFETY: the caller vouches for every run.
            unsafe { kernel(dst, src, jobs, Steps::UNIT) };
        }
    }

    /// The position in the list of the tuple that is applied as number `at`.
    fn position(&self, at: usize) -> usize {
        self.tuples
            .positions
            .map_or(at, |positions| positions[at] as usize)
    }

    /// Zeros for the windows of the list that are not among `positions`, which
    /// increase.
    ///
    /// # Safety
    ///
    /// Around `result` lies a window of `flat.run` elements for every position
    /// of the list, which zeros may become.
    unsafe fn clear(&self, result: *mut u8, positions: Option<&[u32]>) {
        let Some(positions) = positions else {
            return;
        };
        let size = self.operation.kernels.size;
        let mut applied = positions
            .iter()
            .map(|&position| position as usize)
            .peekable();
        for position in 0..self.flat.tuples {
            if applied.next_if_eq(&position).is_some() {
                continue;
            }
            let offset = position.cast_signed() * self.flat.step * size.cast_signed();
            let window = result.wrapping_offset(offset);
            // SAFETY: the caller vouches for the window.
            unsafe { window.write_bytes(0, self.flat.run * size) };
        }
    }

    /// All updates of one destination after another.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], from a repetition's first elements on; all
    /// elements are initialised.
    #[inline(never)]
    unsafe fn fold(&self, kernel: GroupFn, dst: *mut u8, src: *const u8) {
        // Number and position of each tuple, which sort like numbers and then
        // like the list.
        let mut sorted = [0_u64; SORTED];
        let sorted = &mut sorted[..self.tuples.numbers.len()];
        for (at, (key, &number)) in sorted.iter_mut().zip(self.tuples.numbers).enumerate() {
            *key = u64::from(number) << u32::BITS | self.position(at) as u64;
        }
        sorted.sort_unstable();
        let sources = Sources {
            list: Some(sorted),
            mask: u32::MAX.into(),
            step: self.flat.step,
        };
        let run = GroupRun {
            sources,
            len: self.flat.run,
            steps: Steps::UNIT,
            include_self: self.operation.include_self,
            factor: self.operation.factor,
        };
        let mut groups = [Group::default(); GROUPS];
        let (mut len, mut start) = (0, 0);
        for tuples in sorted.chunk_by(|a, b| a >> u32::BITS == b >> u32::BITS) {
            let number = signed(tuples[0] >> u32::BITS);
            let end = start + tuples.len();
            groups[len] = Group {
                dst: number * self.flat.unit,
                start,
                end,
            };
            (len, start) = (len + 1, end);
            if len == GROUPS || end == sorted.len() {
                // SAFETY: a group for every destination, of rows of `flat.run`
                // elements that the caller vouches for.
                unsafe { kernel(dst, src, &groups[..len], run) };
                len = 0;
            }
        }
    }
}
