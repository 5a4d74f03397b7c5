//! A random generator with a fixed seed. Every run of a bench has equal inputs.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "sizes of workloads are far from the limits of every type here"
)]

/// State of a SplitMix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, with a nearly uniform distribution.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Returns a uniformly distributed number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `values` with numbers in `[-1, 1)`. Their sums stay finite and far from denormal
    /// numbers.
    pub(crate) fn fill(&mut self, values: &mut [f32]) {
        for value in values {
            *value = (self.unit() * 2.0 - 1.0) as f32;
        }
    }

    /// Returns `len` numbers in `0..bound`.
    pub(crate) fn uniform(&mut self, len: usize, bound: usize) -> Vec<usize> {
        (0..len).map(|_| self.below(bound)).collect()
    }

    /// Returns `len` distinct numbers in `0..bound`, in random order.
    pub(crate) fn distinct(&mut self, len: usize, bound: usize) -> Vec<usize> {
        let mut numbers: Vec<u32> = (0..bound as u32).collect();
        for at in 0..len {
            let other = at + self.below(bound - at);
            numbers.swap(at, other);
        }
        numbers[..len]
            .iter()
            .map(|&number| number as usize)
            .collect()
    }

    /// Returns `len` numbers in `0..bound`. Number r has the weight `1 / (r + 1)^exponent`.
    pub(crate) fn zipf(&mut self, len: usize, bound: usize, exponent: f64) -> Vec<usize> {
        let mut total = 0.0;
        let sums: Vec<f64> = (1..=bound)
            .map(|rank| {
                total += (rank as f64).powf(-exponent);
                total
            })
            .collect();
        (0..len)
            .map(|_| {
                let at = self.unit() * total;
                sums.partition_point(|&sum| sum <= at).min(bound - 1)
            })
            .collect()
    }
}
