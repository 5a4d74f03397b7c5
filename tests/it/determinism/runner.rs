//! Runs cases with schedules, instruction sets, numbers of workers and methods. It compares every
//! result with the reference, bit for bit, including margins.
//!
//! All combinations would cost too much. This table says which calls run each case:
//!
//! | size | the crate's choice | each schedule that divides the case | a schedule that does not |
//! |---|---|---|---|
//! | tiny | every one-shot method: on 3 workers; on the calling thread with each instruction set | | |
//! | small, medium | each number of workers x in place, out of place | the same, with alternating instruction sets | on 3 workers, in place and out of place |
//! | large | each number of workers x in place, out of place | each instruction set x in place, out of place | |
//! | huge | each number of workers x in place, out of place | | |
//!
//! The numbers of workers are 1 to 64 for small cases, 1 to 8 for medium cases, and fewer for large
//! and huge cases. The variable `MOST_WORKERS` leaves out larger numbers, for `.ci/run` and for
//! slow runs under ThreadSanitizer and qemu.
//!
//! Plans are made for small, medium and large cases, for the crate's choice and for each schedule
//! that divides the case. A plan is run with numbers of workers that increase and then decrease.
//! The runs alternate between two tensors of values, and between in place and out of place.
//!
//! Each case except tiny and huge ones checks which schedule runs when a schedule is forced
//! ([`super::legal`]). Each call of the crate's choice with contiguous tensors checks that its
//! route is the route of `explain`, except where the crate allocates the result.

use std::sync::{LazyLock, Mutex};

use ndscatter::{
    Bounds, CacheMode, CallingThread, InstructionSet, Reduction, Route, ScatterPlan, Schedule,
};

use super::cases::{Case, Size};
use super::legal::{Facts, WORKERS};
use super::recorded::{Checksums, checksum};
use crate::common::Tensor;
use crate::common::api::{DType, Indices, Method, Methods, Options, Request};
use crate::common::destinations::{Destinations, place_indices, range};
use crate::common::elements::{Palette, Ref, compare, element_types, is_enabled, is_exact};
use crate::common::harness::Round;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Operator;
use crate::common::pools::rayon_pool;
use crate::common::random::Random;
use crate::common::scatters::Hits;
use crate::with_element;

/// Returns the numbers of workers that are at most the variable `MOST_WORKERS`. `all` is ascending.
fn at_most(all: &'static [usize]) -> &'static [usize] {
    static MOST: LazyLock<usize> = LazyLock::new(|| match std::env::var("MOST_WORKERS") {
        Ok(most) => most.parse().expect("MOST_WORKERS is a number"),
        Err(_) => usize::MAX,
    });
    &all[..all.partition_point(|&workers| workers <= *MOST)]
}

/// Number of marked elements around tensors. They also shift addresses.
const MARGIN: usize = 3;

impl Size {
    /// Returns the numbers of workers: small numbers, primes, powers of two and their neighbours.
    pub(super) fn workers(self) -> &'static [usize] {
        at_most(match self {
            Self::Tiny => &[3],
            Self::Small => &[1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 48, 63, 64],
            Self::Medium => &[1, 2, 3, 4, 5, 6, 7, 8],
            Self::Large => &[1, 2, 3, 5, 8, 64],
            Self::Huge => &[1, 2, 3, 8],
        })
    }

    /// Returns the numbers of workers for the runs of one plan, in ascending order.
    fn workers_of_plans(self) -> &'static [usize] {
        at_most(match self {
            Self::Tiny | Self::Huge => &[],
            Self::Small => &[1, 2, 3, 5, 8, 13, 64],
            Self::Medium => &[1, 2, 3, 8],
            Self::Large => &[2, 3],
        })
    }
}

/// Runs the cases of a group.
pub(super) fn check(group: &str, cases: &[Case]) {
    let mut checksums = Checksums::default();
    for (position, case) in cases.iter().enumerate() {
        let drawn = Drawn::new(case);
        for &(reduction, dtype) in case.values {
            // Some element types and reductions depend on features.
            if element_types().contains(&dtype) && is_enabled(reduction, dtype) {
                with_element!(dtype, T => {
                    let subject = Subject::<T>::new(&drawn, reduction);
                    checksums.add(position, (reduction, dtype), subject.checksum());
                    subject.check();
                });
            }
        }
    }
    checksums.check(group);
}

