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
    mut output: Strided<T>,
    expected: &Tensor<T>,
    exact: bool,
    run: impl FnOnce(TensorViewMut<'_, T>) -> Made<T>,
) -> Result<(), String> {
    let mut wanted = output.clone();
    let made = run(output.view_mut()).map_err(|error| format!("the call failed: {error}"))?;
    if let Some(values) = made {
        return compare(&values, &expected.values, exact);
    }
    wanted.write(expected);
    compare(&output.buffer, &wanted.buffer, exact)
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

    /// Checks that three methods return `expected`: allocate, plan and write into. The last must
    /// not write.
    pub(crate) fn check_refused(
        &self,
        options: &GatherOptions<'_>,
        expected: &ScatterError,
        what: &str,
    ) {
        let data = &self.data[0];
        let got = self.indices.gather(options, data.view()).err();
        assert_eq!(got.as_ref(), Some(expected), "{what}, allocated");
        let got = self.indices.plan_gather(options, data.layout()).err();
        assert_eq!(got.as_ref(), Some(expected), "{what}, planned");
        let indices = self.indices.logical().shape;
        let shape = (options.gatherer).output_shape(data.shape(), &indices);
        let mut output = self.start(&shape);
        let before = output.clone();
        let view = output.view_mut();
        let got = self.indices.gather_into(options, data.view(), view).err();
        assert_eq!(got.as_ref(), Some(expected), "{what}, written");
        let same = compare(&output.buffer, &before.buffer, true);
        same.unwrap_or_else(|at| panic!("{what}: the output was written before the error: {at}"));
    }
}
