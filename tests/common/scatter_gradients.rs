//! Runs every method that computes the gradients of a scatter, and compares them with their
//! definitions.

#![allow(
    unsafe_code,
    reason = "tensors of a foreign runtime are passed as raw parts"
)]

use ndscatter::{
    AnyView, AnyViewMut, Forward, Gradients, Layout, NoneGradient, ScatterError, ScatterRun,
    TensorView, TensorViewMut,
};

use super::Tensor;
use super::api::{Indices, Options};
use super::elements::{Palette, compare};
use super::gradients::{Graded, Inputs, SCALES, of_scatter};
use super::layouts::{Arrangement, Strided};
use super::random::Random;
use super::small::place;

/// The gradient of a scatter's output, and the expected gradients of its inputs.
pub(crate) struct Problem<'i, T> {
    indices: &'i dyn Indices,
    gradient: Strided<T>,
    data: Strided<T>,
    updates: Strided<T>,
    /// Outputs of the backward pass: the gradients of data and of updates.
    written: [Strided<T>; 2],
    expected: [Tensor<T>; 2],
    /// The outputs after the backward pass. Gaps and margins keep their values.
    expected_outputs: [Strided<T>; 2],
    /// The gradient in the layout of the gradient of data.
    gradient_in_place: Strided<T>,
    none_gradient: NoneGradient,
    scale: f64,
}

impl<'i, T: Graded> Problem<'i, T> {
    pub(crate) fn new(
        options: &Options<'_>,
        data: &[usize],
        indices: &'i dyn Indices,
        (palette, scale): (Palette, f64),
        random: &mut Random,
    ) -> Self {
        let logical = indices.logical();
        let updates_shape = options.operator.updates_shape(data, &logical.shape);
        let draw = |shape: &[usize], random: &mut Random| {
            // Half of the tensors have at most four different values, which makes ties and zeros
            // likely.
            let few = random.one_in(2);
            let pool: Vec<T> = (0..3).map(|_| T::sample(palette, random)).collect();
            let value = |random: &mut Random| match few {
                true => random.pick(&[pool[0], pool[1], pool[2], T::zero_value()]),
                false => T::sample(palette, random),
            };
            Tensor::generate(shape, || value(random))
        };
        let input = |shape: &[usize], random: &mut Random| {
            let tensor = draw(shape, random);
            place(&tensor, &Arrangement::INPUTS, random)
        };
        let gradient = input(data, random);
        // The layout of data suits an output, because a scatter in place begins with data.
        let values = draw(data, random);
        let values = place(&values, &Arrangement::OUTPUTS, random);
        let updates = input(&updates_shape, random);
        let inputs = Inputs {
            gradient: gradient.read(),
            data: values.read(),
            updates: updates.read(),
        };
        let none_gradient = random.pick(&[NoneGradient::LastWrite, NoneGradient::EveryDuplicate]);
        let (operator, rules) = (options.operator, options.rules());
        let mut marked = |shape: &[usize]| {
            let arrangement = random.pick(&Arrangement::OUTPUTS);
            Strided::marked(shape, arrangement, 1, T::sentinel())
        };
        let written = [marked(data), marked(&updates_shape)];
        let expected = of_scatter(operator, rules, none_gradient, &logical, &inputs, scale);
        Self {
            indices,
            gradient_in_place: written[0].with(&inputs.gradient),
            expected_outputs: [0, 1].map(|number| written[number].with(&expected[number])),
            expected,
            written,
            gradient,
            data: values,
            updates,
            none_gradient,
            scale,
        }
    }