/// A case with its indices, for values of any type.
pub(super) struct Drawn<'c> {
    case: &'c Case,
    /// Indices as they are read through their layout.
    indices: Tensor<i128>,
    hits: Hits,
    facts: Option<Facts>,
}

impl<'c> Drawn<'c> {
    pub(super) fn new(case: &'c Case) -> Self {
        let indices = case.draw_indices();
        let placed = place_indices(case.index, &indices, case.indices_layout);
        let indices = placed.logical();
        let options = case.options(Reduction::None.into());
        let has_facts = !matches!(case.size, Size::Tiny | Size::Huge);
        Self {
            case,
            hits: (case.operator).hits(options.rules().index, case.data, &indices),
            facts: has_facts.then(|| Facts::new(case, &options, &indices)),
            indices,
        }
    }
}

impl Case {
    fn options<'p>(&self, execution: Request<'p>) -> Options<'p> {
        Options {
            bounds: self.bounds,
            include_self: self.include_self,
            accumulate: self.accumulate,
            ..Options::new(self.operator, execution)
        }
    }

    fn draw_indices(&self) -> Tensor<i128> {
        let mut random = Random::new(11);
        let axes = self.operator.axes(self.data, self.indices);
        let count: usize = axes.iter().map(|&(_, size)| size).product();
        let rank = self.indices.len();
        // An element scatter repeats its index along the other dims.
        let different = match self.operator {
            Operator::Elements { .. } => self.differ.min(rank),
            _ => rank,
        };
        let copies: usize = self.indices[different..].iter().product();
        let tuples = self.operator.tuples(self.indices) / copies.max(1);
        let mut values = Vec::new();
        for mut number in self.destinations.draw(tuples, count, &mut random) {
            let first = values.len();
            for &(_, size) in axes.iter().rev() {
                values.insert(first, self.express(number % size, size, &mut random));
                number /= size;
            }
            if copies > 1 {
                values.resize(first + copies, values[first]);
            }
        }
        for exception in 1..=self.exceptions {
            let at = values.len() - exception * exception;
            values[at] = i128::try_from(random.below(count)).expect("the size fits i128");
        }
        Tensor::new(self.indices, values)
    }

    /// Returns an index for the position `place` on an axis. Some indices count from the end, or
    /// are out of bounds where that is not an error. In a circular cache, the index may exceed the
    /// size.
    fn express(&self, place: usize, size: usize, random: &mut Random) -> i128 {
        let signed = |size: usize| i128::try_from(size).expect("the size fits i128");
        let (place, size) = (signed(place), signed(size));
        let is_signed = range(self.index).0 < 0;
        match self.operator {
            Operator::Cache { mode, .. } => match mode {
                CacheMode::Circular => place * 7,
                CacheMode::Linear => place,
            },
            _ if self.bounds != Bounds::Error => match random.below(40) {
                0 => place + size,
                1 => place - 2 * size,
                _ => place,
            },
            _ if self.from_end > 0 && is_signed && random.one_in(self.from_end) => place - size,
            _ => place,
        }
    }

    /// Chooses ordinary values where the result depends on the order of rounding. Other results use
    /// extreme values.
    fn palette(&self, reduction: Reduction, dtype: DType) -> Palette {
        let rounds = !dtype.is_index() && dtype != DType::Bool;
        let picks = matches!(reduction, Reduction::None | Reduction::Min | Reduction::Max);
        let fitting = if rounds && !picks {
            Palette::Ordinary
        } else {
            Palette::Wild
        };
        self.palette.unwrap_or(fitting)
    }
}

/// Returns the schedules that divide a case among several tasks.
pub(super) fn dividing(case: &Case) -> Vec<Schedule> {
    let drawn = Drawn::new(case);
    let facts = drawn.facts.expect("cases of this size have facts");
    let divides =
        |&(value, schedule): &(_, Schedule)| facts.used(case, value, schedule) == (schedule, true);
    let values = case.values.iter().copied();
    let all = values.flat_map(|value| Schedule::ALL.map(|schedule| (value, schedule)));
    all.filter(divides).map(|(_, schedule)| schedule).collect()
}

