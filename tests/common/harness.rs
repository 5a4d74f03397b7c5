//! Runs a problem through each verb of the crate and holds what becomes of
//! the output, gaps and margins included, against the reference.

use ndscatter::{
    Accumulate, AnyView, AnyViewMut, Bounds, CacheMode, Duplicates, Element, Index, Layout,
    Reduction, Scatter, ScatterError, ScatterPlan, ScatterRun, TensorView, TensorViewMut,
};

use super::arithmetic::How;
use super::elements::{Ref, compare, is_exact};
use super::gather_harness::Gathers;
use super::indices::{IndexRule, Refusals, resolve_axis};
use super::layouts::{Arrangement, Strided};
use super::request::Request;
use super::scatters::{scatter_elements, scatter_nd, scatter_update, tensor_scatter};
use super::{Tensor, ndindex};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operator {
    Nd,
    Update {
        axis: isize,
    },
    Elements {
        axis: isize,
    },
    /// `tensor_scatter` of `len` positions.
    Cache {
        axis: isize,
        mode: CacheMode,
        len: usize,
    },
}

impl Operator {
    /// The shape of `updates`.
    pub(crate) fn updates_shape(self, data: &[usize], indices: &[usize]) -> Vec<usize> {
        match self {
            Self::Nd => {
                let (&k, tuples) = indices.split_last().expect("rank 1 or more");
                [tuples, &data[k..]].concat()
            }
            Self::Update { axis } => {
                let axis = resolve_axis(axis, data.len());
                [&data[..axis], indices, &data[axis + 1..]].concat()
            }
            Self::Elements { .. } => indices.to_vec(),
            Self::Cache { axis, len, .. } => {
                let axis = resolve_axis(axis, data.len());
                [&data[..axis], &[len], &data[axis + 1..]].concat()
            }
        }
    }

    /// The axes that a tuple's indices address, and how many values are valid
    /// there.
    pub(crate) fn axes(self, data: &[usize], indices: &[usize]) -> Vec<(usize, usize)> {
        let sizes = data.iter().copied().enumerate();
        match self {
            Self::Nd => sizes
                .take(*indices.last().expect("rank 1 or more"))
                .collect(),
            Self::Update { axis } | Self::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                vec![(axis, data[axis])]
            }
            Self::Cache { axis, len, .. } => {
                let axis = resolve_axis(axis, data.len());
                vec![(axis, data[axis] - len + 1)]
            }
        }
    }

    pub(crate) fn tuples(self, indices: &[usize]) -> usize {
        match self {
            Self::Nd => indices[..indices.len() - 1].iter().product(),
            Self::Update { .. } | Self::Elements { .. } | Self::Cache { .. } => {
                indices.iter().product()
            }
        }
    }

    pub(crate) fn expected<T: Ref>(
        self,
        rules: impl Into<Rules>,
        data: &Tensor<T>,
        indices: &Tensor<i128>,
        updates: &Tensor<T>,
    ) -> Tensor<T> {
        let Rules { how, index } = rules.into();
        let shape = &data.shape;
        let hits = match self {
            Self::Nd => scatter_nd(shape, indices, updates, index),
            Self::Update { axis } => scatter_update(shape, indices, updates, axis, index),
            Self::Elements { axis } => scatter_elements(shape, indices, updates, axis, index),
            Self::Cache { axis, mode, .. } => tensor_scatter(shape, indices, updates, axis, mode),
        };
        hits.apply(data, |&current, updates| T::reduce(how, current, updates))
    }

    pub(crate) fn refusal(
        self,
        refusals: Refusals,
        data: &[usize],
        indices: &Tensor<i128>,
    ) -> Option<ScatterError> {
        let count = self.tuples(&indices.shape);
        let axes = self.axes(data, &indices.shape);
        let first = |implied: &dyn Fn(usize) -> Vec<usize>| {
            refusals.first(&indices.values, count, &axes, implied)
        };
        match self {
            Self::Nd | Self::Update { .. } => first(&|_| vec![]),
            Self::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                let places: Vec<_> = ndindex(&indices.shape).collect();
                // A tuple stays where it is but for the axis.
                first(&|tuple| [&places[tuple][..axis], &places[tuple][axis + 1..]].concat())
            }
            // One position for all sequences is no one's where there are none.
            Self::Cache { .. } if data[0] == 0 => None,
            Self::Cache { axis, mode, len } => {
                let size = data[resolve_axis(axis, data.len())];
                refused_write_index(&indices.values, mode, len, size)
            }
        }
    }
}

