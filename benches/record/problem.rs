//! Draws the recorded problems from one seed: operators, sizes and destinations.
//!
//! The list of problems is always equal. Destinations are computed from the number and the sizes
//! of a problem. This module holds no tensors.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "sizes of problems are far from the limits of every type here"
)]

use ndscatter::{CacheMode, DType, Reduction, Scatter};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::random::Random;

/// Number of problems in a record. A change of it or of [`SEED`] makes older records useless.
pub(crate) const PROBLEMS: usize = 320;
const SEED: u64 = 0x6e64_7363_6174_7465;

/// Maximum bytes that a problem moves, except the large problems.
const MOVED_BYTES: u64 = 1 << 30;
/// Maximum bytes that a large problem moves. The minimum is half of it.
const LARGE_BYTES: u64 = 4 << 30;
/// Numbers of the large problems.
const LARGE: [usize; 2] = [100, 200];

/// Bytes from which on problems are drawn less often, in inverse proportion to their bytes.
const COMMON_BYTES: u64 = 128 << 20;
/// Bytes below which every third problem is kept.
const LEAST_BYTES: u64 = 2 << 20;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Tuples of a cluster.
const CLUSTER: usize = 64;

/// Heads of a KV cache.
const HEADS: usize = 8;

/// Operator of a problem, which determines the shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operator {
    /// Data `[slices, window]`, one coordinate per tuple.
    Nd,
    /// Data `[slices / columns, columns, window]`, two coordinates per tuple.
    Pairs,
    /// Data `[repetitions, slices, window]`, indices along axis 1.
    Batched,
    /// Data `[slices, window]`, one index along axis 0 per element.
    Elements,
    /// Data `[sequences, 8, positions, window]`, consecutive rows of each sequence.
    Cache,
}

/// Distribution of destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Places {
    /// Distinct destinations, unordered.
    Unique,
    /// Uniformly random destinations.
    Uniform,
    /// Random destinations. The weight of the r-th most frequent one is about 1 / r.
    Zipf,
    /// Ascending destinations, evenly spread.
    Sorted,
    /// 64 consecutive destinations from each random start on.
    Clustered,
    /// One destination for all tuples.
    One,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) number: usize,
    pub(crate) operator: Operator,
    #[serde(with = "super::names")]
    pub(crate) dtype: DType,
    #[serde(with = "super::names")]
    pub(crate) reduction: Reduction,
    pub(crate) in_place: bool,
    /// Elements of a window.
    pub(crate) window: usize,
    pub(crate) tuples: usize,
    /// Windows of one repetition of the data.
    pub(crate) slices: usize,
    pub(crate) repetitions: usize,
    pub(crate) places: Places,
}

/// The shapes of data, indices and updates.
#[derive(Debug)]
pub(crate) struct Shapes {
    pub(crate) data: Vec<usize>,
    pub(crate) indices: Vec<usize>,
    pub(crate) updates: Vec<usize>,
}

impl Problem {
    /// Draws all problems.
    pub(crate) fn all() -> Vec<Self> {
        let mut random = Random::new(SEED);
        (0..PROBLEMS)
            .map(|number| {
                loop {
                    let problem = Self::draw(number, &mut random);
                    if problem.is_wanted() && problem.is_drawn(&mut random) {
                        return problem;
                    }
                }
            })
            .collect()
    }

    fn draw(number: usize, random: &mut Random) -> Self {
        use Operator::{Batched, Cache, Elements, Nd, Pairs};
        use Places::{Clustered, One, Sorted, Uniform, Unique, Zipf};
        use Reduction::{Add, Max, Mul, None};
        let mut one_of = |count| random.below(count);
        let operator = [Nd, Nd, Nd, Nd, Pairs, Batched, Elements, Cache][one_of(8)];
        let dtype = [DType::F32, DType::F32, DType::F16, DType::I64, DType::U8][one_of(5)];
        let reduction = [None, None, None, Add, Add, Add, Max, Mul][one_of(8)];
        let places = [Unique, Uniform, Uniform, Zipf, Sorted, Clustered, One];
        let places = places[one_of(places.len())];
        let in_place = one_of(2) == 0;
        let mut power = |from: f64, to: f64| (from + random.unit() * (to - from)).exp2();
        let window = (power(0.0, 16.0) as usize / dtype.size()).max(1);
        let tuples = power(8.0, 24.0) as usize;
        let region = power(14.0, 32.0) as usize;
        let repetitions = power(1.0, 6.0) as usize;
        Self {
            number,
            operator,
            dtype,
            reduction,
            in_place,
            window,
            tuples,
            slices: (region / (window * dtype.size())).max(1),
            repetitions,
            places,
        }
        .fitted()
    }

