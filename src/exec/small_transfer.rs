//! Small transfers of evenly strided rows, on the calling thread.
//!
//! A small transfer computes no nested loops, chooses no schedule and allocates no memory. The
//! crate uses small transfers for calls that touch few bytes (`Sizes::touch_little`).
//!
//! This module knows the destination numbers of tuples, and the kernels. This module does not know
//! plans, tasks or the properties of the machine.

#![expect(unsafe_code, reason = "passes the memory of one call to kernels")]

use super::access::Buffers;
use super::workload::Direction;
use crate::kernel::{
    Group, GroupFn, GroupRun, Job, Operation, RowsForm, RunsFn, Sources, Spread, Steps,
};
use crate::machine::Variants;
use crate::plan::{Flat, signed};

/// Maximum number of jobs in one kernel call. A job is one run of elements to move or reduce.
const JOBS: usize = 32;
/// Maximum number of groups in one kernel call. A group has all updates of one destination.
const GROUPS: usize = 8;

/// Maximum number of tuples of a small transfer that needs groups: a transfer that combines all
/// updates of one destination before the updates of the next destination. The tuples are sorted in
/// an array on the stack.
const SORTED: usize = 64;

/// The applied tuples of a small transfer. All other tuples of the list are skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TupleNumbers<'a> {
    /// Destination number of each applied tuple.
    pub(crate) numbers: &'a [u32],
    /// Position of each applied tuple in the list of all tuples. `None`: no tuple is skipped.
    pub(crate) positions: Option<&'a [u32]>,
}

/// Checks whether a transfer can run as a [`SmallTransfer`], regardless of the number of bytes that
/// the transfer moves.
#[inline(always)] // Like all code on the path of the smallest calls.
pub(crate) fn can_run(flat: &Flat, operation: &Operation) -> bool {
    let is_sorted = !operation.needs_groups || flat.tuples <= SORTED;
    is_sorted && u32::try_from(flat.slices).is_ok()
}

/// A small transfer, for which [`can_run`] has returned `true`.
#[derive(Debug)]
pub(crate) struct SmallTransfer<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) flat: &'a Flat,
    pub(crate) tuples: TupleNumbers<'a>,
}

