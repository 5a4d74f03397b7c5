//! Sums, differences and products of binary16 with AVX and F16C.
//!
//! A vector holds `f32` values, and `store` rounds them. So exactly one operation must be between
//! `load` and `store`.
//!
//! Vectors of bfloat16 that unpack to `f32` were measured too. Such vectors were a quarter faster
//! for long rows (250 ns instead of 330 ns for 4 KiB). They were up to four times slower for runs
//! shorter than a vector, where the loop of the compiler is better.

#![allow(unsafe_code, reason = "calls intrinsics of machine instructions")]

use std::arch::x86_64 as x86;

use crate::kernel::half::F16;
use crate::kernel::reduce::{Arithmetic, Vector, arithmetic};

const NEAREST_EVEN: i32 = x86::_MM_FROUND_TO_NEAREST_INT;

/// An [`F16`] that machine instructions convert.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in super::super) struct F16c(pub(in super::super) F16);

impl F16c {
    /// Returns the value in the lowest lane, with zeros in the other lanes.
    ///
    /// `narrow` gets all lanes. With only the lowest lane, the compiler would insert each element
    /// into the old contents of a register, so that each element would wait for the previous
    /// element.
    #[inline(always)]
    fn widen(self) -> x86::__m128 {
        // SAFETY: the machine has F16C, see the module `avx2`.
        unsafe { x86::_mm_cvtph_ps(x86::_mm_cvtsi32_si128(i32::from(self.0.0))) }
    }

    /// Converts the `f32` in the lowest lane to `f16`, rounded to the nearest value, ties to even.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the lowest lane of the result has 16 bits"
    )]
    #[inline(always)]
    fn narrow(value: x86::__m128) -> Self {
        // SAFETY: the machine has F16C, see the module `avx2`.
        unsafe {
            let halves = x86::_mm_cvtps_ph::<NEAREST_EVEN>(value);
            Self(F16(x86::_mm_cvtsi128_si32(halves) as u16))
        }
    }
}

arithmetic!(F16c: |a, b|
    // SAFETY: SSE is part of x86-64.
    F16c::narrow(unsafe { x86::_mm_add_ps(a.widen(), b.widen()) }),
    // SAFETY: SSE is part of x86-64.
    F16c::narrow(unsafe { x86::_mm_sub_ps(a.widen(), b.widen()) }),
    // SAFETY: SSE is part of x86-64.
    F16c::narrow(unsafe { x86::_mm_mul_ps(a.widen(), b.widen()) }));

/// Eight `F16c`, as `f32` values.
#[derive(Clone, Copy)]
pub(in super::super) struct EightF16(x86::__m256);

impl Vector<F16c> for EightF16 {
    const LANES: usize = 8;

    #[inline(always)]
    fn load(src: &[F16c]) -> Self {
        assert!(src.len() == Self::LANES, "a slice of one vector");
        // SAFETY: `src` has 16 bytes. The machine has F16C, see the module `avx2`.
        Self(unsafe { x86::_mm256_cvtph_ps(x86::_mm_loadu_si128(src.as_ptr().cast())) })
    }

    #[inline(always)]
    fn store(self, dst: &mut [F16c]) {
        assert!(dst.len() == Self::LANES, "a slice of one vector");
        // SAFETY: `dst` has 16 bytes. The machine has F16C, see the module `avx2`.
        unsafe {
            let halves = x86::_mm256_cvtps_ph::<NEAREST_EVEN>(self.0);
            x86::_mm_storeu_si128(dst.as_mut_ptr().cast(), halves);
        }
    }
}

arithmetic!(EightF16: |a, b|
    // SAFETY: the machine has AVX, see the module `avx2`.
    EightF16(unsafe { x86::_mm256_add_ps(a.0, b.0) }),
    // SAFETY: the machine has AVX, see the module `avx2`.
    EightF16(unsafe { x86::_mm256_sub_ps(a.0, b.0) }),
    // SAFETY: the machine has AVX, see the module `avx2`.
    EightF16(unsafe { x86::_mm256_mul_ps(a.0, b.0) }));
