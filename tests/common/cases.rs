//! Random scatters as values: every option, the shapes, and the draw of indices and tensors. The
//! tests draw cases with proptest, and the fuzz targets draw them from the fuzzer's bytes.

use std::collections::HashMap;
use std::ops::Range;

use ndscatter::{Accumulate, Bounds, CacheMode, InstructionSet, Pool, Reduction, Schedule};

use super::api::{DType, Indices, Method, Options, Request};
use super::destinations::{Destinations, range};
use super::elements::{Palette, Ref, is_enabled};
use super::harness::{Problem, Round};
use super::indices::resolve_axis;
use super::layouts::{Arrangement, Strided};
use super::operators::Operator;
use super::pools::Workers;
use super::random::Random;
use super::{Tensor, ndindex};

/// The way in which the indices of `scatter_elements` differ between lanes. A lane is a line of
/// indices along the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lanes {
    Free,
    /// All lanes have the same indices: rows written as elements.
    Alike,
    /// All lanes have the same indices, except for one index.
    Almost,
}

impl Lanes {
    pub(crate) const ALL: [Self; 3] = [Self::Free, Self::Alike, Self::Almost];
}

/// A whole case. Values and indices follow from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) operator: Operator,
    pub(crate) data: Vec<usize>,
    pub(crate) indices: Vec<usize>,
    pub(crate) element: DType,
    pub(crate) index: DType,
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
    pub(crate) bounds: Bounds,
    pub(crate) destinations: Destinations,
    pub(crate) lanes: Lanes,
    pub(crate) negative: bool,
    pub(crate) palette: Palette,
    pub(crate) data_layout: Arrangement,
    pub(crate) indices_layout: Arrangement,
    pub(crate) updates_layout: Arrangement,
    pub(crate) output_layout: Arrangement,
    pub(crate) method: Method,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) set: Option<InstructionSet>,
    pub(crate) workers: Workers,
    pub(crate) seed: u64,
}

/// Largest number of elements of updates. The indices are reduced to it.
#[derive(Clone, Copy)]
pub(crate) struct Limit(pub(crate) usize);

/// Draws an axis of a tensor of this rank, counted from either end.
pub(crate) fn draw_axis(rank: usize, random: &mut Random) -> isize {
    random.below(2 * rank.max(1)).cast_signed() - rank.cast_signed()
}

/// Returns a shape of indices for an operator on elements: the tuples along `axis`, and at most the
/// sizes of `data` along the other axes.
pub(crate) fn draw_lanes(
    data: &[usize],
    tuples: &[usize],
    axis: isize,
    random: &mut Random,
) -> Vec<usize> {
    let mut shape: Vec<usize> = data.iter().map(|&size| shorter(size, random)).collect();
    shape[resolve_axis(axis, data.len())] = tuples.iter().product();
    shape
}

/// Draws an operator that suits the data, and the shape of its indices from the shape of tuples.
/// `pick` chooses the kind of the operator.
pub(crate) fn draw_operator(
    data: &[usize],
    tuples: Vec<usize>,
    pick: u32,
    random: &mut Random,
) -> (Operator, Vec<usize>) {
    let rank = data.len();
    match pick % 12 {
        0..4 if rank > 0 => {
            let axis = draw_axis(rank, random);
            (Operator::Update { axis }, tuples)
        }
        4..8 if rank > 0 => {
            let axis = draw_axis(rank, random);
            let shape = draw_lanes(data, &tuples, axis, random);
            (Operator::Elements { axis }, shape)
        }
        8 if rank > 1 => {
            let axis = 1 + random.below(rank - 1);
            let len = shorter(data[axis], random);
            let mode = random.pick(&[CacheMode::Linear, CacheMode::Circular]);
            let shape = if random.one_in(4) {
                vec![]
            } else {
                vec![data[0]]
            };
            let axis = axis.cast_signed();
            (Operator::Cache { axis, mode, len }, shape)
        }
        9 if rank > 1 => (Operator::Paged, tuples),
        _ => {
            let k = random.below(rank + 1);
            (Operator::Nd, [&tuples[..], &[k]].concat())
        }
    }
}

/// Returns the whole size in most cases, else a random smaller or equal size.
fn shorter(size: usize, random: &mut Random) -> usize {
    if random.one_in(3) {
        random.below(size + 1)
    } else {
        size
    }
}

