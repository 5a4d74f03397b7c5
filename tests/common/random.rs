//! A small generator of reproducible random numbers. A seed identifies a failing case.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, almost uniform. `bound` is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("the bound fits u64");
        usize::try_from(self.bits() % bound).expect("the number is below `bound`")
    }

    /// Returns a number in `low..=high`, almost uniform.
    pub(crate) fn between(&mut self, low: i128, high: i128) -> i128 {
        let range = high - low + 1;
        let bits = self.bits();
        // A 64-bit division, because a 128-bit division is slow.
        low + u64::try_from(range).map_or(i128::from(bits), |range| i128::from(bits % range))
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a number in `0..bound`. Rank r has weight 1 / (r + 1), so small numbers are much
    /// more frequent.
    pub(crate) fn zipf(&mut self, bound: usize) -> usize {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "53 random bits make a fraction; the power of bound stays below bound"
        )]
        {
            let fraction = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
            ((bound as f64).powf(fraction) as usize)
                .saturating_sub(1)
                .min(bound - 1)
        }
    }
}
