//! The builder of scatters: an operator, its options, and the methods that run the scatter.
//!
//! This module knows nothing of threads or kernels.

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

/// A scatter: an operator and its options. A scatter applies updates to windows of `data`.
///
/// The functions [`nd`](Self::nd), [`along`](Self::along), [`elements`](Self::elements) and
/// [`cache`](Self::cache) make a scatter. [`new`](Self::new) makes a scatter from an [`Operator`].
/// The functions of [`profile`](crate::profile) make a scatter with the rules of one runtime. Other
/// methods set options. [`in_place`](Self::in_place), [`write_into`](Self::write_into) and
/// [`allocate`](Self::allocate) run the scatter once. [`plan`](Self::plan) makes a plan for several
/// executions.
///
/// In one call, the views of `data`, `updates` and the output are of one kind. `indices` may have
/// any integer type. Any strides are allowed, but two elements of an output must not have the same
/// address. The kinds of views are:
///
/// - [`TensorView`](crate::TensorView): the element type is a Rust type.
/// - [`AnyView`](crate::AnyView): the element type is known at run time.
/// - [`Cloned`](crate::Cloned): elements are cloned.
///
/// With any pool and any number of workers, the result has the same bits as the result of a
/// sequential loop over `indices` in row-major order. Only the sign and payload of a NaN that a
/// reduction writes may differ. Updates of one destination are applied in the order of that loop.
///
/// A call that returns an error has written nothing, with two exceptions. After
/// [`ScatterError::PoolFailed`] the output may have changed. An output that is marked as new memory
/// ([`AnyViewMut::of_new_memory`](crate::AnyViewMut::of_new_memory)) may have changed after any
/// error.
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
    pub(crate) operator: Operator,
    pub(crate) planning: Planning,
    pub(crate) meaning: Meaning,
    pub(crate) execution: Execution<'p>,
}

