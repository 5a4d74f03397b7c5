//! Gradients of gathers, compared bit for bit with their definitions, and their errors. The cases
//! cover every layout, schedule and number of workers.

#![allow(
    unsafe_code,
    reason = "tensors of a foreign runtime are passed as raw parts"
)]

use ndscatter::{
    AnyView, AnyViewMut, Cloned, DType, Execution, Gather, InstructionSet, Layout, ScatterError,
    Schedule, TensorView, TensorViewMut,
};

use crate::common::api::{GatherOptions, Indices};
use crate::common::elements::{Palette, compare};
use crate::common::gather_gradients::{Problem, check};
use crate::common::gradients::Graded;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Gatherer;
use crate::common::pools::{Sequential, Workers};
use crate::common::random::Random;
use crate::common::small::{
    draw_rule, draw_tuples, each_gather, each_gather_elements, each_gather_nd,
};
use crate::pick_graded;

fn check_small<T: Graded>(
    gatherer: Gatherer,
    data: &[usize],
    indices: &Strided<i64>,
    random: &mut Random,
) {
    let indices: &dyn Indices = indices;
    let rule = draw_rule(random);
    let execution = Execution::new().pool(&Sequential);
    let set = random.pick(InstructionSet::available());
    let mut options = GatherOptions {
        gatherer,
        execution: execution.force_instruction_set(set),
        rule,
    };
    if random.one_in(2) {
        options.execution = (options.execution).force_schedule(random.pick(&Schedule::ALL));
    }
    check::<T>(&options, data, indices, random);
}

/// Checks a random type that has gradients.
fn check_of_any_type(
    gatherer: Gatherer,
    data: &[usize],
    indices: &Strided<i64>,
    random: &mut Random,
) {
    let check = pick_graded!(random, check_small);
    check(gatherer, data, indices, random);
}

#[test]
fn of_every_small_gather_nd() {
    each_gather_nd(3, &mut Random::new(31), &check_of_any_type);
}

#[test]
fn of_every_small_gather() {
    each_gather(3, &mut Random::new(32), &check_of_any_type);
}

#[test]
fn of_every_small_gather_elements() {
    each_gather_elements(3, &mut Random::new(33), &check_of_any_type);
}

/// Checks tensors that are large enough to be divided: with every schedule and every pool, with 1
/// to 8 workers.
fn check_large<T: Graded>(
    gatherer: Gatherer,
    (data, indices): (&[usize], &[usize]),
    random: &mut Random,
) {
    let indices = draw_tuples(&gatherer.axes(data, indices), indices, false, random);
    let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
    let indices: &dyn Indices = &indices;
    let options = GatherOptions::new(gatherer);
    for scale in [1.0, -0.3] {
        let values = (Palette::Ordinary, scale);
        let problem = Problem::<T>::new(&options, data, indices, values, random);
        for workers in Workers::ALL {
            workers.with(|pool| {
                let mut options = GatherOptions::new(gatherer);
                for forced in Schedule::ALL.map(Some).into_iter().chain([None]) {
                    options.execution = Execution::new().pool(pool);
                    if let Some(forced) = forced {
                        options.execution = options.execution.force_schedule(forced);
                    }
                    problem.check(&options);
                }
            });
        }
    }
}

#[test]
fn of_rows_by_every_schedule() {
    let mut random = Random::new(34);
    let rows = (&[400, 24][..], &[3000][..]);
    check_large::<f32>(Gatherer::Along { axis: 0 }, rows, &mut random);
    let batches = (&[6, 50, 8][..], &[200][..]);
    check_large::<f64>(Gatherer::Along { axis: 1 }, batches, &mut random);
    #[cfg(feature = "half")]
    check_large::<half::f16>(Gatherer::Along { axis: 0 }, rows, &mut random);
    #[cfg(feature = "complex")]
    check_large::<num_complex::Complex<f32>>(
        Gatherer::Nd { batch_dims: 0 },
        (&[30, 20, 5], &[2000, 2]),
        &mut random,
    );
}

