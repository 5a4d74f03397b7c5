//! Runs a gather through each verb of the crate and holds what becomes of the
//! output, gaps and margins included, against the reference.

use ndscatter::{
    AnyView, AnyViewMut, Bounds, Element, Execution, Gather, GatherPlan, Index, Layout,
    ScatterError, TensorView, TensorViewMut,
};

use super::Tensor;
use super::elements::{Ref, compare};
use super::gathers::{gather, gather_elements, gather_nd};
use super::harness::Indices;
use super::indices::{IndexRule, Refusals, resolve_axis};
use super::layouts::{Arrangement, Strided};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gatherer {
    Nd { batch_dims: usize },
    Along { axis: isize },
    Elements { axis: isize },
}

impl Gatherer {
    /// The axes of data that a tuple's indices address, and their sizes.
    pub(crate) fn axes(self, data: &[usize], indices: &[usize]) -> Vec<(usize, usize)> {
        let axes = match self {
            Self::Nd { batch_dims } => {
                let k = indices.last().expect("rank 1 or more");
                batch_dims..batch_dims + k
            }
            Self::Along { axis } | Self::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                axis..axis + 1
            }
        };
        axes.map(|axis| (axis, data[axis])).collect()
    }

    pub(crate) fn tuples(self, indices: &[usize]) -> usize {
        match self {
            Self::Nd { .. } => indices[..indices.len() - 1].iter().product(),
            Self::Along { .. } | Self::Elements { .. } => indices.iter().product(),
        }
    }

    pub(crate) fn expected<T: Ref>(
        self,
        rule: IndexRule,
        data: &Tensor<T>,
        indices: &Tensor<i128>,
    ) -> Tensor<T> {
        let zero = T::zero_value();
        match self {
            Self::Nd { batch_dims } => gather_nd(data, indices, batch_dims, rule, &zero),
            Self::Along { axis } => gather(data, indices, axis, rule, &zero),
            Self::Elements { axis } => gather_elements(data, indices, axis, rule, &zero),
        }
    }

    fn output_shape(self, data: &[usize], indices: &[usize]) -> Vec<usize> {
        match self {
            Self::Nd { batch_dims } => {
                let (&k, tuples) = indices.split_last().expect("rank 1 or more");
                [tuples, &data[batch_dims + k..]].concat()
            }
            Self::Along { axis } => {
                let axis = resolve_axis(axis, data.len());
                [&data[..axis], indices, &data[axis + 1..]].concat()
            }
            Self::Elements { .. } => indices.to_vec(),
        }
    }

    pub(crate) fn refusal(
        self,
        rule: IndexRule,
        data: &[usize],
        indices: &Tensor<i128>,
    ) -> Option<ScatterError> {
        let refusals = Refusals {
            rule,
            reject_duplicates: false,
        };
        let count = self.tuples(&indices.shape);
        let axes = self.axes(data, &indices.shape);
        refusals.first(&indices.values, count, &axes, |_| vec![])
    }
}

/// What a gather is told besides its tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherOptions<'p> {
    pub(crate) gatherer: Gatherer,
    pub(crate) execution: Execution<'p>,
    pub(crate) rule: IndexRule,
}

impl<'p> GatherOptions<'p> {
    pub(crate) fn new(gatherer: Gatherer) -> Self {
        Self {
            gatherer,
            execution: Execution::new(),
            rule: IndexRule::DEFAULT,
        }
    }

    pub(crate) fn bounds(self, bounds: Bounds) -> Self {
        let rule = IndexRule {
            bounds,
            ..self.rule
        };
        Self { rule, ..self }
    }

