//! Random scatters: operator x element type x index type x reduction x forced
//! schedule x forced instruction set x pool x layouts x verb, each held
//! against the reference bit for bit.
//!
//! The cases are the same at every run. To look further:
//! `PROPTEST_CASES=20000 PROPTEST_RNG_SEED=1 cargo test --release --test properties`.

mod common;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Mutex;

use common::elements::{Palette, Ref, element_types};
use common::harness::{Indices, Operator, Options, Problem, Round, Verb};
use common::layouts::{Arrangement, Strided};
use common::pools::Workers;
use common::random::Random;
use common::{Refusals, Tensor};
use ndscatter::{Duplicates, Element, ElementType, Execution, InstructionSet, Reduction, Schedule};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// Which destinations the tuples have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Destinations {
    Random,
    /// Few are hit again and again.
    Skewed,
    /// All different (where there are enough), scattered.
    Distinct,
    /// One after the other, from somewhere, round the end.
    Consecutive,
    /// From the first to the last, with repeats where there are many tuples.
    Sorted,
}

impl Destinations {
    const ALL: [Self; 5] = [
        Self::Random,
        Self::Skewed,
        Self::Distinct,
        Self::Consecutive,
        Self::Sorted,
    ];

    /// Numbers of the destinations of `tuples` tuples, all below `count`.
    fn draw(self, tuples: usize, count: usize, random: &mut Random) -> impl Iterator<Item = usize> {
        let from = if tuples == 0 { 0 } else { random.below(count) };
        // A prime that does not divide the count: such a stride visits all.
        let coprime = |&prime: &usize| !count.is_multiple_of(prime);
        let primes = [7919, 104_729, 31].into_iter();
        let stride = primes.clone().find(coprime).unwrap_or(1);
        (0..tuples).map(move |tuple| match self {
            Self::Random => random.below(count),
            Self::Skewed => random.zipf(count),
            Self::Distinct => (from + tuple * stride) % count,
            Self::Consecutive => (from + tuple) % count,
            Self::Sorted => tuple * count / tuples,
        })
    }
}

/// A whole case; values and indices come from the seed.
#[derive(Clone, Debug)]
struct Case {
    operator: Operator,
    data: Vec<usize>,
    indices: Vec<usize>,
    element: ElementType,
    index: ElementType,
    reduction: Reduction,
    destinations: Destinations,
    negative: bool,
    palette: Palette,
    data_layout: Arrangement,
    indices_layout: Arrangement,
    updates_layout: Arrangement,
    output_layout: Arrangement,
    verb: Verb,
    schedule: Option<Schedule>,
    set: Option<InstructionSet>,
    workers: Workers,
    seed: u64,
}

/// Updates of more elements than this are cut down.
#[derive(Clone, Copy)]
struct Limit(usize);

/// Shapes of data and tuples, the operator, and the destinations.
type Shapes = (Vec<usize>, Vec<usize>, u16, bool, Destinations, bool);

fn small_shapes() -> impl Strategy<Value = Shapes> {
    let data = prop_oneof![
        // Any rank, sizes of no importance.
        5 => vec(1_usize..=6, 0..=4),
        // Windows of some vectors and a tail.
        2 => (vec(1_usize..=8, 1..=2), 17_usize..=130).prop_map(|(mut shape, last)| {
            shape.push(last);
            shape
        }),
        // Sizes of 0.
        1 => vec(0_usize..=3, 1..=4),
        // An axis that no i8 and no u8 spans.
        1 => vec(100_usize..=1000, 1),
    ];
    let tuples = prop_oneof![
        5 => vec(1_usize..=8, 0..=2),
        3 => vec(0_usize..=300, 1),
        1 => vec(0_usize..=3, 0..=3),
    ];
    let destinations = select(&Destinations::ALL[..]);
    (
        data,
        tuples,
        any::<u16>(),
        any::<bool>(),
        destinations,
        any::<bool>(),
    )
}