impl SmallTransfer<'_> {
    /// Runs the transfer. A gather writes zeros to the windows of skipped tuples in its output.
    ///
    /// # Safety
    ///
    /// - `flat` describes the numbered tensor and the listed tensor, which hold elements of
    ///   `operation`. Destination numbers address the windows of the numbered tensor:
    ///   `buffers.output` of a scatter, `buffers.source` of a gather. The listed tensor has one
    ///   window per tuple: `buffers.source` of a scatter, `buffers.output` of a gather.
    /// - Only this call uses `buffers.output`, and the output shares no byte with the other
    ///   tensors. The output is initialised if the call is in place or if `operation` clones.
    /// - If `buffers.data` is set, the data and the output each have `flat.elements` contiguous
    ///   elements.
    /// - Every destination number is less than `flat.slices`, and every position is less than
    ///   `flat.tuples`. If `tuples.positions` is set, there is one destination number for each
    ///   position. Otherwise, there is one destination number for each of the `flat.tuples` tuples.
    /// - If a gather skips tuples, elements are plain data, and an element whose bytes are all zero
    ///   is a valid value.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, direction: Direction, buffers: Buffers) {
        // SAFETY: `scatter` and `gather` require the properties of the tensors and of the numbers
        // that the Safety section of this function lists.
        unsafe {
            match direction {
                Direction::Scatter => self.scatter(buffers),
                Direction::Gather => self.gather(buffers),
            }
        }
    }

    /// # Safety
    ///
    /// The caller guarantees what [`Self::run`] requires.
    #[inline(always)]
    unsafe fn scatter(&self, buffers: Buffers) {
        let output: *mut u8 = buffers.output.cast();
        if let Some(data) = buffers.data {
            let all = Job {
                dst: 0,
                src: 0,
                len: self.flat.elements,
            };
            // SAFETY: the caller guarantees that `data` and `output` each hold `flat.elements`
            // contiguous elements, and that `data` and `output` share no byte.
            unsafe { (self.operation.kernels.copy)(output, data, &[all], Steps::UNIT) };
        }
        for outer in 0..self.repetitions(!self.tuples.numbers.is_empty()) {
            let (numbered, listed) = self.origin(outer);
            let dst = output.wrapping_offset(numbered);
            let src = buffers.source.wrapping_offset(listed);
            // SAFETY: repetition `outer` begins at `dst` in the output, and at `src` in the
            // updates. The output and the updates have the properties that the Safety section of
            // `run` lists. All elements of the output are initialised: data was copied to the
            // output, or the call is in place.
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
    /// The caller guarantees what [`Self::run`] requires.
    #[inline]
    unsafe fn gather(&self, buffers: Buffers) {
        let kernels = self.operation.kernels;
        let clears = self.tuples.positions.is_some();
        for outer in 0..self.repetitions(clears || !self.tuples.numbers.is_empty()) {
            let (numbered, listed) = self.origin(outer);
            let dst = buffers.output.cast::<u8>().wrapping_offset(listed);
            let src = buffers.source.wrapping_offset(numbered);
            // SAFETY: repetition `outer` begins at `dst` in the output, and at `src` in the data.
            // The output and the data have the properties that the Safety section of `run` lists.
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

    /// Returns the number of repetitions to run. `has_windows` states whether a repetition writes
    /// at least one window. The result is 0 if `has_windows` is not set or if windows have no
    /// elements: the loop over repetitions, which may be very long, would write nothing.
    fn repetitions(&self, has_windows: bool) -> usize {
        self.check();
        if has_windows && self.flat.run > 0 {
            self.flat.outer
        } else {
            0
        }
    }

    /// Checks conditions of [`Self::run`] again, in debug builds only.
    fn check(&self) {
        let (TupleNumbers { numbers, positions }, flat) = (self.tuples, self.flat);
        let below = |list: &[u32], end: usize| list.iter().all(|&value| (value as usize) < end);
        debug_assert!(
            below(numbers, flat.slices),
            "a number is not below the number of slices"
        );
        // If no tuple moves any element, the list of numbers may be shorter than `flat.tuples`.
        let moves = flat.outer > 0 && flat.run > 0 && flat.slices > 0;
        let are_listed = match positions {
            Some(positions) => below(positions, flat.tuples) && positions.len() == numbers.len(),
            None => numbers.len() == flat.tuples,
        };
        debug_assert!(are_listed || !moves, "positions do not match the list");
    }

    /// Returns two offsets of repetition `outer`. The first offset is in the numbered tensor (the
    /// output of a scatter, the data of a gather). The second offset is in the listed tensor (the
    /// updates of a scatter, the output of a gather). The two offsets are in bytes.
    fn origin(&self, outer: usize) -> (isize, isize) {
        let outer = (outer * self.operation.kernels.size).cast_signed();
        (
            outer * self.flat.outer_numbered,
            outer * self.flat.outer_listed,
        )
    }

    /// Whether the region of all windows in the numbered tensor (the output of a scatter, the data
    /// of a gather) is small enough for the caches of a typical machine. The function does not read
    /// the properties of the actual machine, because the reads would cost a small call too much
    /// time.
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
    /// The caller guarantees what [`Self::run`] requires, for one repetition. `dst` and `src` are
    /// the addresses at which the repetition begins in the output and in the updates.
    #[inline(always)]
    unsafe fn apply(&self, dst: *mut u8, src: *const u8) {
        let (kernels, flat) = (self.operation.kernels, self.flat);
        let spread = Spread {
            scale: flat.unit,
            is_near: self.is_near(),
        };
        let is_listed_side_by_side = flat.run == 1 && (flat.step == 1 || flat.tuples == 1);
        let are_all_listed = is_listed_side_by_side && self.tuples.positions.is_none();
        let elements = kernels.apply_elements.filter(|_| are_all_listed);
        match (elements, kernels.apply_rows) {
            // SAFETY: every destination number is below `flat.slices`, and therefore has a window
            // of one element in the output. The updates are contiguous, and have one element for
            // each entry of `numbers`.
            (Some(elements), _) => unsafe { (elements.u32)(dst, src, self.tuples.numbers, spread) },
            // SAFETY: every destination number is below `flat.slices`, and therefore has a row of
            // `flat.run` elements in the output. The updates have a row of `flat.run` elements for
            // each entry of `numbers`.
            (None, Some(rows)) => unsafe { rows(dst, src, self.tuples.numbers, self.rows()) },
            // SAFETY: as for `rows` above. Each row is one run of contiguous elements.
            (None, None) => unsafe { self.apply_runs(kernels.apply, Direction::Scatter, dst, src) },
        }
    }

    /// Applies the tuples with a kernel for runs. Used for elements that are cloned, for operations
    /// without a kernel for rows, and for gathers that skip tuples.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`RunsFn`] requires, with a run of `flat.run` contiguous elements
    /// for each tuple that is applied. In the numbered tensor (the output of a scatter, the data of
    /// a gather), the offset of a run is the tuple's destination number times `flat.unit`. In the
    /// listed tensor (the updates of a scatter, the output of a gather), the offset of a run is the
    /// tuple's position times `flat.step`.
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
            // SAFETY: the caller guarantees that the run of every job is valid for reads in the
            // source and for writes in the destination, as the Safety section states.
            unsafe { kernel(dst, src, jobs, Steps::UNIT) };
        }
    }

    /// Returns the position of applied tuple number `at` in the list of all tuples.
    fn position(&self, at: usize) -> usize {
        self.tuples
            .positions
            .map_or(at, |positions| positions[at] as usize)
    }

    /// Writes zeros to the windows of skipped tuples in `result`, the output of a gather. The
    /// argument `positions` has the positions of all applied tuples in the list of tuples, in
    /// ascending order. If `positions` is `None`, no tuple is skipped.
    ///
    /// # Safety
    ///
    /// `result` has a window of `flat.run` contiguous elements for each of the `flat.tuples`
    /// tuples, valid for writes. An element whose bytes are all zero is a valid value.
    unsafe fn clear(&self, result: *mut u8, positions: Option<&[u32]>) {
        let Some(positions) = positions else {
            return;
        };
        let size = self.operation.kernels.size;
        let mut next = 0;
        for position in 0..self.flat.tuples {
            if (positions.get(next)).is_some_and(|&applied| applied as usize == position) {
                next += 1;
                continue;
            }
            let offset = position.cast_signed() * self.flat.step * size.cast_signed();
            let window = result.wrapping_offset(offset);
            // SAFETY: the caller guarantees that the window of each tuple is valid for writes, and
            // that bytes of zero are valid elements.
            unsafe { window.write_bytes(0, self.flat.run * size) };
        }
    }

    /// Combines all updates of one destination before the updates of the next destination, in
    /// ascending order of destination numbers.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::run`] requires, for one repetition. `dst` and `src` are
    /// the addresses at which the repetition begins in the output and in the updates. All elements
    /// of the output and of the updates are initialised.
    #[inline(never)]
    unsafe fn fold(&self, kernel: GroupFn, dst: *mut u8, src: *const u8) {
        // A key has the destination number of a tuple in its upper half, and the tuple's position
        // in its lower half. The sort of the keys therefore orders tuples by destination, and by
        // position within a destination.
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
                // SAFETY: each group has all updates of one destination, at least one. The caller
                // guarantees that the destination and each of its updates have a row of `flat.run`
                // initialised elements, valid for writes (destination) and reads.
                unsafe { kernel(dst, src, &groups[..len], run) };
                len = 0;
            }
        }
    }
}
