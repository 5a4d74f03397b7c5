//! A scatter of no updates: what is left of one that only copies or multiplies.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

use super::super::making::{Planning, make_plan};
use super::super::operands::Operands;
use super::super::scattered::{Prepared, prepare};
use super::zeros;
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::{Buffers, Context, Transfer};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::{Indices, Layout, Readable, Source, Target, TensorView};
use crate::plan::{Form, IndexPlan, IndexRules};
use crate::reduction::{Bounds, Duplicates};

/// Runs a pass that has been made ready.
pub(super) fn run(prepared: Prepared<'_>, execution: &Execution<'_>) -> Result<(), ScatterError> {
    prepared.run(&execution.begin(), execution)
}

/// A scatter of no updates to a tensor of some shape: what it does to data.
pub(super) struct Nothing(IndexPlan);

impl Nothing {
    pub(super) fn new(shape: &[usize], execution: &Execution<'_>) -> Result<Self, ScatterError> {
        let none: [i64; 0] = [];
        let none = Indices::from(TensorView::contiguous(&none, &[0, 0])?);
        // Tuples of no coordinates, each of which would address all of the tensor.
        let form = Form {
            batch_rank: 0,
            tuple_len: 0,
            list: (0, 1),
            coordinates: Form::ALL_LISTED,
        };
        let planning = Planning {
            duplicates: Duplicates::Allow,
            rules: IndexRules {
                negatives_wrap: true,
                bounds: Bounds::Error,
            },
            gathers: false,
        };
        let output = Layout::contiguous(shape);
        let plan = make_plan(&output, form, none.integers()?, planning, execution)?;
        Ok(Self(plan))
    }

    /// Copies data, or leaves the target as it is.
    pub(super) fn copy(
        &self,
        operation: &Operation,
        target: &Target<'_>,
        data: Option<&Source<'_>>,
    ) -> Result<Prepared<'_>, ScatterError> {
        let strides = target.layout().all_strides()?;
        let Some(numbered) = self.0.binding(&strides)? else {
            return Err(self.0.mismatch(target.layout()));
        };
        let none = zeros(self.0.updates_shape())?;
        let updates = Readable::zeros(self.0.updates_shape(), &none);
        let updates = Source::of_zeros(&updates, DType::F64);
        let operands = Operands {
            operation,
            output: target,
            updates: &updates,
            data,
        };
        // SAFETY: the target has the shape of the plan, and updates have no elements.
        unsafe { prepare(&self.0, &numbered, &operands, false) }
    }

    /// Multiplies all elements.
    pub(super) fn multiply(
        &self,
        operation: Operation,
        target: &Target<'_>,
    ) -> Result<Prepared<'_>, ScatterError> {
        let strides = target.layout().all_strides()?;
        let Some(numbered) = self.0.binding(&strides)? else {
            return Err(self.0.mismatch(target.layout()));
        };
        let none = zeros(self.0.updates_shape())?;
        let geometry = self.0.geometry_of(&numbered, &none)?;
        let copy = self.0.copy_geometry_of(&numbered, &strides)?;
        let buffers = Buffers {
            output: target.as_mut_ptr(),
            updates: std::ptr::null(),
            data: None,
        };
        let context = Context::new(false, false);
        // SAFETY: the target has the shape of the plan, and there are no updates.
        let transfer = unsafe {
            Transfer::scatter(&self.0, operation, buffers, geometry, Some(copy), context)
        };
        Ok(transfer.into())
    }
}
