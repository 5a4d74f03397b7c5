//! Many more workers than there are cores, tuples, windows or columns: whatever
//! the work is divided into, the bits are those of the sequential loop.

use std::sync::OnceLock;

use crate::common::Tensor;
use crate::common::elements::{Palette, Ref, compare, is_exact};
use crate::common::harness::{Indices, Operator, Options};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::random::Random;
use crate::common::request::Request;
use ndscatter::Schedule::{
    ByBatch, ByColumn, ByDestination, ByPartition, ByTuple, Grouped, LastWrite, Private, Serial,
};
use ndscatter::{CacheMode, Explanation, Pool, Rayon, Reduction, ScatterPlan, Schedule};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Few, primes, powers of two and their neighbours.
const WORKERS: [usize; 14] = [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 48, 63, 64];

/// A pool of `workers` rayon threads, made once; up to 64.
fn rayon_pool(workers: usize) -> &'static ThreadPool {
    static POOLS: [OnceLock<ThreadPool>; 65] = [const { OnceLock::new() }; 65];
    POOLS[workers].get_or_init(|| {
        let builder = ThreadPoolBuilder::new().num_threads(workers);
        builder.build().expect("threads can be started")
    })
}

/// Which destinations the tuples have.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Any, some much more often than others.
    Skewed,
    /// All the same one, the last.
    OnePlace,
    /// Different ones, in no order.
    Distinct,
    /// Any, those of equal tuples side by side, in order.
    Sorted,
    /// In a cache that goes round, several times so.
    Around,
}

/// What is scattered.
#[derive(Clone, Copy, Debug)]
struct Case {
    operator: Operator,
    data: &'static [usize],
    indices: &'static [usize],
    pattern: Pattern,
    /// Of data, updates and output.
    arrangement: Arrangement,
}

const fn case(
    operator: Operator,
    data: &'static [usize],
    indices: &'static [usize],
    pattern: Pattern,
) -> Case {
    Case {
        operator,
        data,
        indices,
        pattern,
        arrangement: Arrangement::Contiguous,
    }
}

const ND: Operator = Operator::Nd;

// Sizes are primes where they should not divide by any number of workers.

/// Rows of more than a cache line, and of less.
const ROWS: Case = case(ND, &[211, 67], &[1009, 1], Pattern::Skewed);
const SHORT_ROWS: Case = case(ND, &[1009, 3], &[2003, 1], Pattern::Skewed);
const DISTINCT_ROWS: Case = case(ND, &[5003, 3], &[1009, 1], Pattern::Distinct);

/// Windows that are not one run.
const SCATTERED_WINDOWS: Case = Case {
    arrangement: Arrangement::Mixed,
    ..case(ND, &[53, 7, 11], &[307, 1], Pattern::Skewed)
};

/// Fewer of everything than workers: tuples, rows, columns.
const FEW_ROWS: Case = case(ND, &[3, 5], &[7, 1], Pattern::Skewed);
const FEW_OF_MANY: Case = case(ND, &[4001, 5], &[3, 1], Pattern::Distinct);
const NO_TUPLES: Case = case(ND, &[101, 13], &[0, 1], Pattern::Skewed);
const FEW_WIDE_ROWS: Case = case(ND, &[3, 4001], &[5, 1], Pattern::Skewed);

/// One row, one element, met by all tuples.
const ONE_ROW: Case = case(ND, &[2, 131], &[331, 1], Pattern::OnePlace);
const ONE_ELEMENT: Case = case(ND, &[17], &[5003, 1], Pattern::OnePlace);

/// Single elements, in many places and in few.
const ELEMENTS: Case = case(ND, &[71, 73], &[10_007, 2], Pattern::Skewed);
const HISTOGRAM: Case = case(ND, &[37], &[10_007, 1], Pattern::Skewed);
const DISTINCT_ELEMENTS: Case = case(ND, &[20_011], &[10_007, 1], Pattern::Distinct);

/// The same, those of one destination side by side.
const SORTED_ROWS: Case = case(ND, &[211, 67], &[1009, 1], Pattern::Sorted);
const SORTED_SHORT_ROWS: Case = case(ND, &[1009, 3], &[2003, 1], Pattern::Sorted);
const SORTED_WINDOWS: Case = Case {
    pattern: Pattern::Sorted,
    ..SCATTERED_WINDOWS
};
const SORTED_ELEMENTS: Case = case(ND, &[71, 73], &[10_007, 2], Pattern::Sorted);
const SORTED_HISTOGRAM: Case = case(ND, &[37], &[10_007, 1], Pattern::Sorted);

