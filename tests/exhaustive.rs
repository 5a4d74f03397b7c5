//! Everything small: all shapes of rank 0 to 4 with sizes 0 to 3, and every
//! length of a window around every width of a vector.

mod common;

use std::collections::BTreeSet;

use common::elements::{Palette, Ref, compare, element_types, is_exact};
use common::harness::{Indices, Operator, Options, Problem, Round, Verb};
use common::layouts::{Arrangement, Strided};
use common::pools::Sequential;
use common::random::Random;
use common::{Refusals, Tensor, ndindex};
use ndscatter::{
    Duplicates, ElementType, Execution, InstructionSet, Reduction, ScatterError, ScatterUpdate,
    Schedule, TensorView, TensorViewMut,
};

/// Every shape of these ranks whose sizes are below `bound`.
fn shapes(ranks: impl Iterator<Item = usize>, bound: usize) -> Vec<Vec<usize>> {
    ranks
        .flat_map(|rank| ndindex(&vec![bound; rank]).collect::<Vec<_>>())
        .collect()
}

/// Shapes of the tuples: rank 0 to 2, sizes 0 to 2.
fn tuple_shapes() -> Vec<Vec<usize>> {
    shapes(0..=2, 3)
}

/// In bounds, from both ends, wherever the axis has an element at all.
fn draw_indices(
    operator: Operator,
    data: &[usize],
    shape: &[usize],
    random: &mut Random,
) -> Tensor<i64> {
    let axes = operator.axes(data, shape);
    let values = (0..operator.tuples(shape))
        .flat_map(|_| &axes)
        .map(|&(_, size)| {
            let size = i128::try_from(size).expect("small");
            let index = if size == 0 {
                0
            } else {
                random.between(-size, size - 1)
            };
            i64::try_from(index).expect("small")
        });
    let values = values.collect();
    Tensor::new(shape, values)
}

fn place<T: Ref>(tensor: &Tensor<T>) -> Strided<T> {
    Strided::new(tensor, Arrangement::Contiguous, 1, T::sentinel())
}

/// No schedule forced, or one of all.
fn pick_schedule(random: &mut Random) -> Option<Schedule> {
    let number = random.below(Schedule::ALL.len() + 1);
    Schedule::ALL.get(number).copied()
}

/// One small scatter with every reduction: the reference's result, or the
/// reference's refusal. The schedule is drawn.
fn check_small(
    operator: Operator,
    data_shape: &[usize],
    indices_shape: &[usize],
    random: &mut Random,
) {
    let indices = draw_indices(operator, data_shape, indices_shape, random);
    let indices = Strided::new(&indices, Arrangement::Contiguous, 1, 77);
    let mut sample = || i32::sample(Palette::Wild, random);
    let data = Tensor::generate(data_shape, &mut sample);
    let updates_shape = operator.updates_shape(data_shape, indices_shape);
    let updates = Tensor::generate(&updates_shape, &mut sample);

    let mut problem = Problem {
        operator,
        reduction: Reduction::None,
        indices: &indices,
        rounds: vec![Round {
            data: place(&data),
            updates: place(&updates),
        }],
        output: Arrangement::Contiguous,
        margin: 1,
    };
    let logical = problem.indices.logical();
    for reduction in Reduction::ALL {
        problem.reduction = reduction;
        let execution = Execution::new(reduction).pool(&Sequential);
        let schedule = pick_schedule(random);
        let execution = schedule.map_or(execution, |schedule| execution.schedule(schedule));
        let mut options = Options::new(operator, execution);
        for duplicates in [Duplicates::Allow, Duplicates::Reject] {
            options.duplicates = duplicates;
            let refusals = Refusals {
                negative_indices: true,
                reject_duplicates: duplicates == Duplicates::Reject,
            };
            let what = format!(
                "{operator:?} {reduction} {schedule:?} data {data_shape:?} indices {logical:?}"
            );
            match operator.refusal(refusals, data_shape, &logical) {
                Some(error) => check_refused(&problem, &options, &error, &what),
                None => [Verb::InPlace, Verb::Allocate, Verb::PlannedWriteInto]
                    .iter()
                    .try_for_each(|&verb| problem.check(verb, &options))
                    .unwrap_or_else(|difference| panic!("{what}: {difference}")),
            }
        }
    }
}