/// Reduces the shape of `indices`: no tuple addresses an empty axis, distinct destinations are not
/// more than exist, and updates stay below the limit.
pub(crate) fn fit(
    operator: Operator,
    data: &[usize],
    mut indices: Vec<usize>,
    destinations: Destinations,
    limit: Limit,
) -> Vec<usize> {
    if matches!(operator, Operator::Cache { .. }) {
        return indices;
    }
    let distinct: usize = (operator.axes(data, &indices).iter())
        .map(|&(_, size)| size)
        .product();
    // The dimensions that may be reduced, and the dimensions along which destinations could repeat.
    let (cut, counted) = match operator {
        Operator::Nd => (0..indices.len() - 1, 0..indices.len() - 1),
        Operator::Elements { axis } => {
            let axis = resolve_axis(axis, data.len());
            (0..indices.len(), axis..axis + 1)
        }
        _ => (0..indices.len(), 0..indices.len()),
    };
    if distinct == 0 {
        match indices.get_mut(counted.start) {
            Some(size) if !counted.is_empty() => *size = 0,
            _ => indices.insert(0, 0),
        }
        return indices;
    }
    let too_many = |indices: &[usize]| {
        let count: usize = indices[counted.clone()].iter().product();
        let repeats = destinations == Destinations::Distinct && count > distinct;
        let updates = operator.updates_shape(data, indices);
        repeats || updates.iter().product::<usize>() > limit.0
    };
    shrink(&mut indices, cut, too_many);
    indices
}

/// Halves the largest of the sizes in `cut` until the shape is not too large.
pub(crate) fn shrink(shape: &mut [usize], cut: Range<usize>, too_large: impl Fn(&[usize]) -> bool) {
    while too_large(shape) {
        match shape[cut.clone()].iter_mut().max() {
            Some(largest) => *largest /= 2,
            None => break,
        }
    }
}

impl Case {
    /// Draws indices. Some count from the end. They are in bounds, unless the case allows other
    /// indices.
    pub(crate) fn draw_indices(&self, random: &mut Random) -> Tensor<i128> {
        let mut indices = match self.operator {
            Operator::Elements { axis } => {
                self.draw_each_lane(resolve_axis(axis, self.data.len()), random)
            }
            _ => self.draw_tuples(random),
        };
        let (low, high) = range(self.index);
        for index in &mut indices.values {
            if self.bounds != Bounds::Error && random.one_in(8) {
                let near = index.saturating_mul(2);
                // Only an index below the axis is skipped. An index beyond the end is an error.
                *index = match self.bounds {
                    Bounds::SkipNegative => random.pick(&[low, -1, -1 - near.abs()]).max(low),
                    _ => random.pick(&[low, near.clamp(low, high), high]),
                };
            }
        }
        indices
    }

    fn draw_tuples(&self, random: &mut Random) -> Tensor<i128> {
        let axes = self.operator.axes(&self.data, &self.indices);
        let mut sizes: Vec<usize> = axes.iter().map(|&(_, size)| size).collect();
        if self.operator == Operator::Nd && self.indices_layout.repeats_last(self.indices.len()) {
            // With this layout, one value stands for all coordinates of a tuple.
            let smallest = sizes.iter().copied().min().unwrap_or(0);
            sizes.fill(smallest);
        }
        let count: usize = sizes.iter().product();
        let tuples = self.operator.tuples(&self.indices);
        let destinations = self.destinations.draw(tuples, count, random);
        let mut values = Vec::new();
        for mut destination in destinations {
            let first = values.len();
            for &size in sizes.iter().rev() {
                values.insert(first, self.express(destination % size, size, random));
                destination /= size;
            }
        }
        Tensor::new(&self.indices, values)
    }

    /// Draws indices for every lane along `axis`.
    fn draw_each_lane(&self, axis: usize, random: &mut Random) -> Tensor<i128> {
        let (len, size) = (self.indices[axis], self.data[axis]);
        let mut lanes: HashMap<Vec<usize>, Vec<i128>> = HashMap::new();
        let mut values = Vec::new();
        for index in ndindex(&self.indices) {
            let lane = match self.lanes {
                Lanes::Free => [&index[..axis], &index[axis + 1..]].concat(),
                Lanes::Alike | Lanes::Almost => vec![],
            };
            let lane = lanes.entry(lane).or_insert_with(|| {
                let places = self.destinations.draw(len, size, random);
                let express = |place| self.express(place, size, random);
                places.into_iter().map(express).collect()
            });
            values.push(lane[index[axis]]);
        }
        if self.lanes == Lanes::Almost && !values.is_empty() {
            let changed = random.below(values.len());
            values[changed] = self.express(random.below(size), size, random);
        }
        Tensor::new(&self.indices, values)
    }