/// Repetitions before the axis: fewer than workers, and more.
const FEW_BATCHES: Case = case(
    Operator::Update { axis: 1 },
    &[5, 41, 11],
    &[97],
    Pattern::Skewed,
);
const BATCHES: Case = case(
    Operator::Update { axis: 2 },
    &[11, 13, 19, 3],
    &[3, 7],
    Pattern::Skewed,
);

/// Lanes that cannot meet: more than workers, and fewer.
const LANES: Case = case(
    Operator::Elements { axis: 1 },
    &[101, 31],
    &[89, 43],
    Pattern::Skewed,
);
const FEW_LANES: Case = case(
    Operator::Elements { axis: 1 },
    &[6, 211],
    &[5, 1009],
    Pattern::Skewed,
);
const ONE_LANE: Case = case(
    Operator::Elements { axis: 0 },
    &[1009],
    &[4001],
    Pattern::Skewed,
);

/// Some steps of some sequences.
const CACHE: Case = case(
    Operator::Cache {
        axis: 2,
        mode: CacheMode::Circular,
        len: 23,
    },
    &[7, 3, 41, 5],
    &[7],
    Pattern::Around,
);

/// A case with values, and what becomes of them.
struct Subject<T> {
    case: Case,
    reduction: Reduction,
    data: Strided<T>,
    indices: Strided<i32>,
    updates: Strided<T>,
    wanted: Strided<T>,
}

impl<T: Ref> Subject<T> {
    fn new(case: Case, reduction: Reduction) -> Self {
        let mut random = Random::new(12);
        // Sums of ordinary values show their order, other results what became
        // of odd ones.
        let palette = match reduction {
            Reduction::None | Reduction::Min | Reduction::Max => Palette::Wild,
            _ => Palette::Ordinary,
        };
        let mut sample = |shape: &[usize]| {
            let tensor = Tensor::generate(shape, || T::sample(palette, &mut random));
            Strided::new(&tensor, case.arrangement, 1, T::sentinel())
        };
        let data = sample(case.data);
        let updates = sample(&case.operator.updates_shape(case.data, case.indices));
        let indices = case.indices();
        let logical = Indices::<T>::logical(&indices);
        let expected = (case.operator).expected(reduction, &data.read(), &logical, &updates.read());
        let mut wanted = data.clone();
        wanted.write(&expected);
        Self {
            case,
            reduction,
            data,
            indices,
            updates,
            wanted,
        }
    }

    fn execution(&self, schedule: Option<Schedule>) -> Request<'static> {
        let execution = Request::new(self.reduction);
        schedule.map_or(execution, |schedule| execution.schedule(schedule))
    }

    fn plan(&self, options: &Options<'_>) -> ScatterPlan {
        let plan = Indices::<T>::plan(&self.indices, options, self.data.layout());
        plan.expect("valid indices")
    }

    /// Memory for a result, margins included, of which nothing is right yet.
    fn output(&self) -> Strided<T> {
        let empty = Tensor::generate(self.case.data, T::sentinel);
        let mut output = self.data.clone();
        output.write(&empty);
        output
    }

    fn compare(&self, got: &Strided<T>, what: &str) {
        compare(&got.buffer, &self.wanted.buffer, is_exact(self.reduction)).unwrap_or_else(
            |difference| {
                let (reduction, case) = (self.reduction, self.case);
                panic!(
                    "{what}: {difference}; {reduction} of {} in {case:?}",
                    T::DTYPE
                )
            },
        );
    }

    /// In place and into an output, without a plan.
    fn check(&self, execution: Request<'_>, what: &str) {
        let options = Options::new(self.case.operator, execution);
        let (data, updates) = (self.data.view(), self.updates.view());
        let mut output = self.data.clone();
        (self.indices.in_place(&options, output.view_mut(), updates)).expect("a valid call");
        self.compare(&output, &format!("{what}, in place"));
        let mut output = self.output();
        (self
            .indices
            .write_into(&options, data, updates, output.view_mut()))
        .expect("a valid call");
        self.compare(&output, &format!("{what}, into an output"));
    }

    /// In place and into an output, with a plan.
    fn check_planned(&self, plan: &ScatterPlan, execution: Request<'_>, what: &str) {
        let mut output = self.data.clone();
        (execution
            .run(plan)
            .in_place(output.view_mut(), self.updates.view()))
        .expect("a valid call");
        self.compare(&output, &format!("{what}, planned, in place"));
        let mut output = self.output();
        (execution
            .run(plan)
            .write_into(self.data.view(), self.updates.view(), output.view_mut()))
        .expect("a valid call");
        self.compare(&output, &format!("{what}, planned, into an output"));
    }

    /// What a run in place will do.
    fn explain(&self, execution: Request<'_>) -> Explanation {
        let plan = self.plan(&Options::new(self.case.operator, execution));
        let explanation = execution.run(&plan).explain(T::DTYPE, true);
        explanation.expect("it has the reduction")
    }

    /// Schedules, other than the serial one, that run where they are forced,
    /// on eight workers and in place.
    fn applying(&self) -> Vec<Schedule> {
        let applies = |schedule: &Schedule| {
            let execution = self.execution(Some(*schedule)).pool(rayon_pool(8));
            let explanation = self.explain(execution);
            explanation.schedule() == *schedule && explanation.tasks() > 1
        };
        Schedule::ALL[1..].iter().copied().filter(applies).collect()
    }
}

