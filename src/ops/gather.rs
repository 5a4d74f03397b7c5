//! The gathers: ONNX GatherND, Gather, GatherElements, and their kin. Each is
//! the inverse of a scatter and shares its shape rule.

use super::operator::Operator;
use crate::element::DType;
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::operand::{Elements, Indices, Input, Layout, Output, Source, Start, Target};
use crate::plan::{Form, IndexRules};
use crate::reduction::{Bounds, Duplicates, Reducing};
use crate::run::{self, Explanation, GatherPlan, Operands, Planning};

/// A gather: which operator it is, its options, and three verbs. The inverse of
/// a [`Scatter`](crate::Scatter).
///
/// Make one by [`nd`](Self::nd), [`along`](Self::along) or
/// [`elements`](Self::elements), by [`new`](Self::new) from an [`Operator`], or by
/// a function of [`profile`](crate::profile). The verbs take views of any kind, as
/// those of a scatter do. Nothing is written when an error is returned, but for
/// [`ScatterError::PoolFailed`].
///
/// # Examples
///
/// ```
/// use ndscatter::{Bounds, Gather, TensorView};
///
/// let table = [[1.0, 1.5], [2.0, 2.5]].concat();
/// let rows = Gather::along(0).bounds(Bounds::Skip).allocate(
///     TensorView::contiguous(&table, &[2, 2])?,
///     TensorView::from(&[-1_i32, 7]),
/// )?;
/// assert_eq!(rows, [2.0, 2.5, 0.0, 0.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gather<'p> {
    operator: Operator,
    pub(crate) planning: Planning,
    pub(crate) execution: Execution<'p>,
}

/// The operators.
impl Gather<'static> {
    /// The gather of an operator that is a value.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for a cache, which has no gather.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, Operator, TensorView};
    ///
    /// let data = TensorView::from(&[10, 20, 30]);
    /// let gather = Gather::new(Operator::Along { axis: 0 })?;
    /// assert_eq!(gather.allocate(data, TensorView::from(&[2_i64, 0]))?, [30, 10]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[inline]
    pub fn new(operator: Operator) -> Result<Self, ScatterError> {
        operator.check_gather()?;
        Ok(Self::of(operator))
    }

    #[inline]
    fn of(operator: Operator) -> Self {
        Self {
            operator,
            planning: Planning {
                duplicates: Duplicates::Allow,
                rules: IndexRules::new(true, Bounds::Error),
                gathers: true,
            },
            execution: Execution::new(),
        }
    }

    /// Slices of `data` that tuples of coordinates address, with `batch_dims`
    /// leading dims that data and indices share.
    ///
    /// With `k = indices.shape[-1]` and `b` batch dims the result has the shape
    /// `indices.shape[..-1] ++ data.shape[b + k..]`.
    ///
    /// The rule is that of ONNX GatherND 11 to 13 and OpenVINO GatherND 8;
    /// without batch dims, of `tf.gather_nd`.
    ///
    /// Errors of its own: [`ScatterError::IndicesRank`],
    /// [`ScatterError::TupleLength`], [`ScatterError::BatchDims`],
    /// [`ScatterError::BatchShape`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView};
    ///
    /// let data = [[0, 1], [2, 3]].concat();
    /// let rows = Gather::nd(0).allocate(
    ///     TensorView::contiguous(&data, &[2, 2])?,
    ///     TensorView::contiguous(&[1_i64, 0, 1], &[3, 1])?,
    /// )?;
    /// assert_eq!(rows, [2, 3, 0, 1, 2, 3]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "GatherND")]
    #[doc(alias = "GatherNd")]
    #[doc(alias = "gather_nd")]
    #[inline]
    pub fn nd(batch_dims: usize) -> Self {
        Self::of(Operator::Nd { batch_dims })
    }

    /// Slices of `data` along one axis.
    ///
    /// The result has the shape `data.shape[..axis] ++ indices.shape ++
    /// data.shape[axis + 1..]`. The axis lies in `-rank..rank`; `indices` may
    /// have any rank, 0 included.
    ///
    /// The rule is that of ONNX Gather 1 to 13, numpy `take`, torch
    /// `index_select`, and the lookup of an embedding table.
    ///
    /// Errors of its own: [`ScatterError::AxisOutOfRange`].
    #[doc(alias = "take")]
    #[doc(alias = "index_select")]
    #[doc(alias = "embedding")]
    #[inline]
    pub fn along(axis: isize) -> Self {
        Self::of(Operator::Along { axis })
    }

    /// One element of `data` for each index, at the index's own position but
    /// for one axis.
    ///
    /// `indices` has the rank of `data` and off the axis at most its sizes; the
    /// result has the shape of `indices`. Indices that are the same along the
    /// dims after the axis are recognised and gathered as rows.
    ///
    /// The rule is that of ONNX GatherElements 11 to 13, torch `gather`, and
    /// numpy `take_along_axis`.
    ///
    /// Errors of its own: [`ScatterError::IndicesRankMismatch`],
    /// [`ScatterError::IndicesTooLong`], [`ScatterError::AxisOutOfRange`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView};
    ///
    /// let data = [[1, 2], [3, 4]].concat();
    /// let result = Gather::elements(1).allocate(
    ///     TensorView::contiguous(&data, &[2, 2])?,
    ///     TensorView::contiguous(&[0_i64, 0, 1, 0], &[2, 2])?,
    /// )?;
    /// assert_eq!(result, [1, 1, 4, 3]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "GatherElements")]
    #[doc(alias = "take_along_axis")]
    #[inline]
    pub fn elements(axis: isize) -> Self {
        Self::of(Operator::Elements { axis })
    }
}