/// The first sequence whose position leaves no room, or is negative.
fn refused_write_index(
    write_indices: &[i128],
    mode: CacheMode,
    update_len: usize,
    cache_len: usize,
) -> Option<ScatterError> {
    let room = i128::try_from(cache_len - update_len).expect("sizes fit");
    let is_bad = |index: i128| index < 0 || (mode == CacheMode::Linear && index > room);
    let batch = write_indices.iter().position(|&index| is_bad(index))?;
    Some(ScatterError::WriteIndex {
        batch,
        index: write_indices[batch],
        update_len,
        cache_len,
        mode,
    })
}

/// All that decides on a result besides the tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) how: How,
    pub(crate) index: IndexRule,
}

impl From<Reduction> for Rules {
    fn from(reduction: Reduction) -> Self {
        Self {
            how: reduction.into(),
            index: IndexRule::DEFAULT,
        }
    }
}

/// What an operator is told besides its tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'p> {
    pub(crate) operator: Operator,
    pub(crate) execution: Request<'p>,
    pub(crate) duplicates: Duplicates,
    pub(crate) negative_indices: bool,
    pub(crate) bounds: Bounds,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
}

impl<'p> Options<'p> {
    pub(crate) fn new(operator: Operator, execution: impl Into<Request<'p>>) -> Self {
        Self {
            operator,
            execution: execution.into(),
            duplicates: Duplicates::Allow,
            negative_indices: true,
            bounds: Bounds::Error,
            include_self: true,
            accumulate: Accumulate::Native,
        }
    }

    /// Everything that a plan is run with.
    pub(crate) fn for_plans(&self) -> Request<'p> {
        self.execution
            .include_self(self.include_self)
            .accumulate(self.accumulate)
    }

    /// A run of a plan that was made with these options: it knows what they
    /// mean.
    pub(crate) fn run<'q>(&self, plan: &'q ScatterPlan) -> ScatterRun<'q>
    where
        'p: 'q,
    {
        plan.run().execution(self.execution.execution)
    }

    pub(crate) fn index_rule(&self) -> IndexRule {
        IndexRule {
            negative: self.negative_indices,
            bounds: self.bounds,
        }
    }

    pub(crate) fn rules(&self, reduction: Reduction) -> Rules {
        let how = How {
            reduction,
            include_self: self.include_self,
            accumulate: self.accumulate,
        };
        let index = self.index_rule();
        Rules { how, index }
    }

    /// What is refused in the values of `indices`.
    pub(crate) fn refusals(&self) -> Refusals {
        Refusals {
            rule: self.index_rule(),
            reject_duplicates: self.duplicates == Duplicates::Reject,
        }
    }

    fn give(&self, scatter: Scatter<'_>) -> Scatter<'p> {
        (self.for_plans().of(scatter))
            .duplicates(self.duplicates)
            .negative_indices(self.negative_indices)
            .bounds(self.bounds)
    }
}

/// Evaluates `$body` with the builder that `$options` ask for.
macro_rules! with_scatter {
    ($options:expr, $scatter:ident => $body:expr) => {{
        let options: &Options<'_> = $options;
        match options.operator {
            Operator::Nd => {
                let $scatter = options.give(Scatter::nd());
                $body
            }
            Operator::Update { axis } => {
                let $scatter = options.give(Scatter::update(axis));
                $body
            }
            Operator::Elements { axis } => {
                let $scatter = options.give(Scatter::elements(axis));
                $body
            }
            Operator::Cache { axis, mode, len } => {
                let $scatter = options.give(Scatter::cache(axis, mode).update_len(len));
                $body
            }
        }
    }};
}

