//! Gradients computed by hand, calls that must fail, and cases that other libraries compute
//! wrongly.

#![allow(
    unsafe_code,
    reason = "tensors of a foreign runtime are passed as raw parts"
)]

#[cfg(feature = "half")]
use ndscatter::Accumulate;
use ndscatter::{
    AnyView, AnyViewMut, Bounds, Cloned, DType, Forward, Gather, Gradients, Layout, NoneGradient,
    Reduction, Scatter, ScatterError, TensorView, TensorViewMut,
};

use crate::common::random::Random;

/// Computes the gradient of three elements by hand. The second element has three updates, and the
/// last one has none.
#[test]
fn by_hand() {
    let at = [1_i64, 0, 1, 1];
    let (data, updates) = ([2.0_f32, 4.0, 3.0], [4.0_f32, 0.0, 5.0, 4.0]);
    let gradient = [1.0_f32, 6.0, 2.0];
    let backward = |reduction, include_self, data: &[f32; 3], updates: &[f32; 4]| {
        let scatter = Scatter::along(0)
            .reduction(reduction)
            .include_self(include_self);
        let made = scatter.backward(
            TensorView::from(&gradient),
            Forward::new(TensorView::from(data), TensorView::from(updates)),
            TensorView::from(&at),
            1.0,
        );
        let (of_data, of_updates) = made.expect("a gradient");
        (of_data.into_vec(), of_updates.into_vec())
    };
    let check =
        |(got_data, got_updates): (Vec<f32>, Vec<f32>), data: [f32; 3], updates: [f32; 4]| {
            assert_eq!((&got_data[..], &got_updates[..]), (&data[..], &updates[..]));
        };
    // Products with no, one and two zeros. The gradient is right without a division.
    let of = |updates| backward(Reduction::Mul, true, &data, updates);
    check(of(&updates), [0.0, 480.0, 2.0], [480.0, 2.0, 384.0, 480.0]);
    check(
        of(&[4.0, 0.0, 0.0, 4.0]),
        [0.0, 0.0, 2.0],
        [0.0, 2.0, 384.0, 0.0],
    );
    check(
        of(&[4.0, 0.0, 0.0, 0.0]),
        [0.0, 0.0, 2.0],
        [0.0, 2.0, 0.0, 0.0],
    );
    let zero = [0.0, 0.0, 3.0];
    check(
        backward(Reduction::Mul, true, &zero, &updates),
        [0.0, 480.0, 2.0],
        [0.0; 4],
    );
    check(
        backward(Reduction::Mul, false, &zero, &updates),
        [0.0, 0.0, 2.0],
        [120.0, 1.0, 96.0, 120.0],
    );
    // Ties of two updates, of three, and with data.
    let of = |data: &[f32; 3], updates: &[f32; 4]| backward(Reduction::Max, true, data, updates);
    check(
        of(&data, &[5.0, 9.0, 5.0, 4.0]),
        [0.0, 0.0, 2.0],
        [3.0, 1.0, 3.0, 0.0],
    );
    check(
        of(&data, &[4.0, 2.0, 1.0, 4.0]),
        [0.5, 2.0, 2.0],
        [2.0, 0.5, 0.0, 2.0],
    );
    let signs = [-0.0, 4.0, 3.0];
    check(
        of(&signs, &[1.0, 0.0, 1.0, 1.0]),
        [0.5, 6.0, 2.0],
        [0.0, 0.5, 0.0, 0.0],
    );
    let nan = f32::NAN;
    check(
        of(&data, &[nan, 1.0, 7.0, nan]),
        [1.0, 0.0, 2.0],
        [3.0, 0.0, 0.0, 3.0],
    );
    check(
        of(&[2.0, nan, 3.0], &[nan, 1.0, 7.0, nan]),
        [1.0, 2.0, 2.0],
        [2.0, 0.0, 0.0, 2.0],
    );
    // Data that is excluded takes no part in a tie, even if it equals the result.
    let without =
        |data: &[f32; 3], updates: &[f32; 4]| backward(Reduction::Min, false, data, updates);
    check(
        without(&[7.0, 4.0, 3.0], &[4.0, 7.0, 4.0, 9.0]),
        [0.0, 0.0, 2.0],
        [3.0, 1.0, 3.0, 0.0],
    );
    check(
        backward(Reduction::Mean, false, &data, &updates),
        [0.0, 0.0, 2.0],
        [2.0, 1.0, 2.0, 2.0],
    );
    check(
        backward(Reduction::Mean, true, &data, &updates),
        [0.5, 1.5, 2.0],
        [1.5, 0.5, 1.5, 1.5],
    );
}

