//! Products of complex numbers.

#![allow(unsafe_code, reason = "calls machine instructions")]

use std::arch::x86_64 as x86;

use crate::kernel::reduce::{Mul, Reducer, Vector};
use crate::kernel::scalar::Complex;

/// Four complex numbers of `f32`: real and imaginary parts by turns.
#[derive(Clone, Copy)]
pub(in super::super) struct FourComplex(x86::__m256);

impl Vector<Complex<f32>> for FourComplex {
    const LANES: usize = 4;

    #[inline(always)]
    fn load(src: &[Complex<f32>]) -> Self {
        assert!(src.len() == Self::LANES, "one vector");
        // SAFETY: `src` has 32 readable bytes, and AVX was detected.
        Self(unsafe { x86::_mm256_loadu_ps(src.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, dst: &mut [Complex<f32>]) {
        assert!(dst.len() == Self::LANES, "one vector");
        // SAFETY: `dst` has 32 writable bytes, and AVX was detected.
        unsafe { x86::_mm256_storeu_ps(dst.as_mut_ptr().cast(), self.0) };
    }
}

impl Reducer<FourComplex> for Mul {
    #[inline(always)]
    fn apply(current: FourComplex, update: FourComplex) -> FourComplex {
        // SAFETY: AVX was detected.
        unsafe {
            let a = x86::_mm256_moveldup_ps(current.0);
            let b = x86::_mm256_movehdup_ps(current.0);
            let swapped = x86::_mm256_permute_ps::<0b10_11_00_01>(update.0);
            let (ac_ad, bd_bc) = (
                x86::_mm256_mul_ps(a, update.0),
                x86::_mm256_mul_ps(b, swapped),
            );
            FourComplex(x86::_mm256_addsub_ps(ac_ad, bd_bc))
        }
    }
}

/// Two complex numbers of `f64`.
#[derive(Clone, Copy)]
pub(in super::super) struct TwoComplex(x86::__m256d);

impl Vector<Complex<f64>> for TwoComplex {
    const LANES: usize = 2;

    #[inline(always)]
    fn load(src: &[Complex<f64>]) -> Self {
        assert!(src.len() == Self::LANES, "one vector");
        // SAFETY: `src` has 32 readable bytes, and AVX was detected.
        Self(unsafe { x86::_mm256_loadu_pd(src.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, dst: &mut [Complex<f64>]) {
        assert!(dst.len() == Self::LANES, "one vector");
        // SAFETY: `dst` has 32 writable bytes, and AVX was detected.
        unsafe { x86::_mm256_storeu_pd(dst.as_mut_ptr().cast(), self.0) };
    }
}

impl Reducer<TwoComplex> for Mul {
    #[inline(always)]
    fn apply(current: TwoComplex, update: TwoComplex) -> TwoComplex {
        // SAFETY: AVX was detected.
        unsafe {
            let a = x86::_mm256_movedup_pd(current.0);
            let b = x86::_mm256_permute_pd::<0b1111>(current.0);
            let swapped = x86::_mm256_permute_pd::<0b0101>(update.0);
            let (ac_ad, bd_bc) = (
                x86::_mm256_mul_pd(a, update.0),
                x86::_mm256_mul_pd(b, swapped),
            );
            TwoComplex(x86::_mm256_addsub_pd(ac_ad, bd_bc))
        }
    }
}