#[test]
fn of_single_elements_by_every_schedule() {
    let mut random = Random::new(35);
    let elements = (&[5000][..], &[9000, 1][..]);
    let gatherer = Gatherer::Nd { batch_dims: 0 };
    check_large::<f32>(gatherer, elements, &mut random);
    #[cfg(feature = "half")]
    check_large::<half::bf16>(gatherer, elements, &mut random);
    check_large::<f64>(
        Gatherer::Elements { axis: 0 },
        (&[300, 9], &[500, 9]),
        &mut random,
    );
}

/// A table of megabytes. Each partition, and each range of destinations, multiplies its own part by
/// the factor.
#[test]
fn of_a_large_table() {
    let (rows, len, tuples) = (70_001_usize, 16, 100_003);
    let mut random = Random::new(36);
    let indices: Vec<i64> = (0..tuples)
        .map(|_| i64::try_from(random.below(rows)).expect("the row fits"))
        .collect();
    let gradient: Vec<f32> = (0..tuples * len)
        .map(|at| 0.1 + (at % 997) as f32)
        .collect();
    let mut expected = vec![0.0_f32; rows * len];
    for (index, gradient) in indices.iter().zip(gradient.chunks_exact(len)) {
        let row = usize::try_from(*index).expect("the row fits") * len;
        for (sum, value) in expected[row..row + len].iter_mut().zip(gradient) {
            *sum += value;
        }
    }
    expected.iter_mut().for_each(|sum| *sum *= -0.7);
    for workers in Workers::ALL {
        for forced in Schedule::ALL.map(Some).into_iter().chain([None]) {
            let mut sums = vec![9.0_f32; rows * len];
            workers.with(|pool| {
                let mut execution = Execution::new().pool(pool);
                if let Some(forced) = forced {
                    execution = execution.force_schedule(forced);
                }
                let gather = Gather::along(0).execution(execution);
                let [shape, listed] = [[rows, len], [tuples, len]];
                let gradient = TensorView::contiguous(&gradient, &listed);
                let sums = TensorViewMut::contiguous(&mut sums, &shape);
                let (gradient, sums) = (gradient.expect("rows"), sums.expect("a table"));
                let indices = TensorView::from(&indices[..]);
                gather
                    .backward_into(gradient, indices, -0.7, sums)
                    .expect("the call is valid");
            });
            let same = compare(&sums, &expected, true);
            same.unwrap_or_else(|what| panic!("{forced:?} on {workers:?}: {what}"));
        }
    }
}

/// A factor of zero gives +0, also for gradients that are infinite or NaN.
#[test]
fn with_a_factor_of_zero() {
    let gradient = [f32::INFINITY, f32::NAN, -1.0];
    for scale in [0.0, -0.0, 1e-60] {
        let made = Gather::along(0)
            .backward(
                TensorView::from(&gradient),
                &[2],
                TensorView::from(&[0_i64, 1, 1]),
                scale,
            )
            .expect("a gradient");
        assert_eq!(
            made.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>(),
            [0, 0]
        );
    }
    let refused = Gather::along(0).backward(
        TensorView::from(&gradient),
        &[2],
        TensorView::from(&[0_i64, 2, 1]),
        0.0,
    );
    assert!(matches!(
        refused,
        Err(ScatterError::IndexOutOfBounds { tuple: 1, .. })
    ));
}

/// 16-bit floats are rounded once, after the factor.
#[cfg(feature = "half")]
#[test]
#[allow(clippy::float_cmp, reason = "exact")]
fn of_halves_that_are_rounded_once() {
    let gradient = [2048.0, 1.0, 1.0, 1.0].map(half::f16::from_f32);
    let made = |scale| {
        let indices = TensorView::from(&[0_i64; 4]);
        let made = Gather::along(0).backward(TensorView::from(&gradient), &[1], indices, scale);
        made.expect("a gradient")[0].to_f32()
    };
    // In 16 bits each 1 would be lost, and the sum would be 2048. The sum 2051 in `f32` is rounded
    // to 2052.
    assert_eq!(made(1.0), 2052.0);
    assert_eq!(
        made(0.5),
        1025.0 + 1.0,
        "2051 / 2 = 1025.5 is a tie, rounded to the even number 1026"
    );
    assert_eq!(
        made(0.25),
        513.0,
        "2051 / 4 = 512.75; 2052 / 4 rounds to 513 too"
    );
    assert_eq!(
        made(1.0 / 3.0),
        683.5,
        "2051 / 3 = 683.67; a rounded sum would give 684"
    );
}