/// Sizes at which a pool gets several tasks.
fn large_shapes() -> impl Strategy<Value = Shapes> {
    let data = prop_oneof![
        vec(5_000_usize..=40_000, 1),
        (100_usize..=500, 40_usize..=90).prop_map(|(rows, len)| vec![rows, len]),
        (4_usize..=40, 1_500_usize..=4_000).prop_map(|(rows, len)| vec![rows, len]),
        (5_usize..=20, 30_usize..=90, 10_usize..=30).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    let tuples = vec(20_000_usize..=150_000, 1);
    let destinations = select(&Destinations::ALL[..]);
    (
        data,
        tuples,
        any::<u16>(),
        any::<bool>(),
        destinations,
        any::<bool>(),
    )
}

/// Cuts the shape of the tuples down to what the rest allows, and returns that
/// of `indices`: an axis without elements is addressed by no tuple, distinct
/// destinations are as many as there are, and updates stay within the limit.
fn fit(
    operator: Operator,
    data: &[usize],
    mut tuples: Vec<usize>,
    k: Option<usize>,
    destinations: Destinations,
    limit: Limit,
) -> Vec<usize> {
    let whole = |tuples: &[usize]| [tuples, k.as_slice()].concat();
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let axes = operator.axes(data, &whole(&tuples));
    let distinct: usize = axes.iter().map(|&(_, size)| size).product();
    if distinct == 0 {
        tuples.push(0);
    }
    let too_many = |tuples: &[usize]| {
        let repeats = destinations == Destinations::Distinct && count(tuples) > distinct;
        repeats || count(&operator.updates_shape(data, &whole(tuples))) > limit.0
    };
    while too_many(&tuples) {
        match tuples.iter_mut().max() {
            Some(largest) => *largest /= 2,
            None => break,
        }
    }
    whole(&tuples)
}

/// `plain` two times in five, else one of `all`.
fn plain_or<T: Clone + Debug + 'static>(plain: T, all: Vec<T>) -> impl Strategy<Value = T> {
    prop_oneof![2 => Just(plain), 3 => select(all)]
}