/// The options: what the gather means, and who runs it.
impl<'p> Gather<'p> {
    /// Whether negative indices count from the end of their axis (the
    /// default) or are out of bounds.
    #[must_use]
    #[inline]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        let rules = &mut self.planning.rules;
        *rules = IndexRules::new(allowed, rules.bounds);
        self
    }

    /// What becomes of an index that lies outside its axis: an error (the
    /// default), zeros, or the nearest end. Elements that are cloned have no
    /// zero ([`ScatterError::UnsupportedOption`]).
    #[must_use]
    #[inline]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.planning.rules.bounds = bounds;
        self
    }

    /// Who runs it: pool and number of workers. Says nothing of what the gather
    /// means; a plan does not keep it.
    #[must_use]
    #[inline]
    pub fn execution<'q>(self, execution: Execution<'q>) -> Gather<'q> {
        Gather {
            operator: self.operator,
            planning: self.planning,
            execution,
        }
    }

    /// The shape of the result for data and indices of these shapes.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about these shapes.
    pub fn output_shape(
        &self,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Vec<usize>, ScatterError> {
        self.operator.output_shape(data, indices)
    }
}

/// The verbs.
impl Gather<'_> {
    /// Returns the result, row-major.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices, or memory for the
    /// result.
    pub fn allocate<'i, V: Input>(
        &self,
        data: V,
        indices: impl Into<Indices<'i>>,
    ) -> Result<V::Owned, ScatterError> {
        let indices = indices.into();
        let form = self.form(&data.source(), &indices)?;
        let shape = form.updates_shape(data.source().shape(), indices.layout().shape())?;
        V::allocate(&shape, Start::Like(&data), |output, _| {
            self.write(form, &data.source(), &indices, &output)
        })
    }

    /// Writes the result into `output`. What it held before is not read.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices or memory that is
    /// shared; `output` is then unchanged.
    pub fn write_into<'i, O: Output>(
        &self,
        data: O::Input,
        indices: impl Into<Indices<'i>>,
        mut output: O,
    ) -> Result<(), ScatterError> {
        let (data, indices) = (data.source(), indices.into());
        let form = self.form(&data, &indices)?;
        self.write(form, &data, &indices, &output.target())
    }

    /// Does all that depends on `indices` alone, for data of this layout. The
    /// plan keeps all options but the [`execution`](Self::execution).
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes or indices, or about memory for the
    /// plan.
    pub fn plan<'i>(
        &self,
        data: Layout<'_>,
        indices: impl Into<Indices<'i>>,
    ) -> Result<GatherPlan, ScatterError> {
        let indices = indices.into();
        data.check(1)?;
        let form = self.form_of(data.shape(), &indices)?;
        let indices = indices.integers()?;
        let plan = run::make_plan(&data, form, indices, self.planning, &self.execution)?;
        Ok(GatherPlan { plan })
    }

    /// What one call will do with contiguous tensors, for people and for tests. No other
    /// call is at work on its pool meanwhile. `allocates`: the result is new memory, as that
    /// of [`allocate`](Self::allocate).
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and as [`GatherRun::explain`](crate::GatherRun::explain).
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{DType, Gather, Layout, Route, TensorView};
    ///
    /// let indices = TensorView::from(&[2_i64, 0, 0, 1]);
    /// let rows = Layout::contiguous(&[4, 8]);
    /// let explained = Gather::along(0).explain(rows, indices, DType::F32, true)?;
    /// assert_eq!(explained.route(), Route::Small);
    /// println!("{explained}");
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn explain<'i>(
        &self,
        data: Layout<'_>,
        indices: impl Into<Indices<'i>>,
        dtype: DType,
        allocates: bool,
    ) -> Result<Explanation, ScatterError> {
        let indices = indices.into();
        let form = (self.operator).form(data.shape(), indices.layout().parts(), None)?;
        let made_of = Some((&form, indices.layout(), self.planning));
        let plan = self.plan(data, indices)?;
        let run = plan.run().execution(self.execution);
        run.explanation(dtype, allocates, made_of)
    }

    /// What the shapes mean, for elements that suit the options.
    fn form(&self, data: &Source<'_>, indices: &Indices<'_>) -> Result<Form, ScatterError> {
        let skips = self.planning.rules.bounds == Bounds::Skip;
        if skips && matches!(data.elements(), Elements::Cloned(_)) {
            return Err(ScatterError::UnsupportedOption { option: "bounds" });
        }
        self.form_of(data.shape(), indices)
    }

    /// What the shapes mean, for data of this shape.
    #[inline(always)] // As `Rule::form`.
    pub(crate) fn form_of(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
    ) -> Result<Form, ScatterError> {
        self.operator.form(shape, indices.layout().parts(), None)
    }

    /// One call.
    fn write(
        &self,
        form: Form,
        data: &Source<'_>,
        indices: &Indices<'_>,
        output: &Target<'_>,
    ) -> Result<(), ScatterError> {
        let operation = run::operation(output.elements(), Reducing::default(), &self.execution)?;
        let indexed = Some(indices);
        Operands::lend_gather(&operation, output, data, indexed, |operands| {
            let indices = indices.integers()?;
            run::once(&form, operands, &indices, self.planning, &self.execution)
        })
    }
}