#[test]
fn invalid_calls_are_errors() {
    let indices = [0_i64, 1];
    let indices = || TensorView::from(&indices);
    let along = Gather::along(0);
    let gradient = [1.0_f32, 2.0];
    let view = TensorView::from(&gradient);
    for scale in [f64::NAN, f64::INFINITY, 1e60] {
        let refused = along.backward(view, &[2], indices(), scale);
        let dtype = DType::F32;
        assert_eq!(refused.err(), Some(ScatterError::Scale { dtype }));
    }
    let wide = along.backward(TensorView::from(&[1.0_f64, 2.0]), &[2], indices(), 1e60);
    assert_eq!(wide.expect("an f64"), [1e60, 2e60]);
    let refused = along.backward(TensorView::from(&[1, 2]), &[2], indices(), 1.0);
    let dtype = DType::I32;
    assert_eq!(refused.err(), Some(ScatterError::NoGradient { dtype }));
    let refused = along.backward(TensorView::from(&[true, false]), &[2], indices(), 1.0);
    let dtype = DType::Bool;
    assert_eq!(refused.err(), Some(ScatterError::NoGradient { dtype }));
    let mut sums = ["a"; 2];
    let refused = along.backward_into(
        Cloned(TensorView::from(&["b", "c"])),
        indices(),
        1.0,
        Cloned(TensorViewMut::from(&mut sums)),
    );
    assert_eq!(refused, Err(ScatterError::GradientOfClones));
    let refused = along.backward(TensorView::from(&[1.0_f32; 3]), &[2], indices(), 1.0);
    let expected = ScatterError::GradientShape {
        tensor: "grad_output",
        expected: vec![2],
        actual: vec![3],
    };
    assert_eq!(refused.err(), Some(expected));
    let plan = along
        .plan(Layout::contiguous(&[2]), indices())
        .expect("a plan");
    let mut sums = [9.0_f32; 3];
    let refused = plan
        .run()
        .backward_into(view, 1.0, TensorViewMut::from(&mut sums));
    assert!(matches!(refused, Err(ScatterError::PlanMismatch { .. })));
    assert_eq!(sums, [9.0; 3]);
}

/// Foreign tensors that share memory, or have different types.
#[test]
fn foreign_tensors_that_do_not_fit() {
    let mut memory = [1.0_f32, 2.0, 3.0, 4.0];
    let first = memory.as_mut_ptr();
    let along = Gather::along(0);
    let indices = || TensorView::from(&[0_i64, 1]);
    let layout = Layout::contiguous(&[2]);
    // SAFETY: both views are inside `memory`, which outlives them. Nothing else accesses it during
    // the call.
    let (gradient, sums) = unsafe {
        let sums = first.wrapping_add(1).cast();
        (
            AnyView::from_raw_parts(first.cast(), DType::F32, layout).expect("a view"),
            AnyViewMut::from_raw_parts(sums, DType::F32, layout).expect("a view"),
        )
    };
    let refused = along.backward_into(gradient, indices(), 1.0, sums);
    let tensor = "grad_output";
    assert_eq!(refused, Err(ScatterError::InputOverlap { tensor }));
    let mut other = [0.0_f64; 2];
    let sums = AnyViewMut::from(TensorViewMut::from(&mut other));
    let refused = along.backward_into(gradient, indices(), 1.0, sums);
    let expected = ScatterError::DTypeMismatch {
        tensor,
        expected: DType::F64,
        actual: DType::F32,
    };
    assert_eq!(refused, Err(expected));
    assert_eq!(memory, [1.0, 2.0, 3.0, 4.0]);
}
