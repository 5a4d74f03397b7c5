//! The operators: their shape rules and options, and the verbs that all share.
//!
//! Knows ONNX, OpenVINO and their kin. Knows nothing of threads or vectors:
//! an operator says what its shapes mean ([`Form`]) and leaves the rest.

#![expect(
    unsafe_code,
    reason = "the verbs vouch for the memory of the views that they were given"
)]

mod gather;
pub mod profile;
mod scatter_elements;
mod scatter_nd;
mod scatter_update;
mod tensor_scatter;

pub use gather::{Gather, GatherElements, GatherNd, GatherOp};
pub use scatter_elements::{ElementsAlong, ScatterElements, scatter_elements};
pub use scatter_nd::{Nd, ScatterNd, scatter_nd};
pub use scatter_update::{AlongAxis, ScatterUpdate, scatter_update};
pub use tensor_scatter::{CacheWrite, TensorScatter, tensor_scatter};

use crate::element::{Element, Index};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::indices::Indices;
use crate::kernel::Operation;
use crate::layout::Layout;
use crate::plan::{Form, IndexRules};
use crate::reduction::{Accumulate, Bounds, Duplicates, Reducing, Reduction};
use crate::run::{
    self, Operands, Planning, ScatterPlan, Target, allocate, cloned_kernels, make_plan,
    plain_kernels,
};
use crate::tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};

/// What tells one operator from another: its shape rule.
pub trait Operator: form::Lower {}

mod form {
    use super::{Form, IndexRules, Layout, Reducing, ScatterError};

    /// Sealed: lowering speaks of the inside of the crate.
    pub trait Lower: Clone + std::fmt::Debug + Send + Sync {
        /// What the shapes mean. `updates` is not known to a plan.
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "sealed")]
        fn form(
            &self,
            data: &[usize],
            indices: &Layout<'_>,
            updates: Option<&[usize]>,
        ) -> Result<Form, ScatterError>;

        /// Refuses options that the operator does not have.
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "sealed")]
        fn check_options(
            &self,
            _rules: IndexRules,
            _reducing: Reducing,
        ) -> Result<(), ScatterError> {
            Ok(())
        }
    }
}

/// An axis in `-rank..rank`, counted from the front.
fn resolve_axis(axis: isize, rank: usize) -> Result<usize, ScatterError> {
    let from_front = if axis < 0 {
        axis.checked_add_unsigned(rank)
    } else {
        Some(axis)
    };
    (from_front.and_then(|axis| usize::try_from(axis).ok()))
        .filter(|&axis| axis < rank)
        .ok_or(ScatterError::AxisOutOfRange { axis, rank })
}

pub(crate) use form::Lower;

/// A scatter operator with its options, and the four verbs: allocate the
/// result, write it into an output, work in place, or plan now and run later.
///
/// Use it as [`ScatterNd`], [`ScatterUpdate`], [`ScatterElements`] or
/// [`TensorScatter`].
///
/// Whatever the options, pool and number of threads, the result is, bit for
/// bit, that of the sequential loop over `indices` in row-major order. All
/// tensors may be strided. Nothing is written when an error is returned.
#[derive(Clone, Debug)]
pub struct Scatter<'p, O> {
    operator: O,
    planning: Planning,
    reducing: Reducing,
    execution: Execution<'p>,
}

impl<O: Operator> Scatter<'static, O> {
    fn with_operator(operator: O) -> Self {
        Self {
            operator,
            planning: Planning {
                duplicates: Duplicates::Allow,
                rules: IndexRules {
                    negatives_wrap: true,
                    bounds: Bounds::Error,
                },
            },
            reducing: Reducing::default(),
            execution: Execution::new(),
        }
    }
}

