//! A scatter with its options, and its verbs.

use super::operator::Operator;
use crate::element::DType;
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::operand::{Indices, Input, Layout, Output, Source, Start, Target};
use crate::plan::{Form, IndexRules};
use crate::reduction::{
    Accumulate, Bounds, CacheMode, Duplicates, Meaning, NoneGradient, Reduction,
};
use crate::run::{self, Explanation, Operands, Planning, ScatterPlan};

/// A scatter: which operator it is, its options, and four verbs.
///
/// Make one by [`nd`](Self::nd), [`along`](Self::along),
/// [`elements`](Self::elements) or [`cache`](Self::cache), by [`new`](Self::new)
/// from an [`Operator`], or by a function of [`profile`](crate::profile), which
/// sets the options that follow one runtime's rules.
///
/// The verbs take views of any kind, all of one call of the same: typed ones
/// ([`TensorView`](crate::TensorView)), those whose element type is a value
/// ([`AnyView`](crate::AnyView)), and those of elements that are cloned
/// ([`Cloned`](crate::Cloned)). Indices may be of any integer type, typed or
/// not. All tensors may be strided.
///
/// Whatever the options, pool and number of threads, the result is, bit for
/// bit, that of the sequential loop over `indices` in row-major order. Nothing
/// is written when an error is returned, but for [`ScatterError::PoolFailed`].
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, Scatter, TensorView};
///
/// let data = [[1, 2], [3, 4], [5, 6]].concat();
/// let sum = Scatter::nd().reduction(Reduction::Add).allocate(
///     TensorView::contiguous(&data, &[3, 2])?,
///     TensorView::contiguous(&[0_i64, 2, 0], &[3, 1])?,
///     TensorView::contiguous(&[10, 10, 20, 20, 30, 30], &[3, 2])?,
/// )?;
/// assert_eq!(sum, [41, 42, 3, 4, 25, 26]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scatter<'p> {
    operator: Operator,
    pub(crate) planning: Planning,
    pub(crate) meaning: Meaning,
    pub(crate) execution: Execution<'p>,
}

