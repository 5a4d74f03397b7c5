//! What a forward pass in place has written over, for its gradient.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
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
    /// The windows of destinations that have tuples, of data that lies as the plan's
    /// output, before anything is written.
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

    /// All of data, before anything is written.
    pub(super) fn all(
        data: &Target<'_>,
        dtype: DType,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        let operation = operation(Elements::Plain(dtype), Reducing::default(), execution)?;
        let tensor = AnyTensor::filled(data.shape(), dtype, |target| {
            // SAFETY: the target is new memory of the shape and type of data.
            data.read(|data| unsafe { copy_all(operation, &target, Some(data)) })?
                .run(execution)
        })?;
        Ok(Self {
            tensor,
            windows: None,
        })
    }
}