/// Operators.
impl Scatter<'static> {
    /// Returns a scatter with an operator that the caller chooses at run time.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for an [`Operator::Nd`] with batch dims, because no
    /// scatter has batch dims.
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
                rules: operator.default_rules(),
                gathers: false,
            },
            meaning: Meaning::default(),
            execution: Execution::new(),
        }
    }

    /// Scatters into slices of `data`. Each tuple of coordinates in `indices` addresses one slice.
    ///
    /// The last dimension of `indices` holds the `k` coordinates of a tuple. `k` is at most the
    /// rank of `data`. With `k = 0` every tuple addresses the whole of `data`. `updates` has the
    /// shape `indices.shape[..-1] ++ data.shape[k..]`. If this shape has rank 0, `updates` may have
    /// any rank but must have exactly one element.
    ///
    /// This rule for the positions of windows is from ONNX ScatterND 11 to 18 and OpenVINO
    /// ScatterNDUpdate 3 and 15. All reductions of these operators are supported.
    ///
    /// In addition to the errors of every scatter, a call can return [`ScatterError::IndicesRank`]
    /// and [`ScatterError::TupleLength`].
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

    /// Scatters into slices of `data` along one axis. An index is the position of a slice on this
    /// axis. All positions along the axes before this axis use the same indices.
    ///
    /// `axis` is in `-rank..rank` of `data`. A negative axis counts from the end. `indices` may
    /// have any rank, 0 included. `updates` has the shape
    /// `data.shape[..axis] ++ indices.shape ++ data.shape[axis + 1..]`.
    ///
    /// This rule for the positions of windows is from OpenVINO ScatterUpdate 3, torch `index_add_`
    /// and segment sums. OpenVINO forbids negative indices. This function allows them by default,
    /// and [`profile::openvino_3`](crate::profile::openvino_3) forbids them.
    ///
    /// In addition to the errors of every scatter, a call can return
    /// [`ScatterError::AxisOutOfRange`].
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

    /// Returns [`Scatter::along`] for `axis`, under the name of OpenVINO ScatterUpdate.
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

    /// Scatters single elements. The destination of an update is the position of the update, with
    /// one change: along one axis, the index of the update replaces the position.
    ///
    /// `axis` is in `-rank..rank` of `data`. A negative axis counts from the end. `indices` has the
    /// rank of `data`. Along every axis other than `axis`, `indices` is at most as long as `data`.
    /// `updates` has the shape of `indices`. With rank 3 and axis 1, the destination of update
    /// `[i, j, k]` is `data[i, indices[i, j, k], k]`.
    ///
    /// If the indices are constant along all dims after the axis (by stride 0 or by equal values),
    /// a call usually detects this and scatters rows instead of elements.
    ///
    /// This rule for the positions of windows is from ONNX ScatterElements 11 to 18 (Scatter 9),
    /// OpenVINO ScatterElementsUpdate 3 and 12, and torch `scatter_reduce_`. All reductions of
    /// these operators are supported.
    ///
    /// In addition to the errors of every scatter, a call can return
    /// [`ScatterError::IndicesRankMismatch`], [`ScatterError::IndicesTooLong`] and
    /// [`ScatterError::AxisOutOfRange`].
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

    /// Writes new rows of each sequence into a cache, at consecutive positions.
    ///
    /// - `data` is the cache. Axis 0 is the axis of the sequences, and `axis` is the axis of the
    ///   positions in a sequence. `axis` is in `-rank..rank` of `data` and is not axis 0. In ONNX,
    ///   the default of `axis` is -2.
    /// - `indices` has the shape `[data.shape[0]]` and holds the start position of each sequence:
    ///   the position of its first new row. If `indices` has rank 0, it holds one start position
    ///   for all sequences. In ONNX, the start position is 0 if `write_indices` is missing.
    /// - `updates` has the shape of `data`, except along `axis`, where `updates` may be shorter.
    ///
    /// In [`CacheMode::Linear`] all new rows of a sequence must fit between the start position and
    /// the end of the axis. In [`CacheMode::Circular`] positions are taken modulo the length of the
    /// axis.
    ///
    /// By default, a negative start position is an error in both modes. Under [`Bounds::Skip`], a
    /// negative start position drops the updates of its sequence, which serves idle slots of a
    /// batch. In linear mode, a start position that leaves too little room for the new rows is an
    /// error, also under [`Bounds::Skip`].
    ///
    /// [`Bounds::Clamp`] and all reductions are refused. The options
    /// [`duplicates`](Self::duplicates) and [`negative_indices`](Self::negative_indices) have no
    /// effect, because no two rows have the same destination and a position never counts from the
    /// end.
    ///
    /// This rule for the positions of windows is from ONNX TensorScatter 24. In circular mode, the
    /// reference implementation of ONNX wraps every coordinate. This crate wraps only the position
    /// along the axis, as ONNX Runtime does.
    ///
    /// In addition to the errors of every scatter, a call can return
    /// [`ScatterError::AxisOutOfRange`], [`ScatterError::BatchAxis`],
    /// [`ScatterError::WriteIndicesShape`], [`ScatterError::WriteIndex`],
    /// [`ScatterError::UpdateTooLong`], [`ScatterError::CacheUpdatesShape`] and
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

    /// Writes rows into the slots of a paged cache.
    ///
    /// - `data` is the cache. Axis 0 is the axis of the blocks, and axis 1 is the axis of the rows
    ///   of a block. All other axes are the window of a slot, for example heads and elements of a
    ///   head. The strides are free: a cache that stores `[blocks, heads, block_size, dim]` is
    ///   passed as a view of shape `[blocks, block_size, heads, dim]`.
    /// - `indices` holds slots and may have any rank. Slot `s` is the row `s % block_size` of block
    ///   `s / block_size`.
    /// - `updates` has the shape `indices.shape ++ data.shape[2..]`.
    ///
    /// By default, a negative slot is skipped ([`Bounds::SkipNegative`]), and a slot that is too
    /// large is an error. With [`negative_indices(true)`](Self::negative_indices), negative slots
    /// count from the last slot. Updates of one slot are applied in the order of `indices`, so
    /// without a reduction the last one stays.
    ///
    /// This rule for the positions of windows is from vLLM's `reshape_and_cache`. vLLM does not
    /// check whether a slot is too large. Updates of one slot have no fixed order there. The rule
    /// of ggml's `set_rows` and of sglang's `store_cache` is [`along`](Self::along) axis 0.
    ///
    /// In addition to the errors of every scatter, a call can return [`ScatterError::PagedRank`]
    /// and [`ScatterError::SlotOutOfBounds`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Scatter, TensorView, TensorViewMut};
    ///
    /// // Three blocks of two slots. Slot 3 is the second row of block 1. The entry -1 is unused.
    /// let mut cache = [0_i32; 6];
    /// Scatter::paged().in_place(
    ///     TensorViewMut::contiguous(&mut cache, &[3, 2])?,
    ///     TensorView::from(&[3_i64, -1, 0]),
    ///     TensorView::from(&[30, 99, 10]),
    /// )?;
    /// assert_eq!(cache, [10, 0, 0, 30, 0, 0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "reshape_and_cache")]
    #[doc(alias = "slot_mapping")]
    #[doc(alias = "kv_cache")]
    #[doc(alias = "set_rows")]
    #[inline]
    pub fn paged() -> Self {
        Self::of(Operator::Paged)
    }
}

