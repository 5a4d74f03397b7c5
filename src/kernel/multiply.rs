//! Elements multiplied by a factor, where they lie.
//!
//! Knows values and addresses. Knows nothing of what the factor means.

#![allow(unsafe_code, reason = "goes to addresses")]

use super::scalar::Complex;

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
