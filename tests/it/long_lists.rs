//! Many more tuples than the output has elements: such calls may be applied
//! block by block before the last index has been read. The bits are those of
//! the loop all the same, and an error at the very end leaves no trace.

use crate::common::Tensor;
use crate::common::elements::{Palette, Ref};
use crate::common::harness::{Indices, Operator, Options, Problem, Round, Verb};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::pools::rayon_pool;
use crate::common::random::Random;
use crate::common::request::Request;
use ndscatter::Reduction::{Add, Max, Min, Mul, None, Sub};
use ndscatter::{CallingThread, InstructionSet, Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

/// Tuples: some blocks, and a part of one.
const LENGTHS: [usize; 4] = [513, 1024, 1500, 5000];

/// Shapes of data of which every axis is addressed, and another one.
const SHAPES: [&[usize]; 5] = [&[1], &[7], &[9, 5], &[2, 3, 4], &[]];

/// How many indices there are to one that counts from the end: none does, some
/// blocks have one, all blocks have some.
const FROM_END: [usize; 3] = [usize::MAX, 700, 3];

fn indices_for(
    shape: &[usize],
    tuples: usize,
    from_end: usize,
    random: &mut Random,
) -> Tensor<i64> {
    let draw = |position: usize| {
        let size = shape[position % shape.len()];
        let signed = |place: usize| i64::try_from(place).expect("it fits");
        let from_end = random.one_in(from_end);
        signed(random.zipf(size)) - if from_end { signed(size) } else { 0 }
    };
    let values = (0..tuples * shape.len()).map(draw).collect();
    Tensor::new(&[tuples, shape.len()], values)
}

fn strided<T: Ref>(tensor: &Tensor<T>) -> Strided<T> {
    Strided::new(tensor, Arrangement::Contiguous, 0, T::sentinel())
}

/// Data and updates for them.
fn round<T: Ref>(shape: &[usize], tuples: usize, random: &mut Random) -> Round<T> {
    let mut sample = |shape: &[usize]| {
        strided(&Tensor::generate(shape, || {
            T::sample(Palette::Ordinary, random)
        }))
    };
    Round {
        data: sample(shape),
        updates: sample(&[tuples]),
    }
}

fn problem<'a, T: Ref>(
    reduction: Reduction,
    indices: &'a dyn Indices<T>,
    round: Round<T>,
) -> Problem<'a, T> {
    Problem {
        operator: Operator::Nd,
        reduction,
        indices,
        rounds: vec![round],
        output: Arrangement::Contiguous,
        margin: 3,
    }
}

fn check<T: Ref>(reductions: &[Reduction]) {
    let mut random = Random::new(3);
    for shape in SHAPES {
        for (tuples, from_end) in LENGTHS
            .iter()
            .flat_map(|&tuples| FROM_END.map(|from_end| (tuples, from_end)))
        {
            let indices = indices_for(shape, tuples, from_end, &mut random);
            let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
            let round = round::<T>(shape, tuples, &mut random);
            for &reduction in reductions {
                problem(reduction, &indices, round.clone()).check_everywhere();
            }
        }
    }
}

/// Lists for one axis in another type, with all ways to count from the end
/// that it has.
fn check_indices<I>()
where
    I: ndscatter::Index + Default + TryFrom<i64, Error: std::fmt::Debug>,
    Strided<I>: Indices<f32>,
{
    let mut random = Random::new(4);
    let is_signed = I::try_from(-1).is_ok();
    for from_end in FROM_END.into_iter().take(if is_signed { 3 } else { 1 }) {
        let indices = indices_for(&[7], 1500, from_end, &mut random);
        let values = (indices.values.iter())
            .map(|&index| I::try_from(index).expect("it fits"))
            .collect();
        let indices = Tensor::new(&[1500, 1], values);
        let indices = Strided::new(&indices, Arrangement::Contiguous, 0, I::default());
        let round = round::<f32>(&[7], 1500, &mut random);
        problem(Add, &indices, round).check_everywhere();
    }
}

