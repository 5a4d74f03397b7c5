//! Small scatters and gathers for tests that enumerate shapes. Each small scatter runs with several
//! methods, and layouts, schedule and options are drawn at random.

use ndscatter::{Bounds, CacheMode, Duplicates, Reduction, Schedule};

use super::api::{Indices, Method, Options, Request};
use super::elements::{Palette, Ref};
use super::harness::{Problem, Round};
use super::indices::{IndexRule, resolve_axis};
use super::layouts::{Arrangement, Strided};
use super::operators::{Gatherer, Operator};
use super::pools::Sequential;
use super::random::Random;
use super::{Tensor, ndindex};

/// Returns every shape of these ranks whose sizes are below `bound`.
pub(crate) fn shapes(ranks: impl Iterator<Item = usize>, bound: usize) -> Vec<Vec<usize>> {
    ranks
        .flat_map(|rank| ndindex(&vec![bound; rank]).collect::<Vec<_>>())
        .collect()
}

/// Returns shapes of the tuples: rank 0 to 2, sizes 0 to 2.
pub(crate) fn tuple_shapes() -> Vec<Vec<usize>> {
    shapes(0..=2, 3)
}

/// Draws an index of an axis of `size` elements, counted from either end. It is in bounds unless
/// the axis is empty. With `wild`, some indices may be out of bounds.
pub(crate) fn draw_index(size: usize, wild: bool, random: &mut Random) -> i64 {
    let size = i128::try_from(size).expect("small");
    let index = if wild && random.one_in(3) {
        random.between(-2 * size - 3, 2 * size + 3)
    } else if size == 0 {
        0
    } else {
        random.between(-size, size - 1)
    };
    i64::try_from(index).expect("small")
}

/// Draws the indices of tuples that address `axes`.
pub(crate) fn draw_tuples(
    axes: &[(usize, usize)],
    shape: &[usize],
    wild: bool,
    random: &mut Random,
) -> Tensor<i64> {
    let sizes = axes.iter().map(|&(_, size)| size).cycle();
    let count = shape.iter().product();
    let draw = |size| draw_index(size, wild, random);
    Tensor::new(shape, sizes.take(count).map(draw).collect())
}

/// Draws positions of sequences in a cache, counted from the front. In a circular cache they may
/// exceed the cache's length.
fn draw_write_indices(
    room: usize,
    mode: CacheMode,
    shape: &[usize],
    wild: bool,
    random: &mut Random,
) -> Tensor<i64> {
    Tensor::generate(shape, || {
        let index = draw_index(room, wild, random);
        let count = i64::try_from(room).expect("small");
        match mode {
            _ if wild && random.one_in(3) => index,
            CacheMode::Linear => index.rem_euclid(count),
            CacheMode::Circular => index.rem_euclid(count) + 5 * (index.rem_euclid(3)),
        }
    })
}

/// Draws indices for `scatter_elements` or `gather_elements`. Often they are constant along some
/// trailing dimensions, as in a row scatter written with elements. Sometimes one of them is then
/// replaced. They are contiguous, or in a random input layout, which may have strides of 0.
pub(crate) fn draw_elements(
    data: &[usize],
    shape: &[usize],
    axis: isize,
    wild: bool,
    random: &mut Random,
) -> Strided<i64> {
    let size = data[resolve_axis(axis, data.len())];
    let kept = random.below(shape.len() + 1);
    let mut values = Vec::new();
    for index in ndindex(shape) {
        let last = values.last().copied();
        let repeats = index[kept..].iter().any(|&i| i > 0);
        let fresh = draw_index(size, wild, random);
        values.push(last.filter(|_| repeats).unwrap_or(fresh));
    }
    if !values.is_empty() && random.one_in(3) {
        let spoiled = random.below(values.len());
        values[spoiled] = draw_index(size, wild, random);
    }
    let arrangement = if random.one_in(2) {
        Arrangement::Contiguous
    } else {
        random.pick(&Arrangement::INPUTS)
    };
    Strided::new(&Tensor::new(shape, values), arrangement, 1, 77)
}

