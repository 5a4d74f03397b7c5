//! Arithmetic and order of single values.
//!
//! The module knows integers, floats, boolean bytes and complex numbers. The module does not know
//! slices.

use super::reduce::{Arithmetic, Ordered, arithmetic, ordered};

// Wrapping sums, differences and products have the same bits for signed and unsigned integers. So
// the sums, differences and products of i8 to i64 use the unsigned types. Only means use the sums
// of the signed types.
arithmetic!(u8, u16, u32, u64, i8, i16, i32, i64:
    |a, b| a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b));
ordered!(i8, i16, i32, i64, u8, u16, u32, u64: |a, b| Ord::min(a, b), Ord::max(a, b));

/// Evaluates to NaN if `$update` is NaN, else to `$value`. `$value` is the smaller or the larger of
/// the current value and the update.
///
/// The macro makes the NaN by setting all bits of `$value`. If the macro selected `$value` or
/// `$update` instead, the compiler would merge this selection with the selection of the smaller or
/// larger value. On x86, the compiler would then emit a masked store. On Zen 4 with AVX2, the
/// reduction of 4 KiB of `f32` takes 456 ns with masked stores, and 52 ns with this macro.
macro_rules! or_nan {
    ($value:expr, $update:ident) => {
        Self::from_bits($value.to_bits() | if $update.is_nan() { !0 } else { 0 })
    };
}

arithmetic!(f32, f64: |a, b| a + b, a - b, a * b);
// The methods `min` and `max` of the standard library ignore a NaN operand, so they are not used.
ordered!(f32, f64:
    |a, b| or_nan!(if b < a { b } else { a }, b), or_nan!(if b > a { b } else { a }, b));

/// A boolean as a byte. 0 is false, and every other byte is true. Operations return 0 or 1.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Bool(u8);

impl Bool {
    #[inline(always)]
    fn get(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    fn of(value: bool) -> Self {
        Self(u8::from(value))
    }
}

impl Arithmetic for Bool {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::of(self.get() | other.get())
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::of(self.get() ^ other.get())
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::of(self.get() & other.get())
    }
    #[inline(always)]
    fn taken(self) -> Self {
        Self::of(self.get())
    }
}

/// A complex number. Complex numbers have no order, so this type has no minima and maxima.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Complex<F> {
    re: F,
    im: F,
}

impl<F> Complex<F> {
    /// Returns the complex number with the components `apply(re)` and `apply(im)`.
    #[inline(always)]
    pub(super) fn by_component(self, apply: impl Fn(F) -> F) -> Self {
        Self {
            re: apply(self.re),
            im: apply(self.im),
        }
    }
}

impl<F: std::ops::Neg<Output = F>> Complex<F> {
    #[inline(always)]
    pub(super) fn conjugate(self) -> Self {
        Self {
            im: -self.im,
            ..self
        }
    }
}

impl<F: Arithmetic> Arithmetic for Complex<F> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self {
            re: self.re.add(other.re),
            im: self.im.add(other.im),
        }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self {
            re: self.re.sub(other.re),
            im: self.im.sub(other.im),
        }
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (a, b, c, d) = (self.re, self.im, other.re, other.im);
        Self {
            re: a.mul(c).sub(b.mul(d)),
            im: a.mul(d).add(b.mul(c)),
        }
    }
}
