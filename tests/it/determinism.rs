//! The same bits for every number of workers and every schedule: workloads
//! large enough to be split, whose results depend on the order of updates.

use crate::common::elements::{Palette, Ref};
use crate::common::harness::{Indices, Operator, Options, Problem, Round, Verb};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::pools::{Workers, rayon_pool};
use crate::common::random::Random;
use crate::common::request::Request;
use crate::common::{Tensor, elements};
use ndscatter::{Rayon, Reduction, Schedule};

struct Workload {
    operator: Operator,
    data: &'static [usize],
    indices: &'static [usize],
    /// Many updates of few destinations, else all destinations alike.
    skewed: bool,
}

/// Rows of 256 bytes to many destinations: messages of a graph.
const ROWS: Workload = Workload {
    operator: Operator::Nd,
    data: &[1500, 64],
    indices: &[4000, 1],
    skewed: true,
};

/// Single elements: a histogram.
const ELEMENTS: Workload = Workload {
    operator: Operator::Nd,
    data: &[40, 50, 30],
    indices: &[150_000, 3],
    skewed: true,
};

/// Wide rows, almost all of them to one destination.
const WIDE: Workload = Workload {
    operator: Operator::Nd,
    data: &[20, 5000],
    indices: &[60, 1],
    skewed: true,
};

/// Batches before the axis.
const AXIS: Workload = Workload {
    operator: Operator::Update { axis: 1 },
    data: &[24, 100, 40],
    indices: &[15, 20],
    skewed: false,
};

/// An index for every element, some columns of data left out.
const LANES: Workload = Workload {
    operator: Operator::Elements { axis: 0 },
    data: &[300, 150],
    indices: &[900, 140],
    skewed: true,
};

impl Workload {
    fn indices(&self) -> Strided<i32> {
        let mut random = Random::new(5);
        let axes = self.operator.axes(self.data, self.indices);
        let tuples = self.operator.tuples(self.indices);
        let values = (0..tuples).flat_map(|_| &axes).map(|&(_, size)| {
            let index = if self.skewed {
                random.zipf(size)
            } else {
                random.below(size)
            };
            i32::try_from(index).expect("sizes are small")
        });
        let values = values.collect();
        Strided::new(
            &Tensor::new(self.indices, values),
            Arrangement::Contiguous,
            0,
            0,
        )
    }

    /// Runs every schedule with every kind of pool.
    fn check<T: Ref>(&self, reduction: Reduction, palette: Palette) {
        let mut random = Random::new(6);
        let mut sample = |shape: &[usize]| {
            let tensor = Tensor::generate(shape, || T::sample(palette, &mut random));
            Strided::new(&tensor, Arrangement::Contiguous, 0, T::sentinel())
        };
        let data = sample(self.data);
        let updates = sample(&self.operator.updates_shape(self.data, self.indices));
        let indices = self.indices();
        let expected = self.operator.expected(
            reduction,
            &data.read(),
            &Indices::<T>::logical(&indices),
            &updates.read(),
        );
        let forced = Schedule::ALL.iter().copied().map(Some);
        for schedule in forced.chain([None]) {
            for workers in 1..=8 {
                let execution = Request::new(reduction).pool(rayon_pool(workers));
                let execution = schedule.map_or(execution, |schedule| execution.schedule(schedule));
                let options = Options::new(self.operator, execution);
                let got = indices.allocate(&options, data.view(), updates.view());
                let mut in_place = data.clone();
                let done = indices.in_place(&options, in_place.view_mut(), updates.view());
                let what = format!("{reduction} {} {schedule:?} {workers} workers", T::DTYPE);
                done.unwrap_or_else(|error| panic!("{what}: {error}"));
                let got = got.unwrap_or_else(|error| panic!("{what}: {error}"));
                let exact = elements::is_exact(reduction);
                for (result, verb) in [(got, "allocated"), (in_place.buffer, "in place")] {
                    elements::compare(&result, &expected.values, exact)
                        .unwrap_or_else(|difference| panic!("{what}, {verb}: {difference}"));
                }
            }
        }
    }
}