/// A check of one small gather: operator, shape of data, indices in some layout.
type OfGather<'c> = &'c dyn Fn(Gatherer, &[usize], &Strided<i64>, &mut Random);

fn of_tuples(
    gatherer: Gatherer,
    data: &[usize],
    indices: &[usize],
    random: &mut Random,
    check: OfGather<'_>,
) {
    let wild = random.one_in(4);
    let indices = draw_tuples(&gatherer.axes(data, indices), indices, wild, random);
    let indices = place(&indices, &Arrangement::INPUTS, random);
    check(gatherer, data, &indices, random);
}

/// Checks every `gather_nd` of data with at most `rank` dimensions.
pub(crate) fn each_gather_nd(rank: usize, random: &mut Random, check: OfGather<'_>) {
    for data in shapes(0..=rank, 4) {
        for batch_dims in 0..data.len().max(1) {
            for k in 0..=data.len() - batch_dims {
                for tuples in shapes(0..=1, 3) {
                    let indices = [&data[..batch_dims], &tuples, &[k]].concat();
                    let gatherer = Gatherer::Nd { batch_dims };
                    of_tuples(gatherer, &data, &indices, random, check);
                }
            }
        }
    }
}

/// Checks every `gather` of data with at most `rank` dimensions.
pub(crate) fn each_gather(rank: usize, random: &mut Random, check: OfGather<'_>) {
    for data in shapes(1..=rank, 4) {
        let rank = data.len().cast_signed();
        for axis in -rank..rank {
            for indices in tuple_shapes() {
                let gatherer = Gatherer::Along { axis };
                of_tuples(gatherer, &data, &indices, random, check);
            }
        }
    }
}

/// Checks every `gather_elements` of data with at most `rank` dimensions.
pub(crate) fn each_gather_elements(rank: usize, random: &mut Random, check: OfGather<'_>) {
    for data in shapes(1..=rank, 4) {
        for axis in 0..data.len() {
            for shape in elements_shapes(&data, axis, 4) {
                let from_end = axis.cast_signed() - data.len().cast_signed();
                let axis = random.pick(&[axis.cast_signed(), from_end]);
                let wild = random.one_in(4);
                let indices = draw_elements(&data, &shape, axis, wild, random);
                check(Gatherer::Elements { axis }, &data, &indices, random);
            }
        }
    }
}

/// Draws an index rule. Negative indices count from the end in four of five cases.
pub(crate) fn draw_rule(random: &mut Random) -> IndexRule {
    IndexRule {
        negative: !random.one_in(5),
        bounds: random.pick(&Bounds::ALL),
    }
}

/// Stores a tensor, contiguous in half of the cases.
pub(crate) fn place<T: Ref>(
    tensor: &Tensor<T>,
    arrangements: &[Arrangement],
    random: &mut Random,
) -> Strided<T> {
    let arrangement = pick_or(Arrangement::Contiguous, arrangements, random);
    Strided::new(tensor, arrangement, 1, T::sentinel())
}

/// Draws `plain` in half of the cases, else one of `others`.
fn pick_or<T: Copy>(plain: T, others: &[T], random: &mut Random) -> T {
    if random.one_in(2) {
        plain
    } else {
        random.pick(others)
    }
}

/// One small scatter, checked against the reference's result or the reference's error.
pub(crate) struct Small<'s> {
    pub(crate) operator: Operator,
    pub(crate) data: &'s [usize],
    pub(crate) indices: &'s Strided<i64>,
}