/// Faults of other libraries. Each case has the result that docs/semantics.md ("Gradients")
/// defines, and is one that some library computes wrongly.
#[test]
fn cases_that_other_libraries_compute_wrongly() {
    let backward = |scatter: &Scatter<'_>, forward: [&[f32]; 2], at: &[i64], gradient: &[f32]| {
        let [data, updates] = forward;
        let forward = Forward::new(TensorView::from(data), TensorView::from(updates));
        let made = scatter.backward(
            TensorView::from(gradient),
            forward,
            TensorView::from(at),
            1.0,
        );
        let (of_data, of_updates) = made.expect("a gradient");
        [of_data.into_vec(), of_updates.into_vec()]
    };
    let of = |reduction| Scatter::along(0).reduction(reduction);
    // Fault: every duplicate gets the gradient, although only the last update was kept.
    let got = backward(
        &of(Reduction::None),
        [&[0.0; 2], &[1.0, 2.0]],
        &[0, 0],
        &[5.0, 7.0],
    );
    assert_eq!(got, [vec![0.0, 7.0], vec![0.0, 5.0]]);
    let documented = of(Reduction::None).none_gradient(NoneGradient::EveryDuplicate);
    let got = backward(&documented, [&[0.0; 2], &[1.0, 2.0]], &[0, 0], &[5.0, 7.0]);
    assert_eq!(got, [vec![0.0, 7.0], vec![5.0, 5.0]]);
    // Fault: the product is divided by an update, which may be zero.
    let got = backward(&of(Reduction::Mul), [&[3.0], &[0.0, 2.0]], &[0, 0], &[1.0]);
    assert_eq!(got, [vec![0.0], vec![6.0, 0.0]]);
    // Fault: an excluded value that equals the result counts as a tie.
    let without = of(Reduction::Max).include_self(false);
    let got = backward(&without, [&[1.0], &[1.0, 0.5]], &[0, 0], &[1.0]);
    assert_eq!(got, [vec![0.0], vec![1.0, 0.0]]);
    // Fault: no value counts as a tie, because NaN is not equal to itself, which gives 0 / 0.
    let got = backward(
        &of(Reduction::Max),
        [&[1.0], &[f32::NAN, 0.5]],
        &[0, 0],
        &[1.0],
    );
    assert_eq!(got, [vec![0.0], vec![1.0, 0.0]]);
    // Fault: the first extreme gets the whole gradient, or each side of a tie does.
    let got = backward(&of(Reduction::Min), [&[1.0], &[1.0]], &[0], &[1.0]);
    assert_eq!(got, [vec![0.5], vec![0.5]]);
    // The mean without self is divided by the number of updates, and data has no gradient.
    let without = of(Reduction::Mean).include_self(false);
    let got = backward(&without, [&[9.0, 1.0], &[1.0, 2.0]], &[0, 0], &[1.0, 4.0]);
    assert_eq!(got, [vec![0.0, 4.0], vec![0.5, 0.5]]);
    // A factor of zero gives zeros, also for gradients that are infinite or NaN.
    let gradient = [f32::INFINITY, f32::NAN, -1.0];
    for reduction in Reduction::ALL {
        for scale in [0.0, -0.0] {
            let forward = [1.0, 2.0, 3.0];
            let forward = Forward::new(TensorView::from(&forward), TensorView::from(&forward));
            let at = TensorView::from(&[0_i64, 1, 1]);
            let made = of(reduction).backward(TensorView::from(&gradient), forward, at, scale);
            let (of_data, of_updates) = made.expect("a gradient");
            for value in of_data.iter().chain(of_updates.iter()) {
                assert_eq!(value.to_bits(), 0, "{reduction}, {scale}");
            }
        }
    }
    // Data keeps its gradient where updates add, and loses it where updates replace.
    let got = backward(&of(Reduction::Add), [&[1.0; 2], &[1.0]], &[0], &[5.0, 7.0]);
    assert_eq!(got, [vec![5.0, 7.0], vec![5.0]]);
    let got = backward(&of(Reduction::None), [&[1.0; 2], &[1.0]], &[0], &[5.0, 7.0]);
    assert_eq!(got, [vec![0.0, 7.0], vec![5.0]]);
    // Fault: the reduction is ignored, and the gradient is that of `none`.
    let got = backward(
        &of(Reduction::Mul),
        [&[3.0, 1.0], &[2.0]],
        &[0],
        &[5.0, 7.0],
    );
    assert_eq!(got, [vec![10.0, 7.0], vec![15.0]]);
    // jax issue 8634: a skipped update has no gradient.
    let skips = of(Reduction::Add).bounds(Bounds::Skip);
    let got = backward(&skips, [&[1.0; 2], &[1.0; 3]], &[0, 9, -3], &[5.0, 7.0]);
    assert_eq!(got, [vec![5.0, 7.0], vec![5.0, 0.0, 0.0]]);
}

