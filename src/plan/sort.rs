//! A stable radix sort of 64-bit keys by a range of their bits.
//!
//! On long lists, this sort is faster than a comparison sort. The module does not use the meaning
//! of the keys.

/// Number of bits of a digit. Each pass of the sort processes one digit. The 2048 counters of a
/// pass stay in the first-level cache (L1). Three passes are enough for destination numbers below
/// 2^33.
const DIGIT_BITS: u32 = 11;

/// Sorts `keys` stably by the value of their bits from `low` to `high - 1`. `spare` is scratch
/// memory: it must have the length of `keys`, and its content is arbitrary.
pub(crate) fn by_bits(keys: &mut Vec<u64>, spare: &mut Vec<u64>, low: u32, high: u32) {
    let mut shift = low;
    while shift < high {
        let bits = DIGIT_BITS.min(high - shift);
        pass(keys, spare, shift, bits);
        std::mem::swap(keys, spare);
        shift += bits;
    }
}

/// Sorts `keys` stably by one digit, the `bits` bits from bit `shift` on, and writes the result to
/// `sorted`.
fn pass(keys: &[u64], sorted: &mut [u64], shift: u32, bits: u32) {
    let mask = (1_u64 << bits) - 1;
    let digit = |key: u64| usize::try_from((key >> shift) & mask).unwrap_or(0);
    let mut starts = [0_usize; 1 << DIGIT_BITS];
    for &key in keys {
        starts[digit(key)] += 1;
    }
    let mut total = 0;
    for start in &mut starts {
        total += std::mem::replace(start, total);
    }
    for &key in keys {
        let start = &mut starts[digit(key)];
        sorted[*start] = key;
        *start += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::by_bits;

    #[test]
    fn sorts_by_the_given_bits_and_keeps_ties_in_order() {
        let mut state = 1_u64;
        let mut keys: Vec<u64> = (0..5000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state
            })
            .collect();
        for (low, high) in [(0, 0), (3, 4), (5, 16), (7, 40), (0, 64)] {
            let bits = |key: u64| (u128::from(key) & ((1_u128 << high) - 1)) >> low;
            let mut expected = keys.clone();
            expected.sort_by_key(|&key| bits(key));
            let mut spare = vec![0; keys.len()];
            by_bits(&mut keys, &mut spare, low, high);
            assert_eq!(keys, expected, "bits {low}..{high}");
        }
    }
}
