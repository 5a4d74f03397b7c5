//! Runs a problem through one method of the crate and compares the output with the reference.
//!
//! A [`Problem`] is a scatter, and a [`GatherProblem`] is a gather: tensors in memory, without the
//! method that runs them. The comparison covers every bit of the output's buffer. It includes gaps
//! and margins, which a correct call does not change.

use ndscatter::{GatherPlan, ScatterError, ScatterPlan, TensorViewMut};

use super::Tensor;
use super::api::{GatherOptions, Made, Methods};
pub(crate) use super::api::{Indices, Method, Options, in_place, write_into};
use super::elements::{Ref, compare, is_exact};
use super::layouts::{Arrangement, Strided};
pub(crate) use super::operators::Operator;

/// Tensors of one run. A plan is run with several rounds.
#[derive(Clone, Debug)]
pub(crate) struct Round<T> {
    pub(crate) data: Strided<T>,
    pub(crate) updates: Strided<T>,
}

/// A scatter without the method that runs it.
pub(crate) struct Problem<'i, T> {
    pub(crate) indices: &'i dyn Indices,
    /// Inputs of the runs. A plan runs all rounds. Other methods run the first round.
    pub(crate) rounds: Vec<Round<T>>,
    /// Layout of the output, unless the crate allocates it.
    pub(crate) output: Arrangement,
    /// Number of marked elements before and after the output.
    pub(crate) margin: usize,
}

impl<T: Ref> Problem<'_, T> {
    /// Runs `method`. An `Err` describes the difference between output and reference.
    pub(crate) fn check(&self, method: Method, options: &Options<'_>) -> Result<(), String> {
        let rounds = if method.is_planned() {
            self.rounds.len()
        } else {
            1
        };
        self.check_against(method, options, &self.expected(options, rounds))
    }

    /// Computes the expected outputs of the first `rounds` rounds.
    pub(crate) fn expected(&self, options: &Options<'_>, rounds: usize) -> Vec<Tensor<T>> {
        let indices = self.indices.logical();
        let expected = |Round { data, updates }: &Round<T>| {
            let (data, updates) = (data.read(), updates.read());
            (options.operator).expected(options.rules(), &data, &indices, &updates)
        };
        self.rounds[..rounds].iter().map(expected).collect()
    }

    /// Runs [`Self::check`] with outputs that were computed before, so that several methods share
    /// them. A planned method runs as many rounds as `expected` has entries.
    pub(crate) fn check_against(
        &self,
        method: Method,
        options: &Options<'_>,
        expected: &[Tensor<T>],
    ) -> Result<(), String> {
        let plan = method.is_planned().then(|| self.plan(method, options));
        let plan = plan.transpose();
        let plan = plan.map_err(|error| format!("planning: {error}"))?;
        for (number, (round, expected)) in self.rounds.iter().zip(expected).enumerate() {
            let inputs = (round.data.view(), round.updates.view());
            let run = |output: TensorViewMut<'_, T>| {
                method.scatter(options, self.indices, plan.as_ref(), inputs, output)
            };
            let exact = is_exact(options.execution.reduction);
            check_output(self.start(method, round), expected, exact, run)
                .map_err(|difference| format!("{method:?}, run {number}: {difference}"))?;
        }
        Ok(())
    }

    /// Checks that `method` fails with this error, or with any error, and that the output keeps its
    /// values.
    pub(crate) fn check_refused(
        &self,
        method: Method,
        options: &Options<'_>,
        expected: Option<&ScatterError>,
    ) -> Result<(), String> {
        let round = &self.rounds[0];
        let mut output = self.start(method, round);
        let before = output.buffer.clone();
        let plan = method.is_planned().then(|| self.plan(method, options));
        let error = match plan.transpose() {
            Err(error) => Some(error),
            Ok(plan) => {
                let (plan, inputs) = (plan.as_ref(), (round.data.view(), round.updates.view()));
                let output = output.view_mut();
                let made = method.scatter(options, self.indices, plan, inputs, output);
                made.err()
            }
        };
        check_error(error.as_ref(), expected)
            .and_then(|()| check_untouched(&output.buffer, &before))
            .map_err(|difference| format!("{method:?}: {difference}"))
    }

    /// Creates the output before the call: data for a method in place, else memory filled with
    /// marks.
    fn start(&self, method: Method, round: &Round<T>) -> Strided<T> {
        let arrangement = if method.allocates() {
            Arrangement::Contiguous
        } else {
            self.output
        };
        let shape = round.data.shape();
        let mut start = Strided::marked(shape, arrangement, self.margin, T::sentinel());
        if method.is_in_place() {
            start.write(&round.data.read());
        }
        start
    }

    /// Makes a plan for the layout of the output that `method` writes.
    pub(crate) fn plan(
        &self,
        method: Method,
        options: &Options<'_>,
    ) -> Result<ScatterPlan, ScatterError> {
        let output = self.start(method, &self.rounds[0]);
        self.indices.plan(options, output.layout())
    }
}

