//! A scatter, planned or not: its shapes are held against the plan's, and it is
//! run the shortest way that there is for it.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

use super::long_lists::LongList;
use super::making::{Planning, make_plan};
use super::operands::{Operands, Transferred};
use super::small::{self, Small};
use crate::error::ScatterError;
use crate::exec::one_value::OneRun;
use crate::exec::tasks::Call;
use crate::exec::{self, Context, Transfer, scratch};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::indices::Integers;
use crate::operand::{Elements, Layout};
use crate::plan::{Binding, Extents, Flat, Form, Geometry, IndexPlan};
use crate::reduction::{Bounds, Duplicates};

/// Refuses to reduce where the operator that was planned only moves.
pub(super) fn check_reduction(plan: &IndexPlan, operation: &Operation) -> Result<(), ScatterError> {
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
    check_reduction(plan, operands.operation)?;
    plan.check_output(operands.output.layout())?;
    plan.check_updates(operands.updates_shape())?;
    let may_be_small = execution.schedule.is_none()
        && !(is_kept && exec::may_be_overwritten(plan, operands.operation));
    // SAFETY: layout and shapes have just been checked.
    if may_be_small && unsafe { small::run_planned(plan, operands) } {
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
    let call = execution.begin();
    // SAFETY: `execute` has checked layout and shapes against the plan's.
    let prepared = unsafe { prepare(plan, &plan.own_binding(), operands, is_kept) }?;
    prepared.run(&call, execution)
}

/// A transfer, and what it reads beside the tensors.
pub(crate) struct Prepared<'a> {
    transfer: Transfer<'a>,
    one_run: Option<OneRun>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn run(
        self,
        call: &Call<'_>,
        execution: &Execution<'_>,
    ) -> Result<(), ScatterError> {
        let result = exec::run(self.transfer, call.workers(), execution.schedule);
        self.one_run.into_iter().for_each(OneRun::put_back);
        result
    }
}

impl<'a> From<Transfer<'a>> for Prepared<'a> {
    fn from(transfer: Transfer<'a>) -> Self {
        Self {
            transfer,
            one_run: None,
        }
    }
}

/// Asks for all the memory that it takes to say how a scatter goes.
///
/// # Safety
///
/// The output has the shape of the plan's and the strides of the binding; updates have
/// the shape that the plan asks for.
#[inline(always)]
pub(crate) unsafe fn prepare<'a>(
    plan: &'a IndexPlan,
    numbered: &Binding<'_>,
    operands: &Operands<'_>,
    is_kept: bool,
) -> Result<Prepared<'a>, ScatterError> {
    let updates_strides = operands.updates.layout().all_strides()?;
    let data_strides = (operands.data).map(|data| data.layout().all_strides());
    let data_strides = data_strides.transpose()?;
    let mut geometry = plan.geometry_of(numbered, &updates_strides)?;
    let mut buffers = operands.buffers();
    let one_run = one_run_of(operands, &geometry);
    if let Some(one_run) = &one_run {
        geometry.window.read_side_by_side();
        buffers.updates = one_run.as_ptr();
    }
    let copy = data_strides.map(|strides| plan.copy_geometry_of(numbered, &strides));
    let copy = copy.transpose()?;
    let context = Context::new(is_kept, operands.output.is_new());
    // SAFETY: the caller vouches for layout and shapes, `Operands` for the rest.
    let transfer =
        unsafe { Transfer::scatter(plan, *operands.operation, buffers, geometry, copy, context) };
    Ok(Prepared { transfer, one_run })
}

/// Of updates that are one value, a run of copies of it: else each run would be
/// read one element at a time.
fn one_run_of(operands: &Operands<'_>, geometry: &Geometry) -> Option<OneRun> {
    let is_wanted = geometry.window.run().size > 1 && geometry.reads_one_element();
    let Elements::Plain(dtype) = operands.updates.elements() else {
        return None;
    };
    if !is_wanted || operands.updates_shape().contains(&0) {
        return None;
    }
    // SAFETY: updates have an element, and whoever has the operands may read it.
    unsafe {
        OneRun::new(
            operands.updates.as_ptr(),
            dtype.size(),
            geometry.window.run().size,
        )
    }
}

/// Plans and runs once.
#[inline(always)] // As all that is on the way of the smallest calls.
pub(crate) fn once(
    form: &Form,
    operands: &Operands<'_>,
    indices: &Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let (shape, listed) = (operands.shape(), indices.layout().shape());
    form.check_updates(shape, listed, operands.updates_shape())?;
    let extents = &Extents::new(form, shape, listed);
    if execution.schedule.is_none()
        && let Some(flat) = Flat::new(extents, operands.numbered(), operands.listed())
    {
        let small = Small {
            extents,
            flat: &flat,
            operands,
            indices,
            planning,
        };
        // SAFETY: shapes have just been held against one another, and `flat` made
        // of them.
        if unsafe { small.run(execution) }? || run_long_list(&small, execution)? {
            return Ok(());
        }
    }
    once_planned(form, operands, indices, planning, execution)
}

/// Runs a long list of contiguous tensors without a plan, if that pays, and says
/// whether it did.
#[inline(never)]
fn run_long_list(
    call: &Small<'_, Operands<'_>>,
    execution: &Execution<'_>,
) -> Result<bool, ScatterError> {
    let lists_all = call.extents.form.coordinates == Form::ALL_LISTED
        && call.planning.duplicates == Duplicates::Allow
        && call.planning.rules.bounds == Bounds::Error;
    let (is_run, operands) = (Layout::is_contiguous, call.operands);
    let are_runs = is_run(operands.numbered())
        && operands.copied().is_none_or(is_run)
        && is_run(call.indices.layout())
        && (is_run(operands.listed()) || call.flat.step == 0);
    if !(lists_all && are_runs) {
        return Ok(false);
    }
    let list = LongList::new(call);
    // SAFETY: all are contiguous but for updates that are one value; `Operands`
    // vouches for the rest.
    unsafe { list.run(execution) }
}

/// The rest of [`once`], apart from it so that small calls do not pay for its
/// stack.
#[inline(never)]
fn once_planned(
    form: &Form,
    operands: &Operands<'_>,
    indices: &Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let output = operands.output.layout();
    let plan = make_plan(output, *form, *indices, planning, execution)?;
    let result = execute(&plan, false, operands, execution);
    scratch::put_back(plan.into_destinations().into_spare());
    result
}
