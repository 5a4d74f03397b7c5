//! Vectors for x86-64 with AVX-512 F, BW, DQ and VL.
//!
//! The module knows machine instructions. Code that uses its type [`Sixteen`] must run only on
//! machines with [`InstructionSet::Avx512`](super::InstructionSet::Avx512). The function
//! [`filter`](super::filter::filter) guarantees this. Every safety comment of the module depends on
//! this guarantee.

#![allow(unsafe_code, reason = "calls intrinsics of machine instructions")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "vectors have lanes of signed integers, and masks have 8 or 16 bits"
)]

use std::arch::x86_64 as x86;

use super::lanes::Vectors;

/// Vectors of sixteen lanes of 32 bits.
///
/// The functions first move the kept lanes to the first lanes of a register, and then store the
/// whole register. One instruction could store the kept lanes directly to memory, but that
/// instruction costs more than a hundred cycles on Zen 4.
pub(super) struct Sixteen;

const LANES: usize = Sixteen::LANES;

impl Vectors for Sixteen {
    const LANES: usize = 16;
    type Lanes = x86::__m512i;

    #[inline(always)]
    fn inside_u32(numbers: &[u32], start: u32, span: u32) -> u32 {
        assert!(numbers.len() == LANES, "a slice of one vector");
        // SAFETY: `numbers` has 64 bytes. The machine has AVX-512, see the module.
        unsafe {
            let numbers = x86::_mm512_loadu_si512(numbers.as_ptr().cast());
            let after = x86::_mm512_sub_epi32(numbers, x86::_mm512_set1_epi32(start as i32));
            let span = x86::_mm512_set1_epi32(span as i32);
            u32::from(x86::_mm512_cmple_epu32_mask(after, span))
        }
    }

    #[inline(always)]
    fn inside_half(numbers: &[u64], start: u64, span: u64) -> u32 {
        assert!(numbers.len() == 8, "a slice of one vector");
        // SAFETY: `numbers` has 64 bytes. The machine has AVX-512, see the module.
        unsafe {
            let numbers = x86::_mm512_loadu_si512(numbers.as_ptr().cast());
            let after = x86::_mm512_sub_epi64(numbers, x86::_mm512_set1_epi64(start as i64));
            let span = x86::_mm512_set1_epi64(span as i64);
            u32::from(x86::_mm512_cmple_epu64_mask(after, span))
        }
    }

    #[inline(always)]
    fn positions(first: u32) -> Self::Lanes {
        // SAFETY: the machine has AVX-512, see the module.
        unsafe {
            let each = x86::_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
            x86::_mm512_add_epi32(x86::_mm512_set1_epi32(first as i32), each)
        }
    }

    #[inline(always)]
    fn narrow(numbers: &[u64]) -> Self::Lanes {
        assert!(numbers.len() == LANES, "a slice of two vectors");
        let (low, high) = numbers.split_at(LANES / 2);
        // SAFETY: both halves have 64 bytes. The machine has AVX-512, see the module.
        unsafe {
            let low = x86::_mm512_loadu_si512(low.as_ptr().cast());
            let high = x86::_mm512_loadu_si512(high.as_ptr().cast());
            let low = x86::_mm512_cvtepi64_epi32(low);
            let high = x86::_mm512_cvtepi64_epi32(high);
            x86::_mm512_inserti64x4::<1>(x86::_mm512_castsi256_si512(low), high)
        }
    }

    #[inline(always)]
    fn load<const W: usize>(values: &[[u8; W]]) -> Self::Lanes {
        assert!(values.len() == LANES, "a slice of one vector");
        // SAFETY: `values` has 16 times `W` bytes. The machine has AVX-512, see the module.
        unsafe {
            match W {
                1 => x86::_mm512_cvtepu8_epi32(x86::_mm_loadu_si128(values.as_ptr().cast())),
                2 => x86::_mm512_cvtepu16_epi32(x86::_mm256_loadu_si256(values.as_ptr().cast())),
                4 => x86::_mm512_loadu_si512(values.as_ptr().cast()),
                _ => unreachable!("values of 1, 2 or 4 bytes"),
            }
        }
    }

    #[inline(always)]
    fn compress(lanes: Self::Lanes, mask: u32) -> Self::Lanes {
        // SAFETY: the machine has AVX-512, see the module.
        unsafe { x86::_mm512_maskz_compress_epi32(mask as u16, lanes) }
    }

    #[inline(always)]
    fn store<const W: usize>(lanes: Self::Lanes, to: &mut [[u8; W]]) {
        assert!(to.len() == LANES, "a slice of one vector");
        let to = to.as_mut_ptr();
        // SAFETY: `to` has 16 times `W` bytes. The machine has AVX-512, see the module.
        unsafe {
            match W {
                1 => x86::_mm_storeu_si128(to.cast(), x86::_mm512_cvtepi32_epi8(lanes)),
                2 => x86::_mm256_storeu_si256(to.cast(), x86::_mm512_cvtepi32_epi16(lanes)),
                4 => x86::_mm512_storeu_si512(to.cast(), lanes),
                _ => unreachable!("values of 1, 2 or 4 bytes"),
            }
        }
    }

    #[inline(always)]
    fn keep_half(values: &[[u8; 8]], mask: u32, to: &mut [[u8; 8]]) {
        assert!(values.len() == 8 && to.len() == 8, "slices of one vector");
        // SAFETY: both slices have 64 bytes. The machine has AVX-512, see the module.
        unsafe {
            let values = x86::_mm512_loadu_si512(values.as_ptr().cast());
            let kept = x86::_mm512_maskz_compress_epi64(mask as u8, values);
            x86::_mm512_storeu_si512(to.as_mut_ptr().cast(), kept);
        }
    }

    #[inline(always)]
    fn count(mask: u32) -> usize {
        mask.count_ones() as usize
    }
}