    fn forward(&self) -> Forward<TensorView<'_, T>> {
        Forward::new(self.data.view(), self.updates.view())
    }

    /// Checks every method that computes the gradient.
    pub(crate) fn check(&self, options: &Options<'_>) {
        let scatter = options.scatter().none_gradient(self.none_gradient);
        let (gradient, indices, scale) = (self.gradient.view(), self.indices, self.scale);
        self.check_written(options, "into", |wanted| {
            scatter.backward_into(gradient, self.forward(), indices.typed(), scale, wanted)
        });
        let made = scatter.backward(gradient, self.forward(), indices.typed(), scale);
        let (data, updates) = made.expect("the indices are valid");
        self.compare(options, "allocated", [&data, &updates]);
        self.check_in_place(options);
        let plan = scatter.plan(Layout::contiguous(self.data.shape()), indices.typed());
        let plan = plan.expect("the indices are valid");
        let run = options.run(&plan);
        for _ in 0..2 {
            self.check_written(options, "planned", |wanted| {
                run.backward_into(gradient, self.forward(), scale, wanted)
            });
        }
        self.check_saved(options);
    }

    /// Checks a gradient of data that is written over the gradient of the output.
    fn check_in_place(&self, options: &Options<'_>) {
        let scatter = options.scatter().none_gradient(self.none_gradient);
        let shape = self.gradient.shape();
        let mut data = self.gradient_in_place.clone();
        let mut updates = self.written[1].clone();
        let strides = data.layout().strides().map(<[isize]>::to_vec);
        let layout = match &strides {
            Some(strides) => Layout::strided(shape, strides).expect("the tensor's own strides"),
            None => Layout::contiguous(shape),
        };
        let first = data.first_mut();
        // SAFETY: pointer and layout are those of the tensor `data`. No other reference uses its
        // elements during the call.
        let (gradient, grad_data) = unsafe {
            (
                AnyView::from_raw_parts(first.cast_const().cast(), T::DTYPE, layout),
                AnyViewMut::from_raw_parts(first.cast(), T::DTYPE, layout),
            )
        };
        let [gradient, forward_data, forward_updates] = [
            gradient.expect("a view"),
            self.data.view().into(),
            self.updates.view().into(),
        ];
        let wanted = Gradients::new(
            grad_data.expect("a view"),
            AnyViewMut::from(updates.view_mut()),
        );
        let forward = Forward::new(forward_data, forward_updates);
        let (indices, scale) = (self.indices.any(), self.scale);
        scatter
            .backward_into(gradient, forward, indices, scale, wanted)
            .expect("the indices are valid");
        self.compare_output(options, "in place", 0, &data);
        self.compare_output(options, "in place", 1, &updates);
    }

    /// Checks the gradient after each method of a forward pass that saves data.
    fn check_saved(&self, options: &Options<'_>) {
        let scatter = options.scatter().none_gradient(self.none_gradient);
        let (data, updates) = (self.data.view(), self.updates.view());
        let (made, saved) = scatter
            .forward(data, self.indices.typed(), updates)
            .expect("the indices are valid");
        let plain = scatter.allocate(data, self.indices.typed(), updates);
        compare(&made, &plain.expect("the indices are valid"), false).expect("equal outputs");
        assert_eq!(
            saved.bytes(),
            0,
            "no data is saved, because the caller keeps it"
        );
        self.check_run(options, "saved", saved.run(), self.forward());

        let mut output = self.data.clone();
        let saved = scatter
            .forward_in_place(output.view_mut(), self.indices.typed(), updates)
            .expect("the indices are valid");
        compare(&output.read().values, &made, false).expect("equal outputs");
        let touched = saved.bytes();
        assert!(
            touched <= made.len() * size_of::<T>(),
            "at most the whole tensor is saved"
        );
        let forward = Forward::updates(updates);
        self.check_run(options, "saved in place", saved.run(), forward);
    }

    fn check_run(
        &self,
        options: &Options<'_>,
        way: &str,
        run: ScatterRun<'_>,
        forward: Forward<TensorView<'_, T>>,
    ) {
        let run = run.execution(options.execution.execution);
        let gradient = self.gradient.view();
        self.check_written(options, way, |wanted| {
            run.backward_into(gradient, forward, self.scale, wanted)
        });
        let (data, updates) = run
            .backward(gradient, forward, self.scale)
            .expect("a plan of the shape");
        self.compare(options, way, [&data, &updates]);
    }

    /// Checks both gradients together, and each gradient alone.
    fn check_written(
        &self,
        options: &Options<'_>,
        way: &str,
        call: impl Fn(Gradients<TensorViewMut<'_, T>>) -> Result<(), ScatterError>,
    ) {
        for wanted in [[true, true], [true, false], [false, true]] {
            let [mut data, mut updates] = self.written.clone();
            call(Gradients {
                data: wanted[0].then(|| data.view_mut()),
                updates: wanted[1].then(|| updates.view_mut()),
            })
            .unwrap_or_else(|error| panic!("{way}, {options:?}: {error}"));
            for (number, got) in [data, updates].into_iter().enumerate() {
                if wanted[number] {
                    self.compare_output(options, way, number, &got);
                } else {
                    let same = compare(&got.buffer, &self.written[number].buffer, true);
                    same.unwrap_or_else(|what| {
                        panic!("{way}, an output that is not asked for: {what}")
                    });
                }
            }
        }
    }

    /// Compares an output with its expected values, and its gaps and margins with their old values.
    fn compare_output(&self, options: &Options<'_>, way: &str, number: usize, got: &Strided<T>) {
        let expected = &self.expected_outputs[number].buffer;
        self.compare_one(options, way, number, (&got.buffer, expected));
    }

    fn compare(&self, options: &Options<'_>, way: &str, got: [&[T]; 2]) {
        for (number, got) in got.into_iter().enumerate() {
            self.compare_one(options, way, number, (got, &self.expected[number].values));
        }
    }

    fn compare_one(
        &self,
        options: &Options<'_>,
        way: &str,
        number: usize,
        (got, expected): (&[T], &[T]),
    ) {
        compare(got, expected, false).unwrap_or_else(|difference| {
            let mut logical = self.indices.logical();
            logical.values.truncate(40);
            let (shape, values) = (logical.shape, logical.values);
            let of = ["data", "updates"][number];
            let (dtype, scale, none) = (T::DTYPE, self.scale, self.none_gradient);
            let data = self.data.shape();
            panic!("for {of}, {way}, {dtype}, {scale}, {none:?}, {options:?}, {data:?}, {shape:?}, {values:?}: {difference}");
        });
    }
}

