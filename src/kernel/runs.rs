//! From addresses and jobs to slices and elements: the shell around the safe
//! loops of `reduce`.
//!
//! Knows jobs and pointers. Knows nothing of any one type or reduction. A
//! whole job list is gone through inside one function, which is what enables
//! an instruction set; no call is left inside it.

#![allow(unsafe_code, reason = "makes slices of addresses")]

use std::marker::PhantomData;

use super::dispatch::Kernel;
use super::prefetch::{Distance, prefetch_run};
use super::reduce::{Loop, Reducer};
use super::{Job, Steps};

/// The `RunsFn` of a reduction, for elements of type `T`.
pub(super) struct Reduce<T, L, R>(PhantomData<(T, L, R)>);

impl<T: Copy, L: Loop<T, R>, R: Reducer<T>> Kernel for Reduce<T, L, R> {
    type Entry = Job;
    type Form<'a> = Steps;

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps) {
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
            // SAFETY: the caller vouches for `job.len` elements on both sides, and for the
            // sides being apart. With steps of 1 they are neighbours.
            unsafe {
                if steps == Steps::UNIT {
                    let (dst, src) = slices(dst, src, job.len);
                    L::reduce(dst, src);
                } else {
                    let reduce_one = |dst: *mut T, src: *const T| *dst = R::apply(*dst, *src);
                    each_pair(dst, src, job.len, steps, reduce_one);
                }
            }
        }
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
        let dst = dst.cast::<T>().wrapping_offset(job.dst);
        let src = src.cast::<T>().wrapping_offset(job.src);
        each_pair(dst, src, job.len, steps, &f);
    }
}

/// The same for `len` elements from `dst` and `src` on, `steps` apart.
#[inline(always)]
pub(super) fn each_pair<T>(
    mut dst: *mut T,
    mut src: *const T,
    len: usize,
    steps: Steps,
    f: impl Fn(*mut T, *const T),
) {
    for _ in 0..len {
        f(dst, src);
        // Wrapping, as the last step may leave the allocation.
        dst = dst.wrapping_offset(steps.dst);
        src = src.wrapping_offset(steps.src);
    }
}

/// `len` neighbours on both sides.
///
/// # Safety
///
/// They are valid for writes (`dst`) and reads (`src`) during `'a`, and do not overlap.
#[inline(always)]
pub(super) unsafe fn slices<'a, T>(
    dst: *mut T,
    src: *const T,
    len: usize,
) -> (&'a mut [T], &'a [T]) {
    // SAFETY: the caller vouches for both sides.
    unsafe {
        (
            std::slice::from_raw_parts_mut(dst, len),
            std::slice::from_raw_parts(src, len),
        )
    }
}