/// Compares gradients with finite differences in `f64`, away from ties.
#[test]
fn as_finite_differences() {
    let mut random = Random::new(54);
    let (shape, tuples) = ([7, 3], [12, 1]);
    for reduction in Reduction::ALL {
        for include_self in [true, false] {
            let rows: Vec<i64> = (0..12)
                .map(|_| random.between(0, 4))
                .map(|row| i64::try_from(row).expect("small"))
                .collect();
            let mut sample = |len: usize| -> Vec<f64> {
                // The values differ from each other by more than the step.
                let number = |at: usize| 0.3 + (at * 7919 % len) as f64 / len as f64;
                let sign = |random: &mut Random| if random.one_in(2) { -1.0 } else { 1.0 };
                (0..len).map(|at| number(at) * sign(&mut random)).collect()
            };
            let (data, updates, gradient) = (sample(21), sample(36), sample(21));
            let scatter = Scatter::nd()
                .reduction(reduction)
                .include_self(include_self);
            let at = || TensorView::contiguous(&rows, &tuples).expect("tuples");
            let loss = |data: &[f64], updates: &[f64]| {
                let data = TensorView::contiguous(data, &shape).expect("rows");
                let updates = TensorView::contiguous(updates, &[12, 3]).expect("rows");
                let output = scatter.allocate(data, at(), updates).expect("an output");
                output
                    .iter()
                    .zip(&gradient)
                    .map(|(value, slope)| value * slope)
                    .sum::<f64>()
            };
            let made = scatter.backward(
                TensorView::contiguous(&gradient, &shape).expect("rows"),
                Forward::new(
                    TensorView::contiguous(&data, &shape).expect("rows"),
                    TensorView::contiguous(&updates, &[12, 3]).expect("rows"),
                ),
                at(),
                1.0,
            );
            let (of_data, of_updates) = made.expect("a gradient");
            let step = 1e-6;
            let moved = |values: &[f64], at: usize, by: f64| {
                let mut values = values.to_vec();
                values[at] += by;
                values
            };
            for (number, &got) in of_data.iter().enumerate() {
                let [up, down] = [step, -step].map(|by| loss(&moved(&data, number, by), &updates));
                let slope = (up - down) / (2.0 * step);
                assert!(
                    (slope - got).abs() < 1e-6,
                    "{reduction}, data {number}: {got} instead of {slope}"
                );
            }
            for (number, &got) in of_updates.iter().enumerate() {
                let [up, down] = [step, -step].map(|by| loss(&data, &moved(&updates, number, by)));
                let slope = (up - down) / (2.0 * step);
                assert!(
                    (slope - got).abs() < 1e-6,
                    "{reduction}, update {number}: {got} instead of {slope}"
                );
            }
        }
    }
}