impl<'p, O: Operator> Scatter<'p, O> {
    /// How updates meet the value that is there. Default: they replace it.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reducing.reduction = reduction;
        self
    }

    /// Whether two tuples may have one destination. Default: they may.
    #[must_use]
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.planning.duplicates = duplicates;
        self
    }

    /// Whether negative indices count from the end of their axis (the
    /// default) or are out of bounds.
    #[must_use]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        self.planning.rules.negatives_wrap = allowed;
        self
    }

    /// What becomes of an index that lies outside its axis. Default: it is an
    /// error.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.planning.rules.bounds = bounds;
        self
    }

    /// Whether the value that is there takes part in a reduction (the default).
    /// If not, the first update of a destination replaces it and later ones are
    /// combined with that; `Sub` begins at zero. Destinations without updates
    /// keep their value. Without a reduction it makes no difference.
    #[must_use]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.reducing.include_self = include_self;
        self
    }

    /// In what type 16-bit floats are summed. Default: their own.
    #[must_use]
    pub fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.reducing.accumulate = accumulate;
        self
    }

    /// Who runs it: pool, number of workers, forced choices. Says nothing of
    /// what the scatter means; a plan does not keep it.
    #[must_use]
    pub fn execution<'q>(self, execution: Execution<'q>) -> Scatter<'q, O> {
        Scatter {
            operator: self.operator,
            planning: self.planning,
            reducing: self.reducing,
            execution,
        }
    }

    /// Returns a copy of `data`, row-major, with the updates applied.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options, indices, or memory for the
    /// result.
    pub fn allocate<T: Element, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        let kernels = plain_kernels(T::TYPE, self.reducing, &self.execution)?;
        self.check_shapes(data.shape(), &indices.layout(), updates.shape())?;
        allocate(data.shape(), |output| {
            self.once(kernels, output, indices.into(), updates, Some(data))
        })
    }

    /// Writes a copy of `data` with the updates applied into `output`. What
    /// `output` held before is not read.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options or indices; `output` is then
    /// unchanged.
    pub fn write_into<T: Element, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let kernels = plain_kernels(T::TYPE, self.reducing, &self.execution)?;
        self.once(kernels, output.into(), indices.into(), updates, Some(data))
    }

    /// Applies the updates to `data` itself.
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about shapes, options or indices; `data` is then
    /// unchanged.
    pub fn in_place<T: Element, I: Index>(
        &self,
        data: TensorViewMut<'_, T>,
        indices: TensorView<'_, I>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError> {
        let kernels = plain_kernels(T::TYPE, self.reducing, &self.execution)?;
        self.once(kernels, data.into(), indices.into(), updates, None)
    }

    /// Does all that depends on `indices` alone, for runs on outputs of this
    /// layout. The plan means what this operator means: it keeps all options
    /// but the [`execution`](Self::execution).
    ///
    /// # Errors
    ///
    /// Any [`ScatterError`] about the shapes of data and indices, about
    /// indices, or about memory for the plan.
    pub fn plan<I: Index>(
        &self,
        output: Layout<'_>,
        indices: TensorView<'_, I>,
    ) -> Result<ScatterPlan, ScatterError> {
        self.any_plan(output, indices.into())
    }

    /// [`write_into`](Self::write_into) with element types as values. An
    /// `output` at the address of `data`, with its shape and strides, is in
    /// place.
    ///
    /// # Errors
    ///
    /// Also [`ScatterError::ElementTypeMismatch`],
    /// [`ScatterError::IndexType`], [`ScatterError::InputOverlap`] where
    /// `output` shares memory with an input, and [`ScatterError::ForeignBool`]
    /// where bytes of foreign booleans would be moved into Rust's.
    pub fn any_write_into(
        &self,
        data: AnyView<'_>,
        indices: AnyView<'_>,
        updates: AnyView<'_>,
        output: AnyViewMut<'_>,
    ) -> Result<(), ScatterError> {
        let kernels = plain_kernels(data.element(), self.reducing, &self.execution)?;
        let operands = Operands::any(&kernels, output, updates, Some(data), Some(&indices))?;
        // SAFETY: the views have the kernels' element type and, as
        // `Operands::any` has checked, the output shares no byte with another
        // and takes what is moved into it; in place it is the data, initialised.
        unsafe { self.once_on(&kernels, &operands, &Indices::new(indices)?) }
    }

    /// [`in_place`](Self::in_place) with element types as values.
    ///
    /// # Errors
    ///
    /// As [`any_write_into`](Self::any_write_into), and
    /// [`ScatterError::Uninitialized`] for a view that is only written.
    pub fn any_in_place(
        &self,
        data: AnyViewMut<'_>,
        indices: AnyView<'_>,
        updates: AnyView<'_>,
    ) -> Result<(), ScatterError> {
        let kernels = plain_kernels(data.element(), self.reducing, &self.execution)?;
        let operands = Operands::any(&kernels, data, updates, None, Some(&indices))?;
        // SAFETY: as in `any_write_into`; `Operands::any` has seen that the
        // elements are initialised.
        unsafe { self.once_on(&kernels, &operands, &Indices::new(indices)?) }
    }

    /// [`plan`](Self::plan) with the type of indices as a value.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and [`ScatterError::IndexType`].
    pub fn any_plan(
        &self,
        output: Layout<'_>,
        indices: AnyView<'_>,
    ) -> Result<ScatterPlan, ScatterError> {
        output.check(1)?;
        self.operator
            .check_options(self.planning.rules, self.reducing)?;
        let form = self
            .operator
            .form(output.shape(), &indices.layout(), None)?;
        let indices = Indices::new(indices)?;
        let plan = make_plan(&output, form, indices, self.planning, &self.execution)?;
        Ok(ScatterPlan::new(plan, self.reducing))
    }

    /// [`allocate`](Self::allocate) for elements that are cloned, such as
    /// strings. Only without a reduction.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), and [`ScatterError::ReductionOfClones`].
    pub fn cloned_allocate<T: Clone + Send + Sync, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        let kernels = cloned_kernels::<T>(self.reducing)?;
        self.check_shapes(data.shape(), &indices.layout(), updates.shape())?;
        let mut result = data.to_vec()?;
        let output = TensorViewMut::contiguous(&mut result, data.shape())?;
        self.once(kernels, output.into(), indices.into(), updates, None)?;
        Ok(result)
    }

    /// [`write_into`](Self::write_into) for elements that are cloned.
    ///
    /// # Errors
    ///
    /// As [`write_into`](Self::write_into), and [`ScatterError::ReductionOfClones`].
    pub fn cloned_write_into<T: Clone + Send + Sync, I: Index>(
        &self,
        data: TensorView<'_, T>,
        indices: TensorView<'_, I>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let kernels = cloned_kernels::<T>(self.reducing)?;
        self.once(kernels, output.into(), indices.into(), updates, Some(data))
    }

    /// [`in_place`](Self::in_place) for elements that are cloned.
    ///
    /// # Errors
    ///
    /// As [`in_place`](Self::in_place), and [`ScatterError::ReductionOfClones`].
    pub fn cloned_in_place<T: Clone + Send + Sync, I: Index>(
        &self,
        data: TensorViewMut<'_, T>,
        indices: TensorView<'_, I>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError> {
        let kernels = cloned_kernels::<T>(self.reducing)?;
        self.once(kernels, data.into(), indices.into(), updates, None)
    }

    fn check_shapes(
        &self,
        data: &[usize],
        indices: &Layout<'_>,
        updates: &[usize],
    ) -> Result<(), ScatterError> {
        self.operator
            .check_options(self.planning.rules, self.reducing)?;
        let form = self.operator.form(data, indices, Some(updates))?;
        form.check_updates(data, indices, updates)
    }

    /// One call on typed tensors. `output` is initialised unless `kernels` move
    /// plain bytes and there is `data`.
    fn once<T>(
        &self,
        kernels: Operation,
        output: Target<'_>,
        indices: Indices<'_>,
        updates: TensorView<'_, T>,
        data: Option<TensorView<'_, T>>,
    ) -> Result<(), ScatterError> {
        let operands = Operands::typed(output, updates, data);
        // SAFETY: `kernels` were made for `T`; typed views borrow their memory, so
        // an output shares no byte with an input; see above for the rest.
        unsafe { self.once_on(&kernels, &operands, &indices) }
    }

    /// # Safety
    ///
    /// As for [`run::once`].
    unsafe fn once_on(
        &self,
        kernels: &Operation,
        operands: &Operands<'_>,
        indices: &Indices<'_>,
    ) -> Result<(), ScatterError> {
        self.operator
            .check_options(self.planning.rules, self.reducing)?;
        operands.check_data()?;
        let updates = Some(operands.updates_shape());
        let form = (self.operator).form(operands.shape(), &indices.layout(), updates)?;
        // SAFETY: the caller vouches for what `run::once` asks.
        unsafe {
            run::once(
                form,
                kernels,
                operands,
                indices,
                self.planning,
                &self.execution,
            )
        }
    }
}