    /// Returns an index of the case's type for `position` on an axis of `size`.
    fn express(&self, position: usize, size: usize, random: &mut Random) -> i128 {
        let (low, high) = range(self.index);
        let from_end = self.negative && low < 0 && random.one_in(3);
        let offset = if from_end { size } else { 0 };
        let signed = |size: usize| i128::try_from(size).expect("the size fits i128");
        let index = signed(position) - signed(offset);
        // The index may be outside the type only on axes of more than 100 elements.
        if (low..=high).contains(&index) {
            index
        } else {
            index.rem_euclid(100)
        }
    }

    /// Returns the case's reduction, or `Add` if the type does not support it. Returns `None` if the
    /// build does not have the feature that reductions of the type need.
    pub(crate) fn reduction<T: Ref>(&self) -> Reduction {
        if !is_enabled(self.reduction, T::DTYPE) {
            Reduction::None
        } else if T::REDUCTIONS.contains(&self.reduction) {
            self.reduction
        } else {
            Reduction::Add
        }
    }

    pub(crate) fn rounds<T: Ref>(&self, random: &mut Random) -> Vec<Round<T>> {
        let updates_shape = self.operator.updates_shape(&self.data, &self.indices);
        let mut place = |shape: &[usize], arrangement| {
            let tensor = Tensor::generate(shape, || T::sample(self.palette, random));
            Strided::new(&tensor, arrangement, 1, T::sentinel())
        };
        // The second round swaps the layouts: a plan must accept inputs with other values and other
        // strides.
        let layouts = [
            (self.data_layout, self.updates_layout),
            (self.updates_layout, self.data_layout),
        ];
        let round = |(data, updates)| Round {
            data: place(&self.data, data),
            updates: place(&updates_shape, updates),
        };
        layouts.map(round).into()
    }

    fn execution(&self, reduction: Reduction) -> Request<'static> {
        let execution = Request::new(reduction).instruction_set(self.set);
        execution.schedule(self.schedule)
    }

    pub(crate) fn options<'p>(&self, reduction: Reduction, pool: &'p dyn Pool) -> Options<'p> {
        Options {
            include_self: self.include_self,
            accumulate: self.accumulate,
            bounds: self.bounds,
            ..Options::new(self.operator, self.execution(reduction).pool(pool))
        }
    }

    /// Checks the method, then the schedule that it used. Returns the schedule.
    pub(crate) fn check<T: Ref>(
        &self,
        problem: &Problem<'_, T>,
        options: &Options<'_>,
    ) -> Result<Schedule, String> {
        problem.check(self.method, options)?;
        let in_place = self.method.is_in_place();
        let explained = problem
            .plan(self.method, options)
            .and_then(|plan| options.explain(&plan, T::DTYPE, in_place));
        let explanation = explained.map_err(|error| format!("explaining: {error}"))?;
        let used = explanation.schedule();
        let reduction = options.execution.reduction;
        let may = |forced| match self.combines_in_groups::<T>(reduction) {
            true => used == Schedule::Grouped || used == Schedule::Serial,
            false => used == forced || used == Schedule::Serial,
        };
        match self.schedule.filter(|&forced| !may(forced)) {
            Some(forced) => Err(format!("{forced} was forced but {used} is used")),
            None => Ok(used),
        }
    }

    /// Whether the reduction requires a schedule that groups the updates of a destination.
    fn combines_in_groups<T: Ref>(&self, reduction: Reduction) -> bool {
        let is_half = matches!(T::DTYPE, DType::F16 | DType::BF16);
        match reduction {
            Reduction::None => false,
            Reduction::Mean => true,
            _ if !self.include_self => true,
            Reduction::Min | Reduction::Max => false,
            _ => is_half && self.accumulate == Accumulate::Wide,
        }
    }
}