/// The operators.
impl Scatter<'static> {
    /// The scatter of an operator that is a value.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for batch dims, which no scatter has.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Operator, Scatter, TensorView};
    ///
    /// let data = TensorView::from(&[1, 2, 3]);
    /// for operator in [Operator::Along { axis: 0 }, Operator::Elements { axis: 0 }] {
    ///     let (at, updates) = ([2_i64, 0], [30, 10]);
    ///     let scatter = Scatter::new(operator)?;
    ///     let result = scatter.allocate(data, TensorView::from(&at), TensorView::from(&updates))?;
    ///     assert_eq!(result, [10, 2, 30]);
    /// }
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[inline]
    pub fn new(operator: Operator) -> Result<Self, ScatterError> {
        operator.check_scatter()?;
        Ok(Self::of(operator))
    }

    #[inline]
    fn of(operator: Operator) -> Self {
        Self {
            operator,
            planning: Planning {
                duplicates: Duplicates::Allow,
                rules: IndexRules::new(true, Bounds::Error),
                gathers: false,
            },
            meaning: Meaning::default(),
            execution: Execution::new(),
        }
    }

    /// Tuples of coordinates, each addressing a slice of `data`.
    ///
    /// With `k = indices.shape[-1]`, `updates` has the shape
    /// `indices.shape[..-1] ++ data.shape[k..]`; where that is empty, a tensor of
    /// one element and any rank will do. `k` may be anything from 0 (each update
    /// addresses the whole tensor) to the rank of `data`.
    ///
    /// The rule is that of ONNX ScatterND 11 to 18 and OpenVINO ScatterNDUpdate 3
    /// and 15, whose reductions it has all of.
    ///
    /// Errors of its own: [`ScatterError::IndicesRank`],
    /// [`ScatterError::TupleLength`].
    #[doc(alias = "ScatterND")]
    #[doc(alias = "ScatterNd")]
    #[doc(alias = "ScatterNDUpdate")]
    #[doc(alias = "tensor_scatter_nd_update")]
    #[doc(alias = "index_put")]
    #[inline]
    pub fn nd() -> Self {
        Self::of(Operator::Nd { batch_dims: 0 })
    }

    /// Indices along one axis of `data`, the same for every position before it.
    ///
    /// `updates` has the shape `data.shape[..axis] ++ indices.shape ++
    /// data.shape[axis + 1..]`. The axis lies in `-rank..rank`, negative ones
    /// counted from the end; `indices` may have any rank, 0 included.
    ///
    /// The rule is that of OpenVINO ScatterUpdate 3, which forbids negative
    /// indices ([`profile::openvino_3`](crate::profile::openvino_3) does so),
    /// torch `index_add_` and segment sums.
    ///
    /// Errors of its own: [`ScatterError::AxisOutOfRange`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Scatter, TensorView};
    ///
    /// let data = [[1, 2, 3], [4, 5, 6]].concat();
    /// let result = Scatter::along(1).allocate(
    ///     TensorView::contiguous(&data, &[2, 3])?,
    ///     TensorView::from(&[2_i32, 0]),
    ///     TensorView::contiguous(&[30, 10, 60, 40], &[2, 2])?,
    /// )?;
    /// assert_eq!(result, [10, 2, 30, 40, 5, 60]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "ScatterUpdate")]
    #[doc(alias = "index_add")]
    #[doc(alias = "index_copy")]
    #[doc(alias = "index_reduce")]
    #[doc(alias = "segment_sum")]
    #[doc(alias = "update")]
    #[inline]
    pub fn along(axis: isize) -> Self {
        Self::of(Operator::Along { axis })
    }

    /// [`Scatter::along`] by the name that OpenVINO gives it.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::Scatter;
    ///
    /// let shape = Scatter::update(0).updates_shape(&[4, 8], &[2])?;
    /// assert_eq!(shape, Scatter::along(0).updates_shape(&[4, 8], &[2])?);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[inline]
    pub fn update(axis: isize) -> Self {
        Self::along(axis)
    }

    /// One index for each update: it replaces the update's own position along
    /// one axis.
    ///
    /// `indices` and `updates` have one shape, of the rank of `data`. Along the
    /// axis it may be of any size, elsewhere at most that of `data`. The axis
    /// lies in `-rank..rank`. Update `[i, j, k]` meets
    /// `data[i, indices[i, j, k], k]` where the axis is 1.
    ///
    /// Indices that are the same along the dims after the axis, by stride 0 or
    /// written out, are recognised and run as a scatter of rows.
    ///
    /// The rule is that of ONNX ScatterElements 11 to 18 (Scatter 9), OpenVINO
    /// ScatterElementsUpdate 3 and 12, and torch `scatter_reduce_`, whose
    /// reductions it has all of.
    ///
    /// Errors of its own: [`ScatterError::IndicesRankMismatch`],
    /// [`ScatterError::IndicesTooLong`], [`ScatterError::AxisOutOfRange`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Reduction, Scatter, TensorView};
    ///
    /// let sums = Scatter::elements(0).reduction(Reduction::Add).allocate(
    ///     TensorView::from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0]),
    ///     TensorView::from(&[1_i64, 1, -1]),
    ///     TensorView::from(&[0.5, 0.25, 1.0]),
    /// )?;
    /// assert_eq!(sums, [1.0, 2.75, 3.0, 4.0, 6.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "ScatterElements")]
    #[doc(alias = "ScatterElementsUpdate")]
    #[doc(alias = "scatter_add")]
    #[doc(alias = "scatter_reduce")]
    #[doc(alias = "put_along_axis")]
    #[inline]
    pub fn elements(axis: isize) -> Self {
        Self::of(Operator::Elements { axis })
    }

    /// The rows of each sequence into its cache, one after another from the
    /// sequence's own position on.
    ///
    /// `data` is the cache: axis 0 holds the sequences, the axis given (any
    /// other; ONNX's default is -2) the positions. `updates` has its shape but
    /// for that axis, where it may be shorter. `indices` holds the first position
    /// of each sequence, `[data.shape[0]]`, or has no dimension: one position for
    /// all (0 where ONNX leaves `write_indices` out).
    ///
    /// In [`CacheMode::Linear`] the update must fit between its position and the
    /// end; in [`CacheMode::Circular`] positions count modulo the length of the
    /// axis. Negative positions are errors in both, or, under [`Bounds::Skip`],
    /// drop the update of their sequence: the idle slots of a batch.
    ///
    /// The rule is that of ONNX TensorScatter 24. Its reference wraps every
    /// coordinate in circular mode; here, as in ONNX Runtime, only the position
    /// along the axis wraps. There is no reduction and no [`Bounds::Clamp`];
    /// duplicates and negative indices need no option, as rows never meet and
    /// positions never count from the end.
    ///
    /// Errors of its own: [`ScatterError::AxisOutOfRange`],
    /// [`ScatterError::BatchAxis`],
    /// [`ScatterError::WriteIndicesShape`], [`ScatterError::WriteIndex`],
    /// [`ScatterError::UpdateTooLong`], [`ScatterError::CacheUpdatesShape`],
    /// [`ScatterError::UnsupportedOption`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Bounds, CacheMode, Scatter, TensorView, TensorViewMut};
    ///
    /// // Three slots of four positions of two numbers; the middle one is idle.
    /// let mut cache = [0.0_f32; 24];
    /// Scatter::cache(-2, CacheMode::Linear).bounds(Bounds::Skip).in_place(
    ///     TensorViewMut::contiguous(&mut cache, &[3, 4, 2])?,
    ///     TensorView::from(&[1_i64, -1, 3]),
    ///     TensorView::contiguous(&[1.0, 2.0, 9.0, 9.0, 3.0, 4.0], &[3, 1, 2])?,
    /// )?;
    /// assert_eq!(cache[2..4], [1.0, 2.0]);
    /// assert_eq!(cache[8..16], [0.0; 8]);
    /// assert_eq!(cache[22..], [3.0, 4.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "TensorScatter")]
    #[doc(alias = "kv_cache")]
    #[inline]
    pub fn cache(axis: isize, mode: CacheMode) -> Self {
        Self::of(Operator::Cache {
            axis,
            mode,
            update_len: 1,
        })
    }
}

