//! Random scatters, compared with the reference bit for bit. A case combines operator, element
//! type, index type, reduction and its options, bounds, forced schedule, forced instruction set,
//! pool, layouts and method.
//!
//! Every run tests the same cases. To test more cases: `PROPTEST_CASES=20000 PROPTEST_RNG_SEED=1
//! cargo test --release --test it properties::`.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Mutex;

use crate::common::api::{DType, Method, Methods};
use crate::common::cases::{Case, Lanes, Limit, draw_operator, fit};
use crate::common::destinations::{Destinations, index_types, place_indices, range};
use crate::common::elements::{Palette, Ref, element_types};
use crate::common::harness::Problem;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Operator;
use crate::common::pools::Workers;
use crate::common::random::Random;
use crate::with_element;
use ndscatter::{Accumulate, Bounds, CacheMode, Duplicates, InstructionSet, Reduction, Schedule};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

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
        let mut random = Random::new(pick.into());
        let (operator, indices) = draw_operator(&data, tuples, pick, &mut random);
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

fn check<T: Ref>(case: &Case, seen: &Seen) -> Result<(), String> {
    let mut random = Random::new(case.seed);
    let logical = case.draw_indices(&mut random);
    let indices = place_indices(case.index, &logical, case.indices_layout);
    let problem = Problem {
        indices: &*indices,
        rounds: case.rounds::<T>(&mut random),
        output: case.output_layout,
        margin: random.below(4),
    };
    let reduction = case.reduction::<T>();
    let used = (case.workers).with(|pool| case.check(&problem, &case.options(reduction, pool)))?;
    seen.note(used, case.set);
    Ok(())
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
        |case| with_element!(case.element, T => check::<T>(case, &seen)),
    );
    seen.check_complete();
}

#[test]
fn large_scatters() {
    let seen = Seen::default();
    run(
        300,
        &cases(large_shapes(), Limit(160_000)),
        |case| with_element!(case.element, T => check::<T>(case, &seen)),
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
        let checked = with_element!(case.element, T => check::<T>(case, &seen));
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