/// Runs `run` and compares the result with `expected`. The result is the tensor that `run` returns,
/// or the contents of `output`. Gaps and margins of `output` must keep their values.
pub(crate) fn check_output<T: Ref>(
    output: Strided<T>,
    expected: &Tensor<T>,
    exact: bool,
    run: impl FnOnce(TensorViewMut<'_, T>) -> Made<T>,
) -> Result<(), String> {
    check_run(output, Some(expected), true, exact, run)
}

/// Runs `run`, which may fail unless `is_required`. An `Ok` must be `expected`. After an error the
/// output must have its old contents.
pub(crate) fn check_run<T: Ref>(
    mut output: Strided<T>,
    expected: Option<&Tensor<T>>,
    is_required: bool,
    exact: bool,
    run: impl FnOnce(TensorViewMut<'_, T>) -> Made<T>,
) -> Result<(), String> {
    let mut wanted = output.clone();
    match (run(output.view_mut()), expected) {
        (Ok(Some(made)), Some(expected)) => compare(&made, &expected.values, exact),
        (Ok(None), Some(expected)) => {
            wanted.write(expected);
            compare(&output.buffer, &wanted.buffer, exact)
        }
        (Ok(_), None) => Err("the call succeeded".to_owned()),
        (Err(error), _) if is_required => Err(format!("the call failed: {error}")),
        (Err(_), _) => check_untouched(&output.buffer, &wanted.buffer),
    }
}

/// A gather without the method that runs it.
pub(crate) struct GatherProblem<'i, T> {
    pub(crate) indices: &'i dyn Indices,
    /// Two tensors of one layout. A plan runs both. Other methods run the first.
    pub(crate) data: [Strided<T>; 2],
    /// Layout of the output, unless the crate allocates it.
    pub(crate) output: Arrangement,
    /// Number of marked elements before and after the output.
    pub(crate) margin: usize,
}

impl<T: Ref> GatherProblem<'_, T> {
    /// Runs `method`. An `Err` describes the difference between output and reference.
    pub(crate) fn check(&self, method: Method, options: &GatherOptions<'_>) -> Result<(), String> {
        self.check_against(method, options, &self.expected(options))
    }

    /// Computes the expected outputs for both data tensors.
    pub(crate) fn expected(&self, options: &GatherOptions<'_>) -> [Tensor<T>; 2] {
        let indices = self.indices.logical();
        (self.data.each_ref())
            .map(|data| (options.gatherer).expected(options.rule, &data.read(), &indices))
    }

    /// Runs [`Self::check`] with outputs that were computed before, so that several methods share
    /// them.
    pub(crate) fn check_against(
        &self,
        method: Method,
        options: &GatherOptions<'_>,
        expected: &[Tensor<T>; 2],
    ) -> Result<(), String> {
        let plan = |()| self.indices.plan_gather(options, self.data[0].layout());
        let plan = method.is_planned().then_some(()).map(plan).transpose();
        let plan = plan.map_err(|error| format!("planning: {error}"))?;
        let rounds = if method.is_planned() { 2 } else { 1 };
        for (data, expected) in self.data.iter().zip(expected).take(rounds) {
            self.check_round(method, options, plan.as_ref(), data, expected)
                .map_err(|difference| format!("{method:?}: {difference}"))?;
        }
        Ok(())
    }

    fn check_round(
        &self,
        method: Method,
        options: &GatherOptions<'_>,
        plan: Option<&GatherPlan>,
        data: &Strided<T>,
        expected: &Tensor<T>,
    ) -> Result<(), String> {
        if let Some(plan) = plan.filter(|plan| plan.output_shape() != expected.shape) {
            return Err(format!(
                "the plan's output shape is {:?}",
                plan.output_shape()
            ));
        }
        check_output(self.start(&expected.shape), expected, true, |output| {
            method.gather(options, self.indices, plan, data.view(), output)
        })
    }

    /// Creates an output that is filled with marks.
    fn start(&self, shape: &[usize]) -> Strided<T> {
        Strided::marked(shape, self.output, self.margin, T::sentinel())
    }

    /// Checks that every method fails with this error, and that the output keeps its values.
    pub(crate) fn check_all_refused(
        &self,
        options: &GatherOptions<'_>,
        expected: &ScatterError,
    ) -> Result<(), String> {
        let indices = self.indices.logical().shape;
        let shape = (options.gatherer).output_shape(self.data[0].shape(), &indices);
        let check = |method| self.check_refused(method, options, &shape, Some(expected));
        Method::of_gathers().try_for_each(check)
    }

    /// Checks that `method` fails with this error, or with any error, and that the output keeps its
    /// values. `shape` is the shape of the output.
    pub(crate) fn check_refused(
        &self,
        method: Method,
        options: &GatherOptions<'_>,
        shape: &[usize],
        expected: Option<&ScatterError>,
    ) -> Result<(), String> {
        let data = &self.data[0];
        let mut output = self.start(shape);
        let before = output.buffer.clone();
        let plan = || self.indices.plan_gather(options, data.layout());
        let error = match method.is_planned().then(plan).transpose() {
            Err(error) => Some(error),
            Ok(plan) => {
                let (plan, output) = (plan.as_ref(), output.view_mut());
                let made = method.gather(options, self.indices, plan, data.view(), output);
                made.err()
            }
        };
        check_error(error.as_ref(), expected)
            .and_then(|()| check_untouched(&output.buffer, &before))
            .map_err(|difference| format!("{method:?}: {difference}"))
    }
}

/// Checks that a call failed with the expected error, or with any error.
fn check_error(got: Option<&ScatterError>, expected: Option<&ScatterError>) -> Result<(), String> {
    match got {
        Some(_) if expected.is_none() || got == expected => Ok(()),
        _ => Err(format!("the error is {got:?}, not {expected:?}")),
    }
}

/// Checks that a call that failed wrote nothing.
pub(crate) fn check_untouched<T: Ref>(output: &[T], before: &[T]) -> Result<(), String> {
    compare(output, before, true)
        .map_err(|at| format!("the output was written before the error: {at}"))
}