    /// Adapts sizes, reduction and destinations to the operator.
    fn fitted(mut self) -> Self {
        if self.operator != Operator::Batched {
            self.repetitions = 1;
        } else {
            self.slices = (self.slices / self.repetitions).max(1);
            self.tuples = (self.tuples / self.repetitions).max(1);
        }
        match self.operator {
            Operator::Elements => {
                self.window = self.window.min(64);
                self.tuples = (self.tuples / self.window).max(1);
            }
            Operator::Pairs => {
                let columns = self.columns();
                self.slices = self.slices.next_multiple_of(columns);
            }
            Operator::Cache => {
                let each = HEADS * self.sequences();
                self.reduction = Reduction::None;
                self.places = Places::Unique;
                self.tuples = (self.tuples / each).max(1) * each;
                self.slices = (self.slices / each).max(self.tuples / each) * each;
            }
            Operator::Nd | Operator::Batched => {}
        }
        self
    }

    fn is_wanted(&self) -> bool {
        let is_large = LARGE.contains(&self.number);
        let (least, most) = match is_large {
            true => (LARGE_BYTES / 2, LARGE_BYTES),
            false => (0, MOVED_BYTES),
        };
        let fits = self.places != Places::Unique || self.tuples <= self.slices;
        let bytes = self.window * self.dtype.size();
        // More than 65536 tuples per destination, far more than any workload has.
        let is_dense = self.tuples / 65536 > self.slices;
        fits && bytes <= 1 << 16 && !is_dense && (least..=most).contains(&self.moved_bytes())
    }

    /// Draws whether the problem is kept. Large problems are rare, because a record would last
    /// hours otherwise. Very small problems are frequent enough, so only a third is kept.
    fn is_drawn(&self, random: &mut Random) -> bool {
        let touched = self.moved_bytes() + self.line_bytes();
        let times = match touched < LEAST_BYTES {
            true => 3,
            false => touched / COMMON_BYTES + 1,
        };
        LARGE.contains(&self.number) || random.below(times as usize) == 0
    }

    /// Computes the bytes of indices and updates that are read, of windows that are written, and
    /// of data that is copied.
    pub(crate) fn moved_bytes(&self) -> u64 {
        let windows = (self.tuples * self.repetitions * self.window * self.dtype.size()) as u64;
        let copied = if self.in_place { 0 } else { self.data_len() };
        let indices = self.shapes().indices.iter().product::<usize>() * size_of::<i64>();
        2 * windows + 2 * (copied * self.dtype.size()) as u64 + indices as u64
    }

    /// Computes the additional bytes of cache lines around windows that are shorter than one
    /// cache line.
    fn line_bytes(&self) -> u64 {
        let bytes = match self.operator {
            Operator::Elements => self.dtype.size(),
            _ => self.window * self.dtype.size(),
        };
        let windows = self.updates_len() * self.dtype.size() / bytes;
        (windows * LINE.saturating_sub(bytes)) as u64
    }

    /// Returns the elements of data.
    pub(crate) fn data_len(&self) -> usize {
        self.slices * self.repetitions * self.window
    }

    pub(crate) fn updates_len(&self) -> usize {
        self.tuples * self.repetitions * self.window
    }

