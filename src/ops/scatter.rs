//! The builder of scatters: an operator, its options, and the methods that run it.
//!
//! This module does not know threads or kernels.

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

/// A scatter: an operator and its options. A scatter writes updates into windows of `data`.
///
/// [`nd`](Self::nd), [`along`](Self::along), [`elements`](Self::elements) and
/// [`cache`](Self::cache) make a scatter. So do [`new`](Self::new), from an [`Operator`], and the
/// functions of [`profile`](crate::profile), for the rules of one runtime. Then options follow.
/// The methods [`in_place`](Self::in_place), [`write_into`](Self::write_into),
/// [`allocate`](Self::allocate) and [`plan`](Self::plan) end the builder.
///
/// All tensors of one call have views of one kind. Indices may have any integer type. Any
/// strides are allowed, but an output must not overlap itself. The kinds of views are:
///
/// - [`TensorView`](crate::TensorView): the element type is a Rust type.
/// - [`AnyView`](crate::AnyView): the element type is known at run time.
/// - [`Cloned`](crate::Cloned): elements are cloned.
///
/// The result has the bits of the sequential loop over `indices` in row-major order, with any
/// pool and any number of threads. Duplicates are applied in that order.
///
/// An error means that nothing has been written, except for [`ScatterError::PoolFailed`] and new
/// memory ([`AnyViewMut::of_new_memory`](crate::AnyViewMut::of_new_memory)).
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

/// Operators.
impl Scatter<'static> {
    /// Returns the scatter of an operator known at run time.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for an [`Operator::Nd`] with batch dims, which no
    /// scatter has.
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

    /// Scatters into slices of `data` that tuples of coordinates address.
    ///
    /// The last dimension of `indices` holds the `k` coordinates of a tuple. `k` is at most the
    /// rank of `data`. With `k = 0` each update addresses the whole tensor. `updates` has the
    /// shape `indices.shape[..-1] ++ data.shape[k..]`. If this shape has rank 0, `updates` may be
    /// a tensor of one element and any rank.
    ///
    /// The rule is from ONNX ScatterND 11 to 18 and OpenVINO ScatterNDUpdate 3 and 15. All their
    /// reductions are supported.
    ///
    /// A call can return these errors of this operator: [`ScatterError::IndicesRank`],
    /// [`ScatterError::TupleLength`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Scatter, TensorView};
    ///
    /// let data = [[1, 2, 3], [4, 5, 6]].concat();
    /// // Elements [0, 2] and [1, 0].
    /// let result = Scatter::nd().allocate(
    ///     TensorView::contiguous(&data, &[2, 3])?,
    ///     TensorView::contiguous(&[0_i64, 2, 1, 0], &[2, 2])?,
    ///     TensorView::from(&[30, 40]),
    /// )?;
    /// assert_eq!(result, [1, 2, 30, 40, 5, 6]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "ScatterND")]
    #[doc(alias = "ScatterNd")]
    #[doc(alias = "ScatterNDUpdate")]
    #[doc(alias = "tensor_scatter_nd_update")]
    #[doc(alias = "index_put")]
    #[inline]
    pub fn nd() -> Self {
        Self::of(Operator::Nd { batch_dims: 0 })
    }

    /// Scatters into slices of `data` along one axis. The indices serve every position of the axes
    /// before this axis.
    ///
    /// `axis` is in `-rank..rank` of `data`. A negative axis counts from the end. `indices` may
    /// have any rank, 0 included. `updates` has the shape
    /// `data.shape[..axis] ++ indices.shape ++ data.shape[axis + 1..]`.
    ///
    /// The rule is from OpenVINO ScatterUpdate 3, torch `index_add_` and segment sums. OpenVINO
    /// forbids negative indices, and so does
    /// [`profile::openvino_3`](crate::profile::openvino_3).
    ///
    /// A call can return this error of this operator: [`ScatterError::AxisOutOfRange`].
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

    /// Returns [`Scatter::along`]. The name is from OpenVINO ScatterUpdate.
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

    /// Scatters each update to its own position, except along one axis, where its index is the
    /// position.
    ///
    /// `axis` is in `-rank..rank` of `data`. A negative axis counts from the end. `indices` has
    /// the rank of `data`, and may be longer than `data` only along `axis`. `updates` has the
    /// shape of `indices`. With axis 1, update `[i, j, k]` is combined with
    /// `data[i, indices[i, j, k], k]`.
    ///
    /// If no index changes along the dims after the axis, by stride 0 or by equal values, the
    /// call detects this and scatters rows.
    ///
    /// The rule is from ONNX ScatterElements 11 to 18 (Scatter 9), OpenVINO
    /// ScatterElementsUpdate 3 and 12, and torch `scatter_reduce_`. All their reductions are
    /// supported.
    ///
    /// A call can return these errors of this operator: [`ScatterError::IndicesRankMismatch`],
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

    /// Writes the rows of each sequence into its cache, at consecutive positions.
    ///
    /// - `data` is the cache. Axis 0 holds the sequences, and `axis` the positions. `axis` is in
    ///   `-rank..rank`, and is not axis 0. The default of ONNX is -2.
    /// - `indices` has the shape `[data.shape[0]]`: the first position of each sequence. With
    ///   rank 0 it is the first position of all sequences. ONNX uses 0 if `write_indices` is
    ///   missing.
    /// - `updates` has the shape of `data`, except along `axis`, where it may be shorter.
    ///
    /// In [`CacheMode::Linear`] the update must fit between its position and the end of the
    /// axis. In [`CacheMode::Circular`] positions are taken modulo the length of the axis.
    ///
    /// A negative position is an error in both modes. Under [`Bounds::Skip`], a negative position
    /// drops the update of its sequence, which serves idle slots of a batch. A position that leaves
    /// too little room is an error under every bounds rule.
    ///
    /// [`Bounds::Clamp`] and reductions are refused. The options for duplicates and for negative
    /// indices have no effect: no two rows have one destination, and a position never counts
    /// from the end.
    ///
    /// The rule is from ONNX TensorScatter 24. The circular mode of its reference wraps every
    /// coordinate. Here only the position along the axis wraps, as in ONNX Runtime.
    ///
    /// A call can return these errors of this operator: [`ScatterError::AxisOutOfRange`],
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
    /// // Three slots with four positions of two numbers. The second slot is idle.
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