/// Whether the case has sums of floats with duplicates. Panics if their bits do not depend on the
/// order of updates.
pub(super) fn shows_order(case: &Case) -> bool {
    let has_duplicates = !matches!(
        case.destinations,
        Destinations::Distinct | Destinations::Consecutive
    );
    let is_small = matches!(case.size, Size::Small | Size::Medium);
    let sums = case.values.contains(&(Reduction::Add, DType::F32));
    let tuples = case.operator.tuples(case.indices);
    if !(has_duplicates && is_small && sums && tuples >= 50) {
        return false;
    }
    let drawn = Drawn::new(case);
    let subject = Subject::<f32>::new(&drawn, Reduction::Add);
    let (Round { data, updates }, wanted) = &subject.rounds[0];
    let how = case.options(Reduction::Add.into()).rules().how;
    let backwards = |&current: &f32, updates: &[f32]| {
        let updates: Vec<_> = updates.iter().rev().copied().collect();
        f32::reduce(how, current, &updates)
    };
    let sums = drawn.hits.apply(&data.read(), &updates.read(), backwards);
    let differs = compare(&sums.values, &wanted.read().values, true).is_err();
    assert!(differs, "{case:?}");
    true
}

/// A case with values and expected results.
pub(super) struct Subject<'d, T> {
    case: &'d Case,
    facts: Option<&'d Facts>,
    pub(super) reduction: Reduction,
    indices: Box<dyn Indices>,
    /// Inputs with their expected results. The runs of a plan alternate between them. Other methods
    /// use the first.
    rounds: Vec<(Round<T>, Strided<T>)>,
    /// Output of the calls. Fresh memory for each call would cost more than the call.
    output: Mutex<Strided<T>>,
}

/// Fills a tensor of `shape`. Values of large tensors repeat after 100,003 elements, which no row
/// length divides. To draw all of them would cost more than to scatter them.
fn values<T: Ref>(shape: &[usize], mut draw: impl FnMut() -> T) -> Tensor<T> {
    let count: usize = shape.iter().product();
    let drawn: Vec<T> = (0..count.min(100_003)).map(|_| draw()).collect();
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let rest = drawn.len().min(count - values.len());
        values.extend_from_slice(&drawn[..rest]);
    }
    Tensor::new(shape, values)
}

/// The method, the plan and the inputs of a call, without its execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) plan: Option<&'a ScatterPlan>,
    pub(super) round: usize,
}

impl From<Method> for Call<'_> {
    fn from(method: Method) -> Self {
        Self {
            method,
            plan: None,
            round: 0,
        }
    }
}

impl<'d, T: Ref> Subject<'d, T> {
    pub(super) fn new(drawn: &'d Drawn<'_>, reduction: Reduction) -> Self {
        let case = drawn.case;
        let mut random = Random::new(12);
        let palette = case.palette(reduction, T::DTYPE);
        let place = |tensor: &Tensor<T>| Strided::new(tensor, case.layout, MARGIN, T::sentinel());
        let how = case.options(reduction.into()).rules().how;
        let updates_shape = case.operator.updates_shape(case.data, case.indices);
        let mut round = || {
            let mut sample = |shape| values(shape, || T::sample(palette, &mut random));
            let (data, updates) = (sample(case.data), sample(&updates_shape));
            let expected = (drawn.hits).apply(&data, &updates, |&current, updates| {
                T::reduce(how, current, updates)
            });
            let (data, updates) = (place(&data), place(&updates));
            (Round { data, updates }, place(&expected))
        };
        let rounds = if case.size.workers_of_plans().is_empty() {
            vec![round()]
        } else {
            vec![round(), round()]
        };
        Self {
            case,
            facts: drawn.facts.as_ref(),
            reduction,
            indices: place_indices(case.index, &drawn.indices, case.indices_layout),
            output: Mutex::new(rounds[0].0.data.clone()),
            rounds,
        }
    }

