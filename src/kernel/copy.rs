//! Copies runs of elements that are plain bytes.
//!
//! The module knows the width of an element in bytes. The module does not know the type or the
//! alignment of an element: a pair of `f32` is as wide as a `u64` but has a smaller alignment.

#![allow(unsafe_code, reason = "copies bytes through raw pointers")]

use super::prefetch::{Distance, prefetch_source};
use super::runs::each_pair;
use super::{Job, Steps};

/// Bytes of the longest contiguous run that is copied without a call of `memcpy`.
const INLINE_BYTES: usize = 64;

/// The `RunsFn` that replaces each `dst` element by the `src` element. Elements have `W` bytes.
///
/// # Safety
///
/// As for `RunsFn`, for elements of `W` bytes of any alignment. The elements of `dst` need not be
/// initialised.
pub(super) unsafe fn copy<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
) {
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    // SAFETY: as `RunsFn` requires, the caller guarantees two facts. The elements of all jobs are
    // valid for reads in `src` and for writes in `dst`. No `dst` element is also a `src` element.
    unsafe {
        match jobs {
            // A list of one job, for example for the copy of all data in a small call, has no later
            // job to prefetch.
            [job] => copy_job(dst, src, *job, steps),
            _ => copy_jobs(dst, src, jobs, steps),
        }
    }
}

/// Copies a list of jobs. If the runs are contiguous, the function prefetches the sources of later
/// jobs. This is a separate function so that a single job does not pay for the prefetching.
///
/// # Safety
///
/// As for [`copy`].
#[inline(never)]
unsafe fn copy_jobs<const W: usize>(
    dst: *mut [u8; W],
    src: *const [u8; W],
    jobs: &[Job],
    steps: Steps,
) {
    let distance = Distance::of_jobs(jobs, W);
    for (position, &job) in jobs.iter().enumerate() {
        if steps == Steps::UNIT {
            prefetch_source(src, jobs, position, distance);
        }
        // SAFETY: as `RunsFn` requires, the caller guarantees two facts. The elements of the job
        // are valid for reads in `src` and for writes in `dst`. No `dst` element is also a `src`
        // element.
        unsafe { copy_job(dst, src, job, steps) };
    }
}

/// Copies one job.
///
/// # Safety
///
/// As for [`copy`].
#[inline(always)]
unsafe fn copy_job<const W: usize>(dst: *mut [u8; W], src: *const [u8; W], job: Job, steps: Steps) {
    // The additions are wrapping, because the position of an empty job may be outside the
    // allocation.
    let dst = dst.wrapping_offset(job.dst);
    let src = src.wrapping_offset(job.src);
    // SAFETY: the caller guarantees two facts. `job.len` elements with the strides `steps` are
    // valid for reads in `src` and for writes in `dst`. No `dst` element is also a `src` element.
    unsafe {
        match steps {
            Steps::UNIT => copy_bytes(dst.cast(), src.cast(), job.len * W),
            Steps { dst: 1, src: 0 } => fill(dst, src, job.len),
            _ => each_pair(dst, src, job.len, steps, |dst, src| *dst = *src),
        }
    }
}

/// Copies `len` bytes.
///
/// # Safety
///
/// `len` bytes can be written from `dst` on, and `len` bytes can be read from `src` on. The two
/// ranges of bytes do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_bytes(dst: *mut u8, src: *const u8, len: usize) {
    // The test for runs longer than `INLINE_BYTES` is the first comparison. When this test was the
    // last comparison, lists of 16 rows of 256 bytes took 1.08 times as long (on a Xeon, Skylake).
    // SAFETY: each arm copies only bytes in `0..len`.
    unsafe {
        match len {
            _ if len > INLINE_BYTES => std::ptr::copy_nonoverlapping(src, dst, len),
            32.. => move_ends::<32>(dst, src, len),
            16.. => move_ends::<16>(dst, src, len),
            8.. => move_ends::<8>(dst, src, len),
            4.. => move_ends::<4>(dst, src, len),
            2.. => move_ends::<2>(dst, src, len),
            1 => *dst = *src,
            0 => {}
        }
    }
}

/// Copies `len` bytes in two pieces: the first `N` bytes and the last `N` bytes. The two pieces may
/// overlap each other.
///
/// # Safety
///
/// As for [`copy_bytes`], and `len` is in `N..=2 * N`.
#[inline(always)]
unsafe fn move_ends<const N: usize>(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!(N <= len && len <= 2 * N, "two pieces cover the run");
    // SAFETY: `len` is at least `N`, so both pieces are in `0..len`.
    unsafe {
        let first = *src.cast::<[u8; N]>();
        let last = *src.add(len - N).cast::<[u8; N]>();
        *dst.cast::<[u8; N]>() = first;
        *dst.add(len - N).cast::<[u8; N]>() = last;
    }
}

/// Writes the element `src` to the `len` contiguous elements from `dst` on.
///
/// # Safety
///
/// `src` can be read if `len` is not 0. `len` elements can be written from `dst` on. The written
/// elements do not overlap `src`.
#[inline(always)]
unsafe fn fill<const W: usize>(dst: *mut [u8; W], src: *const [u8; W], len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: the run is not empty, so `src` can be read.
    let value = unsafe { *src };
    for position in 0..len {
        // SAFETY: `position` is less than `len`.
        unsafe { *dst.add(position) = value };
    }
}
