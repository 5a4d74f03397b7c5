//! Random scatters, compared with the reference bit for bit. A case combines operator, element
//! type, index type, reduction and its options, bounds, forced schedule, forced instruction set,
//! pool, layouts and method.
//!
//! Every run tests the same cases. To test more cases: `PROPTEST_CASES=20000 PROPTEST_RNG_SEED=1
//! cargo test --release --test it properties::`.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Mutex;

use crate::common::api::{DType, Method, Methods, Options, Request};
use crate::common::destinations::{Destinations, index_types, place_indices, range};
use crate::common::elements::{Palette, Ref, element_types, is_enabled};
use crate::common::harness::{Problem, Round};
use crate::common::indices::resolve_axis;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Operator;
use crate::common::pools::Workers;
use crate::common::random::Random;
use crate::common::{Tensor, ndindex};
use crate::with_element;
use ndscatter::{
    Accumulate, Bounds, CacheMode, Duplicates, InstructionSet, Pool, Reduction, Schedule,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// The way in which the indices of `scatter_elements` differ between lanes. A lane is a line of
/// indices along the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lanes {
    Free,
    /// All lanes have the same indices: rows written as elements.
    Alike,
    /// All lanes have the same indices, except for one index.
    Almost,
}

impl Lanes {
    const ALL: [Self; 3] = [Self::Free, Self::Alike, Self::Almost];
}

/// A whole case. Values and indices follow from the seed.
#[derive(Clone, Debug)]
struct Case {
    operator: Operator,
    data: Vec<usize>,
    indices: Vec<usize>,
    element: DType,
    index: DType,
    reduction: Reduction,
    include_self: bool,
    accumulate: Accumulate,
    bounds: Bounds,
    destinations: Destinations,
    lanes: Lanes,
    negative: bool,
    palette: Palette,
    data_layout: Arrangement,
    indices_layout: Arrangement,
    updates_layout: Arrangement,
    output_layout: Arrangement,
    method: Method,
    schedule: Option<Schedule>,
    set: Option<InstructionSet>,
    workers: Workers,
    seed: u64,
}

/// Largest number of elements of updates. The indices are reduced to it.
#[derive(Clone, Copy)]
struct Limit(usize);

/// Shapes of data and of tuples, a random number for the operator, the destinations, the lanes, and
/// whether indices may be negative.
type Shapes = (Vec<usize>, Vec<usize>, u32, Destinations, Lanes, bool);

fn small_shapes() -> impl Strategy<Value = Shapes> {
    let data = prop_oneof![
        // Any rank, with small sizes.
        5 => vec(1_usize..=6, 0..=4),
        // Windows of several vectors and a tail.
        2 => (vec(1_usize..=8, 1..=2), 17_usize..=130).prop_map(|(mut shape, last)| {
            shape.push(last);
            shape
        }),
        // Sizes of 0.
        1 => vec(0_usize..=3, 1..=4),
        // An axis that can be longer than the range of `i8` and `u8`.
        1 => vec(100_usize..=1000, 1),
    ];
    let tuples = prop_oneof![
        5 => vec(1_usize..=8, 0..=2),
        3 => vec(0_usize..=300, 1),
        1 => vec(0_usize..=3, 0..=3),
    ];
    with_destinations(data, tuples)
}

fn with_destinations(
    data: impl Strategy<Value = Vec<usize>>,
    tuples: impl Strategy<Value = Vec<usize>>,
) -> impl Strategy<Value = Shapes> {
    let destinations = select(&Destinations::DRAWN[..]);
    let lanes = select(&Lanes::ALL[..]);
    let pick = any::<u32>();
    (data, tuples, pick, destinations, lanes, any::<bool>())
}

