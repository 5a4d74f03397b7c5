//! Multiplies elements by a factor, in place or while copying them.
//!
//! The module knows values and addresses. The module does not know why elements are multiplied, nor
//! where the factor comes from.

#![allow(unsafe_code, reason = "dereferences raw pointers")]

use std::mem::MaybeUninit;

use super::half::Half;
use super::runs::{each_pair, slices};
use super::scalar::Complex;
use super::{Job, Steps};

/// Values that can be multiplied by a real number.
pub(super) trait Multiplied: Copy {
    /// Returns `self` times `factor`. For a complex number, `factor` multiplies both components.
    /// `factor` is a value of the type, or of the component type of a complex number.
    fn multiplied(self, factor: f64) -> Self;
}

macro_rules! multiplied_floats {
    ($($float:ty),*) => {$(
        impl Multiplied for $float {
            #[allow(clippy::cast_possible_truncation, reason = "the factor is a value of the type")]
            #[inline(always)]
            fn multiplied(self, factor: f64) -> Self {
                self * factor as $float
            }
        }
    )*};
}

multiplied_floats!(f32, f64);

/// The product is computed in `f32` and then rounded to 16 bits.
impl<H: Half> Multiplied for H {
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        H::narrow(self.widen().multiplied(factor))
    }
}

impl<F: Multiplied> Multiplied for Complex<F> {
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        self.by_component(|component| component.multiplied(factor))
    }
}

/// The `MultiplyFn` for elements of type `T`.
///
/// # Safety
///
/// As for `MultiplyFn`, for elements of type `T`.
pub(super) unsafe fn multiply<T: Multiplied>(dst: *mut u8, len: usize, step: isize, factor: f64) {
    let dst = dst.cast::<T>();
    if step == 1 && len > 0 {
        // SAFETY: the caller guarantees that `len` initialised elements are valid for reads and
        // writes, and that nothing else uses them. With a stride of 1 the elements are contiguous.
        for value in unsafe { std::slice::from_raw_parts_mut(dst, len) } {
            *value = value.multiplied(factor);
        }
        return;
    }
    for number in 0..len.cast_signed() {
        let value = dst.wrapping_offset(number * step);
        // SAFETY: the caller guarantees that `len` initialised elements with the stride `step` are
        // valid for reads and writes, and that nothing else uses them.
        unsafe { *value = (*value).multiplied(factor) };
    }
}

/// The `MultiplyingFn` for elements of type `T`.
///
/// # Safety
///
/// As for `MultiplyingFn`, for elements of type `T`.
pub(super) unsafe fn copy_multiplied<T: Multiplied>(
    dst: *mut u8,
    src: *const u8,
    jobs: &[Job],
    steps: Steps,
    factor: f64,
) {
    let (dst, src) = (dst.cast::<MaybeUninit<T>>(), src.cast::<MaybeUninit<T>>());
    for job in jobs.iter().filter(|job| job.len > 0) {
        let (dst, src) = (dst.wrapping_offset(job.dst), src.wrapping_offset(job.src));
        // SAFETY: the caller guarantees three facts. `job.len` initialised elements of `src` are
        // valid for reads. `job.len` elements of `dst` are valid for writes. No `dst` element is
        // also a `src` element. The elements of `dst` may be uninitialised: this code writes them
        // and does not read them.
        unsafe {
            let write = |to: &mut MaybeUninit<T>, from: &MaybeUninit<T>| {
                to.write(from.assume_init().multiplied(factor));
            };
            if steps == Steps::UNIT {
                let (dst, src) = slices(dst, src, job.len);
                dst.iter_mut()
                    .zip(src)
                    .for_each(|(to, from)| write(to, from));
            } else {
                each_pair(dst, src, job.len, steps, |dst, src| write(&mut *dst, &*src));
            }
        }
    }
}