/// Options.
impl<'p> Scatter<'p> {
    /// Sets how an update is combined with the existing value. The default is
    /// [`Reduction::None`]: the update replaces it.
    #[must_use]
    #[inline]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.meaning.reducing.reduction = reduction;
        self
    }

    /// Sets whether two tuples may have one destination. The default is
    /// [`Duplicates::Allow`]: their updates are applied in order, and without a reduction the
    /// last update stays.
    #[must_use]
    #[inline]
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.planning.duplicates = duplicates;
        self
    }

    /// Sets whether negative indices count from the end of their axis. The default is `true`.
    /// With `false` a negative index is out of bounds.
    #[must_use]
    #[inline]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        let rules = &mut self.planning.rules;
        *rules = IndexRules::new(allowed, rules.bounds);
        self
    }

    /// Sets the rule for an index outside its axis. The default is [`Bounds::Error`].
    #[must_use]
    #[inline]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.planning.rules.bounds = bounds;
        self
    }

    /// Sets whether the existing value takes part in a reduction. The default is `true`.
    ///
    /// With `false` the first update of a destination replaces the existing value, and later
    /// updates are combined with the result. `Sub` begins at 0. A destination without updates
    /// keeps its value. Without a reduction the option has no effect. ONNX always includes the
    /// existing value. Torch names the option `include_self`, and OpenVINO `use_init_val`.
    #[must_use]
    #[inline]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.meaning.reducing.include_self = include_self;
        self
    }

    /// Sets the type in which 16-bit floats are summed. The default is [`Accumulate::Native`]:
    /// the element type.
    #[must_use]
    #[inline]
    pub fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.meaning.reducing.accumulate = accumulate;
        self
    }

    /// Sets which updates of one destination have a gradient when updates replace the existing
    /// value. The default is [`NoneGradient::LastWrite`]: the last update, which stays. The
    /// option does not change the result of the scatter.
    #[must_use]
    #[inline]
    pub fn none_gradient(mut self, none_gradient: NoneGradient) -> Self {
        self.meaning.none_gradient = none_gradient;
        self
    }

    /// Sets the length of the updates along the axis of a [`cache`](Self::cache), for
    /// [`plan`](Self::plan) and [`updates_shape`](Self::updates_shape). The default is 1, for a
    /// decode step. Methods that receive the updates ignore this option and use the length of the
    /// updates. The option has no effect on other operators.
    #[must_use]
    #[inline]
    pub fn update_len(mut self, len: usize) -> Self {
        if let Operator::Cache { update_len, .. } = &mut self.operator {
            *update_len = len;
        }
        self
    }

    /// Sets the pool and the number of workers. The execution does not change the result. A plan
    /// does not keep the execution.
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

    /// Returns the shape that `updates` must have for the shapes of `data` and `indices`. Updates
    /// of a [`cache`](Self::cache) have the length [`update_len`](Self::update_len) along the
    /// axis.
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

