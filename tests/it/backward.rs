//! Gradients of scatters, compared bit for bit with their definitions. The cases cover every
//! layout, method, schedule and number of workers.

use ndscatter::{InstructionSet, Reduction, Schedule};

mod cases;

use crate::common::api::{Indices, Options, Request};
use crate::common::elements::Palette;
use crate::common::gradients::Graded;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::{Gatherer, Operator};
use crate::common::pools::{Sequential, Workers};
use crate::common::random::Random;
use crate::common::scatter_gradients::{Problem, check};
use crate::common::small::{
    draw_rule, draw_tuples, each_cache, each_gather, each_gather_elements, each_gather_nd, shapes,
};
use crate::pick_graded;

fn check_small<T: Graded>(
    operator: Operator,
    data: &[usize],
    indices: &Strided<i64>,
    random: &mut Random,
) {
    let indices: &dyn Indices = indices;
    let is_cache = matches!(operator, Operator::Cache { .. });
    let reductions = T::REDUCTIONS;
    let reduction = if is_cache {
        Reduction::None
    } else {
        random.pick(reductions)
    };
    let set = random.pick(InstructionSet::available());
    let mut request = Request::new(reduction)
        .pool(&Sequential)
        .instruction_set(set);
    if random.one_in(2) {
        request = request.schedule(random.pick(&Schedule::ALL));
    }
    let mut options = Options::new(operator, request);
    if !is_cache {
        let rule = draw_rule(random);
        (options.negative_indices, options.bounds) = (rule.negative, rule.bounds);
        options.include_self = !random.one_in(3);
    }
    check::<T>(&options, data, indices, random);
}

/// Checks a random type that has gradients.
fn check_of_any_type(
    operator: Operator,
    data: &[usize],
    indices: &Strided<i64>,
    random: &mut Random,
) {
    let check = pick_graded!(random, check_small);
    check(operator, data, indices, random);
}

/// Returns the scatter that writes where the gather reads. `None`: there is no such scatter.
fn inverse(gatherer: Gatherer) -> Option<Operator> {
    match gatherer {
        Gatherer::Nd { batch_dims: 0 } => Some(Operator::Nd),
        Gatherer::Nd { .. } => None,
        Gatherer::Along { axis } => Some(Operator::Update { axis }),
        Gatherer::Elements { axis } => Some(Operator::Elements { axis }),
        Gatherer::Paged => Some(Operator::Paged),
    }
}

fn check_inverse(gatherer: Gatherer, data: &[usize], indices: &Strided<i64>, random: &mut Random) {
    if let Some(operator) = inverse(gatherer) {
        check_of_any_type(operator, data, indices, random);
    }
}

#[test]
fn of_every_small_scatter_nd() {
    for seed in 41..44 {
        each_gather_nd(3, &mut Random::new(seed), &check_inverse);
    }
}

#[test]
fn of_every_small_scatter_update() {
    for seed in 44..47 {
        each_gather(3, &mut Random::new(seed), &check_inverse);
    }
}

#[test]
fn of_every_small_scatter_elements() {
    for seed in 47..49 {
        each_gather_elements(3, &mut Random::new(seed), &check_inverse);
    }
}

#[test]
fn of_every_small_cache() {
    let mut random = Random::new(49);
    for data in shapes(2..=3, 4) {
        each_cache(&data, &mut random, &check_of_any_type);
    }
}

/// Checks tensors that are large enough to be divided: by several schedules and every pool, with 1
/// to 8 workers.
fn check_large<T: Graded>(
    operator: Operator,
    reduction: Reduction,
    shapes: (&[usize], &[usize]),
    random: &mut Random,
) {
    let schedules = [None, Some(Schedule::Grouped), Some(Schedule::ByTuple)];
    check_by::<T>(&schedules, operator, reduction, shapes, random);
}

fn check_by<T: Graded>(
    schedules: &[Option<Schedule>],
    operator: Operator,
    reduction: Reduction,
    (data, indices): (&[usize], &[usize]),
    random: &mut Random,
) {
    let indices = draw_tuples(&operator.axes(data, indices), indices, false, random);
    let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
    let indices: &dyn Indices = &indices;
    for (include_self, scale) in [(true, -0.3), (false, 1.0)] {
        let mut options = Options::new(operator, reduction);
        options.include_self = include_self;
        let values = (Palette::Ordinary, scale);
        let problem = Problem::<T>::new(&options, data, indices, values, random);
        for workers in Workers::ALL {
            workers.with(|pool| {
                for &forced in schedules {
                    let request = Request::new(reduction).pool(pool).schedule(forced);
                    problem.check(&Options {
                        execution: request,
                        ..options
                    });
                }
            });
        }
    }
}

#[test]
fn of_rows_by_every_number_of_workers() {
    let mut random = Random::new(51);
    let rows = (&[90, 24][..], &[700, 1][..]);
    for reduction in Reduction::ALL {
        check_large::<f32>(Operator::Nd, reduction, rows, &mut random);
    }
    let batches = (&[5, 20, 9][..], &[60][..]);
    let axis = Operator::Update { axis: 1 };
    for reduction in [Reduction::None, Reduction::Mul, Reduction::Max] {
        check_large::<f64>(axis, reduction, batches, &mut random);
    }
    #[cfg(feature = "half")]
    for reduction in [Reduction::Mul, Reduction::Mean, Reduction::Min] {
        check_large::<half::bf16>(Operator::Nd, reduction, rows, &mut random);
    }
    #[cfg(feature = "complex")]
    for reduction in [Reduction::Mul, Reduction::Mean, Reduction::Sub] {
        let shapes = (&[30, 20, 5][..], &[500, 2][..]);
        check_large::<num_complex::Complex<f32>>(Operator::Nd, reduction, shapes, &mut random);
    }
}

/// Checks copies, scatters of zeros, gathers and groups by each schedule.
#[test]
fn by_every_schedule() {
    let mut random = Random::new(55);
    let schedules = Schedule::ALL.map(Some);
    let rows = (&[4, 60, 20][..], &[300][..]);
    let operator = Operator::Update { axis: 1 };
    for reduction in [Reduction::None, Reduction::Sub, Reduction::Max] {
        check_by::<f32>(&schedules, operator, reduction, rows, &mut random);
    }
    let elements = (&[2000][..], &[900, 1][..]);
    check_by::<f64>(
        &schedules,
        Operator::Nd,
        Reduction::None,
        elements,
        &mut random,
    );
}

#[test]
fn of_single_elements_by_every_number_of_workers() {
    let mut random = Random::new(52);
    for reduction in Reduction::ALL {
        let elements = (&[500][..], &[2000, 1][..]);
        check_large::<f32>(Operator::Nd, reduction, elements, &mut random);
        let axis = Operator::Elements { axis: 0 };
        check_large::<f64>(axis, reduction, (&[60, 9], &[90, 9]), &mut random);
    }
}

/// Wide windows, which are divided by column, and long groups, whose products are computed in
/// levels.
#[test]
fn of_few_destinations() {
    let mut random = Random::new(53);
    for reduction in [Reduction::Mul, Reduction::Max, Reduction::None] {
        check_large::<f32>(Operator::Nd, reduction, (&[2, 3000], &[5, 1]), &mut random);
        check_large::<f64>(Operator::Nd, reduction, (&[2, 3], &[2500, 1]), &mut random);
    }
}