impl Case {
    fn indices(&self) -> Strided<i32> {
        let mut random = Random::new(11);
        let axes = self.operator.axes(self.data, self.indices);
        let tuples = self.operator.tuples(self.indices);
        let places = (0..tuples).flat_map(|tuple| axes.iter().map(move |&(_, size)| (tuple, size)));
        let values = places.map(|(tuple, size)| {
            let index = match self.pattern {
                Pattern::Skewed | Pattern::Sorted => random.zipf(size),
                Pattern::OnePlace => size - 1,
                // The factor is a prime that no size here is a multiple of.
                Pattern::Distinct => tuple * 7919 % size,
                Pattern::Around => random.below(5 * size),
            };
            i32::try_from(index).expect("sizes are small")
        });
        let mut values: Vec<_> = values.collect();
        if let Pattern::Sorted = self.pattern {
            let mut by_tuple: Vec<_> = values.chunks(axes.len()).map(<[_]>::to_vec).collect();
            by_tuple.sort();
            values = by_tuple.concat();
        }
        let tensor = Tensor::new(self.indices, values);
        Strided::new(&tensor, Arrangement::Contiguous, 0, 0)
    }

    /// Runs every schedule on every pool; `applies` are those that are not
    /// replaced by the serial one.
    fn check<T: Ref>(self, reduction: Reduction, applies: &[Schedule]) {
        let subject = Subject::<T>::new(self, reduction);
        assert_eq!(
            subject.applying(),
            applies,
            "{reduction} of {} in {self:?}",
            T::DTYPE
        );
        let forced = applies.iter().copied().map(Some);
        for schedule in forced.chain([Some(Serial), None]) {
            for workers in WORKERS {
                let execution = subject.execution(schedule).pool(rayon_pool(workers));
                subject.check(execution, &format!("{schedule:?} on {workers} threads"));
            }
        }
    }
}

#[test]
fn rows() {
    let applies = [ByColumn, ByDestination, ByPartition, Grouped];
    ROWS.check::<f32>(Reduction::Add, &applies);
    SHORT_ROWS.check::<f32>(Reduction::Sub, &applies);
    SCATTERED_WINDOWS.check::<f64>(Reduction::Add, &applies);
}

#[test]
fn last_writes_of_rows() {
    let applies = [LastWrite, ByColumn, ByDestination, ByPartition];
    ROWS.check::<f64>(Reduction::None, &applies);
    SHORT_ROWS.check::<u8>(Reduction::None, &applies);
    SCATTERED_WINDOWS.check::<f32>(Reduction::None, &applies);
}

#[test]
fn rows_that_are_combined_in_parts() {
    let applies = [ByColumn, ByDestination, ByPartition, Grouped, Private];
    ROWS.check::<i16>(Reduction::Max, &applies);
    SHORT_ROWS.check::<u8>(Reduction::Mul, &applies);
}