/// Calls.
impl Scatter<'_> {
    /// Returns a new row-major tensor: a copy of `data` with the updates applied.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, or memory for the result.
    pub fn allocate<'i, V: Input>(
        &self,
        data: V,
        indices: impl Into<Indices<'i>>,
        updates: V,
    ) -> Result<V::Owned, ScatterError> {
        let (source, indices, updates) = (data.source(), indices.into(), updates.source());
        let shape = source.shape();
        // Checks that need no memory for the result.
        run::operation(source.elements(), self.meaning.reducing, &self.execution)?;
        let form = self.form_of(shape, &indices, Some(updates.shape()))?;
        form.check_updates(shape, indices.layout().shape(), updates.shape())?;
        V::allocate(shape, Start::CopyOf(&data), |output, data| {
            self.write(&output, data.as_ref(), &indices, &updates)
        })
    }

    /// Writes a copy of `data` with the updates applied into `output`. The old values of `output`
    /// are not read.
    ///
    /// An [`AnyViewMut`](crate::AnyViewMut) from raw parts may be `data` itself: the address,
    /// shape and strides are equal. The call is then in place.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, or shared memory. `output` is
    /// then unchanged.
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
    /// Any [`ScatterError`] about shapes, options, types, indices, or shared memory. `data` is
    /// then unchanged.
    #[inline]
    pub fn in_place<'i, O: Output>(
        &self,
        mut data: O,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
    ) -> Result<(), ScatterError> {
        self.write(&data.target(), None, &indices.into(), &updates.source())
    }

    /// Returns a plan for outputs of a layout. The plan contains everything that depends only on
    /// `indices` and the layout.
    ///
    /// The plan keeps all options except [`execution`](Self::execution).
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about the shapes of data and indices, about options or indices, or
    /// about memory for the plan. Also [`ScatterError::PoolFailed`].
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

    /// Explains how one call would run with contiguous updates and data of `dtype`, if no other
    /// call uses its pool. The explanation is for people and for tests.
    ///
    /// `in_place`: whether the call is in place. If it is not, the output is not new memory.
    ///
    /// # Errors
    ///
    /// The errors of [`plan`](Self::plan) and of
    /// [`ScatterRun::explain`](crate::ScatterRun::explain).
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

    /// Returns the form of a call. Refuses options that the operator does not have.
    pub(crate) fn form_of(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        (self.operator).check_options(self.planning.rules, self.meaning.reducing)?;
        (self.operator).form(shape, indices.layout().parts(), updates)
    }

    /// Runs one call. Without `data` the call is in place.
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
                let indices = indices.integers()?;
                (self.operator).check_options(self.planning.rules, self.meaning.reducing)?;
                let (shape, updates) = (operands.shape(), operands.listed_shape());
                let list = indices.layout().parts();
                let form = (self.operator).form(shape, list, Some(updates))?;
                run::once(&form, operands, &indices, self.planning, &self.execution)
            },
        )
    }
}
