//! Minima and maxima of 64-bit integers with AVX2.

#![allow(unsafe_code, reason = "calls intrinsics of machine instructions")]

use std::arch::x86_64 as x86;
use std::marker::PhantomData;

use crate::kernel::reduce::{Ordered, Vector, ordered};

/// A vector of four `i64` or `u64`.
///
/// The compiler vectorises the scalar loop over minima or maxima with masked stores, which are slow
/// on AMD. On Zen 4, the loop over 4 KiB of elements costs 230 ns with masked stores, and 55 ns
/// with the type `Four`. The macro `or_nan` in `scalar` avoids masked stores of floats.
#[derive(Clone, Copy)]
pub(in super::super) struct Four<T>(x86::__m256i, PhantomData<T>);

/// A 64-bit integer type: `i64` or `u64`.
pub(in super::super) trait Wide: Copy {
    /// Bits to invert before a comparison, because AVX2 orders 64-bit integers only as signed
    /// integers. Values of the type have the order of their `value ^ BIAS` as `i64`.
    const BIAS: i64;
}

impl Wide for i64 {
    const BIAS: i64 = 0;
}

impl Wide for u64 {
    const BIAS: i64 = i64::MIN;
}

impl<T: Wide> Vector<T> for Four<T> {
    const LANES: usize = 4;

    #[inline(always)]
    fn load(src: &[T]) -> Self {
        assert!(src.len() == Self::LANES, "a slice of one vector");
        // SAFETY: `src` has 32 bytes. The machine has AVX, see the module `avx2`.
        let value = unsafe { x86::_mm256_loadu_si256(src.as_ptr().cast()) };
        Self(value, PhantomData)
    }

    #[inline(always)]
    fn store(self, dst: &mut [T]) {
        assert!(dst.len() == Self::LANES, "a slice of one vector");
        // SAFETY: `dst` has 32 bytes. The machine has AVX, see the module `avx2`.
        unsafe { x86::_mm256_storeu_si256(dst.as_mut_ptr().cast(), self.0) };
    }
}

impl<T: Wide> Four<T> {
    /// Returns a mask with all bits set in the lanes where `self` is greater than `other`, and no
    /// bits set in the other lanes.
    #[inline(always)]
    fn greater(self, other: Self) -> x86::__m256i {
        // SAFETY: the machine has AVX2, see the module `avx2`.
        unsafe {
            let bias = x86::_mm256_set1_epi64x(T::BIAS);
            x86::_mm256_cmpgt_epi64(
                x86::_mm256_xor_si256(self.0, bias),
                x86::_mm256_xor_si256(other.0, bias),
            )
        }
    }

    /// Returns the lanes of `other` where `mask` has all bits set, and the lanes of `self`
    /// elsewhere.
    #[inline(always)]
    fn replace(self, other: Self, mask: x86::__m256i) -> Self {
        // SAFETY: the machine has AVX2, see the module `avx2`.
        let value = unsafe { x86::_mm256_blendv_epi8(self.0, other.0, mask) };
        Self(value, PhantomData)
    }
}

ordered!(Four<i64>, Four<u64>:
    |a, b| a.replace(b, a.greater(b)), a.replace(b, b.greater(a)));
