//! Reproducible numbers: every run of a bench has the same inputs.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "sizes of workloads are far from the limits of every type here"
)]

/// SplitMix64.
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

    /// Uniform in `0..bound`, near enough.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `values` with numbers of `[-1, 1)`: sums of many stay finite and
    /// far from denormal.
    pub(crate) fn fill(&mut self, values: &mut [f32]) {
        for value in values {
            *value = (self.unit() * 2.0 - 1.0) as f32;
        }
    }

    /// `len` numbers of `0..bound`.
    pub(crate) fn uniform(&mut self, len: usize, bound: usize) -> Vec<usize> {
        (0..len).map(|_| self.below(bound)).collect()
    }

    /// `len` different numbers of `0..bound`, in random order.
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

    /// `len` numbers of `0..bound`, number r with weight `1 / (r + 1)^exponent`.
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
