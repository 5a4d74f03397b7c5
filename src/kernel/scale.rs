//! Elements multiplied by a factor, where they lie.
//!
//! Knows values and addresses. Knows nothing of what the factor means.

#![allow(unsafe_code, reason = "goes to addresses")]

use super::scalar::Complex;

/// Values that a real number multiplies.
pub(super) trait Scaled: Copy {
    /// `factor` is a value of the type, or of its components.
    fn multiplied(self, factor: f64) -> Self;
}

impl Scaled for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "the factor is an `f32`")]
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        self * factor as f32
    }
}

impl Scaled for f64 {
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        self * factor
    }
}

impl<F: Scaled> Scaled for Complex<F> {
    #[inline(always)]
    fn multiplied(self, factor: f64) -> Self {
        self.by_component(|component| component.multiplied(factor))
    }
}

/// The `ScaleFn` of a type.
///
/// # Safety
///
/// As for `ScaleFn`, for elements of type `T`.
pub(super) unsafe fn scale<T: Scaled>(dst: *mut u8, len: usize, step: isize, factor: f64) {
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
