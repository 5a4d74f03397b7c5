//! Elements multiplied by a factor, where they lie or on their way.
//!
//! Knows values and addresses. Knows nothing of what the factor means.

#![allow(unsafe_code, reason = "goes to addresses")]

use std::mem::MaybeUninit;

use super::half::Half;
use super::runs::{each_pair, slices};
use super::scalar::Complex;
use super::{Job, Steps};

/// Values that a real number multiplies.
pub(super) trait Multiplied: Copy {
    /// `factor` is a value of the type, or of its components.
    fn multiplied(self, factor: f64) -> Self;
}

macro_rules! multiplied_floats {
    ($($float:ty),*) => {$(
        impl Multiplied for $float {
            #[allow(clippy::cast_possible_truncation, reason = "the factor is of the type")]
            #[inline(always)]
            fn multiplied(self, factor: f64) -> Self {
                self * factor as $float
            }
        }
    )*};
}

multiplied_floats!(f32, f64);

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
    let (dst, src) = (dst.cast::<MaybeUninit<T>>(), src.cast::<MaybeUninit<T>>());
    for job in jobs.iter().filter(|job| job.len > 0) {
        let (dst, src) = (dst.wrapping_offset(job.dst), src.wrapping_offset(job.src));
        // SAFETY: the caller vouches for `job.len` elements on both sides, for those of
        // `src` being initialised, and for the sides being apart. What is written may not
        // be initialised, and is written without being read.
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