impl Small<'_> {
    /// Checks each reduction. Layouts, schedule and options are drawn at random.
    pub(crate) fn check(&self, reductions: &[Reduction], random: &mut Random) {
        let indices: &dyn Indices = self.indices;
        let logical = indices.logical();
        let mut sample =
            |shape: &[usize]| Tensor::generate(shape, || i32::sample(Palette::Wild, random));
        let data = sample(self.data);
        let updates_shape = self.operator.updates_shape(self.data, &logical.shape);
        let updates = sample(&updates_shape);
        let problem = Problem {
            indices,
            rounds: vec![Round {
                data: place(&data, &Arrangement::OUTPUTS, random),
                updates: place(&updates, &Arrangement::INPUTS, random),
            }],
            output: pick_or(Arrangement::Contiguous, &Arrangement::OUTPUTS, random),
            margin: 1,
        };
        for &reduction in reductions {
            for duplicates in [Duplicates::Allow, Duplicates::Reject] {
                let mut options = self.draw_options(reduction, random);
                options.duplicates = duplicates;
                let what = || format!("data {:?} indices {logical:?} {options:?}", self.data);
                match (self.operator).refusal(options.refusals(), self.data, &logical) {
                    Some(error) => [Method::InPlace, Method::Allocate, Method::PlannedInPlace]
                        .iter()
                        .try_for_each(|&method| {
                            problem.check_refused(method, &options, Some(&error))
                        })
                        .unwrap_or_else(|difference| panic!("{}: {difference}", what())),
                    None => {
                        let expected = problem.expected(&options, 1);
                        [Method::InPlace, Method::Allocate, Method::PlannedWriteInto]
                            .iter()
                            .try_for_each(|&method| {
                                problem.check_against(method, &options, &expected)
                            })
                            .unwrap_or_else(|difference| panic!("{}: {difference}", what()));
                    }
                }
            }
        }
    }

    /// Draws options. Each option has its default in most cases.
    fn draw_options(&self, reduction: Reduction, random: &mut Random) -> Options<'static> {
        let execution = Request::new(reduction).pool(&Sequential);
        let number = random.below(Schedule::ALL.len() + 1);
        let forced = Schedule::ALL.get(number).copied();
        let mut options = Options::new(self.operator, execution.schedule(forced));
        options.include_self = !random.one_in(3);
        if !matches!(self.operator, Operator::Cache { .. }) {
            options.negative_indices = !random.one_in(5);
            options.bounds = pick_or(Bounds::Error, &Bounds::ALL[1..], random);
        }
        options
    }
}

/// Returns every shape of indices that `scatter_elements` allows. The size along the axis is any
/// number below `bound`. The other sizes are at most those of data.
pub(crate) fn elements_shapes(data: &[usize], axis: usize, bound: usize) -> Vec<Vec<usize>> {
    let mut bounds: Vec<usize> = data.iter().map(|&size| size + 1).collect();
    bounds[axis] = bound;
    ndindex(&bounds).collect()
}

/// A check of one small cache write: operator, shape of data, indices.
type OfCache<'c> = &'c dyn Fn(Operator, &[usize], &Strided<i64>, &mut Random);

/// Checks every cache write whose updates fit `data`, with one index per sequence and with one
/// index for all sequences.
pub(crate) fn check_caches(data: &[usize], random: &mut Random) {
    each_cache(data, random, &|operator, data, indices, random| {
        let small = Small {
            operator,
            data,
            indices,
        };
        small.check(&[Reduction::None], random);
    });
}

/// Calls `check` for every cache write whose updates fit `data`.
pub(crate) fn each_cache(data: &[usize], random: &mut Random, check: OfCache<'_>) {
    for axis in 1..data.len() {
        for len in 0..=data[axis] {
            for mode in [CacheMode::Linear, CacheMode::Circular] {
                for shape in [&[][..], &data[..1]] {
                    // Without sequences, no index can be an error, so all indices are valid.
                    let wild = random.one_in(4) && data[0] > 0;
                    let room = data[axis] - len + 1;
                    let indices = draw_write_indices(room, mode, shape, wild, random);
                    let from_end = axis.cast_signed() - data.len().cast_signed();
                    let axis = random.pick(&[axis.cast_signed(), from_end]);
                    let operator = Operator::Cache { axis, mode, len };
                    let indices = Strided::new(&indices, Arrangement::Contiguous, 1, 77);
                    check(operator, data, &indices, random);
                }
            }
        }
    }
}
