//! Which destinations the tuples of a case have, and the type that their
//! indices have in memory.

use ndscatter::{Element, Index};

use super::Tensor;
use super::api::{DType, Indices};
use super::layouts::{Arrangement, Strided};
use super::random::Random;

/// Which destinations the tuples have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Destinations {
    Random,
    /// Few have most of the tuples: those of the smallest numbers.
    Skewed,
    /// The same, but these few lie all over the output.
    Spread,
    /// Skewed and sorted: the tuples of a destination stand together.
    Together,
    /// At most 40, side by side in the middle.
    Few,
    /// One, the last.
    One,
    /// All different (where there are enough), scattered.
    Distinct,
    /// One after the other, from somewhere, round the end.
    Consecutive,
    /// From the first to the last, with duplicates where there are many tuples.
    Sorted,
}

impl Destinations {
    /// Those that random cases are drawn from.
    pub(crate) const DRAWN: [Self; 5] = [
        Self::Random,
        Self::Skewed,
        Self::Distinct,
        Self::Consecutive,
        Self::Sorted,
    ];

    /// Numbers of the destinations of `tuples` tuples, all below `count`.
    pub(crate) fn draw(self, tuples: usize, count: usize, random: &mut Random) -> Vec<usize> {
        let from = if tuples == 0 { 0 } else { random.below(count) };
        // A prime that does not divide the count: such a stride visits all.
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

/// The types that indices can have.
pub(crate) fn index_types() -> Vec<DType> {
    let all = DType::ALL.into_iter();
    all.filter(|dtype| dtype.is_index()).collect()
}

/// The smallest and the largest value of an index type.
pub(crate) fn range(index: DType) -> (i128, i128) {
    let bits = 8 * index.size();
    match index {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// `indices` in memory, as the type that `index` names.
pub(crate) fn place_indices(
    index: DType,
    logical: &Tensor<i128>,
    arrangement: Arrangement,
) -> Box<dyn Indices> {
    fn place<I>(logical: &Tensor<i128>, arrangement: Arrangement) -> Box<dyn Indices>
    where
        I: Index + Into<i128> + TryFrom<i128>,
    {
        let narrow = |&index: &i128| I::try_from(index).ok().expect("drawn for this type");
        let values = logical.values.iter().map(narrow).collect();
        let tensor = Tensor::new(&logical.shape, values);
        // The marks between are out of bounds on most axes.
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
        other => panic!("{other} is no index type"),
    }
}
