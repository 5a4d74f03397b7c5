//! Moving runs of elements that are plain bytes.
//!
//! Knows the width of an element in bytes. Knows nothing of its type, nor of
//! its alignment: a pair of `f32` is as wide as a `u64`, but less aligned.

#![allow(unsafe_code, reason = "moves bytes between addresses")]

use super::prefetch::{Distance, prefetch_source};
use super::runs::each_pair;
use super::{Job, Steps};

/// Runs up to this many bytes are moved without a call.
const INLINE_BYTES: usize = 64;

/// The `RunsFn` that replaces elements of `W` bytes.
///
/// # Safety
///
/// As for `RunsFn`, for elements of `W` bytes of any alignment; those of
/// `dst` need not be initialised.
pub(super) unsafe fn copy<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
) {
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    // SAFETY: handed on as it is.
    unsafe {
        match jobs {
            // All data of a small call: there is nothing to prefetch.
            [job] => copy_job(dst, src, *job, steps),
            _ => copy_jobs(dst, src, jobs, steps),
        }
    }
}

/// A function of its own, so that a single job does not pay for what a list
/// needs.
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
        // SAFETY: handed on as it is.
        unsafe { copy_job(dst, src, job, steps) };
    }
}

/// # Safety
///
/// As for [`copy`].
#[inline(always)]
unsafe fn copy_job<const W: usize>(dst: *mut [u8; W], src: *const [u8; W], job: Job, steps: Steps) {
    // Wrapping, as an empty job may lie anywhere.
    let dst = dst.wrapping_offset(job.dst);
    let src = src.wrapping_offset(job.src);
    // SAFETY: the caller vouches for `job.len` elements on both sides, at
    // these steps, and for the sides being apart.
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
/// Both sides have `len` bytes, valid for writes and reads, and do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_bytes(dst: *mut u8, src: *const u8, len: usize) {
    // The longest first: as the last of a chain of comparisons they made lists of 16
    // rows of 256 bytes take 1.08 of the time (on a Xeon, Skylake).
    // SAFETY: each arm moves bytes between 0 and `len` only.
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

/// Copies `len` bytes as the first `N` and the last `N`, which may overlap.
///
/// # Safety
///
/// As for [`copy_bytes`], and `len` is in `N..=2 * N`.
#[inline(always)]
unsafe fn move_ends<const N: usize>(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!(N <= len && len <= 2 * N, "two moves must cover the run");
    // SAFETY: `len` is at least `N`, so both pieces lie inside.
    unsafe {
        let first = *src.cast::<[u8; N]>();
        let last = *src.add(len - N).cast::<[u8; N]>();
        *dst.cast::<[u8; N]>() = first;
        *dst.add(len - N).cast::<[u8; N]>() = last;
    }
}

/// Writes `src` `len` times.
///
/// # Safety
///
/// `src` is readable and `len` elements from `dst` on are writable, apart
/// from `src`.
#[inline(always)]
unsafe fn fill<const W: usize>(dst: *mut [u8; W], src: *const [u8; W], len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: `src` is readable, as the run is not empty.
    let value = unsafe { *src };
    for position in 0..len {
        // SAFETY: below `len`.
        unsafe { *dst.add(position) = value };
    }
}