    pub(super) fn request(&self, schedule: Option<Schedule>) -> Request<'static> {
        Request::new(self.reduction).schedule(schedule)
    }

    /// Makes the call and compares its result with the expected result.
    pub(super) fn run<'a>(&self, request: Request<'_>, call: impl Into<Call<'a>>) {
        let call = call.into();
        let options = self.case.options(request);
        let (round, wanted) = &self.rounds[call.round];
        let mut output = self.output.lock().expect("the first failure ends the test");
        if call.method.is_in_place() {
            output.buffer.copy_from_slice(&round.data.buffer);
        } else {
            output.buffer.fill(T::sentinel());
        }
        let inputs = (round.data.view(), round.updates.view());
        let made = call.method.scatter(
            &options,
            &*self.indices,
            call.plan,
            inputs,
            output.view_mut(),
        );
        let compared = match made {
            Err(error) => Err(format!("the call failed: {error}")),
            Ok(None) => compare(&output.buffer, &wanted.buffer, is_exact(self.reduction)),
            Ok(Some(made)) => compare(&made, &wanted.read().values, is_exact(self.reduction)),
        };
        compared.unwrap_or_else(|difference| {
            panic!(
                "{} of {}, {:?}, {:?} workers: {difference}\n{:?}\n{:?}",
                self.reduction,
                T::DTYPE,
                call.method,
                request.workers(),
                request.execution,
                self.case,
            )
        });
    }

    /// Makes the call, and compares its route with the route that `explain` reports.
    fn run_on_route(&self, request: Request<'_>, call: Call<'_>) {
        let explained = self.explained_route(request, call);
        self.run(request, call);
        #[cfg(debug_assertions)]
        if let Some(explained) = explained {
            let (case, reduction) = (self.case, self.reduction);
            assert_eq!(
                ndscatter::last_route(),
                Some(explained),
                "{reduction} of {}, {call:?}: {case:?}",
                T::DTYPE,
            );
        }
    }

    /// Returns the explained route of a call, if the call's tensors have the layouts that an
    /// explanation assumes.
    fn explained_route(&self, request: Request<'_>, call: Call<'_>) -> Option<Route> {
        let (is_new, in_place) = (call.method.allocates(), call.method.is_in_place());
        if is_new || self.case.layout != Arrangement::Contiguous {
            return None;
        }
        let options = self.case.options(request);
        let explained = match call.plan {
            Some(plan) => options.explain(plan, T::DTYPE, in_place),
            None if call.method.is_planned() => return None,
            None => {
                let (layout, indices) = (self.rounds[0].0.data.layout(), self.indices.typed());
                (options.scatter()).explain(layout, indices, T::DTYPE, in_place)
            }
        };
        let explained = explained.unwrap_or_else(|error| panic!("{error}: {:?}", self.case));
        Some(explained.route())
    }

    pub(super) fn plan(&self, request: Request<'_>) -> ScatterPlan {
        let layout = self.rounds[0].0.data.layout();
        let plan = self.indices.plan(&self.case.options(request), layout);
        plan.unwrap_or_else(|error| panic!("{error}: {:?}", self.case))
    }

    /// Returns the explained schedule and the number of tasks of a run.
    pub(super) fn explain(
        &self,
        request: Request<'_>,
        plan: &ScatterPlan,
        in_place: bool,
    ) -> (Schedule, usize) {
        let explained = (self.case.options(request)).explain(plan, T::DTYPE, in_place);
        let explained = explained.unwrap_or_else(|error| panic!("{error}: {:?}", self.case));
        (explained.schedule(), explained.tasks())
    }

    /// Returns a method that writes out of place. Results that the crate allocates are at other
    /// addresses.
    fn out_of_place(&self, turn: usize) -> Method {
        if turn.is_multiple_of(2) && self.case.layout == Arrangement::Contiguous {
            Method::Allocate
        } else {
            Method::WriteInto
        }
    }

    /// Returns the checksum of the first expected result. The calls must return this result.
    fn checksum(&self) -> u64 {
        checksum(&self.rounds[0].1.read().values)
    }

    fn check(&self) {
        if self.case.size == Size::Tiny {
            return self.check_tiny();
        }
        self.check_chosen();
        if self.case.size == Size::Huge {
            return self.check_one_shot(None);
        }
        let forced = Schedule::ALL.map(Some).into_iter();
        for schedule in forced.chain([None]) {
            let plan = self.plan(self.request(schedule));
            let divides = match schedule {
                None => true,
                Some(schedule) => self.divides(schedule, &plan),
            };
            if divides {
                self.check_one_shot(schedule);
                self.check_plan(schedule, &plan);
            } else if matches!(self.case.size, Size::Small | Size::Medium) {
                let request = self.request(schedule).pool(rayon_pool(3));
                self.run(request, Method::InPlace);
                self.run(request, Method::WriteInto);
            }
        }
    }

    fn check_tiny(&self) {
        let alone = self.request(None).pool(&CallingThread);
        let sets = InstructionSet::available().iter();
        let mut requests: Vec<_> = sets.map(|&set| alone.instruction_set(set)).collect();
        requests.push(self.request(None).pool(rayon_pool(3)));
        for request in requests {
            for method in Method::ALL
                .into_iter()
                .filter(|method| !method.is_planned())
            {
                self.run_on_route(request, method.into());
            }
        }
    }

    /// Checks that the crate chooses the schedule of the table.
    fn check_chosen(&self) {
        let Some((workers, schedule, tasks)) = self.case.chosen else {
            return;
        };
        let request = self.request(None).pool(rayon_pool(workers));
        let plan = self.plan(request);
        let forms: &[bool] = match self.case.size {
            Size::Huge => &[true, false],
            _ => &[true],
        };
        for &in_place in forms {
            let (reduction, case) = (self.reduction, self.case);
            assert_eq!(
                self.explain(request, &plan, in_place),
                (schedule, tasks),
                "{reduction} of {}: {case:?}",
                T::DTYPE,
            );
        }
    }

    /// Whether a forced schedule runs and has several tasks. Panics if the rules disagree.
    fn divides(&self, schedule: Schedule, plan: &ScatterPlan) -> bool {
        let request = self.request(Some(schedule)).pool(rayon_pool(WORKERS));
        let (used, tasks) = self.explain(request, plan, true);
        if let Some(facts) = self.facts {
            let by_rules = facts.used(self.case, (self.reduction, T::DTYPE), schedule);
            let (reduction, case) = (self.reduction, self.case);
            assert_eq!(
                (used, tasks > 1),
                by_rules,
                "{schedule}, {tasks} tasks: {reduction} of {}, {facts:?}, {case:?}",
                T::DTYPE,
            );
        }
        used == schedule && (tasks > 1 || schedule == Schedule::Serial)
    }

    fn check_one_shot(&self, schedule: Option<Schedule>) {
        let size = self.case.size;
        let sets = InstructionSet::available();
        let request = self.request(schedule);
        if schedule.is_none() || matches!(size, Size::Small | Size::Medium) {
            for (turn, &workers) in size.workers().iter().enumerate() {
                let request = request.pool(rayon_pool(workers));
                for (form, method) in [Method::InPlace, self.out_of_place(turn)]
                    .iter()
                    .enumerate()
                {
                    let set = schedule.map(|_| sets[(turn + form) % sets.len()]);
                    let request = request.instruction_set(set);
                    match schedule {
                        None => self.run_on_route(request, Call::from(*method)),
                        Some(_) => self.run(request, *method),
                    }
                }
            }
        } else {
            for (turn, &set) in sets.iter().enumerate() {
                let request = request.instruction_set(set);
                self.run(request.pool(rayon_pool(3)), Method::InPlace);
                self.run(request.pool(rayon_pool(2)), self.out_of_place(turn));
            }
        }
    }

    /// Runs a plan with several numbers of workers. The plan keeps what a run computes, and later
    /// runs with other numbers use it.
    fn check_plan(&self, schedule: Option<Schedule>, plan: &ScatterPlan) {
        let numbers = self.case.size.workers_of_plans();
        let forth_and_back = numbers.iter().chain(numbers.iter().rev());
        for (turn, &workers) in forth_and_back.enumerate() {
            let out_of_place = match self.out_of_place(turn / 2) {
                Method::Allocate => Method::PlannedAllocate,
                _ => Method::PlannedWriteInto,
            };
            let call = Call {
                method: [Method::PlannedInPlace, out_of_place][turn % 2],
                plan: Some(plan),
                round: turn / 2 % 2,
            };
            let request = self.request(schedule).pool(rayon_pool(workers));
            match schedule {
                None => self.run_on_route(request, call),
                Some(_) => self.run(request, call),
            }
        }
    }
}
