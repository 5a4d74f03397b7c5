//! Draws the destinations of a case's tuples, and stores indices in memory as a chosen index type.

use ndscatter::{Element, Index};

use super::Tensor;
use super::api::{DType, Indices};
use super::layouts::{Arrangement, Strided};
use super::random::Random;

/// The distribution of destinations among the tuples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Destinations {
    Random,
    /// A few destinations have most of the tuples. They have the smallest numbers.
    Skewed,
    /// A few destinations have most of the tuples. They are spread over the whole output.
    Spread,
    /// Skewed and sorted: the tuples of a destination are adjacent.
    Together,
    /// At most 40 destinations, adjacent, in the middle.
    Few,
    /// One destination: the last.
    One,
    /// Distinct destinations in scattered order. They repeat only where there are more tuples than
    /// destinations.
    Distinct,
    /// Consecutive destinations from a random start. They wrap around at the end.
    Consecutive,
    /// Ascending destinations from the first towards the last. They repeat where there are more
    /// tuples than destinations.
    Sorted,
}

impl Destinations {
    /// The distributions from which random cases draw.
    pub(crate) const DRAWN: [Self; 5] = [
        Self::Random,
        Self::Skewed,
        Self::Distinct,
        Self::Consecutive,
        Self::Sorted,
    ];

    /// Draws the destination numbers of `tuples` tuples. All are below `count`.
    pub(crate) fn draw(self, tuples: usize, count: usize, random: &mut Random) -> Vec<usize> {
        let from = if tuples == 0 { 0 } else { random.below(count) };
        // A stride by a prime that does not divide `count` visits all destinations.
        let coprime = |&prime: &usize| !count.is_multiple_of(prime);
        let primes = [7919, 104_729, 31].into_iter();
        let stride = primes.clone().find(coprime).unwrap_or(1);
        let draw = |tuple: usize| match self {
            Self::Random => random.below(count),
            Self::Skewed | Self::Together => random.zipf(count),
            Self::Spread => random.zipf(count) * stride % count,
            Self::Few => count / 2 + random.below(40.min(count - count / 2)),
            Self::One => count - 1,
            Self::Distinct => (from + tuple * stride) % count,
            Self::Consecutive => (from + tuple) % count,
            Self::Sorted => tuple * count / tuples,
        };
        let mut numbers: Vec<_> = (0..tuples).map(draw).collect();
        if self == Self::Together {
            numbers.sort_unstable();
        }
        numbers
    }
}

/// Returns all index types.
pub(crate) fn index_types() -> Vec<DType> {
    let all = DType::ALL.into_iter();
    all.filter(|dtype| dtype.is_index()).collect()
}

/// Returns the smallest and the largest value of an index type.
pub(crate) fn range(index: DType) -> (i128, i128) {
    let bits = 8 * index.size();
    match index {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// Stores `logical` in memory with the index type `index`.
pub(crate) fn place_indices(
    index: DType,
    logical: &Tensor<i128>,
    arrangement: Arrangement,
) -> Box<dyn Indices> {
    fn place<I>(logical: &Tensor<i128>, arrangement: Arrangement) -> Box<dyn Indices>
    where
        I: Index + Into<i128> + TryFrom<i128>,
    {
        let narrow = |&index: &i128| I::try_from(index).ok().expect("the index fits its type");
        let values = logical.values.iter().map(narrow).collect();
        let tensor = Tensor::new(&logical.shape, values);
        // Gaps are filled with 127, which is out of bounds on most axes.
        Box::new(Strided::new(&tensor, arrangement, 1, narrow(&127)))
    }
    match index {
        DType::I8 => place::<i8>(logical, arrangement),
        DType::I16 => place::<i16>(logical, arrangement),
        DType::I32 => place::<i32>(logical, arrangement),
        DType::I64 => place::<i64>(logical, arrangement),
        DType::U8 => place::<u8>(logical, arrangement),
        DType::U16 => place::<u16>(logical, arrangement),
        DType::U32 => place::<u32>(logical, arrangement),
        DType::U64 => place::<u64>(logical, arrangement),
        other => panic!("{other} is not an index type"),
    }
}