/// Tuples of one destination stand together.
#[test]
fn sorted_rows() {
    let applies = [ByTuple, ByColumn, ByDestination, ByPartition, Grouped];
    for case in [SORTED_ROWS, SORTED_SHORT_ROWS, SORTED_WINDOWS, ONE_ROW] {
        case.check::<f32>(Reduction::Add, &applies);
    }
    let applies = [ByTuple, LastWrite, ByColumn, ByDestination, ByPartition];
    for case in [SORTED_ROWS, SORTED_SHORT_ROWS, SORTED_WINDOWS, ONE_ROW] {
        case.check::<i16>(Reduction::None, &applies);
    }
    let applies = [
        ByTuple,
        ByColumn,
        ByDestination,
        ByPartition,
        Grouped,
        Private,
    ];
    ONE_ROW.check::<f32>(Reduction::Min, &applies);
    SORTED_ROWS.check::<u8>(Reduction::Mul, &applies);
}

#[test]
fn sorted_elements() {
    let applies = [ByTuple, ByDestination, ByPartition, Grouped];
    for case in [SORTED_ELEMENTS, SORTED_HISTOGRAM, ONE_ELEMENT] {
        case.check::<f32>(Reduction::Add, &applies);
        case.check::<f64>(
            Reduction::None,
            &[ByTuple, LastWrite, ByDestination, ByPartition],
        );
    }
    let applies = [ByTuple, ByDestination, ByPartition, Grouped, Private];
    SORTED_HISTOGRAM.check::<i32>(Reduction::Add, &applies);
    ONE_ELEMENT.check::<u16>(Reduction::Mul, &applies);
}

#[test]
fn distinct_rows() {
    let applies = [ByTuple, ByColumn, ByDestination, ByPartition, Grouped];
    DISTINCT_ROWS.check::<f32>(Reduction::Add, &applies);
    let applies = [ByTuple, LastWrite, ByColumn, ByDestination, ByPartition];
    DISTINCT_ROWS.check::<i64>(Reduction::None, &applies);
}

#[test]
fn fewer_of_everything_than_workers() {
    let applies = [ByColumn, ByDestination, ByPartition, Grouped];
    FEW_ROWS.check::<f32>(Reduction::Add, &applies);
    FEW_WIDE_ROWS.check::<f32>(Reduction::Add, &applies);
    FEW_OF_MANY.check::<f64>(
        Reduction::Add,
        &[ByTuple, ByColumn, ByDestination, ByPartition, Grouped],
    );
    FEW_OF_MANY.check::<i8>(
        Reduction::None,
        &[ByTuple, LastWrite, ByColumn, ByDestination, ByPartition],
    );
    NO_TUPLES.check::<f32>(Reduction::Add, &[ByColumn]);
    NO_TUPLES.check::<f32>(Reduction::None, &[LastWrite, ByColumn]);
}

#[test]
fn elements() {
    let applies = [ByDestination, ByPartition, Grouped];
    ELEMENTS.check::<f32>(Reduction::Add, &applies);
    HISTOGRAM.check::<f64>(Reduction::Mul, &applies);
    DISTINCT_ELEMENTS.check::<f32>(
        Reduction::Sub,
        &[ByTuple, ByDestination, ByPartition, Grouped],
    );
    let applies = [LastWrite, ByDestination, ByPartition];
    ELEMENTS.check::<i16>(Reduction::None, &applies);
    let applies = [ByDestination, ByPartition, Grouped, Private];
    HISTOGRAM.check::<i32>(Reduction::Add, &applies);
    ELEMENTS.check::<f32>(Reduction::Max, &applies);
}

#[test]
fn means() {
    for case in [
        ROWS,
        SHORT_ROWS,
        ONE_ROW,
        FEW_ROWS,
        SORTED_ROWS,
        SORTED_ELEMENTS,
        ELEMENTS,
        BATCHES,
        ONE_LANE,
    ] {
        case.check::<f32>(Reduction::Mean, &[Grouped]);
    }
}

#[test]
fn batches() {
    let applies = [ByBatch, ByColumn, ByDestination, ByPartition, Grouped];
    FEW_BATCHES.check::<f32>(Reduction::Add, &applies);
    BATCHES.check::<f32>(Reduction::Add, &applies);
    let applies = [ByBatch, LastWrite, ByColumn, ByDestination, ByPartition];
    FEW_BATCHES.check::<u16>(Reduction::None, &applies);
    BATCHES.check::<f64>(Reduction::None, &applies);
}

