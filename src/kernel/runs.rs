//! Reduces and clones runs. The module makes the arguments of the safe loops of `reduce` from raw
//! pointers.
//!
//! A job is one run of elements, given as two offsets and a length. From two base addresses and a
//! job, the module makes slices of elements, or references to single elements, for the safe loops.
//! The module knows jobs and pointers. The module does not know element types or reductions. A
//! reduction processes a whole list of jobs in one function, because the instruction set is enabled
//! for a whole function. The compiler inlines the reduction's code into this function.

#![allow(unsafe_code, reason = "makes slices from raw pointers")]

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
            // Wrapping offsets, because the position of an empty job may be outside the allocation.
            let dst = dst.wrapping_offset(job.dst);
            let src = src.wrapping_offset(job.src);
            if job.len == 0 {
                continue;
            }
            // SAFETY: the caller guarantees three facts. `job.len` initialised elements of `src`
            // are valid for reads. `job.len` initialised elements of `dst` are valid for reads and
            // writes. No `dst` element is also a `src` element. With strides of 1 the elements are
            // contiguous.
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

/// The `RunsFn` that replaces each element of `dst` by a clone of its element of `src`.
///
/// # Safety
///
/// The caller guarantees what `RunsFn` requires, for elements of type `T`. The elements of `dst`
/// are initialised.
pub(super) unsafe fn assign_clones<T: Clone>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
) {
    each::<T>(dst, src, jobs, steps, |dst, src| {
        // SAFETY: the caller guarantees that the element `src` can be read, and that the element
        // `dst` is initialised and can be written. The assignment leaves a valid value in `dst` if
        // a clone or a drop panics: the clone is complete before the old value is dropped.
        unsafe { *dst = (*src).clone() };
    });
}

/// The `RunsFn` that writes clones of the elements of `src` to uninitialised memory.
///
/// # Safety
///
/// The caller guarantees what `RunsFn` requires, for elements of type `T`. The elements of `dst`
/// need not be initialised. The function does not drop the previous elements of `dst`.
pub(super) unsafe fn write_clones<T: Clone>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
) {
    each::<T>(dst, src, jobs, steps, |dst, src| {
        // SAFETY: the caller guarantees that the element `src` can be read, and that the element
        // `dst` can be written.
        unsafe { dst.write((*src).clone()) };
    });
}

/// Calls `f` for each element of each job, in order. The arguments of `f` are the address of the
/// element in the destination and the address of the corresponding element in the source.
#[inline(always)]
fn each<T>(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps, f: impl Fn(*mut T, *const T)) {
    for job in jobs {
        let dst = dst.cast::<T>().wrapping_offset(job.dst);
        let src = src.cast::<T>().wrapping_offset(job.src);
        each_pair(dst, src, job.len, steps, &f);
    }
}

/// Calls `f` with the addresses of `len` pairs of elements, in order. The first pair is at `dst`
/// and `src`. The addresses of the next pairs follow at the strides `steps`.
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
        // Wrapping offsets, because the addresses after the last element may be outside the
        // allocation.
        dst = dst.wrapping_offset(steps.dst);
        src = src.wrapping_offset(steps.src);
    }
}

/// Returns `len` contiguous elements at `dst` and `len` contiguous elements at `src`, as slices.
///
/// # Safety
///
/// The elements at `dst` are valid for writes and the elements at `src` are valid for reads during
/// `'a`. The two ranges of elements do not overlap.
#[inline(always)]
pub(super) unsafe fn slices<'a, T>(
    dst: *mut T,
    src: *const T,
    len: usize,
) -> (&'a mut [T], &'a [T]) {
    // SAFETY: the caller guarantees that the elements at `dst` can be written, that the elements at
    // `src` can be read, and that the two ranges do not overlap.
    unsafe {
        (
            std::slice::from_raw_parts_mut(dst, len),
            std::slice::from_raw_parts(src, len),
        )
    }
}
