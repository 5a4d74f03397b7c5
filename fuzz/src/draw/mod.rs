//! Draws the parts of a case from the bytes of the fuzzer: shapes, indices and executions.

#![allow(
    dead_code,
    reason = "each fuzz target uses its own part of this module"
)]

pub(crate) mod gathers;
pub(crate) mod scatters;

use ndscatter::{Goal, InstructionSet, Pool, Schedule};

use crate::common::Tensor;
use crate::common::api::{DType, Method};
use crate::common::cases::Limit;
use crate::common::destinations::{Destinations, range};
use crate::common::layouts::Arrangement;
use crate::common::pools::Workers;
use crate::common::random::Random;

/// Sizes of the tensors of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Small,
    /// The list of tuples is long enough that schedules divide it among workers.
    Long,
}

impl Size {
    pub(crate) fn draw(random: &mut Random) -> Self {
        // Any byte except 0, which is frequent.
        match random.below(256) {
            77 => Self::Long,
            _ => Self::Small,
        }
    }

    /// Returns the largest number of elements of a tensor that the list of tuples sizes.
    pub(crate) fn limit(self) -> Limit {
        match self {
            Self::Small => Limit(400),
            // Miri needs minutes for a long list.
            Self::Long => Limit(if cfg!(miri) { 1000 } else { 40_000 }),
        }
    }
}

/// Draws a shape of data: any rank with small sizes, or windows of several vectors.
pub(crate) fn draw_shape(random: &mut Random) -> Vec<usize> {
    let sizes = |count: usize, below: usize, random: &mut Random| {
        (0..count).map(|_| random.below(below)).collect::<Vec<_>>()
    };
    match random.below(8) {
        0..4 => sizes(random.below(5), 6, random),
        4..6 => [sizes(1, 9, random), sizes(1, 131, random)].concat(),
        6 => sizes(1, 400, random),
        _ => [sizes(2, 5, random), sizes(1, 40, random)].concat(),
    }
}

/// Draws a shape of tuples.
pub(crate) fn draw_tuples(size: Size, random: &mut Random) -> Vec<usize> {
    match random.below(4) {
        _ if size == Size::Long => vec![random.below(40_000)],
        0 => vec![],
        1 => vec![random.below(9), random.below(9)],
        2 => vec![random.below(3), random.below(3), random.below(3)],
        _ => vec![random.below(200)],
    }
}

/// Draws a value of `all`. Half of the values are `plain`, because some paths need several plain
/// choices together.
pub(crate) fn plain_or<T: Copy>(plain: T, all: &[T], random: &mut Random) -> T {
    match random.one_in(2) {
        true => plain,
        false => random.pick(all),
    }
}

pub(crate) fn draw_layout(all: &[Arrangement], random: &mut Random) -> Arrangement {
    plain_or(Arrangement::Contiguous, all, random)
}

impl Method {
    /// Draws one of `methods` that runs a plan.
    pub(crate) fn draw_planned(
        methods: impl IntoIterator<Item = Self>,
        random: &mut Random,
    ) -> Self {
        let planned = methods.into_iter().filter(|method| method.is_planned());
        random.pick(&planned.collect::<Vec<_>>())
    }
}

/// How a call runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) workers: Workers,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) set: Option<InstructionSet>,
    pub(crate) max_workers: Option<usize>,
    pub(crate) goal: Option<Goal>,
}

impl Run {
    pub(crate) fn draw(random: &mut Random) -> Self {
        // Threads make the target slow, so they are a rare choice.
        let workers = match random.below(32) {
            31 => random.pick(&Workers::ALL),
            30 => Workers::CallingThread,
            29 => Workers::Sequential,
            number => Workers::InOrder(1 + number % 8),
        };
        Self {
            workers,
            schedule: plain_or(None, &Schedule::ALL.map(Some), random),
            set: random
                .one_in(2)
                .then(|| random.pick(InstructionSet::available())),
            max_workers: random.one_in(4).then(|| 1 + random.below(4)),
            goal: plain_or(None, &[Some(Goal::Latency), Some(Goal::Throughput)], random),
        }
    }

    pub(crate) fn execution(self, pool: &dyn Pool) -> ndscatter::Execution<'_> {
        let mut execution = ndscatter::Execution::new().pool(pool);
        if let Some(workers) = self.max_workers {
            execution = execution.max_workers(workers);
        }
        if let Some(goal) = self.goal {
            execution = execution.goal(goal);
        }
        if let Some(schedule) = self.schedule {
            execution = execution.force_schedule(schedule);
        }
        match self.set {
            Some(set) => execution.force_instruction_set(set),
            None => execution,
        }
    }
}

/// Which indices a list has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// Indices inside the axis, counted from the front.
    Front,
    /// Indices inside the axis, counted from either end.
    Both,
    /// Also indices near the ends of the axis.
    Near,
    /// Any value of the type.
    Any,
    /// Destinations of a list that a schedule may divide, counted from the front.
    Listed(Destinations),
}

impl Reach {
    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.below(8) {
            0..2 => Self::Front,
            2..4 => Self::Both,
            4 => Self::Near,
            5 => Self::Any,
            _ => Self::Listed(random.pick(&Destinations::DRAWN)),
        }
    }

    /// Draws the indices of tuples whose coordinates address axes of these sizes. An index is one
    /// byte of the fuzzer, if the axis is short.
    pub(crate) fn indices(
        self,
        index: DType,
        sizes: &[usize],
        shape: &[usize],
        random: &mut Random,
    ) -> Tensor<i128> {
        let count = shape.iter().product::<usize>();
        let all: usize = sizes.iter().product();
        let values = match self {
            Self::Listed(destinations) if all > 0 && count > 0 => {
                let tuples = destinations.draw(count / sizes.len(), all, random);
                let split = |number| split(number, sizes);
                tuples.into_iter().flat_map(split).collect()
            }
            _ => {
                let sizes = sizes.iter().cycle().take(count);
                sizes.map(|&size| self.index(index, size, random)).collect()
            }
        };
        let (low, high) = range(index);
        // Values outside of the type occur on long axes.
        let stored = |value: i128| match (low..=high).contains(&value) {
            true => value,
            false => value.rem_euclid(100),
        };
        Tensor::new(shape, Vec::into_iter(values).map(stored).collect())
    }

    fn index(self, index: DType, size: usize, random: &mut Random) -> i128 {
        let size = i128::try_from(size).expect("a small size");
        match self {
            Self::Any if random.one_in(2) => {
                let (low, high) = range(index);
                let any = random.clone().between(low, high);
                random.pick(&[low, high, size, -size, -1, any])
            }
            Self::Both if size > 0 => random.between(-size, size - 1),
            Self::Near | Self::Any => random.between(-size - 2, size + 1),
            _ => random.between(0, size.max(1) - 1),
        }
    }
}

/// Returns the coordinates of the element at a row-major position.
fn split(mut position: usize, sizes: &[usize]) -> Vec<i128> {
    let mut coordinates: Vec<i128> = (sizes.iter().rev())
        .map(|&size| {
            let coordinate = position % size;
            position /= size;
            i128::try_from(coordinate).expect("a small size")
        })
        .collect();
    coordinates.reverse();
    coordinates
}