/// Products and shares of 16-bit floats are computed in `f32` and rounded once, for each value of
/// `accumulate`.
#[cfg(feature = "half")]
#[test]
#[allow(clippy::float_cmp, reason = "exact")]
fn of_halves_that_are_rounded_once() {
    let half = |values: [f32; 3]| values.map(half::f16::from_f32);
    let updates = half([2049.0_f32 / 2048.0, 1.0 + 1.0 / 512.0, 1.0 + 1.0 / 1024.0]);
    let at = [0_i64; 3];
    for accumulate in [Accumulate::Native, Accumulate::Wide] {
        let product = Scatter::along(0)
            .reduction(Reduction::Mul)
            .include_self(false)
            .accumulate(accumulate);
        let gradient = half([1.0; 3]);
        let made = product.backward(
            TensorView::from(&gradient[..1]),
            Forward::updates(TensorView::from(&updates)),
            TensorView::from(&at),
            3.0,
        );
        let (_, of_updates) = made.expect("a gradient");
        let wide = updates.map(half::f16::to_f32);
        for (number, got) in of_updates.iter().enumerate() {
            let others = (0..3).filter(|&other| other != number);
            let product: f32 = others.map(|other| wide[other]).product();
            assert_eq!(got.to_f32(), half::f16::from_f32(product * 3.0).to_f32());
        }
    }
}

/// The factors of complex products are conjugated, as in torch.
#[cfg(feature = "complex")]
#[test]
fn of_complex_products() {
    use num_complex::Complex;
    let number = Complex::<f64>::new;
    let (data, updates) = ([number(1.0, 2.0)], [number(0.0, 1.0), number(3.0, -1.0)]);
    let made = Scatter::along(0).reduction(Reduction::Mul).backward(
        TensorView::from(&[number(2.0, 1.0)]),
        Forward::new(TensorView::from(&data), TensorView::from(&updates)),
        TensorView::from(&[0_i64, 0]),
        -2.0,
    );
    let (of_data, of_updates) = made.expect("a gradient");
    let gradient = |others: Complex<f64>| (number(2.0, 1.0) * others.conj()) * -2.0;
    assert_eq!(of_data[0], gradient(updates[0] * updates[1]));
    assert_eq!(of_updates[0], gradient(data[0] * updates[1]));
    assert_eq!(of_updates[1], gradient(data[0] * updates[0]));
}

/// A forward pass in place saves the windows that `mul`, `min` and `max` overwrite, and nothing
/// else.
#[test]
fn forward_in_place_saves_overwritten_windows() {
    let at = TensorView::from(&[1_i64, 3, 1, 3, 3]);
    let updates = [2.0_f32; 20];
    for reduction in Reduction::ALL {
        for include_self in [true, false] {
            let scatter = Scatter::along(0)
                .reduction(reduction)
                .include_self(include_self);
            let mut data = [1.0_f32; 40];
            let data = TensorViewMut::contiguous(&mut data, &[10, 4]).expect("rows");
            let rows = TensorView::contiguous(&updates, &[5, 4]).expect("rows");
            let saved = scatter
                .forward_in_place(data, at, rows)
                .expect("the call is valid");
            let depends = matches!(reduction, Reduction::Mul | Reduction::Min | Reduction::Max);
            let expected = if depends && include_self {
                2 * 4 * 4
            } else {
                0
            };
            assert_eq!(saved.bytes(), expected, "{reduction}, {include_self}");
            assert_eq!(saved.plan().tuples(), 5, "{reduction}");
        }
    }
}

