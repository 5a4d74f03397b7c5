//! The gathers: ONNX GatherND, Gather, GatherElements, and their kin. Each is
//! the inverse of a scatter and shares its shape rule.

use super::{AlongAxis, ElementsAlong, Nd, Operator};
use crate::element::{Element, Index};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::indices::Indices;
use crate::kernel::Operation;
use crate::layout::Layout;
use crate::memory::copied;
use crate::plan::{Form, IndexRules};
use crate::reduction::{Bounds, Duplicates, Reducing};
use crate::run::{
    GatherPlan, Planning, Source, Target, allocate, check_gather, cloned_kernels, gather_shape,
    make_plan, moving_kernels, run_gather,
};
use crate::tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};

/// A gather with its options, and the verbs: allocate the result, write it
/// into an output, or plan now and run later.
///
/// Use it as [`GatherNd`], [`Gather`] or [`GatherElements`].
#[derive(Clone, Debug)]
pub struct GatherOp<'p, O> {
    operator: O,
    rules: IndexRules,
    execution: Execution<'p>,
}

/// Slices of `data` that tuples of coordinates address.
///
/// With `k = indices.shape[-1]` and `b` batch dims, which `data` and `indices`
/// share, the result has the shape
/// `indices.shape[..-1] ++ data.shape[b + k..]`.
///
/// The rule is that of ONNX GatherND 11 to 13 and OpenVINO GatherND 8; without
/// batch dims, of `tf.gather_nd`.
///
/// # Errors
///
/// Besides those of every verb: [`ScatterError::IndicesRank`],
/// [`ScatterError::TupleLength`], [`ScatterError::BatchDims`],
/// [`ScatterError::BatchShape`].
///
/// # Examples
///
/// ```
/// use ndscatter::{GatherNd, TensorView};
///
/// let data = [[0, 1], [2, 3]].concat();
/// let rows = GatherNd::new(0).allocate(
///     TensorView::contiguous(&data, &[2, 2])?,
///     TensorView::contiguous(&[1_i64, 0, 1], &[3, 1])?,
/// )?;
/// assert_eq!(rows, [2, 3, 0, 1, 2, 3]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "GatherND")]
#[doc(alias = "gather_nd")]
pub type GatherNd<'p> = GatherOp<'p, Nd>;

/// Slices of `data` along one axis.
///
/// The result has the shape `data.shape[..axis] ++ indices.shape ++
/// data.shape[axis + 1..]`. The axis lies in `-rank..rank`; `indices` may have
/// any rank, 0 included.
///
/// The rule is that of ONNX Gather 1 to 13, numpy `take`, torch
/// `index_select`, and the lookup of an embedding table.
///
/// # Errors
///
/// Besides those of every verb: [`ScatterError::AxisOutOfRange`].
///
/// # Examples
///
/// ```
/// use ndscatter::{Bounds, Gather, TensorView};
///
/// let table = [[1.0, 1.5], [2.0, 2.5]].concat();
/// let rows = Gather::new(0).bounds(Bounds::Skip).allocate(
///     TensorView::contiguous(&table, &[2, 2])?,
///     TensorView::contiguous(&[-1_i32, 7], &[2])?,
/// )?;
/// assert_eq!(rows, [2.0, 2.5, 0.0, 0.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "take")]
#[doc(alias = "index_select")]
#[doc(alias = "embedding")]
pub type Gather<'p> = GatherOp<'p, AlongAxis>;

/// One element of `data` for each index, at the index's own position but for
/// one axis.
///
/// `indices` has the rank of `data` and off the axis at most its sizes; the
/// result has the shape of `indices`. Indices that repeat along the dims after
/// the axis are recognised and gathered as rows.
///
/// The rule is that of ONNX GatherElements 11 to 13, torch `gather`, and numpy
/// `take_along_axis`.
///
/// # Errors
///
/// Besides those of every verb: [`ScatterError::IndicesRankMismatch`],
/// [`ScatterError::IndicesTooLong`], [`ScatterError::AxisOutOfRange`].
///
/// # Examples
///
/// ```
/// use ndscatter::{GatherElements, TensorView};
///
/// let data = [[1, 2], [3, 4]].concat();
/// let result = GatherElements::new(1).allocate(
///     TensorView::contiguous(&data, &[2, 2])?,
///     TensorView::contiguous(&[0_i64, 0, 1, 0], &[2, 2])?,
/// )?;
/// assert_eq!(result, [1, 1, 4, 3]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "take_along_axis")]
pub type GatherElements<'p> = GatherOp<'p, ElementsAlong>;

impl GatherNd<'static> {
    /// With `batch_dims` leading dims that data and indices share.
    pub fn new(batch_dims: usize) -> Self {
        Self::with_operator(Nd { batch_dims })
    }
}

impl Gather<'static> {
    /// Along `axis`.
    pub fn new(axis: isize) -> Self {
        Self::with_operator(AlongAxis { axis })
    }
}

impl GatherElements<'static> {
    /// Along `axis`.
    pub fn new(axis: isize) -> Self {
        Self::with_operator(ElementsAlong { axis })
    }
}

impl<O: Operator> GatherOp<'static, O> {
    fn with_operator(operator: O) -> Self {
        Self {
            operator,
            rules: IndexRules {
                negatives_wrap: true,
                bounds: Bounds::Error,
            },
            execution: Execution::new(),
        }
    }
}