fn cases(shapes: impl Strategy<Value = Shapes>, limit: Limit) -> impl Strategy<Value = Case> {
    let types = (
        select(element_types()),
        select(index_types()),
        select(&Reduction::ALL[..]),
    );
    // Often the plain choice: ways that only plain calls take must meet
    // everything else as well.
    let inputs = || plain_or(Arrangement::Contiguous, Arrangement::INPUTS.into());
    let outputs = plain_or(Arrangement::Contiguous, Arrangement::OUTPUTS.into());
    let layouts = (inputs(), inputs(), inputs(), outputs);
    let run = (
        select(&Verb::ALL[..]),
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
    (shapes, types, layouts, run, values).prop_map(move |(shapes, types, layouts, run, values)| {
        let (data, tuples, pick, is_update, destinations, negative) = shapes;
        let (element, index, reduction) = types;
        let rank = data.len();
        let (operator, k) = if is_update && rank > 0 {
            let axis = (usize::from(pick) % (2 * rank)).cast_signed() - rank.cast_signed();
            (Operator::Update { axis }, None)
        } else {
            (Operator::Nd, Some(usize::from(pick) % (rank + 1)))
        };
        let indices = fit(operator, &data, tuples, k, destinations, limit);
        let (data_layout, indices_layout, updates_layout, output_layout) = layouts;
        let (verb, schedule, set, workers) = run;
        let (palette, seed) = values;
        Case {
            operator,
            data,
            indices,
            element,
            index,
            reduction,
            destinations,
            negative,
            palette,
            data_layout,
            indices_layout,
            updates_layout,
            output_layout,
            verb,
            schedule,
            set,
            workers,
            seed,
        }
    })
}

fn index_types() -> Vec<ElementType> {
    ElementType::ALL
        .into_iter()
        .filter(|element| element.is_index())
        .collect()
}

/// `indices` in memory, as the type that `index` names.
fn place_indices<T: Element>(
    index: ElementType,
    logical: &Tensor<i128>,
    arrangement: Arrangement,
) -> Box<dyn Indices<T>> {
    fn place<T, I>(logical: &Tensor<i128>, arrangement: Arrangement) -> Box<dyn Indices<T>>
    where
        T: Element,
        I: ndscatter::Index + Into<i128> + TryFrom<i128>,
    {
        let narrow = |&index: &i128| I::try_from(index).ok().expect("drawn for this type");
        let values = logical.values.iter().map(narrow).collect();
        let tensor = Tensor::new(&logical.shape, values);
        // The marks between are out of bounds on most axes.
        Box::new(Strided::new(&tensor, arrangement, 1, narrow(&127)))
    }
    match index {
        ElementType::I8 => place::<T, i8>(logical, arrangement),
        ElementType::I16 => place::<T, i16>(logical, arrangement),
        ElementType::I32 => place::<T, i32>(logical, arrangement),
        ElementType::I64 => place::<T, i64>(logical, arrangement),
        ElementType::U8 => place::<T, u8>(logical, arrangement),
        ElementType::U16 => place::<T, u16>(logical, arrangement),
        ElementType::U32 => place::<T, u32>(logical, arrangement),
        ElementType::U64 => place::<T, u64>(logical, arrangement),
        other => panic!("{other} is no index type"),
    }
}

/// The smallest and the largest value of an index type.
fn range(index: ElementType) -> (i128, i128) {
    let bits = 8 * index.size();
    match index {
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
            (0, (1 << bits) - 1)
        }
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

impl Case {
    /// In bounds; at times counted from the end.
    fn draw_indices(&self, random: &mut Random) -> Tensor<i128> {
        let axes = self.operator.axes(&self.data, &self.indices);
        let mut sizes: Vec<usize> = axes.iter().map(|&(_, size)| size).collect();
        if self.operator == Operator::Nd && self.indices_layout.repeats_last(self.indices.len()) {
            // One value will stand for all coordinates of a tuple.
            let smallest = sizes.iter().copied().min().unwrap_or(0);
            sizes.fill(smallest);
        }
        let count: usize = sizes.iter().product();
        let (low, high) = range(self.index);
        let tuples = self.operator.tuples(&self.indices);
        let destinations: Vec<usize> = self.destinations.draw(tuples, count, random).collect();
        let mut values = Vec::new();
        for mut destination in destinations {
            let first = values.len();
            for &size in sizes.iter().rev() {
                let position = i128::try_from(destination % size).expect("sizes fit");
                let from_end = self.negative && low < 0 && random.one_in(3);
                let offset = if from_end { size } else { 0 };
                let index = position - i128::try_from(offset).expect("sizes fit");
                let fits = (low..=high).contains(&index);
                // Only axes of more than 100 elements have others.
                values.insert(first, if fits { index } else { index.rem_euclid(100) });
                destination /= size;
            }
        }
        Tensor::new(&self.indices, values)
    }

    /// The reduction, or another one where the type has it not.
    fn reduction<T: Ref>(&self) -> Reduction {
        let defined = T::REDUCTIONS.contains(&self.reduction);
        if defined {
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
        // A plan must take other values, other strides too.
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

    fn execution(&self, reduction: Reduction) -> Execution<'static> {
        let execution = Execution::new(reduction);
        let execution = (self.set).map_or(execution, |set| execution.instruction_set(set));
        self.schedule
            .map_or(execution, |schedule| execution.schedule(schedule))
    }

    fn check<T: Ref>(&self, seen: &Seen) -> Result<(), String> {
        let mut random = Random::new(self.seed);
        let logical = self.draw_indices(&mut random);
        let indices = place_indices(self.index, &logical, self.indices_layout);
        let reduction = self.reduction::<T>();
        let problem = Problem {
            operator: self.operator,
            reduction,
            indices: &*indices,
            rounds: self.rounds::<T>(&mut random),
            output: self.output_layout,
            margin: random.below(4),
        };
        let used = self.workers.with(|pool| {
            let execution = self.execution(reduction).pool(pool);
            let options = Options::new(self.operator, execution);
            problem.check(self.verb, &options)?;
            let explained = problem
                .plan(self.verb, &options)
                .and_then(|plan| plan.explain(T::TYPE, execution, self.verb.is_in_place()));
            let explanation = explained.map_err(|error| format!("explaining: {error}"))?;
            Ok::<_, String>(explanation.schedule())
        })?;
        seen.note(used, self.set);
        match self.schedule {
            Some(forced) if used != forced && used != Schedule::Serial => {
                Err(format!("{forced} was forced but {used} is used"))
            }
            _ => Ok(()),
        }
    }
}

/// What the cases have exercised.
#[derive(Default)]
struct Seen {
    schedules: Mutex<BTreeSet<String>>,
    sets: Mutex<BTreeSet<String>>,
}

impl Seen {
    fn note(&self, schedule: Schedule, set: Option<InstructionSet>) {
        let (schedules, sets) = (self.schedules.lock(), self.sets.lock());
        schedules
            .expect("no test panics here")
            .insert(schedule.to_string());
        let set = set.map(|set| set.to_string());
        sets.expect("no test panics here").extend(set);
    }

    /// Fails if a schedule or an instruction set of the machine was not run.
    fn check_complete(self) {
        let schedules = self.schedules.into_inner().expect("no test panics here");
        for schedule in Schedule::ALL {
            assert!(
                schedules.contains(&schedule.to_string()),
                "{schedule} was never used"
            );
        }
        let sets = self.sets.into_inner().expect("no test panics here");
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
        150,
        &cases(large_shapes(), Limit(160_000)),
        |case| with_element!(case.element, T => case.check::<T>(&seen)),
    );
    seen.check_complete();
}

/// Some indices are bad, or repeated where that is refused: the error is the
/// one that the reference finds, for all workers, and nothing is written.
fn check_refusal(case: &Case) -> Result<(), String> {
    let mut random = Random::new(case.seed);
    let mut logical = case.draw_indices(&mut random);
    let (low, high) = range(case.index);
    let spoiled = random.below(3).min(logical.values.len());
    for _ in 0..spoiled {
        let at = random.below(logical.values.len());
        logical.values[at] = random.pick(&[low, high, random.clone().between(low, high)]);
    }
    let indices = place_indices::<i16>(case.index, &logical, case.indices_layout);
    // As the layout lets them be seen.
    let logical = indices.logical();
    let refusals = Refusals {
        negative_indices: random.one_in(2),
        reject_duplicates: random.one_in(2),
    };
    let expected = case.operator.refusal(refusals, &case.data, &logical);

    let rounds = case.rounds::<i16>(&mut random);
    let output = Strided::new(
        &rounds[0].data.read(),
        case.output_layout,
        1,
        i16::sentinel(),
    );
    case.workers.with(|pool| {
        let execution = case.execution(Reduction::Add).pool(pool);
        let options = Options {
            operator: case.operator,
            execution,
            duplicates: if refusals.reject_duplicates {
                Duplicates::Reject
            } else {
                Duplicates::Allow
            },
            negative_indices: refusals.negative_indices,
        };
        let mut in_place = output.clone();
        let updates = rounds[0].updates.view();
        let got = indices
            .in_place(&options, in_place.view_mut(), updates)
            .err();
        if got != expected {
            return Err(format!("in place: {got:?}, not {expected:?}"));
        }
        if expected.is_some() && in_place.buffer != output.buffer {
            return Err("it was written before it was refused".to_owned());
        }
        let got = indices.plan(&options, output.layout()).err();
        if got != expected {
            return Err(format!("planned: {got:?}, not {expected:?}"));
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

/// A case for which a schedule is forced, and what must then be used.
struct Forced {
    schedule: Schedule,
    used: Schedule,
    operator: Operator,
    data: &'static [usize],
    indices: &'static [usize],
    destinations: Destinations,
    reduction: Reduction,
}

const ROWS: Forced = Forced {
    schedule: Schedule::Serial,
    used: Schedule::Serial,
    operator: Operator::Nd,
    data: &[3000, 64],
    indices: &[2000, 1],
    destinations: Destinations::Skewed,
    reduction: Reduction::Add,
};

const ELEMENTS: Forced = Forced {
    data: &[20_000],
    indices: &[50_000, 1],
    ..ROWS
};

/// Every schedule where it applies, and serial where it would change the bits.
const FORCED: [Forced; 13] = [
    ROWS,
    Forced {
        schedule: Schedule::ByBatch,
        used: Schedule::ByBatch,
        operator: Operator::Update { axis: 1 },
        data: &[16, 50, 32],
        indices: &[20],
        ..ROWS
    },
    // Without batch dims there is nothing to share out.
    Forced {
        schedule: Schedule::ByBatch,
        ..ROWS
    },
    Forced {
        schedule: Schedule::ByTuple,
        used: Schedule::ByTuple,
        destinations: Destinations::Distinct,
        ..ROWS
    },
    Forced {
        schedule: Schedule::ByTuple,
        used: Schedule::ByTuple,
        destinations: Destinations::Consecutive,
        reduction: Reduction::None,
        ..ROWS
    },
    // Two tasks would add to one row.
    Forced {
        schedule: Schedule::ByTuple,
        ..ROWS
    },
    Forced {
        schedule: Schedule::Winner,
        used: Schedule::Winner,
        reduction: Reduction::None,
        ..ROWS
    },
    // Every update counts in a sum, not only the last.
    Forced {
        schedule: Schedule::Winner,
        ..ROWS
    },
    Forced {
        schedule: Schedule::ByColumn,
        used: Schedule::ByColumn,
        data: &[20, 4096],
        indices: &[40, 1],
        ..ROWS
    },
    Forced {
        schedule: Schedule::ByDestination,
        used: Schedule::ByDestination,
        ..ELEMENTS
    },
    Forced {
        schedule: Schedule::ByDestination,
        used: Schedule::ByDestination,
        ..ROWS
    },
    Forced {
        schedule: Schedule::ByPartition,
        used: Schedule::ByPartition,
        ..ELEMENTS
    },
    Forced {
        schedule: Schedule::ByPartition,
        used: Schedule::ByPartition,
        ..ROWS
    },
];

impl Forced {
    fn case(&self, verb: Verb) -> Case {
        Case {
            operator: self.operator,
            data: self.data.to_vec(),
            indices: self.indices.to_vec(),
            element: ElementType::F32,
            index: ElementType::I64,
            reduction: self.reduction,
            destinations: self.destinations,
            negative: false,
            palette: Palette::Ordinary,
            data_layout: Arrangement::Contiguous,
            indices_layout: Arrangement::Contiguous,
            updates_layout: Arrangement::Contiguous,
            output_layout: Arrangement::Contiguous,
            verb,
            schedule: Some(self.schedule),
            set: None,
            workers: Workers::Given(2),
            seed: 1,
        }
    }

    fn used(&self, case: &Case) -> (Schedule, usize) {
        let logical = case.draw_indices(&mut Random::new(case.seed));
        let indices = place_indices::<f32>(case.index, &logical, case.indices_layout);
        case.workers.with(|pool| {
            let execution = case.execution(self.reduction).pool(pool);
            let options = Options::new(self.operator, execution);
            let output = ndscatter::Layout::contiguous(&case.data);
            let plan = indices.plan(&options, output).expect("the case is valid");
            let explanation = plan
                .explain(ElementType::F32, execution, case.verb.is_in_place())
                .expect("every reduction is defined for f32");
            (explanation.schedule(), explanation.tasks())
        })
    }
}

#[test]
fn a_forced_schedule_is_used_where_it_keeps_the_bits() {
    for forced in FORCED {
        for verb in [Verb::PlannedInPlace, Verb::PlannedWriteInto] {
            let what = format!(
                "{} of {:?}, {}, {:?}, {verb:?}",
                forced.schedule, forced.data, forced.reduction, forced.destinations
            );
            let case = forced.case(verb);
            let (used, tasks) = forced.used(&case);
            assert_eq!(used, forced.used, "{what}");
            let parallel = used != Schedule::Serial;
            assert_eq!(tasks > 1, parallel, "{what}: {tasks} tasks");
            case.check::<f32>(&Seen::default())
                .unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

/// Random cases can leave a hole; these cannot: every pair of an element type
/// and a reduction, every pair of a verb and a pool, every pair of layouts.
#[test]
fn every_pair_once() {
    let base = Forced {
        data: &[9, 40],
        indices: &[30, 1],
        ..ROWS
    };
    let seen = Seen::default();
    let check = |case: &Case| {
        let checked = with_element!(case.element, T => case.check::<T>(&seen));
        checked.unwrap_or_else(|error| panic!("{error}\n{case:#?}"));
    };
    for element in element_types() {
        for index in index_types() {
            for reduction in Reduction::ALL {
                check(&Case {
                    element,
                    index,
                    reduction,
                    negative: true,
                    ..base.case(Verb::InPlace)
                });
            }
        }
    }
    for verb in Verb::ALL {
        for workers in Workers::ALL {
            for schedule in Schedule::ALL {
                let schedule = Some(schedule);
                check(&Case {
                    workers,
                    schedule,
                    ..base.case(verb)
                });
            }
        }
    }
    for data_layout in Arrangement::INPUTS {
        for updates_layout in Arrangement::INPUTS {
            for output_layout in Arrangement::OUTPUTS {
                let case = base.case(Verb::PlannedWriteInto);
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
