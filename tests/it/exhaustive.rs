//! Small cases without gaps: all shapes of rank 0 to 4 with sizes 0 to 3, and window lengths around
//! every vector width.

use std::collections::BTreeSet;

use crate::common::Tensor;
use crate::common::api::{DType, Method, Methods, Options, Request};
use crate::common::arithmetic::How;
use crate::common::elements::{Palette, Ref, compare, element_types, is_exact};
use crate::common::harness::{Problem, Round};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Operator;
use crate::common::pools::Sequential;
use crate::common::random::Random;
use crate::common::small::{
    Small, check_caches, draw_elements, draw_tuples, elements_shapes, shapes, tuple_shapes,
};
use crate::with_element;
use ndscatter::{
    Accumulate, Index, InstructionSet, Reduction, Scatter, ScatterError, Schedule, TensorView,
    TensorViewMut,
};

fn place<T: Ref>(tensor: &Tensor<T>) -> Strided<T> {
    Strided::new(tensor, Arrangement::Contiguous, 1, T::sentinel())
}

fn check_small(operator: Operator, data: &[usize], indices: &[usize], random: &mut Random) {
    let wild = random.one_in(4);
    let axes = operator.axes(data, indices);
    let indices = draw_tuples(&axes, indices, wild, random);
    let indices = &Strided::new(&indices, Arrangement::Contiguous, 1, 77);
    let small = Small {
        operator,
        data,
        indices,
    };
    small.check(&Reduction::ALL, random);
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

fn check_elements(
    data: &[usize],
    indices: &[usize],
    axis: usize,
    reductions: &[Reduction],
    random: &mut Random,
) {
    let from_end = axis.cast_signed() - data.len().cast_signed();
    let axis = random.pick(&[axis.cast_signed(), from_end]);
    let wild = random.one_in(4);
    let small = Small {
        operator: Operator::Elements { axis },
        data,
        indices: &draw_elements(data, indices, axis, wild, random),
    };
    small.check(reductions, random);
}

#[test]
fn scatter_elements_of_every_small_shape() {
    let mut random = Random::new(3);
    for data in shapes(1..=3, 4) {
        for axis in 0..data.len() {
            for indices in elements_shapes(&data, axis, 5) {
                check_elements(&data, &indices, axis, &Reduction::ALL, &mut random);
            }
        }
    }
}

/// The cases are too many for every reduction, so each case draws one.
#[test]
fn scatter_elements_of_every_small_shape_of_rank_4() {
    let mut random = Random::new(4);
    for data in shapes(4..=4, 4) {
        for axis in 0..4 {
            for indices in elements_shapes(&data, axis, 4) {
                let reduction = random.pick(&Reduction::ALL);
                check_elements(&data, &indices, axis, &[reduction], &mut random);
            }
        }
    }
}

/// Checks rows that repeat their index, except for one element at any position. The crate must not
/// treat such a row as a row scatter.
fn check_almost_rows<I: Index + Into<i128> + From<u8>>() {
    let mut random = Random::new(6);
    for len in [1, 2, 3, 31, 63, 64, 65, 127, 128, 129, 200] {
        let rows = [3_u8, 0, 3, 1].map(I::from);
        let repeated: Vec<I> = rows.iter().flat_map(|&row| vec![row; len]).collect();
        let mut sample = |shape: &[usize]| {
            let tensor = Tensor::generate(shape, || i16::sample(Palette::Wild, &mut random));
            place(&tensor)
        };
        let round = Round {
            data: sample(&[5, len]),
            updates: sample(&[4, len]),
        };
        for at in 0..repeated.len() {
            let mut indices = repeated.clone();
            indices[at] = I::from(4);
            let indices = Tensor::new(&[4, len], indices);
            let problem = Problem {
                indices: &Strided::new(&indices, Arrangement::Contiguous, 0, I::from(0)),
                rounds: vec![round.clone()],
                output: Arrangement::Contiguous,
                margin: 1,
            };
            let options = Options::new(Operator::Elements { axis: 0 }, Reduction::Add);
            problem
                .check(Method::InPlace, &options)
                .unwrap_or_else(|difference| panic!("{at} of 4 x {len}: {difference}"));
        }
    }
}

#[test]
fn rows_that_repeat_an_index_except_at_one_element() {
    check_almost_rows::<u8>();
    check_almost_rows::<i16>();
    check_almost_rows::<u32>();
    check_almost_rows::<i64>();
}

#[test]
fn tensor_scatter_of_every_small_shape() {
    let mut random = Random::new(5);
    for data in shapes(2..=4, 4) {
        check_caches(&data, &mut random);
    }
}

/// Tensors and windows without elements, with more tuples than small calls have. Every schedule
/// must handle a call without work.
#[test]
fn every_schedule_without_work() {
    let along = |axis| Operator::Update { axis };
    let elements = |axis| Operator::Elements { axis };
    let cases: [(Operator, &[usize], &[usize]); 12] = [
        // Operator, data, indices. The tuples address a whole tensor, which is empty or one
        // element.
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
        (elements(0), &[40, 5], &[100, 0]),
        (elements(1), &[40, 5], &[0, 100]),
        (elements(0), &[40, 0], &[100, 0]),
    ];
    for (operator, data_shape, indices_shape) in cases {
        let mut random = Random::new(5);
        let axes = operator.axes(data_shape, indices_shape);
        let indices = draw_tuples(&axes, indices_shape, false, &mut random);
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
        let mut sample = || i32::sample(Palette::Wild, &mut random);
        let data = Tensor::generate(data_shape, &mut sample);
        let updates_shape = operator.updates_shape(data_shape, indices_shape);
        let updates = Tensor::generate(&updates_shape, &mut sample);
        for reduction in [Reduction::None, Reduction::Add] {
            let problem = Problem {
                indices: &indices,
                rounds: vec![Round {
                    data: place(&data),
                    updates: place(&updates),
                }],
                output: Arrangement::Spelled,
                margin: 1,
            };
            for schedule in Schedule::ALL {
                for method in Method::ALL {
                    let execution = Request::new(reduction).pool(&Sequential);
                    let options = Options::new(operator, execution.schedule(schedule));
                    problem
                        .check(method, &options)
                        .unwrap_or_else(|difference| {
                            panic!("{operator:?} {data_shape:?} {schedule}: {difference}")
                        });
                    let plan = problem.plan(method, &options).expect("the case is valid");
                    (options.explain(&plan, DType::I32, method.is_in_place()))
                        .expect("i32 has every reduction");
                }
            }
        }
    }
}

#[test]
fn axes_outside_the_rank_are_errors() {
    for shape in shapes(0..=4, 2) {
        let rank = shape.len();
        for axis in [
            rank.cast_signed(),
            -rank.cast_signed() - 1,
            isize::MAX,
            isize::MIN,
        ] {
            let mut data = vec![0_i32; shape.iter().product()];
            let refused = Scatter::along(axis).in_place(
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

/// Returns 0, 1, and L - 1, L, L + 1 and 2L + 3 for every number of lanes L of a vector of 16 to 64
/// bytes.
fn lengths() -> BTreeSet<usize> {
    let around = [2, 4, 8, 16, 32, 64]
        .into_iter()
        .flat_map(|l| [l - 1, l, l + 1, 2 * l + 3]);
    around.chain([0, 1]).collect()
}

/// Windows of `len` elements, some of them with equal destinations. The result therefore depends on
/// the order.
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

    /// Checks the case in place and out of place. `margin` shifts the addresses, so that windows
    /// start at different positions in a vector.
    fn check(
        &self,
        how: How,
        set: InstructionSet,
        arrangement: Arrangement,
        margin: usize,
    ) -> Result<(), String> {
        let place = |tensor, margin| Strided::new(tensor, arrangement, margin, T::sentinel());
        let problem = Problem {
            indices: &self.indices,
            rounds: vec![Round {
                data: place(&self.data, 0),
                updates: place(&self.updates, 2 * margin),
            }],
            output: arrangement,
            margin,
        };
        let free = Request::new(how.reduction).instruction_set(set);
        let mut options = Options::new(Operator::Nd, free);
        options.include_self = how.include_self;
        options.accumulate = how.accumulate;
        let expected = problem.expected(&options, 1);
        // Without a forced schedule, a small call may use a separate path.
        for execution in [free, free.schedule(Schedule::Serial)] {
            options.execution = execution;
            problem.check_against(Method::InPlace, &options, &expected)?;
            problem.check_against(Method::WriteInto, &options, &expected)?;
        }
        Ok(())
    }
}

/// Returns every reduction of `T`, with the options that change its result.
fn hows<T: Ref>() -> Vec<How> {
    let is_half = matches!(T::DTYPE, DType::F16 | DType::BF16);
    let mut hows = Vec::new();
    for &reduction in T::REDUCTIONS {
        let plain = How::from(reduction);
        hows.push(plain);
        if reduction != Reduction::None {
            let include_self = false;
            hows.push(How {
                include_self,
                ..plain
            });
        }
        if reduction != Reduction::None && is_half {
            let accumulate = Accumulate::Wide;
            hows.push(How {
                accumulate,
                ..plain
            });
        }
    }
    hows
}

fn check_windows<T: Ref>() {
    let mut random = Random::new(3);
    for (number, len) in lengths().into_iter().enumerate() {
        for palette in Palette::ALL {
            let windows = Windows::<T>::new(4, len, palette, &mut random);
            for how in hows::<T>() {
                for &set in InstructionSet::available() {
                    for arrangement in [
                        Arrangement::Contiguous,
                        Arrangement::Stepped,
                        Arrangement::Reversed,
                    ] {
                        windows
                            .check(how, set, arrangement, number % 4)
                            .unwrap_or_else(|difference| {
                                panic!(
                                    "{set} {} {how:?} {len} {arrangement:?}: {difference}",
                                    T::DTYPE
                                )
                            });
                    }
                }
            }
        }
    }
}

/// Checks windows of one element, which have separate loops, for different numbers of tuples.
fn check_single_elements<T: Ref>() {
    let mut random = Random::new(4);
    // Up to 512 numbers of tuples are stored on the stack, more on the heap.
    for tuples in lengths()
        .into_iter()
        .chain([255, 256, 257, 511, 512, 513, 1100])
    {
        for palette in Palette::ALL {
            let windows = Windows::<T>::new(tuples, 1, palette, &mut random);
            for how in hows::<T>() {
                for &set in InstructionSet::available() {
                    windows
                        .check(how, set, Arrangement::Contiguous, 1)
                        .unwrap_or_else(|difference| {
                            panic!("{set} {} {how:?} {tuples} tuples: {difference}", T::DTYPE)
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

/// The tests above run the sets that `available` lists. This test checks the list.
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
        // The crate's set `avx2` requires AVX2 and F16C.
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
        assert_eq!(names.contains(&"avx2".to_owned()), avx2, "avx2: {names:?}");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("popcnt");
        let has_avx512 = names.contains(&"avx512".to_owned());
        assert_eq!(has_avx512, avx512, "avx512: {names:?}");
    }
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "listed twice: {names:?}");
}

/// Checks all 256 x 256 pairs of values made from a byte. Every branch of a kernel is taken.
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
            let execution = Request::new(reduction).instruction_set(set);
            let options = Options::new(Operator::Nd, execution);
            let output = indices
                .allocate(&options, place(&data).view(), place(&updates).view())
                .expect("one update of the whole tensor");
            compare(&output, &expected.values, is_exact(reduction)).unwrap_or_else(|difference| {
                panic!("{set} {} {reduction}: {difference}", T::DTYPE)
            });
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
    // The high byte contains the sign and the exponent, so every class of value is combined with
    // every other. The low bytes differ enough to round up and down.
    check_pairs(|byte| half::f16::from_bits(u16::from_be_bytes([byte, byte.wrapping_mul(37)])));
    check_pairs(|byte| half::bf16::from_bits(u16::from_be_bytes([byte, byte.wrapping_mul(37)])));
}