/// An output whose rows are not evenly strided. Its plan numbers offsets, which do not hold for
/// gradients of another layout.
#[test]
fn of_outputs_without_evenly_strided_slices() {
    let shape = [3, 4, 2];
    let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
    let tuples = TensorView::contiguous(&[0_i64, 1, 2, 3, 0, 1], &[3, 2]).expect("tuples");
    let updates = TensorView::contiguous(&[5.0_f32, 30.0, 1.0, 2.0, 7.0, 8.0], &[3, 2]);
    let updates = updates.expect("rows");
    let scatter = Scatter::nd().reduction(Reduction::Max);
    let gradient = TensorView::contiguous(&values, &shape).expect("rows");
    let forward = Forward::new(gradient, updates);
    let expected = scatter
        .backward(gradient, forward, tuples, 1.0)
        .expect("the call is valid");
    // Columns before rows in memory, with gaps between them.
    let strides = [2, 7, 1];
    let mut output = vec![0.0_f32; 40];
    for (index, value) in values.iter().enumerate() {
        output[index / 8 * 2 + index / 2 % 4 * 7 + index % 2] = *value;
    }
    let target = TensorViewMut::strided(&mut output, 0, &shape, &strides).expect("apart");
    let saved = scatter
        .forward_in_place(target, tuples, updates)
        .expect("the call is valid");
    assert_eq!(saved.bytes(), 24 * 4, "all of data");
    let made = saved
        .run()
        .backward(gradient, Forward::updates(updates), 1.0);
    assert_eq!(made.expect("the call is valid"), expected);
    let layout = Layout::strided(&shape, &strides).expect("strides");
    let plan = scatter.plan(layout, tuples).expect("a plan");
    let refused = plan.run().backward(gradient, forward, 1.0);
    assert!(matches!(refused, Err(ScatterError::PlanMismatch { .. })));
    // Tensors with the planned layout are accepted.
    let spread = TensorView::strided(&output, 0, &shape, &strides).expect("strides");
    let mut written = vec![9.0_f32; 40];
    let grad_data = TensorViewMut::strided(&mut written, 0, &shape, &strides).expect("apart");
    let forward = Forward::new(spread, updates);
    let done = plan
        .run()
        .backward_into(spread, forward, 1.0, Gradients::data(grad_data));
    done.expect("the layout that was planned for");
    // In place with a factor: the gradient is read once more.
    let mut written = output.clone();
    let first = written.as_mut_ptr();
    // SAFETY: pointer and layout are those of `written`. No other reference uses its elements
    // during the call.
    let (gradient, grad_data) = unsafe {
        (
            AnyView::from_raw_parts(first.cast_const().cast(), DType::F32, layout),
            AnyViewMut::from_raw_parts(first.cast(), DType::F32, layout),
        )
    };
    let wanted = Gradients::data(grad_data.expect("a view"));
    let forward = Forward::new(spread.into(), updates.into());
    let gradient = gradient.expect("a view");
    let done = plan.run().backward_into(gradient, forward, -2.0, wanted);
    done.expect("the layout that was planned for");
    let read = |values: &[f32]| {
        let view = TensorView::strided(values, 0, &shape, &strides).expect("strides");
        let rows = Gather::along(0).allocate(view, TensorView::from(&[0_i64, 1, 2]));
        rows.expect("rows").into_vec()
    };
    let gradient = read(&output);
    let gradient = TensorView::contiguous(&gradient, &shape).expect("rows");
    let forward = Forward::new(gradient, updates);
    let expected = scatter
        .backward(gradient, forward, tuples, -2.0)
        .expect("the call is valid");
    assert_eq!(read(&written)[..], expected.0[..]);
}