fn check_refused(
    problem: &Problem<'_, i32>,
    options: &Options<'_>,
    expected: &ScatterError,
    what: &str,
) {
    let round = &problem.rounds[0];
    let mut output = round.data.clone();
    let updates = round.updates.view();
    let got = problem
        .indices
        .in_place(options, output.view_mut(), updates);
    assert_eq!(got.as_ref(), Err(expected), "{what}, in place");
    assert_eq!(
        output.buffer, round.data.buffer,
        "{what}: written before it was refused"
    );
    let got = problem
        .indices
        .allocate(options, round.data.view(), updates);
    assert_eq!(got.as_ref(), Err(expected), "{what}, allocated");
    let got = problem.indices.plan(options, round.data.layout());
    assert_eq!(got.err().as_ref(), Some(expected), "{what}, planned");
}

#[test]
fn scatter_nd_of_every_small_shape() {
    let mut random = Random::new(1);
    for data in shapes(0..=4, 4) {
        for k in 0..=data.len() {
            for tuples in tuple_shapes() {
                let indices = [&tuples[..], &[k]].concat();
                check_small(Operator::Nd, &data, &indices, &mut random);
            }
        }
    }
}

#[test]
fn scatter_update_of_every_small_shape() {
    let mut random = Random::new(2);
    for data in shapes(1..=4, 4) {
        let rank = data.len().cast_signed();
        for axis in -rank..rank {
            for indices in tuple_shapes() {
                check_small(Operator::Update { axis }, &data, &indices, &mut random);
            }
        }
    }
}

/// Tensors and windows without elements, addressed by more tuples than small
/// calls have: there is nothing to share out, whatever the schedule.
#[test]
fn every_schedule_on_nothing() {
    let along = |axis| Operator::Update { axis };
    let cases: [(Operator, &[usize], &[usize]); 9] = [
        // Operator, data, indices. The whole tensor is empty, or one element.
        (Operator::Nd, &[0], &[100, 0]),
        (Operator::Nd, &[3, 0, 2], &[10, 10, 0]),
        (Operator::Nd, &[], &[100, 0]),
        // Empty windows.
        (Operator::Nd, &[3, 0], &[100, 1]),
        (Operator::Nd, &[3, 4, 0, 2], &[700, 2]),
        (along(1), &[2, 3, 0], &[100]),
        // Empty batches.
        (along(2), &[2, 0, 5], &[30, 20]),
        // No tuples.
        (Operator::Nd, &[40, 5], &[100, 0, 1]),
        (along(0), &[40, 5], &[0]),
    ];
    for (operator, data_shape, indices_shape) in cases {
        let mut random = Random::new(5);
        let indices = draw_indices(operator, data_shape, indices_shape, &mut random);
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        let mut sample = || i32::sample(Palette::Wild, &mut random);
        let data = Tensor::generate(data_shape, &mut sample);
        let updates_shape = operator.updates_shape(data_shape, indices_shape);
        let updates = Tensor::generate(&updates_shape, &mut sample);
        for reduction in [Reduction::None, Reduction::Add] {
            let problem = Problem {
                operator,
                reduction,
                indices: &indices,
                rounds: vec![Round {
                    data: place(&data),
                    updates: place(&updates),
                }],
                output: Arrangement::Spelled,
                margin: 1,
            };
            for schedule in Schedule::ALL {
                for verb in Verb::ALL {
                    let execution = Execution::new(reduction).pool(&Sequential);
                    let options = Options::new(operator, execution.schedule(schedule));
                    problem.check(verb, &options).unwrap_or_else(|difference| {
                        panic!("{operator:?} {data_shape:?} {schedule}: {difference}")
                    });
                    let plan = problem.plan(verb, &options).expect("the case is valid");
                    plan.explain(ElementType::I32, options.execution, verb.is_in_place())
                        .expect("i32 has every reduction");
                }
            }
        }
    }
}