    pub(crate) fn operator(&self) -> Scatter<'static> {
        let scatter = match self.operator {
            Operator::Nd | Operator::Pairs => Scatter::nd(),
            Operator::Batched => Scatter::along(1),
            Operator::Elements => Scatter::elements(0),
            Operator::Cache => Scatter::cache(2, CacheMode::Linear).update_len(self.rows()),
        };
        scatter.reduction(self.reduction)
    }

    pub(crate) fn shapes(&self) -> Shapes {
        let Self {
            tuples,
            slices,
            window,
            repetitions,
            ..
        } = *self;
        let (data, indices, updates) = match self.operator {
            Operator::Nd => (vec![slices, window], vec![tuples, 1], vec![tuples, window]),
            Operator::Pairs => {
                let columns = self.columns();
                (
                    vec![slices / columns, columns, window],
                    vec![tuples, 2],
                    vec![tuples, window],
                )
            }
            Operator::Batched => (
                vec![repetitions, slices, window],
                vec![tuples],
                vec![repetitions, tuples, window],
            ),
            Operator::Elements => (
                vec![slices, window],
                vec![tuples, window],
                vec![tuples, window],
            ),
            Operator::Cache => {
                let sequences = self.sequences();
                (
                    vec![sequences, HEADS, self.positions(), window],
                    vec![sequences],
                    vec![sequences, HEADS, self.rows(), window],
                )
            }
        };
        Shapes {
            data,
            indices,
            updates,
        }
    }

    /// Returns the size of the axis of the second coordinate.
    fn columns(&self) -> usize {
        1 << (self.slices.ilog2() / 2)
    }

    fn sequences(&self) -> usize {
        // An arbitrary power of two.
        1 << (self.number % 5)
    }

    fn positions(&self) -> usize {
        self.slices / (HEADS * self.sequences())
    }

    /// Returns the rows of a sequence's update.
    fn rows(&self) -> usize {
        self.tuples / (HEADS * self.sequences())
    }

    fn seed(&self, set: usize) -> u64 {
        ((self.number as u64) << 8 | set as u64).wrapping_mul(SEED)
    }

    /// Returns the random numbers for one position in one set of indices.
    fn random(&self, position: usize, set: usize) -> Random {
        Random::new(self.seed(set) ^ (position as u64) << 20)
    }

    /// Returns the destination of a tuple, in `0..slices`, in one set of indices.
    fn place(&self, tuple: usize, set: usize) -> usize {
        let seed = self.seed(set);
        let random = |position| self.random(position, set);
        match self.places {
            Places::Unique => permuted(tuple, self.slices, seed),
            Places::Uniform => random(tuple).below(self.slices),
            Places::Zipf => {
                let rank = (self.slices as f64).powf(random(tuple).unit()) as usize;
                permuted(rank.min(self.slices) - 1, self.slices, seed)
            }
            Places::Sorted => (tuple as u128 * self.slices as u128 / self.tuples as u128) as usize,
            Places::Clustered => {
                let start = random(tuple / CLUSTER).below(self.slices);
                (start + tuple % CLUSTER) % self.slices
            }
            Places::One => self.slices / 2,
        }
    }

    /// Returns the destinations of all tuples, in order.
    fn all_places(&self, set: usize) -> impl IndexedParallelIterator<Item = usize> {
        (0..self.tuples)
            .into_par_iter()
            .map(move |tuple| self.place(tuple, set))
    }

    /// Returns set `set` of the indices.
    pub(crate) fn indices(&self, set: usize) -> Vec<i64> {
        let index = |place: usize| i64::try_from(place).expect("an i64");
        match self.operator {
            Operator::Nd | Operator::Batched => (self.all_places(set)).map(index).collect(),
            Operator::Pairs => {
                let columns = self.columns();
                let pairs = self.all_places(set);
                let pairs = pairs.map(|place| [index(place / columns), index(place % columns)]);
                pairs.collect::<Vec<_>>().into_flattened()
            }
            Operator::Elements => (self.elements(set))
                .map(|(place, _)| index(place))
                .collect(),
            Operator::Cache => (0..self.sequences())
                .map(|sequence| index(self.start(sequence, set)))
                .collect(),
        }
    }

    /// Returns destination and column of each element of the updates, in order.
    fn elements(&self, set: usize) -> impl IndexedParallelIterator<Item = (usize, usize)> {
        let all = (0..self.tuples * self.window).into_par_iter();
        all.map(move |at| {
            let (tuple, column) = (at / self.window, at % self.window);
            (self.place_in_column(tuple, column, set), column)
        })
    }

    fn place_in_column(&self, tuple: usize, column: usize, set: usize) -> usize {
        match self.places {
            Places::Sorted | Places::One => self.place(tuple, set),
            Places::Unique => self.place((tuple + 7919 * column) % self.slices, set),
            _ => self.place(tuple + self.tuples * column, set),
        }
    }

    /// Returns the position of the first written row of a sequence.
    fn start(&self, sequence: usize, set: usize) -> usize {
        let last = self.positions() - self.rows();
        self.random(sequence, set).below(last + 1)
    }

    /// Returns the window numbers of all tuples, in order, and the elements of a window. The
    /// reference loop needs nothing else.
    pub(crate) fn destinations(&self, set: usize) -> (Vec<usize>, usize) {
        let all = match self.operator {
            Operator::Elements => {
                let elements = self.elements(set);
                let numbers = elements.map(|(place, column)| place * self.window + column);
                return (numbers.collect(), 1);
            }
            Operator::Cache => {
                let heads = (0..self.sequences() * HEADS).flat_map(|head| {
                    let first = head * self.positions() + self.start(head / HEADS, set);
                    first..first + self.rows()
                });
                heads.collect()
            }
            _ => self.all_places(set).collect(),
        };
        (all, self.window)
    }
}

/// Permutes the numbers below `count`. The permutation applies four rounds of an invertible
/// mixing to the bits that `count` needs, and repeats until the result is below `count`.
fn permuted(number: usize, count: usize, seed: u64) -> usize {
    let bits = usize::BITS - (count - 1).leading_zeros();
    let bits = bits.max(2);
    let mask = (1_u64 << bits) - 1;
    let mut value = number as u64;
    loop {
        for round in 0..4 {
            value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15 | 1) & mask;
            value ^= value >> (bits / 2);
            value = value.wrapping_add(seed >> (8 * round)) & mask;
        }
        if value < count as u64 {
            return value as usize;
        }
    }
}
