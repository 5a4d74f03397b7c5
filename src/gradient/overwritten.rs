//! Saves the elements of data that a forward pass in place overwrites. The gradient of the forward
//! pass may depend on these elements.
//!
//! This module knows plans and tensors. It does not know for which reductions the gradient depends
//! on the saved elements.

#![expect(
    unsafe_code,
    reason = "copies between a view and new memory of its shape and type"
)]

use super::passes::copy_all;
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::Direction;
use crate::execution::Execution;
use crate::operand::{AnyTensor, Elements, Layout, Target};
use crate::plan::IndexPlan;
use crate::reduction::Reducing;
use crate::run::{Operands, Overwritten, execute, operation};

impl Overwritten {
    /// Saves one window of `data` for each destination that has tuples. The caller must call this
    /// function before the forward pass writes to `data`. `data` must have the layout of the plan's
    /// output.
    pub(super) fn windows(
        plan: &IndexPlan,
        data: &Target<'_>,
        dtype: DType,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        let operation = operation(Elements::Plain(dtype), Reducing::default(), execution)?;
        let windows_of = plan.of_destinations()?;
        let shape = windows_of.updates_shape();
        let place = windows_of.listed(&Layout::contiguous(shape).all_strides()?)?;
        let tensor = AnyTensor::filled(shape, dtype, |target| {
            data.read(|data| {
                let operands = Operands {
                    direction: Direction::Gather,
                    operation: &operation,
                    output: &target,
                    source: data,
                    copied: None,
                };
                execute(&windows_of, &operands, execution)
            })
        })?;
        Ok(Self {
            tensor,
            windows: Some(place),
        })
    }

    /// Saves all of `data`. The caller must call this function before the forward pass writes to
    /// `data`.
    pub(super) fn all(
        data: &Target<'_>,
        dtype: DType,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        let operation = operation(Elements::Plain(dtype), Reducing::default(), execution)?;
        let tensor = AnyTensor::filled(data.shape(), dtype, |target| {
            // SAFETY: `target` is new memory with the shape and the type of `data`.
            data.read(|data| unsafe { copy_all(operation, &target, Some(data)) })?
                .run(execution)
        })?;
        Ok(Self {
            tensor,
            windows: None,
        })
    }
}
