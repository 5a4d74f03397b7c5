//! Vectors of the filter, with AVX2.

#![allow(unsafe_code, reason = "calls intrinsics of machine instructions")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "vectors have lanes of signed integers, and masks have at most 8 bits"
)]

use std::arch::x86_64 as x86;

use crate::kernel::lanes::Vectors;

/// Vectors of eight lanes of 32 bits. AVX2 has no instruction that moves the lanes of a mask to the
/// first lanes. So a table has a permutation for each mask.
pub(in super::super) struct Eight;

const LANES: usize = Eight::LANES;

/// For each mask of eight lanes: the positions of its set bits in ascending order, one byte each.
/// The lowest position is in the lowest byte. The remaining bytes are 0.
static PERMUTATIONS: [u64; 256] = permutations();

const fn permutations() -> [u64; 256] {
    let mut permutations = [0; 256];
    let mut mask = 0;
    while mask < permutations.len() {
        let (mut lane, mut kept) = (0, 0);
        while lane < LANES {
            if mask >> lane & 1 == 1 {
                permutations[mask] |= (lane as u64) << (8 * kept);
                kept += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    permutations
}

/// For each mask of four lanes of 64 bits: the mask of eight lanes of 32 bits that selects both
/// halves of each set lane.
const HALVES: [u8; 16] = halves();

const fn halves() -> [u8; 16] {
    let mut halves = [0; 16];
    let mut mask = 0;
    while mask < halves.len() {
        let mut lane = 0;
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                halves[mask] |= 0b11 << (2 * lane);
            }
            lane += 1;
        }
        mask += 1;
    }
    halves
}

impl Vectors for Eight {
    const LANES: usize = 8;
    type Lanes = x86::__m256i;

    #[inline(always)]
    fn inside_u32(numbers: &[u32], start: u32, span: u32) -> u32 {
        assert!(numbers.len() == LANES, "a slice of one vector");
        // SAFETY: `numbers` has 32 bytes. The machine has AVX2, see the module `avx2`.
        unsafe {
            let numbers = x86::_mm256_loadu_si256(numbers.as_ptr().cast());
            let after = x86::_mm256_sub_epi32(numbers, x86::_mm256_set1_epi32(start as i32));
            let least = x86::_mm256_min_epu32(after, x86::_mm256_set1_epi32(span as i32));
            let inside = x86::_mm256_cmpeq_epi32(after, least);
            x86::_mm256_movemask_ps(x86::_mm256_castsi256_ps(inside)) as u32
        }
    }

    #[inline(always)]
    fn inside_half(numbers: &[u64], start: u64, span: u64) -> u32 {
        assert!(numbers.len() == 4, "a slice of one vector");
        // AVX2 has only a signed comparison for "greater". `BIAS` maps the unsigned order to the
        // signed order.
        const BIAS: u64 = 1 << 63;
        // SAFETY: `numbers` has 32 bytes. The machine has AVX2, see the module `avx2`.
        let outside = unsafe {
            let numbers = x86::_mm256_loadu_si256(numbers.as_ptr().cast());
            let start = x86::_mm256_set1_epi64x(start.wrapping_add(BIAS) as i64);
            let after = x86::_mm256_sub_epi64(numbers, start);
            let span = x86::_mm256_set1_epi64x(span.wrapping_add(BIAS) as i64);
            x86::_mm256_movemask_pd(x86::_mm256_castsi256_pd(x86::_mm256_cmpgt_epi64(
                after, span,
            )))
        };
        outside as u32 ^ 0xf
    }

    #[inline(always)]
    fn positions(first: u32) -> Self::Lanes {
        // SAFETY: the machine has AVX2, see the module `avx2`.
        unsafe {
            let each = x86::_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
            x86::_mm256_add_epi32(x86::_mm256_set1_epi32(first as i32), each)
        }
    }

    #[inline(always)]
    fn narrow(numbers: &[u64]) -> Self::Lanes {
        assert!(numbers.len() == LANES, "a slice of two vectors");
        let (low, high) = numbers.split_at(LANES / 2);
        // SAFETY: both halves have 32 bytes. The machine has AVX2, see the module `avx2`.
        unsafe {
            let low = x86::_mm256_loadu_si256(low.as_ptr().cast());
            let high = x86::_mm256_loadu_si256(high.as_ptr().cast());
            let (low, high) = (
                x86::_mm256_castsi256_ps(low),
                x86::_mm256_castsi256_ps(high),
            );
            // `pairs` has the low 32 bits of two numbers of `low`, then of two numbers of `high`,
            // then of the other two numbers of `low` and of `high`. The permutation restores their
            // order.
            let pairs = x86::_mm256_shuffle_ps::<0b10_00_10_00>(low, high);
            let pairs = x86::_mm256_castps_si256(pairs);
            x86::_mm256_permute4x64_epi64::<0b11_01_10_00>(pairs)
        }
    }

    #[inline(always)]
    fn load<const W: usize>(values: &[[u8; W]]) -> Self::Lanes {
        assert!(values.len() == LANES, "a slice of one vector");
        // SAFETY: `values` has 8 times `W` bytes. The machine has AVX2, see the module `avx2`.
        unsafe {
            match W {
                1 => x86::_mm256_cvtepu8_epi32(x86::_mm_loadl_epi64(values.as_ptr().cast())),
                2 => x86::_mm256_cvtepu16_epi32(x86::_mm_loadu_si128(values.as_ptr().cast())),
                4 => x86::_mm256_loadu_si256(values.as_ptr().cast()),
                _ => unreachable!("values of 1, 2 or 4 bytes"),
            }
        }
    }

    #[inline(always)]
    fn compress(lanes: Self::Lanes, mask: u32) -> Self::Lanes {
        let permutation = PERMUTATIONS[mask as usize & 0xff];
        // SAFETY: the machine has AVX2, see the module `avx2`.
        unsafe {
            let permutation = x86::_mm_cvtsi64_si128(permutation as i64);
            let permutation = x86::_mm256_cvtepu8_epi32(permutation);
            x86::_mm256_permutevar8x32_epi32(lanes, permutation)
        }
    }

    #[inline(always)]
    fn store<const W: usize>(lanes: Self::Lanes, to: &mut [[u8; W]]) {
        assert!(to.len() == LANES, "a slice of one vector");
        let to = to.as_mut_ptr();
        // SAFETY: `to` has 8 times `W` bytes. The machine has AVX2, see the module `avx2`.
        unsafe {
            match W {
                1 => {
                    let pairs = low_halves(lanes);
                    x86::_mm_storel_epi64(to.cast(), x86::_mm_packus_epi16(pairs, pairs));
                }
                2 => x86::_mm_storeu_si128(to.cast(), low_halves(lanes)),
                4 => x86::_mm256_storeu_si256(to.cast(), lanes),
                _ => unreachable!("values of 1, 2 or 4 bytes"),
            }
        }
    }

    #[inline(always)]
    fn keep_half(values: &[[u8; 8]], mask: u32, to: &mut [[u8; 8]]) {
        assert!(values.len() == 4 && to.len() == 4, "slices of one vector");
        let halves = u32::from(HALVES[mask as usize & 0xf]);
        // SAFETY: both slices have 32 bytes. The machine has AVX2, see the module `avx2`.
        unsafe {
            let values = x86::_mm256_loadu_si256(values.as_ptr().cast());
            let kept = Eight::compress(values, halves);
            x86::_mm256_storeu_si256(to.as_mut_ptr().cast(), kept);
        }
    }

    /// Returns the number of set bits of `mask`, from a table. AVX2 does not include the
    /// instruction that counts bits.
    #[inline(always)]
    fn count(mask: u32) -> usize {
        usize::from(COUNTS[mask as usize & 0xff])
    }
}

/// For each mask of eight lanes: the number of its set bits.
static COUNTS: [u8; 256] = counts();

const fn counts() -> [u8; 256] {
    let mut counts = [0; 256];
    let mut mask = 0;
    while mask < counts.len() {
        counts[mask] = mask.count_ones() as u8;
        mask += 1;
    }
    counts
}

/// Returns the low 16 bits of each lane of `lanes`. The high 16 bits of each lane must be zero,
/// because the instruction saturates.
#[inline(always)]
fn low_halves(lanes: x86::__m256i) -> x86::__m128i {
    // SAFETY: the machine has AVX2, see the module `avx2`.
    unsafe {
        // The instruction packs each 128-bit half of the vector separately. The permutation joins
        // the two results.
        let packed = x86::_mm256_packus_epi32(lanes, lanes);
        x86::_mm256_castsi256_si128(x86::_mm256_permute4x64_epi64::<0b1000>(packed))
    }
}
