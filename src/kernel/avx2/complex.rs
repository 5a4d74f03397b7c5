//! Products of complex numbers with AVX.

#![allow(unsafe_code, reason = "calls intrinsics of machine instructions")]

use std::arch::x86_64 as x86;

use crate::kernel::reduce::{Mul, Reducer, Vector};
use crate::kernel::scalar::Complex;

/// Defines vectors of complex numbers and their product. A row lists the name of the vector type,
/// the register, the component type, the number of complex numbers, and seven instructions. In this
/// order, the instructions:
/// - load a vector, store a vector, and multiply two vectors,
/// - subtract in the lanes of real parts and add in the lanes of imaginary parts,
/// - copy each real part over its imaginary part, and each imaginary part over its real part,
/// - swap the real and imaginary part of each number.
macro_rules! complex_vectors {
    ($(
        $(#[$meaning:meta])*
        $vector:ident($register:ident) = [$component:ty; $lanes:literal]:
            $load:ident $store:ident $mul:ident $addsub:ident
            $real:expr, $imaginary:expr, $swapped:expr;
    )*) => {$(
        $(#[$meaning])*
        #[derive(Clone, Copy)]
        pub(in super::super) struct $vector(x86::$register);

        impl Vector<Complex<$component>> for $vector {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(src: &[Complex<$component>]) -> Self {
                assert!(src.len() == Self::LANES, "a slice of one vector");
                // SAFETY: `src` has 32 bytes. The machine has AVX, see the module `avx2`.
                Self(unsafe { x86::$load(src.as_ptr().cast()) })
            }

            #[inline(always)]
            fn store(self, dst: &mut [Complex<$component>]) {
                assert!(dst.len() == Self::LANES, "a slice of one vector");
                // SAFETY: `dst` has 32 bytes. The machine has AVX, see the module `avx2`.
                unsafe { x86::$store(dst.as_mut_ptr().cast(), self.0) };
            }
        }

        impl Reducer<$vector> for Mul {
            #[inline(always)]
            fn apply(current: $vector, update: $vector) -> $vector {
                // SAFETY: the machine has AVX, see the module `avx2`.
                unsafe {
                    let ac_ad = x86::$mul($real(current.0), update.0);
                    let bd_bc = x86::$mul($imaginary(current.0), $swapped(update.0));
                    $vector(x86::$addsub(ac_ad, bd_bc))
                }
            }
        }
    )*};
}

complex_vectors! {
    /// Four complex numbers of `f32`. Real and imaginary parts alternate.
    FourComplex(__m256) = [f32; 4]:
        _mm256_loadu_ps _mm256_storeu_ps _mm256_mul_ps _mm256_addsub_ps
        x86::_mm256_moveldup_ps, x86::_mm256_movehdup_ps, x86::_mm256_permute_ps::<0b10_11_00_01>;
    /// Two complex numbers of `f64`. Real and imaginary parts alternate.
    TwoComplex(__m256d) = [f64; 2]:
        _mm256_loadu_pd _mm256_storeu_pd _mm256_mul_pd _mm256_addsub_pd
        x86::_mm256_movedup_pd, x86::_mm256_permute_pd::<0b1111>, x86::_mm256_permute_pd::<0b0101>;
}