#[test]
fn axes_outside_the_rank_are_refused() {
    for shape in shapes(0..=4, 2) {
        let rank = shape.len();
        for axis in [
            rank.cast_signed(),
            -rank.cast_signed() - 1,
            isize::MAX,
            isize::MIN,
        ] {
            let mut data = vec![0_i32; shape.iter().product()];
            let refused = ScatterUpdate::new(axis).in_place(
                TensorViewMut::contiguous(&mut data, &shape).expect("data"),
                TensorView::contiguous(&[0_i64], &[]).expect("one index"),
                TensorView::contiguous(&[0_i32], &[]).expect("one update"),
            );
            assert_eq!(
                refused,
                Err(ScatterError::AxisOutOfRange { axis, rank }),
                "{shape:?}"
            );
        }
    }
}

/// 0, 1, and L - 1, L, L + 1, 2L + 3 for every number of lanes L that a vector
/// of 16 to 64 bytes has.
fn lengths() -> BTreeSet<usize> {
    let around = [2, 4, 8, 16, 32, 64]
        .into_iter()
        .flat_map(|l| [l - 1, l, l + 1, 2 * l + 3]);
    around.chain([0, 1]).collect()
}

/// `tuples` windows of `len` elements, some of them the same, so that a
/// result depends on the order as well.
struct Windows<T> {
    data: Tensor<T>,
    updates: Tensor<T>,
    indices: Strided<i32>,
}

impl<T: Ref> Windows<T> {
    const ROWS: usize = 3;

    fn new(tuples: usize, len: usize, palette: Palette, random: &mut Random) -> Self {
        let mut sample = |shape: &[usize]| Tensor::generate(shape, || T::sample(palette, random));
        let data = sample(&[Self::ROWS, len]);
        let updates = sample(&[tuples, len]);
        let rows = [2, 0, 2, -1, 0];
        let indices = Tensor::new(
            &[tuples, 1],
            rows.into_iter().cycle().take(tuples).collect(),
        );
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        Self {
            data,
            updates,
            indices,
        }
    }

    /// `margin` shifts the addresses, so that runs start anywhere in a vector.
    fn check(
        &self,
        reduction: Reduction,
        set: InstructionSet,
        arrangement: Arrangement,
        margin: usize,
    ) -> Result<(), String> {
        let place = |tensor, margin| Strided::new(tensor, arrangement, margin, T::sentinel());
        let problem = Problem {
            operator: Operator::Nd,
            reduction,
            indices: &self.indices,
            rounds: vec![Round {
                data: place(&self.data, 0),
                updates: place(&self.updates, 2 * margin),
            }],
            output: arrangement,
            margin,
        };
        let free = Execution::new(reduction).instruction_set(set);
        // Small calls may take a way of their own where none is forced.
        for execution in [free, free.schedule(Schedule::Serial)] {
            let options = Options::new(Operator::Nd, execution);
            problem.check(Verb::InPlace, &options)?;
            problem.check(Verb::WriteInto, &options)?;
        }
        Ok(())
    }
}

fn check_windows<T: Ref>() {
    let mut random = Random::new(3);
    for (number, len) in lengths().into_iter().enumerate() {
        for palette in Palette::ALL {
            let windows = Windows::<T>::new(4, len, palette, &mut random);
            for &reduction in T::REDUCTIONS {
                for &set in InstructionSet::available() {
                    for arrangement in [
                        Arrangement::Contiguous,
                        Arrangement::Stepped,
                        Arrangement::Reversed,
                    ] {
                        windows
                            .check(reduction, set, arrangement, number % 4)
                            .unwrap_or_else(|difference| {
                                panic!(
                                    "{set} {} {reduction} {len} {arrangement:?}: {difference}",
                                    T::TYPE
                                )
                            });
                    }
                }
            }
        }
    }
}