/// `indices` of any index type, for data of type `T`.
pub(crate) trait Indices<T>: Gathers<T> {
    fn logical(&self) -> Tensor<i128>;
    fn any(&self) -> AnyView<'_>;

    fn allocate(
        &self,
        options: &Options<'_>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError>;

    fn write_into(
        &self,
        options: &Options<'_>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError>;

    fn in_place(
        &self,
        options: &Options<'_>,
        data: TensorViewMut<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError>;

    fn plan(&self, options: &Options<'_>, output: Layout<'_>) -> Result<ScatterPlan, ScatterError>;
}

impl<T: Element, I: Index + Into<i128>> Indices<T> for Strided<I> {
    fn logical(&self) -> Tensor<i128> {
        let Tensor { shape, values } = self.read();
        Tensor::new(&shape, values.into_iter().map(Into::into).collect())
    }

    fn any(&self) -> AnyView<'_> {
        self.view().into()
    }

    fn allocate(
        &self,
        options: &Options<'_>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        with_scatter!(options, scatter => scatter.allocate(data, self.view(), updates))
            .map(ndscatter::Tensor::into_vec)
    }

    fn write_into(
        &self,
        options: &Options<'_>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        with_scatter!(options, scatter => scatter.write_into(data, self.view(), updates, output))
    }

    fn in_place(
        &self,
        options: &Options<'_>,
        data: TensorViewMut<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError> {
        with_scatter!(options, scatter => scatter.in_place(data, self.view(), updates))
    }

    fn plan(&self, options: &Options<'_>, output: Layout<'_>) -> Result<ScatterPlan, ScatterError> {
        with_scatter!(options, scatter => scatter.plan(output, self.view()))
    }
}

/// The ways to ask for a scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verb {
    Allocate,
    WriteInto,
    InPlace,
    AnyWriteInto,
    AnyInPlace,
    PlannedAllocate,
    PlannedWriteInto,
    PlannedInPlace,
    AnyPlannedWriteInto,
    AnyPlannedInPlace,
}

impl Verb {
    pub(crate) const ALL: [Self; 10] = [
        Self::Allocate,
        Self::WriteInto,
        Self::InPlace,
        Self::AnyWriteInto,
        Self::AnyInPlace,
        Self::PlannedAllocate,
        Self::PlannedWriteInto,
        Self::PlannedInPlace,
        Self::AnyPlannedWriteInto,
        Self::AnyPlannedInPlace,
    ];

    pub(crate) fn is_in_place(self) -> bool {
        matches!(
            self,
            Self::InPlace | Self::AnyInPlace | Self::PlannedInPlace | Self::AnyPlannedInPlace
        )
    }

    fn is_planned(self) -> bool {
        matches!(
            self,
            Self::PlannedAllocate
                | Self::PlannedWriteInto
                | Self::PlannedInPlace
                | Self::AnyPlannedWriteInto
                | Self::AnyPlannedInPlace
        )
    }

    /// Whether the crate chooses the output's layout.
    fn allocates(self) -> bool {
        matches!(self, Self::Allocate | Self::PlannedAllocate)
    }
}

/// What may change from run to run of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Round<T> {
    pub(crate) data: Strided<T>,
    pub(crate) updates: Strided<T>,
}

/// Everything but the way to run it.
pub(crate) struct Problem<'i, T> {
    pub(crate) operator: Operator,
    pub(crate) reduction: Reduction,
    pub(crate) indices: &'i dyn Indices<T>,
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
        let plan = if verb.is_planned() {
            Some(
                self.plan(verb, options)
                    .map_err(|error| format!("planning: {error}"))?,
            )
        } else {
            None
        };
        for (number, round) in self.rounds[..rounds].iter().enumerate() {
            let (data, updates) = (round.data.read(), round.updates.read());
            let indices = self.indices.logical();
            let rules = options.rules(self.reduction);
            let expected = (self.operator).expected(rules, &data, &indices, &updates);
            self.check_round(verb, options, plan.as_ref(), round, &expected)
                .map_err(|difference| format!("{verb:?}, run {number}: {difference}"))?;
        }
        Ok(())
    }

    fn start(&self, verb: Verb, round: &Round<T>) -> Strided<T> {
        let data = round.data.read();
        let start = if verb.is_in_place() {
            data
        } else {
            Tensor::generate(&data.shape, T::sentinel)
        };
        let arrangement = if verb.allocates() {
            Arrangement::Contiguous
        } else {
            self.output
        };
        Strided::new(&start, arrangement, self.margin, T::sentinel())
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

    fn check_round(
        &self,
        verb: Verb,
        options: &Options<'_>,
        plan: Option<&ScatterPlan>,
        round: &Round<T>,
        expected: &Tensor<T>,
    ) -> Result<(), String> {
        let exact = is_exact(self.reduction);
        let refused = |error: ScatterError| format!("refused: {error}");
        if verb.allocates() {
            let got = self.allocate(options, plan, round).map_err(refused)?;
            return compare(&got, &expected.values, exact);
        }
        let mut output = self.start(verb, round);
        let mut wanted = output.clone();
        wanted.write(expected);
        self.write(verb, options, plan, round, output.view_mut())
            .map_err(refused)?;
        compare(&output.buffer, &wanted.buffer, exact)
    }

    fn allocate(
        &self,
        options: &Options<'_>,
        plan: Option<&ScatterPlan>,
        round: &Round<T>,
    ) -> Result<Vec<T>, ScatterError> {
        let (data, updates) = (round.data.view(), round.updates.view());
        match plan {
            None => self.indices.allocate(options, data, updates),
            Some(plan) => {
                let result = options.run(plan).allocate(data, updates);
                result.map(ndscatter::Tensor::into_vec)
            }
        }
    }

    fn write(
        &self,
        verb: Verb,
        options: &Options<'_>,
        plan: Option<&ScatterPlan>,
        round: &Round<T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let (data, updates) = (round.data.view(), round.updates.view());
        let run = || options.run(plan.expect("a plan was made for a planned verb"));
        match verb {
            Verb::WriteInto => self.indices.write_into(options, data, updates, output),
            Verb::InPlace => self.indices.in_place(options, output, updates),
            Verb::AnyWriteInto => write_into(
                options,
                data.into(),
                self.indices.any(),
                updates.into(),
                output.into(),
            ),
            Verb::AnyInPlace => {
                in_place(options, output.into(), self.indices.any(), updates.into())
            }
            Verb::PlannedWriteInto => run().write_into(data, updates, output),
            Verb::PlannedInPlace => run().in_place(output, updates),
            Verb::AnyPlannedWriteInto => run().write_into(
                AnyView::from(data),
                updates.into(),
                AnyViewMut::from(output),
            ),
            Verb::AnyPlannedInPlace => run().in_place(AnyViewMut::from(output), updates.into()),
            Verb::Allocate | Verb::PlannedAllocate => panic!("{verb:?} writes into nothing"),
        }
    }
}

pub(crate) fn write_into(
    options: &Options<'_>,
    data: AnyView<'_>,
    indices: AnyView<'_>,
    updates: AnyView<'_>,
    output: AnyViewMut<'_>,
) -> Result<(), ScatterError> {
    with_scatter!(options, scatter => scatter.write_into(data, indices, updates, output))
}

pub(crate) fn in_place(
    options: &Options<'_>,
    data: AnyViewMut<'_>,
    indices: AnyView<'_>,
    updates: AnyView<'_>,
) -> Result<(), ScatterError> {
    with_scatter!(options, scatter => scatter.in_place(data, indices, updates))
}