/// Checks the gradients of a scatter, or the error of its indices. Values, layouts and the factor are
/// drawn at random.
pub(crate) fn check<T: Graded>(
    options: &Options<'_>,
    data: &[usize],
    indices: &dyn Indices,
    random: &mut Random,
) {
    let refusal = (options.operator).refusal(options.refusals(), data, &indices.logical());
    if let Some(error) = refusal {
        check_refused::<T>(options, data, indices, &error);
        return;
    }
    let values = (random.pick(&Palette::ALL), random.pick(&SCALES));
    Problem::<T>::new(options, data, indices, values, random).check(options);
}

fn check_refused<T: Graded>(
    options: &Options<'_>,
    data: &[usize],
    indices: &dyn Indices,
    error: &ScatterError,
) {
    let updates = options
        .operator
        .updates_shape(data, &indices.logical().shape);
    let zeros = |shape: &[usize]| {
        let zeros = Tensor::generate(shape, T::zero_value);
        Strided::new(&zeros, Arrangement::Contiguous, 0, T::sentinel())
    };
    let marked =
        |shape: &[usize]| Strided::marked(shape, Arrangement::Contiguous, 0, T::sentinel());
    let (values, added) = (zeros(data), zeros(&updates));
    let (mut of_data, mut of_updates) = (marked(data), marked(&updates));
    let refused = options.scatter().backward_into(
        values.view(),
        Forward::new(values.view(), added.view()),
        indices.typed(),
        1.0,
        Gradients::new(of_data.view_mut(), of_updates.view_mut()),
    );
    assert_eq!(refused.as_ref(), Err(error), "{options:?}");
    for written in [of_data, of_updates] {
        let untouched = written.buffer.iter().all(|&value| value == T::sentinel());
        assert!(untouched, "the output was written before the error");
    }
}