/// Windows of one element have loops of their own; here their number varies.
fn check_single_elements<T: Ref>() {
    let mut random = Random::new(4);
    // Some hundreds of tuples may be kept in another place than thousands.
    for tuples in lengths()
        .into_iter()
        .chain([255, 256, 257, 511, 512, 513, 1100])
    {
        for palette in Palette::ALL {
            let windows = Windows::<T>::new(tuples, 1, palette, &mut random);
            for &reduction in T::REDUCTIONS {
                for &set in InstructionSet::available() {
                    windows
                        .check(reduction, set, Arrangement::Contiguous, 1)
                        .unwrap_or_else(|difference| {
                            panic!(
                                "{set} {} {reduction} {tuples} tuples: {difference}",
                                T::TYPE
                            )
                        });
                }
            }
        }
    }
}

#[test]
fn window_lengths_around_every_vector_width() {
    for element in element_types() {
        with_element!(element, T => check_windows::<T>());
    }
}

#[test]
fn numbers_of_single_elements_around_every_vector_width() {
    for element in element_types() {
        with_element!(element, T => check_single_elements::<T>());
    }
}

/// The tests above run what `available` lists; this one knows what it must list.
#[test]
fn every_instruction_set_of_this_machine_is_available() {
    let names: Vec<_> = InstructionSet::available()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        names.contains(&"portable".to_owned()),
        "portable is missing: {names:?}"
    );
    #[cfg(target_arch = "x86_64")]
    {
        // The crate calls the two together AVX2.
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
        assert_eq!(names.contains(&"avx2".to_owned()), avx2, "avx2: {names:?}");
    }
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "listed twice: {names:?}");
}

/// All 256 x 256 pairs of a byte, and the same patterns in both bytes of the
/// two-byte types: no pair of values takes an untested branch of a kernel.
fn check_pairs<T: Ref>(from_byte: impl Fn(u8) -> T) {
    let all: Vec<T> = (0..=u8::MAX).map(from_byte).collect();
    let rows = all.len();
    let data = Tensor::new(
        &[rows, rows],
        all.iter().flat_map(|&value| vec![value; rows]).collect(),
    );
    let updates = all.iter().cycle().take(rows * rows).copied().collect();
    let updates = Tensor::new(&[1, rows, rows], updates);
    let tuple = Tensor::new(&[1, 0], vec![]);
    for &reduction in T::REDUCTIONS {
        let expected = Operator::Nd.expected(reduction, &data, &tuple, &updates);
        for &set in InstructionSet::available() {
            let indices = Strided::new(
                &Tensor::<i64>::new(&[1, 0], vec![]),
                Arrangement::Contiguous,
                0,
                0,
            );
            let execution = Execution::new(reduction).instruction_set(set);
            let options = Options::new(Operator::Nd, execution);
            let output = indices
                .allocate(&options, place(&data).view(), place(&updates).view())
                .expect("one update of the whole tensor");
            compare(&output, &expected.values, is_exact(reduction))
                .unwrap_or_else(|difference| panic!("{set} {} {reduction}: {difference}", T::TYPE));
        }
    }
}

#[test]
fn every_pair_of_bytes() {
    check_pairs(|byte| byte);
    check_pairs(u8::cast_signed);
    check_pairs(|byte| byte % 2 == 1);
}

#[cfg(feature = "half")]
#[test]
fn many_pairs_of_halves() {
    // The high byte has sign and exponent: with it, every class of value
    // meets every other; the low bytes differ enough to round both ways.
    check_pairs(|byte| half::f16::from_bits(u16::from_be_bytes([byte, byte.wrapping_mul(37)])));
    check_pairs(|byte| half::bf16::from_bits(u16::from_be_bytes([byte, byte.wrapping_mul(37)])));
}