/// The options: what the scatter means, and who runs it.
impl<'p> Scatter<'p> {
    /// How updates meet the value that is there. Default: they replace it.
    #[must_use]
    #[inline]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.meaning.reducing.reduction = reduction;
        self
    }

    /// Whether two tuples may have one destination. Default: they may, and are
    /// applied in order; without a reduction the last one stays.
    #[must_use]
    #[inline]
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.planning.duplicates = duplicates;
        self
    }

    /// Whether negative indices count from the end of their axis (the
    /// default) or are out of bounds.
    #[must_use]
    #[inline]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        let rules = &mut self.planning.rules;
        *rules = IndexRules::new(allowed, rules.bounds);
        self
    }

    /// What becomes of an index that lies outside its axis. Default: it is an
    /// error.
    #[must_use]
    #[inline]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.planning.rules.bounds = bounds;
        self
    }

    /// Whether the value that is there takes part in a reduction (the default).
    /// If not, the first update of a destination replaces it and later ones are
    /// combined with that; `Sub` begins at zero. Destinations without updates
    /// keep their value. Without a reduction it makes no difference.
    #[must_use]
    #[inline]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.meaning.reducing.include_self = include_self;
        self
    }

    /// In what type 16-bit floats are summed. Default: their own.
    #[must_use]
    #[inline]
    pub fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.meaning.reducing.accumulate = accumulate;
        self
    }

    /// Which of several updates of one destination have a gradient, where they replace
    /// what is there. Default: the last, which is what stays. Says nothing of the scatter
    /// itself.
    #[must_use]
    #[inline]
    pub fn none_gradient(mut self, none_gradient: NoneGradient) -> Self {
        self.meaning.none_gradient = none_gradient;
        self
    }

    /// Length of the updates along the axis of a [`cache`](Self::cache) that a
    /// plan is made for. Default: 1, a decode step. The other verbs see it in
    /// the updates, and other operators have no use for it.
    #[must_use]
    #[inline]
    pub fn update_len(mut self, len: usize) -> Self {
        if let Operator::Cache { update_len, .. } = &mut self.operator {
            *update_len = len;
        }
        self
    }

    /// Who runs it: pool and number of workers. Says nothing of what the scatter
    /// means; a plan does not keep it.
    #[must_use]
    #[inline]
    pub fn execution<'q>(self, execution: Execution<'q>) -> Scatter<'q> {
        Scatter {
            operator: self.operator,
            planning: self.planning,
            meaning: self.meaning,
            execution,
        }
    }

    /// The shape that `updates` must have for data and indices of these shapes. Of a
    /// [`cache`](Self::cache) they have [`update_len`](Self::update_len) rows.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about these shapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::Scatter;
    ///
    /// let shape = Scatter::nd().updates_shape(&[10, 20, 64], &[5, 2])?;
    /// assert_eq!(shape, [5, 64]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn updates_shape(
        &self,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Vec<usize>, ScatterError> {
        self.operator.updates_shape(data, indices)
    }
}

