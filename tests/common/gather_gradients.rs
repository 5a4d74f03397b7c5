//! Runs every method that computes the gradient of a gather, and compares it with its definition.

use ndscatter::{AnyView, AnyViewMut, Layout, ScatterError, TensorViewMut};

use super::Tensor;
use super::api::{GatherOptions, Indices};
use super::elements::{Palette, compare};
use super::gradients::{Graded, SCALES, of_gather};
use super::layouts::{Arrangement, Strided};
use super::random::Random;
use super::small::place;

/// The gradient of a gather's result, and the output for the gradient of its data.
pub(crate) struct Problem<'i, T> {
    indices: &'i dyn Indices,
    gradient: Strided<T>,
    data: Strided<T>,
    expected: Tensor<T>,
    /// The output after the call. Gaps and margins keep their values.
    expected_output: Strided<T>,
    scale: f64,
}

impl<'i, T: Graded> Problem<'i, T> {
    pub(crate) fn new(
        options: &GatherOptions<'_>,
        data: &[usize],
        indices: &'i dyn Indices,
        (palette, scale): (Palette, f64),
        random: &mut Random,
    ) -> Self {
        let logical = indices.logical();
        let shape = options.gatherer.output_shape(data, &logical.shape);
        let gradient = Tensor::generate(&shape, || T::sample(palette, random));
        let gradient = place(&gradient, &Arrangement::INPUTS, random);
        let arrangement = random.pick(&Arrangement::OUTPUTS);
        let (gatherer, rule) = (options.gatherer, options.rule);
        let expected = of_gather(gatherer, rule, data, &logical, &gradient.read(), scale);
        let data = Strided::marked(data, arrangement, 1, T::sentinel());
        Self {
            indices,
            expected_output: data.with(&expected),
            expected,
            data,
            gradient,
            scale,
        }
    }

    /// Checks every method that computes the gradient.
    pub(crate) fn check(&self, options: &GatherOptions<'_>) {
        let (gather, scale) = (options.gather(), self.scale);
        let (gradient, indices) = (self.gradient.view(), self.indices);
        self.check_written(options, "into", |data| {
            gather.backward_into(gradient, indices.typed(), scale, data)
        });
        self.check_written(options, "any", |data| {
            let (gradient, data) = (AnyView::from(gradient), AnyViewMut::from(data));
            gather.backward_into(gradient, indices.any(), scale, data)
        });
        let plan = gather.plan(self.data.layout(), indices.typed());
        let plan = plan.expect("the indices are valid");
        let run = plan.run().execution(options.execution);
        for _ in 0..2 {
            self.check_written(options, "planned", |data| {
                run.backward_into(gradient, scale, data)
            });
        }
        let shape = self.data.shape();
        let made = gather.backward(gradient, shape, indices.typed(), scale);
        let made = made.expect("the indices are valid");
        assert_eq!(made.shape(), shape, "the shape of data");
        self.compare(options, "allocated", (&made, &self.expected.values));
        let plan = gather.plan(Layout::contiguous(shape), indices.typed());
        let run = plan.expect("the indices are valid");
        let run = run.run().execution(options.execution);
        let made = run.backward(gradient, scale).expect("a plan of the shape");
        self.compare(
            options,
            "planned, allocated",
            (&made, &self.expected.values),
        );
    }

    fn check_written(
        &self,
        options: &GatherOptions<'_>,
        way: &str,
        call: impl FnOnce(TensorViewMut<'_, T>) -> Result<(), ScatterError>,
    ) {
        let mut data = self.data.clone();
        call(data.view_mut()).expect("the indices are valid");
        self.compare(options, way, (&data.buffer, &self.expected_output.buffer));
    }

    fn compare(&self, options: &GatherOptions<'_>, way: &str, (got, expected): (&[T], &[T])) {
        compare(got, expected, false).unwrap_or_else(|difference| {
            let mut logical = self.indices.logical();
            logical.values.truncate(40);
            let (shape, values) = (logical.shape, logical.values);
            let (dtype, scale) = (T::DTYPE, self.scale);
            panic!("{way}, {dtype}, {scale}, {options:?}, {shape:?}, {values:?}: {difference}");
        });
    }
}

/// Checks the gradient of a gather, or the error of its indices. Values, layouts and the factor are
/// drawn at random.
pub(crate) fn check<T: Graded>(
    options: &GatherOptions<'_>,
    data: &[usize],
    indices: &dyn Indices,
    random: &mut Random,
) {
    let (gatherer, logical) = (options.gatherer, indices.logical());
    if let Some(error) = gatherer.refusal(options.rule, data, &logical) {
        let shape = gatherer.output_shape(data, &logical.shape);
        let gradient = Tensor::generate(&shape, T::zero_value);
        let gradient = Strided::new(&gradient, Arrangement::Contiguous, 0, T::sentinel());
        let mut sums = Strided::marked(data, Arrangement::Contiguous, 0, T::sentinel());
        let view = sums.view_mut();
        let gather = options.gather();
        let refused = gather.backward_into(gradient.view(), indices.typed(), 1.0, view);
        assert_eq!(refused, Err(error), "{options:?}");
        let untouched = sums.buffer.iter().all(|&value| value == T::sentinel());
        assert!(untouched, "the output was written before the error");
        return;
    }
    let values = (random.pick(&Palette::ALL), random.pick(&SCALES));
    Problem::<T>::new(options, data, indices, values, random).check(options);
}