#[test]
fn invalid_calls_are_errors() {
    let at = || TensorView::from(&[0_i64, 1]);
    let (three, two) = ([1.0_f32, 2.0, 3.0], [4.0_f32, 5.0]);
    let (gradient, updates) = (TensorView::from(&three), TensorView::from(&two));
    let none = || Forward::<TensorView<'_, f32>>::none();
    let scatter = Scatter::along(0);
    for scale in [f64::NAN, f64::NEG_INFINITY, 1e60] {
        let refused = scatter.backward(gradient, none(), at(), scale);
        let dtype = DType::F32;
        assert_eq!(refused.err(), Some(ScatterError::Scale { dtype }));
    }
    let integers = TensorView::from(&[1, 2, 3]);
    let refused = scatter.backward(integers, Forward::none(), at(), 1.0);
    let dtype = DType::I32;
    assert_eq!(refused.err(), Some(ScatterError::NoGradient { dtype }));
    let refused = scatter.forward(integers, at(), TensorView::from(&[1, 2]));
    assert_eq!(refused.err(), Some(ScatterError::NoGradient { dtype }));
    let texts = Cloned(TensorView::from(&["a", "b", "c"]));
    let refused = scatter.backward(texts, Forward::none(), at(), 1.0);
    assert_eq!(refused.err(), Some(ScatterError::GradientOfClones));
    let refused = scatter.forward(texts, at(), Cloned(TensorView::from(&["d", "e"])));
    assert_eq!(refused.err(), Some(ScatterError::GradientOfClones));
    let missing = |tensor, reduction| Some(ScatterError::MissingInput { tensor, reduction });
    for reduction in [Reduction::Mul, Reduction::Min, Reduction::Max] {
        let scatter = scatter.clone().reduction(reduction);
        let refused = scatter.backward(gradient, Forward::updates(updates), at(), 1.0);
        assert_eq!(refused.err(), missing("data", reduction));
        let scatter = scatter.include_self(false);
        let refused = scatter.backward(gradient, none(), at(), 1.0);
        assert_eq!(refused.err(), missing("updates", reduction));
        let done = scatter.backward(gradient, Forward::updates(updates), at(), 1.0);
        done.expect("data is excluded");
    }
    let other = |tensor, expected: &[usize], actual: &[usize]| ScatterError::GradientShape {
        tensor,
        expected: expected.to_vec(),
        actual: actual.to_vec(),
    };
    let refused = scatter.backward(gradient, Forward::new(updates, updates), at(), 1.0);
    assert_eq!(refused.err(), Some(other("data", &[3], &[2])));
    let refused = scatter.backward(gradient, Forward::updates(gradient), at(), 1.0);
    assert_eq!(refused.err(), Some(other("updates", &[2], &[3])));
    let (mut of_data, mut of_updates) = ([9.0_f32; 2], [9.0_f32; 2]);
    let written = Gradients::new(
        TensorViewMut::from(&mut of_data),
        TensorViewMut::from(&mut of_updates),
    );
    let refused = scatter.backward_into(gradient, none(), at(), 1.0, written);
    assert_eq!(refused, Err(other("grad_data", &[3], &[2])));
    let (mut of_data, mut of_updates) = ([9.0_f32; 3], [9.0_f32; 3]);
    let written = Gradients::new(
        TensorViewMut::from(&mut of_data),
        TensorViewMut::from(&mut of_updates),
    );
    let refused = scatter.backward_into(gradient, none(), at(), 1.0, written);
    assert_eq!(refused, Err(other("grad_updates", &[2], &[3])));
    let plan = scatter
        .plan(Layout::contiguous(&[3]), at())
        .expect("a plan");
    let refused = plan.run().backward(updates, none(), 1.0);
    assert_eq!(refused.err(), Some(other("grad_output", &[3], &[2])));
    let cache = Scatter::cache(1, ndscatter::CacheMode::Linear);
    let rows = TensorView::contiguous(&three, &[1, 3]).expect("a row");
    let refused = cache
        .reduction(Reduction::Add)
        .backward(rows, none(), at(), 1.0);
    let option = "reduction";
    assert_eq!(
        refused.err(),
        Some(ScatterError::UnsupportedOption { option })
    );
    #[cfg(feature = "complex")]
    {
        let numbers = [num_complex::Complex::new(1.0_f32, 2.0); 3];
        let (gradient, updates) = (TensorView::from(&numbers), TensorView::from(&numbers[..2]));
        let reduction = Reduction::Min;
        let refused = scatter.clone().reduction(reduction).backward(
            gradient,
            Forward::new(gradient, updates),
            at(),
            1.0,
        );
        let dtype = DType::Complex64;
        let expected = ScatterError::UnsupportedReduction { reduction, dtype };
        assert_eq!(refused.err(), Some(expected));
    }
    #[cfg(feature = "complex")]
    {
        // The error does not depend on the factor, the indices and missing inputs.
        let numbers = [num_complex::Complex::new(1.0_f32, 2.0); 3];
        let reduction = Reduction::Max;
        let at = TensorView::from(&[7_i64, 7]);
        let scatter = scatter.clone().reduction(reduction);
        let refused = scatter.backward(TensorView::from(&numbers), Forward::none(), at, 0.0);
        let dtype = DType::Complex64;
        let expected = ScatterError::UnsupportedReduction { reduction, dtype };
        assert_eq!(refused.err(), Some(expected));
    }
    // Gradients of a dtype that differs from the saved data.
    let mut data = three;
    let saved = scatter
        .reduction(Reduction::Max)
        .forward_in_place(TensorViewMut::from(&mut data), at(), updates)
        .expect("the call is valid");
    let wide = TensorView::from(&[1.0_f64, 2.0, 3.0]);
    let forward = Forward::updates(TensorView::from(&[1.0_f64, 2.0]));
    let refused = saved.run().backward(wide, forward, 1.0);
    let expected = ScatterError::DTypeMismatch {
        tensor: "data",
        expected: DType::F64,
        actual: DType::F32,
    };
    assert_eq!(refused.err(), Some(expected));
}