impl Workload {
    /// Runs schedules that copy in different ways on two workers, with a
    /// margin around the output.
    fn check_placed<T: Ref>(&self, reduction: Reduction, output: Arrangement, verb: Verb) {
        let mut random = Random::new(9);
        let mut sample = |shape: &[usize]| {
            let tensor = Tensor::generate(shape, || T::sample(Palette::Wild, &mut random));
            Strided::new(&tensor, Arrangement::Contiguous, 1, T::sentinel())
        };
        let data = sample(self.data);
        let updates = sample(&self.operator.updates_shape(self.data, self.indices));
        let indices = self.indices();
        let problem = Problem {
            operator: self.operator,
            reduction,
            indices: &indices,
            rounds: vec![Round { data, updates }],
            output,
            margin: 3,
        };
        for schedule in [None, Some(Schedule::LastWrite), Some(Schedule::ByPartition)] {
            let execution = Request::new(reduction).pool(rayon_pool(2));
            let execution = schedule.map_or(execution, |schedule| execution.schedule(schedule));
            let options = Options::new(self.operator, execution);
            problem.check(verb, &options).unwrap_or_else(|difference| {
                panic!("{reduction} {schedule:?} {output:?}: {difference}")
            });
        }
    }
}

#[test]
fn sums_of_rows() {
    ROWS.check::<f32>(Reduction::Add, Palette::Ordinary);
    ROWS.check::<f64>(Reduction::Sub, Palette::Ordinary);
}

#[test]
fn sums_of_elements() {
    ELEMENTS.check::<f32>(Reduction::Add, Palette::Ordinary);
}

#[test]
fn last_writes_of_elements() {
    ELEMENTS.check::<f64>(Reduction::None, Palette::Wild);
    ELEMENTS.check::<u8>(Reduction::None, Palette::Wild);
}

#[test]
fn last_writes_of_rows() {
    ROWS.check::<f32>(Reduction::None, Palette::Wild);
    AXIS.check::<i16>(Reduction::None, Palette::Wild);
}

#[test]
fn extremes_with_nan_and_zeros() {
    ROWS.check::<f32>(Reduction::Max, Palette::Wild);
    ELEMENTS.check::<f64>(Reduction::Min, Palette::Wild);
}

#[test]
fn wide_rows_to_few_destinations() {
    WIDE.check::<f32>(Reduction::Add, Palette::Ordinary);
    WIDE.check::<i64>(Reduction::Mul, Palette::Wild);
}

#[test]
fn sums_along_an_axis() {
    AXIS.check::<f32>(Reduction::Add, Palette::Ordinary);
    AXIS.check::<bool>(Reduction::Sub, Palette::Wild);
}

#[test]
fn sums_of_lanes() {
    LANES.check::<f32>(Reduction::Add, Palette::Ordinary);
    LANES.check::<u16>(Reduction::None, Palette::Wild);
}

#[test]
fn means_of_rows_and_elements() {
    ROWS.check::<f32>(Reduction::Mean, Palette::Ordinary);
    ELEMENTS.check::<i16>(Reduction::Mean, Palette::Wild);
    AXIS.check::<f64>(Reduction::Mean, Palette::Wild);
    LANES.check::<f32>(Reduction::Mean, Palette::Ordinary);
}

/// Reductions that may be taken in parts.
#[test]
fn histograms() {
    let few = Workload {
        data: &[10, 20],
        indices: &[150_000, 2],
        ..ELEMENTS
    };
    few.check::<i32>(Reduction::Add, Palette::Wild);
    few.check::<u8>(Reduction::Mul, Palette::Wild);
    few.check::<f32>(Reduction::Max, Palette::Wild);
    few.check::<bool>(Reduction::Sub, Palette::Wild);
    WIDE.check::<i16>(Reduction::Sub, Palette::Wild);
}