/// Sizes for which a pool gets several tasks.
fn large_shapes() -> impl Strategy<Value = Shapes> {
    let data = prop_oneof![
        vec(5_000_usize..=40_000, 1),
        (100_usize..=500, 40_usize..=90).prop_map(|(rows, len)| vec![rows, len]),
        (4_usize..=40, 1_500_usize..=4_000).prop_map(|(rows, len)| vec![rows, len]),
        (5_usize..=20, 30_usize..=90, 10_usize..=30).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    let tuples = vec(20_000_usize..=150_000, 1);
    with_destinations(data, tuples)
}

/// Draws an operator that suits the data, and the shape of its indices from the shape of tuples.
fn draw_operator(data: &[usize], tuples: Vec<usize>, pick: u32) -> (Operator, Vec<usize>) {
    let mut random = Random::new(pick.into());
    let rank = data.len();
    let mut axis = || random.below(2 * rank.max(1)).cast_signed() - rank.cast_signed();
    match pick % 12 {
        0..4 if rank > 0 => (Operator::Update { axis: axis() }, tuples),
        4..8 if rank > 0 => {
            let axis = axis();
            let mut shape: Vec<usize> = data
                .iter()
                .map(|&size| shorter(size, &mut random))
                .collect();
            shape[resolve_axis(axis, rank)] = tuples.iter().product();
            (Operator::Elements { axis }, shape)
        }
        8 if rank > 1 => {
            let axis = 1 + random.below(rank - 1);
            let len = shorter(data[axis], &mut random);
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
fn fit(
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
    while too_many(&indices) {
        match indices[cut.clone()].iter_mut().max() {
            Some(largest) => *largest /= 2,
            None => break,
        }
    }
    indices
}

/// Draws `plain` in two of five cases, else a value of `all`.
fn plain_or<T: Clone + Debug + 'static>(plain: T, all: Vec<T>) -> impl Strategy<Value = T> {
    prop_oneof![2 => Just(plain), 3 => select(all)]
}

fn cases(shapes: impl Strategy<Value = Shapes>, limit: Limit) -> impl Strategy<Value = Case> {
    let types = (
        select(element_types()),
        select(index_types()),
        select(&Reduction::ALL[..]),
    );
    let options = (
        plain_or(true, vec![true, false]),
        plain_or(
            Accumulate::Native,
            vec![Accumulate::Native, Accumulate::Wide],
        ),
        plain_or(
            Bounds::Error,
            vec![
                Bounds::Skip,
                Bounds::Clamp,
                Bounds::SkipNegative,
                Bounds::Error,
            ],
        ),
    );
    // The plain choice is frequent, because some paths need several plain choices together.
    let inputs = || plain_or(Arrangement::Contiguous, Arrangement::INPUTS.into());
    let outputs = plain_or(Arrangement::Contiguous, Arrangement::OUTPUTS.into());
    let layouts = (inputs(), inputs(), inputs(), outputs);
    let run = (
        select(&Method::ALL[..]),
        plain_or(None, Schedule::ALL.map(Some).into()),
        plain_or(
            None,
            InstructionSet::available()
                .iter()
                .copied()
                .map(Some)
                .collect(),
        ),
        select(&Workers::ALL[..]),
    );
    let palette = select(&Palette::ALL[..]);
    let values = (palette, any::<u64>());
    let all = (shapes, types, options, layouts, run, values);
    all.prop_map(move |(shapes, types, options, layouts, run, values)| {
        let (data, tuples, pick, destinations, lanes, negative) = shapes;
        let (element, index, reduction) = types;
        let (include_self, accumulate, bounds) = options;
        let (operator, indices) = draw_operator(&data, tuples, pick);
        let is_cache = matches!(operator, Operator::Cache { .. });
        let indices = fit(operator, &data, indices, destinations, limit);
        let (data_layout, indices_layout, updates_layout, output_layout) = layouts;
        let (method, schedule, set, workers) = run;
        let (palette, seed) = values;
        Case {
            operator,
            data,
            indices,
            element,
            index,
            // A cache write has no reduction.
            reduction: if is_cache { Reduction::None } else { reduction },
            include_self,
            accumulate,
            bounds: if is_cache { Bounds::Error } else { bounds },
            destinations,
            lanes,
            negative: negative && !is_cache,
            palette,
            data_layout,
            indices_layout,
            updates_layout,
            output_layout,
            method,
            schedule,
            set,
            workers,
            seed,
        }
    })
}

impl Case {
    /// Draws indices. Some count from the end. They are in bounds, unless the case allows other
    /// indices.
    fn draw_indices(&self, random: &mut Random) -> Tensor<i128> {
        let mut indices = match self.operator {
            Operator::Elements { axis } => {
                self.draw_lanes(resolve_axis(axis, self.data.len()), random)
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
    fn draw_lanes(&self, axis: usize, random: &mut Random) -> Tensor<i128> {
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
    fn reduction<T: Ref>(&self) -> Reduction {
        if !is_enabled(self.reduction, T::DTYPE) {
            Reduction::None
        } else if T::REDUCTIONS.contains(&self.reduction) {
            self.reduction
        } else {
            Reduction::Add
        }
    }

    fn rounds<T: Ref>(&self, random: &mut Random) -> Vec<Round<T>> {
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

    fn options<'p>(&self, reduction: Reduction, pool: &'p dyn Pool) -> Options<'p> {
        Options {
            include_self: self.include_self,
            accumulate: self.accumulate,
            bounds: self.bounds,
            ..Options::new(self.operator, self.execution(reduction).pool(pool))
        }
    }

    fn check<T: Ref>(&self, seen: &Seen) -> Result<(), String> {
        let mut random = Random::new(self.seed);
        let logical = self.draw_indices(&mut random);
        let indices = place_indices(self.index, &logical, self.indices_layout);
        let reduction = self.reduction::<T>();
        let problem = Problem {
            indices: &*indices,
            rounds: self.rounds::<T>(&mut random),
            output: self.output_layout,
            margin: random.below(4),
        };
        let used = self.workers.with(|pool| {
            let options = self.options(reduction, pool);
            problem.check(self.method, &options)?;
            let in_place = self.method.is_in_place();
            let explained = problem
                .plan(self.method, &options)
                .and_then(|plan| options.explain(&plan, T::DTYPE, in_place));
            let explanation = explained.map_err(|error| format!("explaining: {error}"))?;
            Ok::<_, String>(explanation.schedule())
        })?;
        seen.note(used, self.set);
        let may = |forced| match self.combines_in_groups::<T>(reduction) {
            true => used == Schedule::Grouped || used == Schedule::Serial,
            false => used == forced || used == Schedule::Serial,
        };
        match self.schedule.filter(|&forced| !may(forced)) {
            Some(forced) => Err(format!("{forced} was forced but {used} is used")),
            None => Ok(()),
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

/// The schedules and instruction sets that the cases have used.
#[derive(Default)]
struct Seen {
    schedules: Mutex<BTreeSet<String>>,
    sets: Mutex<BTreeSet<String>>,
}

impl Seen {
    fn note(&self, schedule: Schedule, set: Option<InstructionSet>) {
        let (schedules, sets) = (self.schedules.lock(), self.sets.lock());
        schedules
            .expect("no thread panics with the lock")
            .insert(schedule.to_string());
        let set = set.map(|set| set.to_string());
        sets.expect("no thread panics with the lock").extend(set);
    }

    /// Panics if a schedule or an instruction set of the machine was not used.
    fn check_complete(self) {
        let schedules = self
            .schedules
            .into_inner()
            .expect("no thread panics with the lock");
        for schedule in Schedule::ALL {
            assert!(
                schedules.contains(&schedule.to_string()),
                "{schedule} was never used"
            );
        }
        let sets = self
            .sets
            .into_inner()
            .expect("no thread panics with the lock");
        for set in InstructionSet::available() {
            assert!(sets.contains(&set.to_string()), "{set} was never used");
        }
    }
}

fn run(
    cases: u32,
    strategy: &impl Strategy<Value = Case>,
    test: impl Fn(&Case) -> Result<(), String>,
) {
    let default = Config::default();
    let from_environment = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config {
        cases: if from_environment {
            default.cases
        } else {
            cases
        },
        rng_seed: match default.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            fixed @ RngSeed::Fixed(_) => fixed,
        },
        failure_persistence: None,
        ..default
    };
    let result =
        TestRunner::new(config).run(strategy, |case| test(&case).map_err(TestCaseError::fail));
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("{reason}\n{case:#?}"),
        Err(TestError::Abort(reason)) => panic!("aborted: {reason}"),
    }
}

#[test]
fn small_scatters() {
    let seen = Seen::default();
    run(
        6000,
        &cases(small_shapes(), Limit(6000)),
        |case| with_element!(case.element, T => case.check::<T>(&seen)),
    );
    seen.check_complete();
}

#[test]
fn large_scatters() {
    let seen = Seen::default();
    run(
        300,
        &cases(large_shapes(), Limit(160_000)),
        |case| with_element!(case.element, T => case.check::<T>(&seen)),
    );
    seen.check_complete();
}

/// Checks errors. Up to two indices are replaced by random ones, and duplicates may be errors. All
/// pools return the reference's error, and nothing is written.
fn check_refusal(case: &Case) -> Result<(), String> {
    let mut random = Random::new(case.seed);
    let mut logical = case.draw_indices(&mut random);
    let (low, high) = range(case.index);
    let spoiled = random.below(3).min(logical.values.len());
    for _ in 0..spoiled {
        let at = random.below(logical.values.len());
        logical.values[at] = random.pick(&[low, high, random.clone().between(low, high)]);
    }
    let indices = place_indices(case.index, &logical, case.indices_layout);
    let (negative, reject) = (random.one_in(2), random.one_in(2));
    let rounds = case.rounds::<i16>(&mut random);
    let start = rounds[0].data.read();
    let output = Strided::new(&start, case.output_layout, 1, i16::sentinel());
    case.workers.with(|pool| {
        let mut options = case.options(case.reduction::<i16>(), pool);
        options.negative_indices = negative;
        if reject {
            options.duplicates = Duplicates::Reject;
        }
        // The indices as they are read through their layout.
        let logical = indices.logical();
        let expected = (case.operator).refusal(options.refusals(), &case.data, &logical);
        let mut in_place = output.clone();
        let updates = rounds[0].updates.view();
        let got = indices.in_place(&options, in_place.view_mut(), updates);
        if got.as_ref().err() != expected.as_ref() {
            return Err(format!("in place: {got:?} instead of {expected:?}"));
        }
        if expected.is_some() && in_place.buffer != output.buffer {
            return Err("the output was written before the error".to_owned());
        }
        let got = indices.plan(&options, output.layout()).err();
        if got != expected {
            return Err(format!("planned: {got:?} instead of {expected:?}"));
        }
        Ok(())
    })
}

#[test]
fn small_refusals() {
    run(2000, &cases(small_shapes(), Limit(3000)), check_refusal);
}

#[test]
fn large_refusals() {
    run(40, &cases(large_shapes(), Limit(160_000)), check_refusal);
}

/// Returns a case with rows of a table and plain choices.
fn plain_case(method: Method) -> Case {
    Case {
        operator: Operator::Nd,
        data: vec![9, 40],
        indices: vec![30, 1],
        element: DType::F32,
        index: DType::I64,
        reduction: Reduction::Add,
        include_self: true,
        accumulate: Accumulate::Native,
        bounds: Bounds::Error,
        destinations: Destinations::Skewed,
        lanes: Lanes::Free,
        negative: false,
        palette: Palette::Ordinary,
        data_layout: Arrangement::Contiguous,
        indices_layout: Arrangement::Contiguous,
        updates_layout: Arrangement::Contiguous,
        output_layout: Arrangement::Contiguous,
        method,
        schedule: Some(Schedule::Serial),
        set: None,
        workers: Workers::Given(2),
        seed: 1,
    }
}

/// Pairs that random cases could miss: every element type with every reduction and its options;
/// every operator with every method, pool, schedule and instruction set; and all combinations of
/// layouts.
#[test]
fn every_pair_once() {
    let seen = Seen::default();
    let check = |case: &Case| {
        let checked = with_element!(case.element, T => case.check::<T>(&seen));
        checked.unwrap_or_else(|error| panic!("{error}\n{case:#?}"));
    };
    for element in element_types() {
        for index in index_types() {
            for reduction in Reduction::ALL {
                for (include_self, accumulate) in [
                    (true, Accumulate::Native),
                    (false, Accumulate::Native),
                    (true, Accumulate::Wide),
                    (false, Accumulate::Wide),
                ] {
                    check(&Case {
                        element,
                        index,
                        reduction,
                        include_self,
                        accumulate,
                        negative: true,
                        ..plain_case(Method::InPlace)
                    });
                }
            }
        }
    }
    let others = [
        (Operator::Update { axis: 1 }, vec![9, 12, 4], vec![30]),
        (Operator::Elements { axis: 0 }, vec![9, 40], vec![30, 38]),
        (Operator::Elements { axis: -1 }, vec![9, 40], vec![9, 60]),
    ];
    let cache = |mode| {
        let (axis, len) = (2, 3);
        let operator = Operator::Cache { axis, mode, len };
        (operator, vec![5, 2, 7, 3], vec![5])
    };
    let caches = [CacheMode::Linear, CacheMode::Circular].map(cache);
    let operators = others.into_iter().chain(caches);
    let mut sets = InstructionSet::available().iter().copied().cycle();
    for (operator, data, indices) in operators.chain([(Operator::Nd, vec![9, 40], vec![30, 1])]) {
        let is_cache = matches!(operator, Operator::Cache { .. });
        let reductions = [Reduction::None, Reduction::Add, Reduction::Mean];
        let reductions = if is_cache {
            &reductions[..1]
        } else {
            &reductions
        };
        for method in Method::ALL {
            for workers in Workers::ALL {
                for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
                    for &reduction in reductions {
                        let set = sets.next();
                        check(&Case {
                            operator,
                            data: data.clone(),
                            indices: indices.clone(),
                            workers,
                            schedule,
                            set,
                            reduction,
                            ..plain_case(method)
                        });
                    }
                }
            }
        }
    }
    for data_layout in Arrangement::INPUTS {
        for updates_layout in Arrangement::INPUTS {
            for output_layout in Arrangement::OUTPUTS {
                let case = plain_case(Method::PlannedWriteInto);
                check(&Case {
                    data_layout,
                    updates_layout,
                    output_layout,
                    ..case
                });
            }
        }
    }
}