#[test]
fn lanes() {
    let applies = [ByTuple, ByDestination, ByPartition, Grouped];
    LANES.check::<f32>(Reduction::Add, &applies);
    FEW_LANES.check::<f32>(Reduction::Add, &[ByDestination, ByPartition, Grouped]);
    ONE_LANE.check::<f32>(Reduction::Add, &[ByDestination, ByPartition, Grouped]);
    LANES.check::<i8>(
        Reduction::None,
        &[ByTuple, LastWrite, ByDestination, ByPartition],
    );
}

#[test]
fn caches() {
    CACHE.check::<f32>(
        Reduction::None,
        &[ByTuple, LastWrite, ByColumn, ByDestination, ByPartition],
    );
}

#[cfg(feature = "half")]
#[test]
fn sums_that_round_at_every_update() {
    let applies = [ByColumn, ByDestination, ByPartition, Grouped];
    ROWS.check::<half::bf16>(Reduction::Add, &applies);
    ELEMENTS.check::<half::f16>(Reduction::Add, &[ByDestination, ByPartition, Grouped]);
}

/// Calls that are worth dividing: what is chosen for two workers, and the bits
/// with any number of them.
#[test]
fn what_is_chosen() {
    use Pattern::{Distinct, OnePlace, Skewed, Sorted};
    let (add, none) = (Reduction::Add, Reduction::None);
    let rows = &[2003, 67];
    chosen::<f64>(case(ND, rows, &[30_011, 1], Skewed), add, ByPartition);
    chosen::<f64>(case(ND, rows, &[30_011, 1], Sorted), add, ByTuple);
    chosen::<f64>(case(ND, rows, &[30_011, 1], Skewed), none, LastWrite);
    chosen::<f64>(case(ND, rows, &[5003, 1], Skewed), add, Serial);
    chosen::<f64>(case(ND, &[401, 67], &[30_011, 1], Skewed), add, ByColumn);
    chosen::<f64>(case(ND, rows, &[30_011, 1], OnePlace), add, Serial);
    chosen::<f64>(
        case(ND, &[29_009, 67], &[25_013, 1], Distinct),
        none,
        ByTuple,
    );
    chosen::<f64>(case(ND, &[1009, 503], &[4003, 1], Skewed), add, Grouped);
    chosen::<f64>(case(ND, &[5, 300_007], &[7, 1], OnePlace), add, ByColumn);
    // Nothing to apply, but much to copy.
    chosen::<f64>(case(ND, &[60_013, 17], &[0, 1], Skewed), add, Serial);
    let update = Operator::Update { axis: 1 };
    chosen::<f64>(case(update, &[67, 41, 101], &[347], Skewed), add, ByBatch);
    let elements = &[3_000_017];
    chosen::<f64>(
        case(ND, elements, &[250_007, 1], Distinct),
        add,
        ByPartition,
    );
    chosen::<f64>(case(ND, elements, &[250_007, 1], Sorted), add, ByTuple);
    chosen::<i64>(case(ND, &[199], &[300_007, 1], Skewed), add, Private);
    chosen::<f64>(case(ND, &[300_007], &[300_007, 1], OnePlace), add, Serial);
    let along = Operator::Elements { axis: 1 };
    chosen::<f64>(case(along, &[101, 997], &[89, 3001], Skewed), add, ByTuple);
}

fn chosen<T: Ref>(case: Case, reduction: Reduction, expected: Schedule) {
    let subject = Subject::<T>::new(case, reduction);
    let execution = subject.execution(None).pool(rayon_pool(2));
    let schedule = subject.explain(execution).schedule();
    assert_eq!(
        schedule,
        expected,
        "{reduction} of {} in {case:?}",
        T::DTYPE
    );
    for workers in WORKERS {
        let execution = subject.execution(None).pool(rayon_pool(workers));
        subject.check(execution, &format!("{workers} threads"));
    }
}

