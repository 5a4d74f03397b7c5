//! Elements multiplied by a factor, where they lie or on their way.
//!
//! Knows values and addresses. Knows nothing of what the factor means.

#![allow(unsafe_code, reason = "goes to addresses")]

use std::mem::MaybeUninit;

use super::half::Half;
use super::scalar::Complex;
use super::{Job, Steps};

/// Values that a real number multiplies.
pub(super) trait Multiplied: Copy {
    /// `factor` is a value of the type, or of its components.
    fn multiplied(self, factor: f64) -> Self;
}

impl Multiplied for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "the factor is an `f32`")]
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        self * factor as f32
    }
}

impl Multiplied for f64 {
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        self * factor
    }
}

/// In `f32`, rounded once.
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

/// The `MultiplyFn` of a type.
///
/// # Safety
///
/// As for `MultiplyFn`, for elements of type `T`.
pub(super) unsafe fn multiply<T: Multiplied>(dst: *mut u8, len: usize, step: isize, factor: f64) {
    let dst = dst.cast::<T>();
    if step == 1 && len > 0 {
        // SAFETY: the caller vouches for so many neighbours.
        for value in unsafe { std::slice::from_raw_parts_mut(dst, len) } {
            *value = value.multiplied(factor);
        }
        return;
    }
    for number in 0..len.cast_signed() {
        let value = dst.wrapping_offset(number * step);
        // SAFETY: as above.
        unsafe { *value = (*value).multiplied(factor) };
    }
}

/// The `MultiplyingFn` of a type.
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
    let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
    for job in jobs.iter().filter(|job| job.len > 0) {
        let (dst, src) = (dst.wrapping_offset(job.dst), src.wrapping_offset(job.src));
        if steps == Steps::UNIT {
            // SAFETY: the caller vouches for `job.len` neighbours on both sides, and for
            // the sides being apart; what is written may not be initialised, and is
            // written without being read.
            let (dst, src) = unsafe {
                (
                    std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), job.len),
                    std::slice::from_raw_parts(src, job.len),
                )
            };
            for (to, from) in dst.iter_mut().zip(src) {
                to.write(from.multiplied(factor));
            }
            continue;
        }
        for number in 0..job.len.cast_signed() {
            let from = src.wrapping_offset(number * steps.src);
            // SAFETY: the caller vouches for this element of either side.
            unsafe {
                (dst.wrapping_offset(number * steps.dst)).write((*from).multiplied(factor));
            }
        }
    }
}