    fn give(&self, gather: Gather<'_>) -> Gather<'p> {
        gather
            .execution(self.execution)
            .negative_indices(self.rule.negative)
            .bounds(self.rule.bounds)
    }
}

/// Evaluates `$body` with the builder that `$options` ask for.
macro_rules! with_gather {
    ($options:expr, $gather:ident => $body:expr) => {{
        let options: &GatherOptions<'_> = $options;
        match options.gatherer {
            Gatherer::Nd { batch_dims } => {
                let $gather = options.give(Gather::nd(batch_dims));
                $body
            }
            Gatherer::Along { axis } => {
                let $gather = options.give(Gather::along(axis));
                $body
            }
            Gatherer::Elements { axis } => {
                let $gather = options.give(Gather::elements(axis));
                $body
            }
        }
    }};
}

/// What [`Indices`] do for gathers.
pub(crate) trait Gathers<T>: Sync {
    fn gather(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError>;

    fn gather_into(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError>;

    fn any_gather_into(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError>;

    fn plan_gather(
        &self,
        options: &GatherOptions<'_>,
        data: Layout<'_>,
    ) -> Result<GatherPlan, ScatterError>;
}

impl<T: Element, I: Index + Into<i128>> Gathers<T> for Strided<I> {
    fn gather(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        with_gather!(options, gather => gather.allocate(data, self.view()))
            .map(ndscatter::Tensor::into_vec)
    }

    fn gather_into(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        with_gather!(options, gather => gather.write_into(data, self.view(), output))
    }

    fn any_gather_into(
        &self,
        options: &GatherOptions<'_>,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let (data, output) = (AnyView::from(data), AnyViewMut::from(output));
        let indices = AnyView::from(self.view());
        with_gather!(options, gather => gather.write_into(data, indices, output))
    }

    fn plan_gather(
        &self,
        options: &GatherOptions<'_>,
        data: Layout<'_>,
    ) -> Result<GatherPlan, ScatterError> {
        with_gather!(options, gather => gather.plan(data, self.view()))
    }
}

/// The ways to ask for a gather.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GatherVerb {
    Allocate,
    WriteInto,
    AnyWriteInto,
    PlannedAllocate,
    PlannedWriteInto,
    AnyPlannedWriteInto,
}

impl GatherVerb {
    pub(crate) const ALL: [Self; 6] = [
        Self::Allocate,
        Self::WriteInto,
        Self::AnyWriteInto,
        Self::PlannedAllocate,
        Self::PlannedWriteInto,
        Self::AnyPlannedWriteInto,
    ];

    fn is_planned(self) -> bool {
        matches!(
            self,
            Self::PlannedAllocate | Self::PlannedWriteInto | Self::AnyPlannedWriteInto
        )
    }
}

/// A gather but for the way to run it.
pub(crate) struct GatherProblem<'i, T> {
    pub(crate) indices: &'i dyn Indices<T>,
    /// Two tensors of one layout: a plan runs both, other verbs the first.
    pub(crate) data: [Strided<T>; 2],
    /// How the output lies where the crate does not allocate it.
    pub(crate) output: Arrangement,
    /// Marks before and after the output.
    pub(crate) margin: usize,
}

impl<T: Ref> GatherProblem<'_, T> {
    /// Runs `verb`; `Err` says how output and reference differ.
    pub(crate) fn check(
        &self,
        verb: GatherVerb,
        options: &GatherOptions<'_>,
    ) -> Result<(), String> {
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
        verb: GatherVerb,
        options: &GatherOptions<'_>,
        expected: &[Tensor<T>; 2],
    ) -> Result<(), String> {
        let check = |plan: Option<&GatherPlan>, (data, expected): (&Strided<T>, &Tensor<T>)| {
            self.check_once(verb, options, plan, data, expected)
                .map_err(|difference| format!("{verb:?}: {difference}"))
        };
        if !verb.is_planned() {
            return check(None, (&self.data[0], &expected[0]));
        }
        let plan = self.indices.plan_gather(options, self.data[0].layout());
        let plan = plan.map_err(|error| format!("planning: {error}"))?;
        (self.data.iter().zip(expected)).try_for_each(|round| check(Some(&plan), round))
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
        let shape = (options.gatherer).output_shape(&data.read().shape, &indices);
        let mark = Tensor::generate(&shape, T::sentinel);
        let mut output = Strided::new(&mark, self.output, self.margin, T::sentinel());
        let before = output.clone();
        let view = output.view_mut();
        let got = self.indices.gather_into(options, data.view(), view).err();
        assert_eq!(got.as_ref(), Some(expected), "{what}, written");
        let same = compare(&output.buffer, &before.buffer, true);
        same.unwrap_or_else(|at| panic!("{what}: written before it was refused: {at}"));
    }

    fn check_once(
        &self,
        verb: GatherVerb,
        options: &GatherOptions<'_>,
        plan: Option<&GatherPlan>,
        data: &Strided<T>,
        expected: &Tensor<T>,
    ) -> Result<(), String> {
        if let Some(plan) = plan.filter(|plan| plan.output_shape() != expected.shape) {
            return Err(format!("planned for {:?}", plan.output_shape()));
        }
        let plan = || plan.expect("a plan was made for a planned verb");
        let run = || plan().run().execution(options.execution);
        let data = data.view();
        let mark = Tensor::generate(&expected.shape, T::sentinel);
        let mut output = Strided::new(&mark, self.output, self.margin, T::sentinel());
        let mut wanted = output.clone();
        wanted.write(expected);
        let view = output.view_mut();
        let done = match verb {
            GatherVerb::Allocate | GatherVerb::PlannedAllocate => {
                let got = match verb {
                    GatherVerb::Allocate => self.indices.gather(options, data),
                    _ => run().allocate(data).map(ndscatter::Tensor::into_vec),
                };
                let got = got.map_err(|error| format!("refused: {error}"))?;
                return compare(&got, &expected.values, true);
            }
            GatherVerb::WriteInto => self.indices.gather_into(options, data, view),
            GatherVerb::AnyWriteInto => self.indices.any_gather_into(options, data, view),
            GatherVerb::PlannedWriteInto => run().write_into(data, view),
            GatherVerb::AnyPlannedWriteInto => {
                run().write_into(AnyView::from(data), AnyViewMut::from(view))
            }
        };
        done.map_err(|error| format!("refused: {error}"))?;
        compare(&output.buffer, &wanted.buffer, true)
    }
}