/// What a run finds out for one number of workers serves runs with others.
#[test]
fn one_plan_on_pools_of_all_sizes() {
    fn check<T: Ref>(case: Case, reduction: Reduction) {
        let subject = Subject::<T>::new(case, reduction);
        let schedules = Schedule::ALL.iter().copied().map(Some);
        for schedule in schedules.chain([None]) {
            let execution = subject.execution(schedule);
            for order in [
                WORKERS,
                std::array::from_fn(|i| WORKERS[WORKERS.len() - 1 - i]),
            ] {
                let plan = subject.plan(&Options::new(case.operator, execution));
                for workers in order {
                    let what = format!("{schedule:?} on {workers} threads of {order:?}");
                    subject.check_planned(&plan, execution.pool(rayon_pool(workers)), &what);
                }
            }
        }
    }
    check::<f32>(ROWS, Reduction::Add);
    check::<f32>(ROWS, Reduction::None);
    check::<f32>(ROWS, Reduction::Mean);
    check::<f32>(ELEMENTS, Reduction::Add);
    check::<i32>(HISTOGRAM, Reduction::Add);
    check::<u8>(LANES, Reduction::None);
    check::<f64>(BATCHES, Reduction::Add);
}

/// Inside a pool, where waiting for tasks means to work on others.
#[test]
fn pools_that_are_entered() {
    fn check<T: Ref>(case: Case, reduction: Reduction) {
        let subject = Subject::<T>::new(case, reduction);
        let schedules = Schedule::ALL.iter().copied().map(Some);
        for schedule in schedules.chain([None]) {
            for workers in WORKERS {
                rayon_pool(workers).install(|| {
                    let execution = subject.execution(schedule).pool(&Rayon);
                    subject.check(execution, &format!("{schedule:?} in {workers} threads"));
                });
            }
        }
    }
    check::<f32>(ROWS, Reduction::Add);
    check::<f32>(ELEMENTS, Reduction::None);
    check::<i32>(HISTOGRAM, Reduction::Add);
}

/// Claims so many workers, and is alone: its tasks run one after another.
#[derive(Clone, Copy, Debug)]
struct Claims {
    workers: usize,
    backwards: bool,
}

impl Pool for Claims {
    fn workers(&self) -> Option<usize> {
        Some(self.workers)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if self.backwards {
            (0..tasks).rev().for_each(task);
        } else {
            (0..tasks).for_each(task);
        }
    }
}

/// Beyond any machine, and beyond what the crate asks for.
#[test]
fn pools_that_claim_any_number_of_workers() {
    fn check<T: Ref>(case: Case, reduction: Reduction) {
        let subject = Subject::<T>::new(case, reduction);
        let schedules = Schedule::ALL.iter().copied().map(Some);
        for schedule in schedules.chain([None]) {
            for workers in [0, 64, 65, 200, 1000, 1023, 1024, 1025, usize::MAX] {
                for backwards in [false, true] {
                    let pool = Claims { workers, backwards };
                    let execution = subject.execution(schedule).pool(&pool);
                    subject.check(execution, &format!("{schedule:?} on {pool:?}"));
                }
            }
        }
    }
    check::<f32>(ROWS, Reduction::Add);
    check::<i16>(ROWS, Reduction::None);
    check::<f32>(SHORT_ROWS, Reduction::Mean);
    check::<f32>(SCATTERED_WINDOWS, Reduction::Add);
    check::<f32>(FEW_ROWS, Reduction::Sub);
    check::<f32>(ELEMENTS, Reduction::Add);
    check::<u8>(HISTOGRAM, Reduction::Mul);
    check::<f32>(DISTINCT_ELEMENTS, Reduction::None);
    check::<f32>(FEW_BATCHES, Reduction::Add);
    check::<f32>(LANES, Reduction::Add);
    check::<f32>(CACHE, Reduction::None);
}

/// At most so many of the workers of a pool of 64.
#[test]
fn at_most_so_many_workers() {
    for case in [ROWS, SORTED_ROWS] {
        let subject = Subject::<f32>::new(case, Reduction::Add);
        for schedule in Schedule::ALL {
            for most in WORKERS.into_iter().chain([0, 65, usize::MAX]) {
                let execution = subject.execution(Some(schedule)).pool(rayon_pool(64));
                let execution = execution.max_workers(most);
                let what = format!("{schedule}, at most {most}");
                let tasks = subject.explain(execution).tasks();
                assert!(tasks <= most.max(1), "{what}: {tasks} tasks");
                subject.check(execution, &what);
            }
        }
    }
}
