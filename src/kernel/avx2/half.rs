//! Sums and products of binary16.
//!
//! Vectors hold `f32`, and rounding is the matter of `store`: only one
//! operation may lie between it and `load`.
//!
//! For bfloat16 the same was tried by unpacking: a quarter faster for long
//! rows (250 against 330 ns for 4 KiB), but up to four times slower for runs
//! of less than a vector, where the compiler's own loop does better.

#![allow(unsafe_code, reason = "calls machine instructions")]

use std::arch::x86_64 as x86;

use crate::kernel::half::F16;
use crate::kernel::reduce::{Arithmetic, Vector, arithmetic};

const NEAREST_EVEN: i32 = x86::_MM_FROUND_TO_NEAREST_INT;

/// [`F16`], converted by the machine.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in super::super) struct F16c(pub(in super::super) F16);

impl F16c {
    /// The value in the lowest lane, zeros above. All lanes are kept up to
    /// `narrow`: with the lowest alone, the compiler inserts each element into
    /// what the register held before, and elements wait for one another.
    #[inline(always)]
    fn widen(self) -> x86::__m128 {
        // SAFETY: F16C was detected.
        unsafe { x86::_mm_cvtph_ps(x86::_mm_cvtsi32_si128(i32::from(self.0.0))) }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the lowest lane has 16 bits"
    )]
    #[inline(always)]
    fn narrow(value: x86::__m128) -> Self {
        // SAFETY: F16C was detected.
        unsafe {
            let halves = x86::_mm_cvtps_ph::<NEAREST_EVEN>(value);
            Self(F16(x86::_mm_cvtsi128_si32(halves) as u16))
        }
    }
}

arithmetic!(F16c: |a, b|
    // SAFETY: SSE is part of x86-64.
    F16c::narrow(unsafe { x86::_mm_add_ps(a.widen(), b.widen()) }),
    // SAFETY: as above.
    F16c::narrow(unsafe { x86::_mm_sub_ps(a.widen(), b.widen()) }),
    // SAFETY: as above.
    F16c::narrow(unsafe { x86::_mm_mul_ps(a.widen(), b.widen()) }));

/// Eight `F16c`.
#[derive(Clone, Copy)]
pub(in super::super) struct EightF16(x86::__m256);

impl Vector<F16c> for EightF16 {
    const LANES: usize = 8;

    #[inline(always)]
    fn load(src: &[F16c]) -> Self {
        assert!(src.len() == Self::LANES, "one vector");
        // SAFETY: `src` has 16 readable bytes, and F16C was detected.
        Self(unsafe { x86::_mm256_cvtph_ps(x86::_mm_loadu_si128(src.as_ptr().cast())) })
    }

    #[inline(always)]
    fn store(self, dst: &mut [F16c]) {
        assert!(dst.len() == Self::LANES, "one vector");
        // SAFETY: `dst` has 16 writable bytes, and F16C was detected.
        unsafe {
            let halves = x86::_mm256_cvtps_ph::<NEAREST_EVEN>(self.0);
            x86::_mm_storeu_si128(dst.as_mut_ptr().cast(), halves);
        }
    }
}

arithmetic!(EightF16: |a, b|
    // SAFETY: AVX was detected.
    EightF16(unsafe { x86::_mm256_add_ps(a.0, b.0) }),
    // SAFETY: as above.
    EightF16(unsafe { x86::_mm256_sub_ps(a.0, b.0) }),
    // SAFETY: as above.
    EightF16(unsafe { x86::_mm256_mul_ps(a.0, b.0) }));
