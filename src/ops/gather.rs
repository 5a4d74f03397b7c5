//! The builder of gathers: ONNX GatherND, Gather and GatherElements, and the gathers of other
//! runtimes.
//!
//! A gather reads the windows that a scatter of the same operator writes, and both have one shape
//! rule. This module does not know threads or kernels.

use super::operator::Operator;
use crate::element::DType;
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::operand::{Elements, Indices, Input, Layout, Output, Source, Start, Target};
use crate::plan::{Form, IndexRules};
use crate::reduction::{Bounds, Duplicates, Reducing};
use crate::run::{self, Explanation, GatherPlan, Operands, Planning};

/// A gather: an operator and its options. A gather copies windows of `data` to its result. A
/// [`Scatter`](crate::Scatter) writes such windows.
///
/// [`nd`](Self::nd), [`along`](Self::along) and [`elements`](Self::elements) make a gather.
/// [`new`](Self::new) makes a gather from an [`Operator`]. The functions of
/// [`profile`](crate::profile) make a gather with the rules of one runtime. Methods of the builder
/// then set options. [`allocate`](Self::allocate) and [`write_into`](Self::write_into) run a call,
/// and [`plan`](Self::plan) makes a plan.
///
/// `data` and the output of a call have views of the same kind: [`TensorView`](crate::TensorView),
/// [`AnyView`](crate::AnyView) or [`Cloned`](crate::Cloned). Indices may have any integer type.
/// Any strides are allowed, but no two elements of an output may share memory.
///
/// If a call returns an error, it has written nothing, with two exceptions. After
/// [`ScatterError::PoolFailed`], and in an output marked as new memory
/// ([`AnyViewMut::of_new_memory`](crate::AnyViewMut::of_new_memory)), elements may have changed.
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
    pub(crate) operator: Operator,
    pub(crate) planning: Planning,
    pub(crate) execution: Execution<'p>,
}

/// Operators.
impl Gather<'static> {
    /// Returns the gather of an operator known at run time.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for [`Operator::Cache`], because this operator has no
    /// gather.
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
                rules: operator.default_rules(),
                gathers: true,
            },
            execution: Execution::new(),
        }
    }

    /// Gathers the slices of `data` that tuples of coordinates address.
    ///
    /// The last dimension of `indices` holds the `k` coordinates of a tuple. The first
    /// `batch_dims` dims of `indices` and of `data` have equal sizes. Along these dims, a tuple
    /// addresses `data` at the tuple's own position in `indices`. The coordinates address the next
    /// `k` dims of `data`. With `b = batch_dims`, the result has the shape
    /// `indices.shape[..-1] ++ data.shape[b + k..]`.
    ///
    /// This rule for the positions of windows is from ONNX GatherND 11 to 13 and OpenVINO GatherND
    /// 8. With `batch_dims` 0, it is also the rule of `tf.gather_nd`.
    ///
    /// A call can return these errors of this operator: [`ScatterError::IndicesRank`],
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

    /// Gathers the slices of `data` at the positions `indices` along one axis.
    ///
    /// `axis` is in `-rank..rank` of `data`. A negative axis counts from the end. `indices` may
    /// have any rank, 0 included. The result has the shape
    /// `data.shape[..axis] ++ indices.shape ++ data.shape[axis + 1..]`.
    ///
    /// This rule for the positions of windows is from ONNX Gather 1 to 13, numpy `take` and torch
    /// `index_select`. A lookup of rows in an embedding table is a gather along axis 0.
    ///
    /// A call can return this error of this operator: [`ScatterError::AxisOutOfRange`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView};
    ///
    /// let data = [[1, 2, 3], [4, 5, 6]].concat();
    /// let columns = Gather::along(1).allocate(
    ///     TensorView::contiguous(&data, &[2, 3])?,
    ///     TensorView::from(&[2_i32, 0]),
    /// )?;
    /// assert_eq!(columns, [3, 1, 6, 4]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "take")]
    #[doc(alias = "index_select")]
    #[doc(alias = "embedding")]
    #[inline]
    pub fn along(axis: isize) -> Self {
        Self::of(Operator::Along { axis })
    }

    /// Gathers one element of `data` for each index.
    ///
    /// The position of the element in `data` is the position of the index in `indices`, except
    /// along `axis`. The position along `axis` is the value of the index. With axis 1, element
    /// `[i, j, k]` of the result is `data[i, indices[i, j, k], k]`.
    ///
    /// `axis` is in `-rank..rank` of `data`. A negative axis counts from the end. `indices` has
    /// the rank of `data`, and may be longer than `data` only along `axis`. The result has the
    /// shape of `indices`.
    ///
    /// If the indices do not vary along the dims after `axis`, a call usually detects this and
    /// copies whole rows instead of single elements.
    ///
    /// This rule for the positions of windows is from ONNX GatherElements 11 to 13, torch `gather`
    /// and numpy `take_along_axis`.
    ///
    /// A call can return these errors of this operator: [`ScatterError::IndicesRankMismatch`],
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

    /// Gathers rows from the slots of a paged cache.
    ///
    /// The axes of `data`, the slots and the default rules are those of
    /// [`Scatter::paged`](crate::Scatter::paged). The result has the shape
    /// `indices.shape ++ data.shape[2..]`. The result for a negative slot is zeros.
    ///
    /// A call can return these errors of this operator: [`ScatterError::PagedRank`],
    /// [`ScatterError::SlotOutOfBounds`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView};
    ///
    /// // Three blocks of two slots. Slot 3 is the second row of block 1.
    /// let cache = [10, 11, 20, 21, 30, 31];
    /// let rows = Gather::paged().allocate(
    ///     TensorView::contiguous(&cache, &[3, 2])?,
    ///     TensorView::from(&[3_i64, -1, 0]),
    /// )?;
    /// assert_eq!(rows, [21, 0, 10]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[inline]
    pub fn paged() -> Self {
        Self::of(Operator::Paged)
    }
}