/// Options.
impl<'p> Scatter<'p> {
    /// Sets how an update is combined with the existing value of its destination. The default is
    /// [`Reduction::None`]: the update replaces the existing value.
    #[must_use]
    #[inline]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.meaning.reducing.reduction = reduction;
        self
    }

    /// Sets whether several tuples may have the same destination. The default is
    /// [`Duplicates::Allow`]: the updates of one destination are applied in the row-major order of
    /// `indices`. Without a reduction the last update then stays.
    #[must_use]
    #[inline]
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.planning.duplicates = duplicates;
        self
    }

    /// Sets whether negative indices count from the end of their axis. The default is `true`, and
    /// `false` for [`paged`](Self::paged). With `false` every negative index is out of bounds.
    #[must_use]
    #[inline]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        let rules = &mut self.planning.rules;
        *rules = IndexRules::new(allowed, rules.bounds);
        self
    }

    /// Sets the rule for an index that is outside its axis. The default is [`Bounds::Error`]: the
    /// call returns an error. The default of [`paged`](Self::paged) is [`Bounds::SkipNegative`].
    #[must_use]
    #[inline]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.planning.rules.bounds = bounds;
        self
    }

    /// Sets whether the existing value of a destination takes part in a reduction. The default is
    /// `true`.
    ///
    /// With `false` the first update of a destination replaces the existing value, and later
    /// updates are combined with the result. The reduction `Sub` is different: the value of the
    /// destination begins at 0, and every update is subtracted. A destination without updates keeps
    /// its existing value. Without a reduction the option has no effect. ONNX always includes the
    /// existing value. Torch names the option `include_self`, and OpenVINO names it `use_init_val`.
    #[must_use]
    #[inline]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.meaning.reducing.include_self = include_self;
        self
    }

    /// Sets the type of the running value of a destination of 16-bit floats during a reduction. The
    /// default is [`Accumulate::Native`]: the element type.
    #[must_use]
    #[inline]
    pub fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.meaning.reducing.accumulate = accumulate;
        self
    }

    /// Sets which updates of one destination have a gradient when updates replace the existing
    /// value. The default is [`NoneGradient::LastWrite`]: only the last update, whose value stays.
    /// The option does not change the result of the scatter.
    #[must_use]
    #[inline]
    pub fn none_gradient(mut self, none_gradient: NoneGradient) -> Self {
        self.meaning.none_gradient = none_gradient;
        self
    }

    /// Sets the length of the updates of a [`cache`](Self::cache) along its axis.
    /// [`plan`](Self::plan), [`explain`](Self::explain) and [`updates_shape`](Self::updates_shape)
    /// use this length. The default is 1, for a decode step. Methods of this builder that receive
    /// the updates ignore this option and use the length of the updates. The option has no effect
    /// on other operators.
    #[must_use]
    #[inline]
    pub fn update_len(mut self, len: usize) -> Self {
        if let Operator::Cache { update_len, .. } = &mut self.operator {
            *update_len = len;
        }
        self
    }

    /// Sets how calls run, for example the pool and the number of workers. These settings do not
    /// change the result. A plan does not keep them.
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

    /// Returns the reduction, and whether the existing value of a destination takes part in it.
    ///
    /// A caller that computes gradients later needs both values, because they determine which
    /// tensors of the forward pass a [`backward`](Self::backward) needs.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Reduction, Scatter};
    ///
    /// let scatter = Scatter::nd().reduction(Reduction::Max).include_self(false);
    /// assert_eq!(scatter.reducing(), (Reduction::Max, false));
    /// ```
    #[inline]
    pub fn reducing(&self) -> (Reduction, bool) {
        let reducing = self.meaning.reducing;
        (reducing.reduction, reducing.include_self)
    }

    /// Returns the shape that `updates` must have for the shapes `data` and `indices`. For a
    /// [`cache`](Self::cache), the length of the updates along the axis is
    /// [`update_len`](Self::update_len).
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
    /// Returns the result as a new row-major tensor: a copy of `data` with the updates applied.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, or an allocation. Also
    /// [`ScatterError::PoolFailed`].
    pub fn allocate<'i, V: Input>(
        &self,
        data: V,
        indices: impl Into<Indices<'i>>,
        updates: V,
    ) -> Result<V::Owned, ScatterError> {
        let (source, indices, updates) = (data.source(), indices.into(), updates.source());
        let shape = source.shape();
        // These checks run before the result is allocated.
        run::operation(source.elements(), self.meaning.reducing, &self.execution)?;
        let form = self.form_of(shape, &indices, Some(updates.shape()))?;
        form.check_updates(shape, indices.layout().shape(), updates.shape())?;
        V::allocate(shape, Start::CopyOf(&data), |output, data| {
            self.write(&output, data.as_ref(), &indices, &updates)
        })
    }

    /// Copies `data` to `output` and applies the updates to `output`. The existing values of
    /// `output` are not read.
    ///
    /// An [`AnyViewMut`](crate::AnyViewMut) from raw parts may be the same tensor as `data`, with
    /// equal address, shape and strides. The call is then in place.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, an allocation, or tensors that
    /// share memory. `output` is then unchanged, unless it is marked as new memory. After
    /// [`ScatterError::PoolFailed`], `output` may have changed.
    #[inline]
    pub fn write_into<'i, O: Output>(
        &self,
        data: O::Input,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
        output: O,
    ) -> Result<(), ScatterError> {
        let (data, updates) = (data.source(), updates.source());
        let indices = indices.into();
        output.with_target(|output| self.write(output, Some(&data), &indices, &updates))
    }

    /// Applies the updates to `data` in place.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, an allocation, or tensors that
    /// share memory. `data` is then unchanged, unless it is marked as new memory. After
    /// [`ScatterError::PoolFailed`], `data` may have changed.
    #[inline]
    pub fn in_place<'i, O: Output>(
        &self,
        data: O,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
    ) -> Result<(), ScatterError> {
        let (indices, updates) = (indices.into(), updates.source());
        data.with_target(|data| self.write(data, None, &indices, &updates))
    }

    /// Returns a plan for outputs with the layout `output`. The plan contains everything that
    /// depends only on `indices` and this layout.
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

    /// Explains how one call without a kept plan would run, for people and for tests. The
    /// explanation assumes contiguous updates, contiguous data of `dtype`, and no other call on the
    /// pool.
    ///
    /// `in_place`: whether the call is in place. If `false`, the explanation assumes that the
    /// output is not new memory.
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

    /// Returns the form of a call. Returns an error if the operator does not support an option.
    pub(crate) fn form_of(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        (self.operator).check_options(self.planning.rules, self.meaning.reducing)?;
        (self.operator).form(shape, indices.layout().parts(), updates)
    }

    /// Runs one call. `data` is `None` if the call is in place.
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