impl<'p, O: Operator> GatherOp<'p, O> {
    /// Whether negative indices count from the end of their axis (the
    /// default) or are out of bounds.
    #[must_use]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        self.rules.negatives_wrap = allowed;
        self
    }

    /// What becomes of an index that lies outside its axis: an error (the
    /// default), zeros, or the nearest end.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.rules.bounds = bounds;
        self
    }

    /// Who runs it: pool, number of workers, instruction set. Says nothing of
    /// what the gather means; a plan does not keep it.
    #[must_use]
    pub fn execution<'q>(self, execution: Execution<'q>) -> GatherOp<'q, O> {
        GatherOp {
            operator: self.operator,
            rules: self.rules,
            execution,
        }
    }

    /// The shape of the result.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about these shapes.
    pub fn output_shape(
        &self,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Vec<usize>, ScatterError> {
        let indices = Layout::contiguous(indices);
        let form = self.operator.form(data, &indices, None)?;
        copied(&gather_shape(&form, data, &indices)?)
    }

    /// Returns the result, row-major.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices, or memory for the
    /// result.
    pub fn allocate<T: Element, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
    ) -> Result<Vec<T>, ScatterError> {
        let shape = self.output_shape(data.shape(), indices.shape())?;
        let kernels = moving_kernels(T::TYPE, &self.execution)?;
        allocate(&shape, |output| {
            // SAFETY: the kernels were made for `T`; the result is new memory.
            unsafe { self.once(kernels, data.into(), indices.into(), output) }
        })
    }

    /// Writes the result into `output`. What it held before is not read.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options or indices; `output` is then
    /// unchanged.
    pub fn write_into<T: Element, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let kernels = moving_kernels(T::TYPE, &self.execution)?;
        // SAFETY: the kernels were made for `T`; typed views borrow their
        // memory, so that the output shares no byte with an input.
        unsafe { self.once(kernels, data.into(), indices.into(), output.into()) }
    }

    /// [`write_into`](Self::write_into) with element types as values.
    ///
    /// # Errors
    ///
    /// Also [`ScatterError::ElementTypeMismatch`],
    /// [`ScatterError::IndexType`], [`ScatterError::InputOverlap`] where
    /// `output` shares memory with an input, and
    /// [`ScatterError::ForeignBool`] where bytes of foreign booleans would be
    /// moved into Rust's.
    pub fn any_write_into(
        &self,
        data: AnyView<'_>,
        indices: AnyView<'_>,
        output: AnyViewMut<'_>,
    ) -> Result<(), ScatterError> {
        let kernels = moving_kernels(data.element(), &self.execution)?;
        check_gather(&output, &data, Some(&indices))?;
        // SAFETY: the views have the kernels' element type and share no byte,
        // as was just checked.
        unsafe { self.once(kernels, data.into(), indices, output.into()) }
    }

    /// [`write_into`](Self::write_into) for elements that are cloned, such as
    /// strings.
    ///
    /// # Errors
    ///
    /// As [`write_into`](Self::write_into), and
    /// [`ScatterError::UnsupportedOption`] for [`Bounds::Skip`], as there is no
    /// zero.
    pub fn cloned_write_into<T: Clone + Send + Sync, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        if self.rules.bounds == Bounds::Skip {
            return Err(ScatterError::UnsupportedOption { option: "bounds" });
        }
        let kernels = cloned_kernels::<T>(Reducing::default())?;
        // SAFETY: the kernels were made for `T`; typed views borrow their
        // memory, and the output is initialised.
        unsafe { self.once(kernels, data.into(), indices.into(), output.into()) }
    }

    /// Does all that depends on `indices` alone, for data of this layout.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes or indices, or about memory for the
    /// plan.
    pub fn plan<I: Index>(
        &self,
        data: Layout<'_>,
        indices: TensorView<'_, I>,
    ) -> Result<GatherPlan, ScatterError> {
        self.any_plan(data, indices.into())
    }

    /// [`plan`](Self::plan) with the type of indices as a value.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and [`ScatterError::IndexType`].
    pub fn any_plan(
        &self,
        data: Layout<'_>,
        indices: AnyView<'_>,
    ) -> Result<GatherPlan, ScatterError> {
        data.check(1)?;
        let form = self.operator.form(data.shape(), &indices.layout(), None)?;
        self.plan_form(form, data, indices)
    }

    /// The plan of what the shapes have been found to mean.
    fn plan_form(
        &self,
        form: Form,
        data: Layout<'_>,
        indices: AnyView<'_>,
    ) -> Result<GatherPlan, ScatterError> {
        let planning = Planning {
            duplicates: Duplicates::Allow,
            rules: self.rules,
        };
        let indices = Indices::new(indices)?;
        let plan = make_plan(&data, form, indices, planning, &self.execution)?;
        GatherPlan::new(plan)
    }

    /// `kernels` were made for this execution, and only move.
    ///
    /// # Safety
    ///
    /// As for [`run_gather`].
    unsafe fn once(
        &self,
        kernels: Operation,
        data: Source<'_>,
        indices: AnyView<'_>,
        output: Target<'_>,
    ) -> Result<(), ScatterError> {
        let form = (self.operator).form(data.layout().shape(), &indices.layout(), None)?;
        let shape = gather_shape(&form, data.layout().shape(), &indices.layout())?;
        output.check_shape(&shape)?;
        let plan = self.plan_form(form, data.layout(), indices)?;
        // SAFETY: the caller vouches for what `run_gather` asks.
        let result = unsafe { run_gather(&plan, kernels, data, output, &self.execution) };
        plan.put_back();
        result
    }
}
