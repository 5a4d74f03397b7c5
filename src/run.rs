//! Where the layers meet: indices become a plan, a plan and operands become a
//! transfer.
//!
//! Everything that can be refused is refused here, before the first write.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

mod gathered;
mod making;
mod operands;
mod planless;
mod planned;

pub use gathered::{GatherPlan, GatherRun};
pub(crate) use making::{Planning, make_plan};
pub(crate) use operands::{GatherOperands, Operands, operation};
use planless::Planless;
pub use planned::{ScatterPlan, ScatterRun};

use crate::error::ScatterError;
use crate::exec::tasks::Workers;
use crate::exec::{self, Transfer, direct, scratch};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::Dims;
use crate::operand::indices::Integers;
use crate::plan::{Destinations, Form, IndexPlan};
use crate::reduction::{Bounds, Duplicates};

/// Refuses to reduce where the operator that was planned only moves.
fn check_reduction(plan: &IndexPlan, operation: &Operation) -> Result<(), ScatterError> {
    if plan.only_moves() && operation.group.is_some() {
        return Err(ScatterError::UnsupportedOption {
            option: "reduction",
        });
    }
    Ok(())
}

/// Runs a plan, which may be kept for further runs.
pub(crate) fn execute(
    plan: &IndexPlan,
    is_kept: bool,
    operands: &Operands<'_>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let operation = operands.operation;
    check_reduction(plan, operation)?;
    plan.check_output(operands.output.layout())?;
    plan.check_updates(operands.updates_shape())?;
    if execution.schedule.is_none()
        && operands.are_contiguous()
        && let (Some(flat), Destinations::Narrow(numbers)) = (plan.flat(), plan.destinations())
        && direct::suits(&flat, operation, operands.data.is_none())
    {
        // SAFETY: shapes have just been checked against the plan's, and the
        // plan has numbered slices of an output that is contiguous; `Operands`
        // vouches for the rest.
        unsafe { direct::run(operation.kernels, &flat, operands.buffers(), numbers) };
        return Ok(());
    }
    execute_by_schedule(plan, is_kept, operands, execution)
}

/// The rest of [`execute`], apart from it so that small calls do not pay for
/// its stack. Layout and shapes of `operands` are the plan's.
#[inline(never)]
fn execute_by_schedule(
    plan: &IndexPlan,
    is_kept: bool,
    operands: &Operands<'_>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let updates_strides = if plan.updates_rank() == operands.updates_shape().len() {
        plan.arranged_strides(operands.updates.layout())?
    } else {
        // A scalar written as a tensor of one element.
        Dims::new()
    };
    let data_strides = (operands.data).map(|data| plan.arranged_strides(data.layout()));
    let data_strides = data_strides.transpose()?;
    let geometry = plan.geometry(&updates_strides)?;
    let copy = data_strides.map(|strides| plan.copy_geometry(&strides));
    let copy = copy.transpose()?;
    // SAFETY: `execute` has checked layout and shapes against the plan's;
    // `Operands` vouches for the rest.
    let transfer = unsafe {
        let buffers = operands.buffers();
        Transfer::scatter(plan, *operands.operation, buffers, geometry, copy)
    };
    let workers = Workers::new(execution.pool, execution.max_workers);
    exec::run(
        &transfer.of_kept_plan(is_kept),
        &workers,
        execution.schedule,
    )
}

/// Plans and runs once.
pub(crate) fn once(
    form: Form,
    operands: &Operands<'_>,
    indices: &Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    form.check_updates(operands.shape(), indices.layout(), operands.updates_shape())?;
    let plain = form.coordinates == Form::ALL_LISTED
        && planning.duplicates == Duplicates::Allow
        && planning.rules.bounds == Bounds::Error
        && execution.schedule.is_none();
    if plain && operands.are_contiguous() && indices.layout().strides().is_none() {
        let planless = Planless::new(&form, operands, indices, planning);
        // SAFETY: shapes have just been checked against one another;
        // `Operands` vouches for the rest.
        if unsafe { planless.run(execution) }? {
            return Ok(());
        }
    }
    once_planned(form, operands, indices, planning, execution)
}

/// The rest of [`once`], apart from it so that small calls do not pay for its
/// stack.
#[inline(never)]
fn once_planned(
    form: Form,
    operands: &Operands<'_>,
    indices: &Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let output = operands.output.layout();
    let plan = make_plan(output, form, *indices, planning, execution)?;
    let result = execute(&plan, false, operands, execution);
    scratch::put_back(plan.into_destinations().into_spare());
    result
}