/// The verbs.
impl Scatter<'_> {
    /// Returns a copy of `data`, row-major, with the updates applied.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices, or memory for the
    /// result.
    pub fn allocate<'i, V: Input>(
        &self,
        data: V,
        indices: impl Into<Indices<'i>>,
        updates: V,
    ) -> Result<V::Owned, ScatterError> {
        let (source, indices, updates) = (data.source(), indices.into(), updates.source());
        let shape = source.shape();
        // What can be refused before memory is allocated.
        run::operation(source.elements(), self.meaning.reducing, &self.execution)?;
        let form = self.form_of(shape, &indices, Some(updates.shape()))?;
        form.check_updates(shape, indices.layout().shape(), updates.shape())?;
        V::allocate(shape, Start::CopyOf(&data), |output, data| {
            self.write(&output, data.as_ref(), &indices, &updates)
        })
    }

    /// Writes a copy of `data` with the updates applied into `output`. What
    /// `output` held before is not read. An [`AnyViewMut`](crate::AnyViewMut) at
    /// the address of `data`, with its shape and strides, is in place.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices or memory that is
    /// shared; `output` is then unchanged.
    #[inline]
    pub fn write_into<'i, O: Output>(
        &self,
        data: O::Input,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
        mut output: O,
    ) -> Result<(), ScatterError> {
        let (data, updates) = (data.source(), updates.source());
        self.write(&output.target(), Some(&data), &indices.into(), &updates)
    }

    /// Applies the updates to `data` itself.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices or memory that is
    /// shared; `data` is then unchanged.
    #[inline]
    pub fn in_place<'i, O: Output>(
        &self,
        mut data: O,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
    ) -> Result<(), ScatterError> {
        self.write(&data.target(), None, &indices.into(), &updates.source())
    }

    /// Does all that depends on `indices` alone, for runs on outputs of this
    /// layout. The plan means what this operator means: it keeps all options
    /// but the [`execution`](Self::execution).
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about the shapes of data and indices, about options or
    /// indices, about memory for the plan, or [`ScatterError::PoolFailed`].
    pub fn plan<'i>(
        &self,
        output: Layout<'_>,
        indices: impl Into<Indices<'i>>,
    ) -> Result<ScatterPlan, ScatterError> {
        let indices = indices.into();
        output.check(1)?;
        let form = self.form_of(output.shape(), &indices, None)?;
        let indices = indices.integers()?;
        let plan = run::make_plan(&output, form, indices, self.planning, &self.execution)?;
        let meaning = self.meaning;
        Ok(ScatterPlan { plan, meaning })
    }

    /// What one call will do with contiguous updates and data, if no other is at work
    /// on its pool meanwhile: for people, and for tests. Out of place, the output is not new
    /// memory.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and as [`ScatterRun::explain`](crate::ScatterRun::explain).
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{DType, Layout, Reduction, Scatter, Schedule, TensorView};
    ///
    /// let indices = TensorView::contiguous(&[1_i64, 3], &[2, 1])?;
    /// let sums = Scatter::nd().reduction(Reduction::Add);
    /// let explained = sums.explain(Layout::contiguous(&[4, 8]), indices, DType::F32, true)?;
    /// assert_eq!(explained.schedule(), Schedule::Serial);
    /// println!("{explained}");
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn explain<'i>(
        &self,
        output: Layout<'_>,
        indices: impl Into<Indices<'i>>,
        dtype: DType,
        in_place: bool,
    ) -> Result<Explanation, ScatterError> {
        let indices = indices.into();
        let form = (self.operator).form(output.shape(), indices.layout().parts(), None)?;
        let made_of = Some((&form, indices.layout(), self.planning));
        let plan = self.plan(output, indices)?;
        let run = plan.run().execution(self.execution);
        run.explanation(dtype, in_place, made_of)
    }

    /// What the shapes mean, with options that the operator has.
    #[inline(always)] // As `Operator::form`.
    pub(crate) fn form_of(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        (self.operator).check_options(self.planning.rules, self.meaning.reducing)?;
        (self.operator).form(shape, indices.layout().parts(), updates)
    }

    /// One call, in place where there is no `data`.
    fn write(
        &self,
        output: &Target<'_>,
        data: Option<&Source<'_>>,
        indices: &Indices<'_>,
        updates: &Source<'_>,
    ) -> Result<(), ScatterError> {
        let element = data.map_or(output.elements(), |data| data.elements());
        let operation = run::operation(element, self.meaning.reducing, &self.execution)?;
        Operands::lend(
            &operation,
            output,
            data,
            Some(indices),
            updates,
            |operands| {
                let integers = indices.integers()?;
                let (shape, updates) = (operands.shape(), operands.listed_shape());
                let form = self.form_of(shape, indices, Some(updates))?;
                run::once(&form, operands, &integers, self.planning, &self.execution)
            },
        )
    }
}
