//! A small generator of reproducible random numbers. A seed identifies a failing case.

/// SplitMix64, or numbers that are read from bytes.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
    /// Bytes that are not read yet, in reverse order.
    bytes: Vec<u8>,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let (state, bytes) = (seed, vec![]);
        Self { state, bytes }
    }

    /// Reads numbers from the bytes of a fuzzer. A small number is one byte, so the fuzzer can
    /// change it alone. After the last byte, numbers are drawn from a seed.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let bytes = bytes.iter().rev().copied().collect();
        Self { state: 1, bytes }
    }

    pub(crate) fn bits(&mut self) -> u64 {
        if !self.bytes.is_empty() {
            return self.read(8);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Reads at most this many bytes.
    fn read(&mut self, count: usize) -> u64 {
        let bytes = (0..count).map_while(|_| self.bytes.pop());
        bytes.fold(0, |number, byte| number << 8 | u64::from(byte))
    }

    /// Returns a number in `0..bound`, almost uniform. `bound` is not 0.
    fn number(&mut self, bound: u64) -> u64 {
        let bits = match bound {
            _ if self.bytes.is_empty() => self.bits(),
            ..=0x100 => self.read(1),
            0x101..=0x1_0000 => self.read(2),
            _ => self.read(8),
        };
        bits % bound
    }

    /// Returns a number in `0..bound`, almost uniform. `bound` is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("the bound fits u64");
        usize::try_from(self.number(bound)).expect("the number is below `bound`")
    }

    /// Returns a number in `low..=high`, almost uniform.
    pub(crate) fn between(&mut self, low: i128, high: i128) -> i128 {
        let range = high - low + 1;
        // A 64-bit division, because a 128-bit division is slow.
        let offset = match u64::try_from(range) {
            Ok(range) => self.number(range),
            Err(_) => self.bits(),
        };
        low + i128::from(offset)
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
