//! From addresses and jobs to slices and elements: the shell around the safe
//! loops of `reduce`.
//!
//! Knows jobs and pointers. Knows nothing of any one type or reduction. A
//! whole job list is gone through inside one function, which is what enables
//! an instruction set; no call is left inside it.

#![allow(unsafe_code, reason = "makes slices of addresses")]

use super::Job;
use super::Steps;
use super::prefetch::{Distance, prefetch_run};
use super::reduce::Loop;
use super::reduce::Reducer;

/// The `RunsFn` of a reduction.
///
/// # Safety
///
/// As for `RunsFn`, for elements of type `T`.
#[inline(always)]
pub(super) unsafe fn reduce<T, L, R>(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps)
where
    T: Copy,
    L: Loop<T, R>,
    R: Reducer<T>,
{
    let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
    let distance = Distance::of_jobs(jobs, size_of::<T>());
    for (position, job) in jobs.iter().enumerate() {
        for (distance, level) in distance.each() {
            if let Some(later) = jobs.get(position + distance) {
                prefetch_run(dst.wrapping_offset(later.dst), later.len, level);
            }
        }
        // Wrapping, as an empty job may lie anywhere.
        let dst = dst.wrapping_offset(job.dst);
        let src = src.wrapping_offset(job.src);
        if job.len == 0 {
            continue;
        }
        if steps == Steps::UNIT {
            // SAFETY: the caller vouches for `job.len` elements on both sides,
            // neighbours as the steps are 1, and for the sides being apart.
            let (dst, src) = unsafe {
                (
                    std::slice::from_raw_parts_mut(dst, job.len),
                    std::slice::from_raw_parts(src, job.len),
                )
            };
            L::reduce(dst, src);
        } else {
            // SAFETY: the caller vouches for `job.len` elements on both sides.
            unsafe { reduce_stepped::<T, R>(dst, src, job.len, steps) };
        }
    }
}

/// # Safety
///
/// `len` elements from `dst` and `src` on, `steps` apart, are as `RunsFn`
/// demands.
#[inline(always)]
unsafe fn reduce_stepped<T, R>(dst: *mut T, src: *const T, len: usize, steps: Steps)
where
    T: Copy,
    R: Reducer<T>,
{
    let (mut dst, mut src) = (dst, src);
    for _ in 0..len {
        // SAFETY: the caller vouches for this element of either side.
        unsafe { *dst = R::apply(*dst, *src) };
        // Wrapping, as the last step may leave the allocation.
        dst = dst.wrapping_offset(steps.dst);
        src = src.wrapping_offset(steps.src);
    }
}

/// The `RunsFn` that replaces elements by clones.
///
/// # Safety
///
/// As for `RunsFn`, for elements of type `T`; those of `dst` are initialised.
pub(super) unsafe fn assign_clones<T: Clone>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
) {
    each::<T>(dst, src, jobs, steps, |dst, src| {
        // SAFETY: the caller vouches for both elements. An assignment leaves a
        // valid value whatever panics: a clone is made before the old value is
        // dropped.
        unsafe { *dst = (*src).clone() };
    });
}

/// The `RunsFn` that writes clones to memory that is not initialised.
///
/// # Safety
///
/// As for `RunsFn`, for elements of type `T`.
pub(super) unsafe fn write_clones<T: Clone>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
) {
    each::<T>(dst, src, jobs, steps, |dst, src| {
        // SAFETY: the caller vouches for both elements.
        unsafe { dst.write((*src).clone()) };
    });
}

/// Calls `f` with the addresses of every pair of elements, in order.
#[inline(always)]
fn each<T>(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps, f: impl Fn(*mut T, *const T)) {
    for job in jobs {
        let mut dst = dst.cast::<T>().wrapping_offset(job.dst);
        let mut src = src.cast::<T>().wrapping_offset(job.src);
        for _ in 0..job.len {
            f(dst, src);
            dst = dst.wrapping_offset(steps.dst);
            src = src.wrapping_offset(steps.src);
        }
    }
}

/// [`reduce`], compiled for AVX2 and F16C.
///
/// # Safety
///
/// As for [`reduce`], and the machine has both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn reduce_avx2<T, L, R>(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps)
where
    T: Copy,
    L: Loop<T, R>,
    R: Reducer<T>,
{
    // SAFETY: handed on as it is.
    unsafe { reduce::<T, L, R>(dst, src, jobs, steps) }
}
