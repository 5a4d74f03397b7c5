//! Runs a problem through each verb of the crate and holds what becomes of
//! the output, gaps and margins included, against the reference.

use ndscatter::{GatherPlan, ScatterError, ScatterPlan, TensorViewMut};

use super::Tensor;
use super::api::{GatherOptions, Made, Verbs};
pub(crate) use super::api::{Indices, Options, Verb, in_place, write_into};
use super::elements::{Ref, compare, is_exact};
use super::layouts::{Arrangement, Strided};
pub(crate) use super::operators::Operator;

/// What may change from run to run of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Round<T> {
    pub(crate) data: Strided<T>,
    pub(crate) updates: Strided<T>,
}

/// A scatter but for the way to run it.
pub(crate) struct Problem<'i, T> {
    pub(crate) indices: &'i dyn Indices,
    /// A plan runs all of them, other verbs the first.
    pub(crate) rounds: Vec<Round<T>>,
    /// How the output lies where the crate does not allocate it.
    pub(crate) output: Arrangement,
    /// Marks before and after the output.
    pub(crate) margin: usize,
}

impl<T: Ref> Problem<'_, T> {
    /// Runs `verb`; `Err` says how output and reference differ.
    pub(crate) fn check(&self, verb: Verb, options: &Options<'_>) -> Result<(), String> {
        let rounds = if verb.is_planned() {
            self.rounds.len()
        } else {
            1
        };
        self.check_against(verb, options, &self.expected(options, rounds))
    }

    /// What becomes of so many rounds.
    pub(crate) fn expected(&self, options: &Options<'_>, rounds: usize) -> Vec<Tensor<T>> {
        let indices = self.indices.logical();
        let expected = |Round { data, updates }: &Round<T>| {
            let (data, updates) = (data.read(), updates.read());
            (options.operator).expected(options.rules(), &data, &indices, &updates)
        };
        self.rounds[..rounds].iter().map(expected).collect()
    }

    /// [`Self::check`] by expectations that serve more than once: of one round
    /// or, where a plan is run, of any number.
    pub(crate) fn check_against(
        &self,
        verb: Verb,
        options: &Options<'_>,
        expected: &[Tensor<T>],
    ) -> Result<(), String> {
        let plan = verb.is_planned().then(|| self.plan(verb, options));
        let plan = plan.transpose();
        let plan = plan.map_err(|error| format!("planning: {error}"))?;
        for (number, (round, expected)) in self.rounds.iter().zip(expected).enumerate() {
            let inputs = (round.data.view(), round.updates.view());
            let run = |output: TensorViewMut<'_, T>| {
                verb.scatter(options, self.indices, plan.as_ref(), inputs, output)
            };
            let exact = is_exact(options.execution.reduction);
            check_output(self.start(verb, round), expected, exact, run)
                .map_err(|difference| format!("{verb:?}, run {number}: {difference}"))?;
        }
        Ok(())
    }

    /// What `verb` finds: data to change, or memory of which nothing is right
    /// yet.
    fn start(&self, verb: Verb, round: &Round<T>) -> Strided<T> {
        let arrangement = if verb.allocates() {
            Arrangement::Contiguous
        } else {
            self.output
        };
        let shape = round.data.shape();
        let mut start = Strided::marked(shape, arrangement, self.margin, T::sentinel());
        if verb.is_in_place() {
            start.write(&round.data.read());
        }
        start
    }

    /// Plans for the layout that `verb` writes.
    pub(crate) fn plan(
        &self,
        verb: Verb,
        options: &Options<'_>,
    ) -> Result<ScatterPlan, ScatterError> {
        let output = self.start(verb, &self.rounds[0]);
        self.indices.plan(options, output.layout())
    }
}

/// Has `run` write to `output`, or make a result of its own, and compares that
/// with `expected`; what lies around the output must stay as it is.
pub(crate) fn check_output<T: Ref>(
    mut output: Strided<T>,
    expected: &Tensor<T>,
    exact: bool,
    run: impl FnOnce(TensorViewMut<'_, T>) -> Made<T>,
) -> Result<(), String> {
    let mut wanted = output.clone();
    let made = run(output.view_mut()).map_err(|error| format!("refused: {error}"))?;
    if let Some(values) = made {
        return compare(&values, &expected.values, exact);
    }
    wanted.write(expected);
    compare(&output.buffer, &wanted.buffer, exact)
}

/// A gather but for the way to run it.
pub(crate) struct GatherProblem<'i, T> {
    pub(crate) indices: &'i dyn Indices,
    /// Two tensors of one layout: a plan runs both, other verbs the first.
    pub(crate) data: [Strided<T>; 2],
    /// How the output lies where the crate does not allocate it.
    pub(crate) output: Arrangement,
    /// Marks before and after the output.
    pub(crate) margin: usize,
}

impl<T: Ref> GatherProblem<'_, T> {
    /// Runs `verb`; `Err` says how output and reference differ.
    pub(crate) fn check(&self, verb: Verb, options: &GatherOptions<'_>) -> Result<(), String> {
        self.check_against(verb, options, &self.expected(options))
    }

    /// What becomes of both tensors.
    pub(crate) fn expected(&self, options: &GatherOptions<'_>) -> [Tensor<T>; 2] {
        let indices = self.indices.logical();
        (self.data.each_ref())
            .map(|data| (options.gatherer).expected(options.rule, &data.read(), &indices))
    }

    /// [`Self::check`] by an expectation that serves more than once.
    pub(crate) fn check_against(
        &self,
        verb: Verb,
        options: &GatherOptions<'_>,
        expected: &[Tensor<T>; 2],
    ) -> Result<(), String> {
        let plan = |()| self.indices.plan_gather(options, self.data[0].layout());
        let plan = verb.is_planned().then_some(()).map(plan).transpose();
        let plan = plan.map_err(|error| format!("planning: {error}"))?;
        let rounds = if verb.is_planned() { 2 } else { 1 };
        for (data, expected) in self.data.iter().zip(expected).take(rounds) {
            self.check_round(verb, options, plan.as_ref(), data, expected)
                .map_err(|difference| format!("{verb:?}: {difference}"))?;
        }
        Ok(())
    }

    fn check_round(
        &self,
        verb: Verb,
        options: &GatherOptions<'_>,
        plan: Option<&GatherPlan>,
        data: &Strided<T>,
        expected: &Tensor<T>,
    ) -> Result<(), String> {
        if let Some(plan) = plan.filter(|plan| plan.output_shape() != expected.shape) {
            return Err(format!("planned for {:?}", plan.output_shape()));
        }
        check_output(self.start(&expected.shape), expected, true, |output| {
            verb.gather(options, self.indices, plan, data.view(), output)
        })
    }

    /// Memory of which nothing is right yet.
    fn start(&self, shape: &[usize]) -> Strided<T> {
        Strided::marked(shape, self.output, self.margin, T::sentinel())
    }

    /// Sees it refused, before anything is written.
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
        same.unwrap_or_else(|at| panic!("{what}: written before it was refused: {at}"));
    }
}
