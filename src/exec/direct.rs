//! Small scatters of contiguous tensors, on the calling thread.
//!
//! No loops to set up, no schedule to choose, nothing to allocate: what a call
//! costs whose work is a few hundred bytes.

use super::thresholds::{CACHED_BYTES, SMALL_CALL_BYTES};
use super::transfer::Buffers;
use super::workload::touched_bytes;
use crate::kernel::{Job, Kernels, Operation, RowsForm, Spread, Steps};
use crate::plan::Flat;

/// Jobs of one kernel call.
const JOBS: usize = 64;

/// Whether a call is small enough to stay here. In place the output may be of
/// any size, but its slices must be numbered in 32 bits.
pub(crate) fn suits(flat: &Flat, kernels: &Operation, in_place: bool) -> bool {
    let size = kernels.kernels.size;
    let copied = if in_place { 0 } else { flat.elements() };
    let touched = touched_bytes(
        flat.outer.saturating_mul(flat.tuples),
        flat.run.saturating_mul(size),
        copied.saturating_mul(size),
    );
    let plain = !kernels.needs_groups;
    plain && touched < SMALL_CALL_BYTES && u32::try_from(flat.slices).is_ok()
}

/// Runs a scatter of contiguous tensors whose destinations are `numbers`.
///
/// # Safety
///
/// - The buffers hold contiguous tensors of the shapes that `flat` was made
///   from, of elements of `row`; `output` is this call's alone, shares no byte
///   with the others, and is initialised in place or where `row` clones.
/// - Every number is less than `flat.slices`.
#[inline(always)] // Into the smallest calls, of which it would be a tenth.
#[expect(unsafe_code, reason = "hands the memory of one call to its kernels")]
pub(crate) unsafe fn run(kernels: &Kernels, flat: &Flat, buffers: Buffers, numbers: &[u32]) {
    let output: *mut u8 = buffers.output.cast();
    if flat.elements() == 0 {
        return;
    }
    if let Some(data) = buffers.data {
        let all = Job {
            dst: 0,
            src: 0,
            len: flat.elements(),
        };
        // SAFETY: both hold that many elements and share no byte.
        unsafe { (kernels.copy)(output, data, &[all], Steps::UNIT) };
    }
    let region = flat.slices.saturating_mul(flat.run * kernels.size);
    let is_near = region as u64 <= CACHED_BYTES;
    let spread = Spread { scale: 1, is_near };
    let form = RowsForm {
        is_near,
        ..RowsForm::neighbours(flat.run)
    };
    // Slices without elements may be more than one could count to.
    let repetitions = if numbers.is_empty() || flat.run == 0 {
        0
    } else {
        flat.outer
    };
    for outer in 0..repetitions {
        let bytes = |slices: usize| outer * slices * flat.run * kernels.size;
        let dst = output.wrapping_add(bytes(flat.slices));
        let src = buffers.updates.wrapping_add(bytes(flat.tuples));
        match kernels.apply_elements.filter(|_| flat.run == 1) {
            // SAFETY: one element a number, below `slices`, and as many
            // updates as numbers.
            Some(elements) => unsafe { (elements.u32)(dst, src, numbers, spread) },
            None => match kernels.apply_rows {
                // SAFETY: as above, with rows of `flat.run` elements.
                Some(rows) => unsafe { rows(dst, src, numbers, form) },
                // SAFETY: likewise.
                None => unsafe { apply_runs(kernels, flat.run, dst, src, numbers) },
            },
        }
    }
}

/// Elements that are cloned, or have no kernel for rows.
///
/// # Safety
///
/// Around `dst` lies a run for every number, around `src` one for every
/// position in `numbers`, as [`run`] has it.
#[expect(unsafe_code, reason = "hands the memory of one call to its kernels")]
unsafe fn apply_runs(kernels: &Kernels, run: usize, dst: *mut u8, src: *const u8, numbers: &[u32]) {
    let mut jobs = [Job {
        dst: 0,
        src: 0,
        len: run,
    }; JOBS];
    for (block, numbers) in numbers.chunks(JOBS).enumerate() {
        let jobs = &mut jobs[..numbers.len()];
        for (position, (job, &number)) in jobs.iter_mut().zip(numbers).enumerate() {
            job.dst = (number as usize * run).cast_signed();
            job.src = ((block * JOBS + position) * run).cast_signed();
        }
        // SAFETY: the caller vouches for every run.
        unsafe { (kernels.apply)(dst, src, jobs, Steps::UNIT) };
    }
}