/// Options.
impl<'p> Gather<'p> {
    /// Sets whether negative indices count from the end of their axis. The default is `true`, and
    /// `false` for [`paged`](Self::paged). With `false`, every negative index is out of bounds.
    #[must_use]
    #[inline]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        let rules = &mut self.planning.rules;
        *rules = IndexRules::new(allowed, rules.bounds);
        self
    }

    /// Sets the rule for an index outside its axis. The default is [`Bounds::Error`]. The default
    /// of [`paged`](Self::paged) is [`Bounds::SkipNegative`].
    ///
    /// The result for an index that [`Bounds::Skip`] or [`Bounds::SkipNegative`] skips is zeros. Elements in
    /// [`Cloned`](crate::Cloned) have no zero. For them, [`allocate`](Self::allocate) and
    /// [`write_into`](Self::write_into) refuse this rule ([`ScatterError::UnsupportedOption`]).
    #[must_use]
    #[inline]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.planning.rules.bounds = bounds;
        self
    }

    /// Sets the pool and the number of workers of a call. They do not change the result. A plan
    /// does not keep them.
    #[must_use]
    #[inline]
    pub fn execution<'q>(self, execution: Execution<'q>) -> Gather<'q> {
        Gather {
            operator: self.operator,
            planning: self.planning,
            execution,
        }
    }

    /// Returns the shape of the result. The arguments are the shapes of `data` and `indices`.
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

/// Calls.
impl Gather<'_> {
    /// Runs the gather and returns the result as a new row-major tensor.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, or memory for the result. Also
    /// [`ScatterError::PoolFailed`].
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

    /// Runs the gather and writes the result into `output`. The old values of `output` are not
    /// read.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, types, indices, or shared memory. Also
    /// [`ScatterError::PoolFailed`]. After an error, `output` is usually unchanged. [`Gather`]
    /// names the exceptions.
    pub fn write_into<'i, O: Output>(
        &self,
        data: O::Input,
        indices: impl Into<Indices<'i>>,
        output: O,
    ) -> Result<(), ScatterError> {
        let (data, indices) = (data.source(), indices.into());
        let form = self.form(&data, &indices)?;
        output.with_target(|output| self.write(form, &data, &indices, output))
    }

    /// Returns a plan for tensors with the layout `data`. The plan contains everything that a call
    /// computes only from `indices` and this layout.
    ///
    /// The plan keeps all options except [`execution`](Self::execution).
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes or indices, or about memory for the plan. Also
    /// [`ScatterError::PoolFailed`].
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

    /// Explains how one call would run with elements of `dtype` and a contiguous result. The
    /// explanation assumes that no other call uses the pool. It is for people and for tests.
    ///
    /// - `data`: layout of the tensor that the call would read.
    /// - `allocates`: whether the result is new memory, as in [`allocate`](Self::allocate).
    ///
    /// # Errors
    ///
    /// The errors of [`plan`](Self::plan) and of
    /// [`GatherRun::explain`](crate::GatherRun::explain).
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

    /// Returns the form of a call. Refuses rules that skip tuples for cloned elements, because they
    /// have no zero.
    fn form(&self, data: &Source<'_>, indices: &Indices<'_>) -> Result<Form, ScatterError> {
        let skips = self.planning.rules.bounds.skips();
        if skips && matches!(data.elements(), Elements::Cloned(_)) {
            return Err(ScatterError::UnsupportedOption { option: "bounds" });
        }
        self.form_of(data.shape(), indices)
    }

    /// Returns the form of a call for `data` of shape `shape`. The form states which axes of `data`
    /// are repetitions, which axes the tuples address, and which axes belong to the window.
    #[inline(always)] // For the reason of `Operator::form`.
    pub(crate) fn form_of(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
    ) -> Result<Form, ScatterError> {
        self.operator.form(shape, indices.layout().parts(), None)
    }

    /// Runs one call.
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