/// Outputs of more than 8 MiB may be written past the caches, in whole lines:
/// rows that begin and end within one, at an address that does, must not lose
/// or gain a byte.
#[test]
fn outputs_larger_than_caches() {
    let some_rows = Workload {
        data: &[1100, 1001],
        indices: &[300, 1],
        ..ROWS
    };
    let none = Workload {
        indices: &[0, 1],
        ..some_rows
    };
    for (arrangement, verb) in [
        (Arrangement::Contiguous, Verb::Allocate),
        (Arrangement::Contiguous, Verb::WriteInto),
        (Arrangement::Padded, Verb::WriteInto),
        (Arrangement::Reversed, Verb::WriteInto),
    ] {
        none.check_placed::<i64>(Reduction::None, arrangement, verb);
        some_rows.check_placed::<i64>(Reduction::None, arrangement, verb);
        some_rows.check_placed::<i64>(Reduction::Add, arrangement, verb);
    }
    // In place, what is written is as large.
    let most_rows = Workload {
        data: &[1200, 1001],
        indices: &[3000, 1],
        skewed: false,
        ..ROWS
    };
    most_rows.check_placed::<i64>(Reduction::None, Arrangement::Padded, Verb::InPlace);
}

#[cfg(feature = "half")]
#[test]
fn sums_that_round_at_every_update() {
    ROWS.check::<half::bf16>(Reduction::Add, Palette::Ordinary);
    ELEMENTS.check::<half::f16>(Reduction::Add, Palette::Ordinary);
}

#[cfg(feature = "num-complex")]
#[test]
fn products_of_complex_numbers() {
    ROWS.check::<num_complex::Complex<f32>>(Reduction::Mul, Palette::Ordinary);
}

/// The workloads can fail: the same updates in reverse have other sums.
#[test]
fn the_order_of_updates_shows_in_the_bits() {
    for workload in [ROWS, ELEMENTS, WIDE, LANES] {
        let mut random = Random::new(6);
        let mut sample = |shape: &[usize]| {
            Tensor::generate(shape, || f32::sample(Palette::Ordinary, &mut random))
        };
        let data = sample(workload.data);
        let updates = sample(
            &workload
                .operator
                .updates_shape(workload.data, workload.indices),
        );
        let indices = Indices::<f32>::logical(&workload.indices());
        let sums = |indices: &Tensor<i128>, updates: &Tensor<f32>| {
            let operator = workload.operator;
            operator
                .expected(Reduction::Add, &data, indices, updates)
                .values
        };
        let forwards = sums(&indices, &updates);
        let backwards = sums(&reversed(&indices), &reversed(&updates));
        let differs = elements::compare(&forwards, &backwards, true).is_err();
        assert!(differs, "{:?} does not depend on the order", workload.data);
    }
}

/// The rows of the first dimension, last one first.
fn reversed<T: Copy>(tensor: &Tensor<T>) -> Tensor<T> {
    let row = tensor.values.len() / tensor.shape[0];
    let rows = tensor.values.rchunks(row);
    Tensor::new(&tensor.shape, rows.flatten().copied().collect())
}

/// Entered, given, unknown, a thread a task: who runs the tasks changes nothing.
#[test]
fn every_kind_of_pool() {
    let mut random = Random::new(7);
    let mut sample = |shape: &[usize]| {
        let tensor = Tensor::generate(shape, || f32::sample(Palette::Ordinary, &mut random));
        Strided::new(&tensor, Arrangement::Contiguous, 0, f32::sentinel())
    };
    let workload = ROWS;
    let data = sample(workload.data);
    let updates = sample(
        &workload
            .operator
            .updates_shape(workload.data, workload.indices),
    );
    let indices = workload.indices();
    let problem = Problem {
        operator: workload.operator,
        reduction: Reduction::Add,
        indices: &indices,
        rounds: vec![Round { data, updates }],
        output: Arrangement::Contiguous,
        margin: 0,
    };
    for workers in Workers::ALL {
        for verb in Verb::ALL {
            workers.with(|pool| {
                let execution = Request::new(Reduction::Add).pool(pool);
                let options = Options::new(workload.operator, execution);
                problem
                    .check(verb, &options)
                    .unwrap_or_else(|difference| panic!("{workers:?}: {difference}"));
            });
        }
    }
    // `max_workers` bounds what a pool of eight is asked for.
    for most in [1, 2, 5, 100] {
        rayon_pool(8).install(|| {
            let execution = Request::new(Reduction::Add).pool(&Rayon).max_workers(most);
            let options = Options::new(workload.operator, execution);
            problem
                .check(Verb::InPlace, &options)
                .unwrap_or_else(|difference| panic!("at most {most}: {difference}"));
        });
    }
}