trait Everywhere {
    fn check_everywhere(&self);
}

impl<T: Ref> Everywhere for Problem<'_, T> {
    /// On one thread and on several, with every instruction set.
    fn check_everywhere(&self) {
        let alone = Request::new(self.reduction).pool(&CallingThread);
        let mut executions = vec![Request::new(self.reduction).pool(rayon_pool(3))];
        for &set in InstructionSet::available() {
            executions.push(alone.instruction_set(set));
        }
        for execution in executions {
            let options = Options::new(self.operator, execution);
            for verb in [
                Verb::Allocate,
                Verb::WriteInto,
                Verb::InPlace,
                Verb::AnyInPlace,
            ] {
                self.check(verb, &options).unwrap_or_else(|difference| {
                    panic!("{} of {}: {difference}", self.reduction, T::DTYPE)
                });
            }
        }
    }
}

#[test]
fn floats() {
    check::<f32>(&[None, Add, Sub, Mul, Min, Max]);
    check::<f64>(&[Add]);
}

#[test]
fn other_types() {
    check::<i8>(&[None, Add, Mul, Max]);
    check::<u64>(&[Add, Min]);
    check::<bool>(&[None, Add, Mul]);
    check::<half::bf16>(&[Add]);
    check::<num_complex::Complex<f64>>(&[None, Add, Mul]);
}

#[test]
fn types_of_indices() {
    check_indices::<i8>();
    check_indices::<i16>();
    check_indices::<i32>();
    check_indices::<i64>();
    check_indices::<u8>();
    check_indices::<u16>();
    check_indices::<u32>();
    check_indices::<u64>();
}

/// The last of many indices, or one in the middle, is out of bounds.
#[test]
fn an_error_leaves_no_trace() {
    let updates = vec![1.0_f32; 3000];
    let updates = TensorView::contiguous(&updates, &[3000]).expect("updates");
    let before = [5.0_f32; 8];
    for wrong in [0, 1, 511, 512, 1700, 2999] {
        for index in [8, -9, i64::MIN] {
            let mut indices: Vec<i64> = (0..3000).map(|tuple| tuple % 8).collect();
            indices[wrong] = index;
            let indices = TensorView::contiguous(&indices, &[3000, 1]).expect("indices");
            let expected = ScatterError::IndexOutOfBounds {
                tuple: wrong,
                axis: 0,
                index: index.into(),
                size: 8,
            };
            let scatter = Scatter::nd().reduction(Add);
            let mut data = before;
            let view = TensorViewMut::contiguous(&mut data, &[8]).expect("data");
            let result = scatter.in_place(view, indices, updates);
            assert_eq!(result, Err(expected.clone()), "in place");
            assert_eq!(data, before, "in place");

            let mut output = [7.0_f32; 8];
            let view = TensorViewMut::contiguous(&mut output, &[8]).expect("output");
            let data = TensorView::contiguous(&before, &[8]).expect("data");
            let result = scatter.write_into(data, indices, updates, view);
            assert_eq!(result, Err(expected), "into an output");
            assert_eq!(output, [7.0; 8], "into an output");
        }
    }
}

/// Elements that do not exist cannot be addressed, however many tuples try.
#[test]
fn an_output_without_elements() {
    let updates = vec![1.0_f32; 600];
    let updates = TensorView::contiguous(&updates, &[600]).expect("updates");
    let indices = vec![0_i64; 600];
    let indices = TensorView::contiguous(&indices, &[600, 1]).expect("indices");
    let view = TensorViewMut::contiguous(&mut [], &[0]).expect("data");
    let result = Scatter::nd()
        .reduction(Add)
        .in_place(view, indices, updates);
    let is_out_of_bounds = matches!(result, Err(ScatterError::IndexOutOfBounds { tuple: 0, .. }));
    assert!(is_out_of_bounds, "{result:?}");
}
