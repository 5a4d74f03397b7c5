//! Sums, differences and products of binary16 with AVX and F16C.
//!
//! A vector holds binary16 values as `f32`, and `store` rounds them to binary16. The result of each
//! operation must be rounded to binary16. So exactly one operation must be between `load` and
//! `store`.
//!
//! Vectors of bfloat16 that unpack to `f32` were measured too, and left out. For long rows, such
//! vectors took 250 ns for 4 KiB, and the loop of the compiler took 330 ns. For runs shorter than a
//! vector, such vectors were up to four times slower than the loop of the compiler.

#![allow(unsafe_code, reason = "calls intrinsics of machine instructions")]

use std::arch::x86_64 as x86;

use crate::kernel::half::F16;
use crate::kernel::reduce::{Arithmetic, Vector, arithmetic};

const NEAREST_EVEN: i32 = x86::_MM_FROUND_TO_NEAREST_INT;

/// A binary16 value that F16C instructions convert to `f32` and back.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in super::super) struct F16c(pub(in super::super) F16);

impl F16c {
    /// Returns a vector with the value as `f32` in the lowest lane, and zeros in the other lanes.
    ///
    /// `narrow` gets the whole vector. If `narrow` got only the lowest lane, the compiler would
    /// insert each element into the old contents of a register. Each element would then wait for
    /// the previous element.
    #[inline(always)]
    fn widen(self) -> x86::__m128 {
        // SAFETY: the machine has F16C, see the module `avx2`.
        unsafe { x86::_mm_cvtph_ps(x86::_mm_cvtsi32_si128(i32::from(self.0.0))) }
    }

    /// Converts the `f32` in the lowest lane to binary16, rounded to the nearest value, ties to
    /// even.
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

/// A vector of eight binary16 values, held as `f32`.
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
