//! Runs a call, scatter or gather, with indices or with a kept plan.
//!
//! The steps of a call are: check the shapes, choose the route (the code path of the call), and run
//! the call on this route. This module knows which module runs each route. It does not know which
//! operator made the call.

#![expect(unsafe_code, reason = "passes the memory of checked views to a call")]

use super::long_gathers::LongGather;
use super::long_lists::LongList;
use super::operands::Operands;
use super::plan_builder::{Planning, make_plan};
use super::route::{self, Choice, Numbers, Route};
use super::small_call::{self, FlatCall};
use crate::error::ScatterError;
use crate::exec::one_value::OneRun;
use crate::exec::{self, Access, Context, Direction, Selection, Transfer, scratch};
use crate::execution::Execution;
use crate::operand::Elements;
use crate::operand::indices::Integers;
use crate::plan::{Binding, Extents, Flat, Form, Geometry, IndexPlan};

/// Returns an error if the call has a reduction, and the plan is of an operator that only moves
/// elements. `reduces`: whether the call has a reduction.
#[inline]
pub(crate) fn check_reduction(plan: &IndexPlan, reduces: bool) -> Result<(), ScatterError> {
    if plan.only_moves() && reduces {
        return Err(ScatterError::UnsupportedOption {
            option: "reduction",
        });
    }
    Ok(())
}

/// Runs a call with a kept plan.
#[inline(always)] // On the path of the smallest calls.
pub(crate) fn execute(
    plan: &IndexPlan,
    operands: &Operands<'_>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    check_reduction(plan, operands.operation.group.is_some())?;
    operands.check_plan(plan)?;
    let mut computed = None;
    let flat = flat_of(plan, operands, &mut computed);
    let numbers = Numbers::Plan {
        plan,
        is_kept: true,
    };
    let choice = operands.facts(flat, numbers, execution).choose();
    run_plan(plan, flat, true, operands, choice, execution)
}

/// Returns the strides of the numbered tensor and of the listed tensor. The numbered tensor is the
/// output of a scatter or the data of a gather. The listed tensor is the updates of a scatter or
/// the output of a gather. Returns `None` if the windows are not rows at a constant stride.
///
/// If the listed tensor is contiguous, the plan already has the strides. Otherwise this function
/// computes them and stores them in `computed`.
#[inline(always)]
fn flat_of<'f>(
    plan: &'f IndexPlan,
    operands: &Operands<'_>,
    computed: &'f mut Option<Flat>,
) -> Option<&'f Flat> {
    if operands.listed().is_contiguous() {
        return plan.flat();
    }
    *computed = Flat::new(&plan.extents(), operands.numbered(), operands.listed());
    computed.as_ref()
}

/// Runs a plan on the chosen route. The operands must have the layout and the shapes of the plan.
#[inline(always)]
fn run_plan(
    plan: &IndexPlan,
    flat: Option<&Flat>,
    is_kept: bool,
    operands: &Operands<'_>,
    choice: Choice,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    if choice.route == Route::Nothing {
        route::note(Route::Nothing);
        return Ok(());
    }
    if choice.route == Route::Small
        && let Some(flat) = flat
        // SAFETY: the callers have checked that the operands have the layout and the shapes of the
        // plan. `flat_of` made `flat` for this plan and these operands. `Facts::is_small` has
        // checked `can_run`. If data is copied, `Facts::is_small` has also checked that the data
        // and the output are contiguous.
        && unsafe { small_call::run_planned(plan, flat, operands) }
    {
        route::note(Route::Small);
        return Ok(());
    }
    run_by_schedule(plan, is_kept, operands, choice.selection, execution)
}

/// Runs a plan by a schedule. The operands must have the layout and the shapes of the plan.
///
/// The function is not inlined, so that small calls do not reserve its stack frame.
#[inline(never)]
fn run_by_schedule(
    plan: &IndexPlan,
    is_kept: bool,
    operands: &Operands<'_>,
    selection: Selection,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let call = execution.begin();
    // SAFETY: the callers of `run_plan` have checked that the operands have the layout and the
    // shapes of the plan.
    let prepared = unsafe { prepare(plan, &plan.own_binding(), operands, is_kept) }?;
    route::note(Route::Planned);
    prepared.run_by(|transfer| {
        let transfer = transfer.with_set(execution.instructions());
        exec::run(transfer, call.workers(), selection)
    })
}

/// A transfer that is ready to run. If all updates of a scatter are one value, `one_run` may be
/// scratch memory with contiguous copies of this value. The transfer then reads its updates from
/// these copies.
pub(crate) struct Prepared<'a> {
    pub(crate) transfer: Transfer<'a>,
    pub(crate) one_run: Option<OneRun>,
}

impl<'a> Prepared<'a> {
    /// Calls `run` with the transfer, and then returns the memory of `one_run` to the cache of
    /// scratch buffers.
    pub(crate) fn run_by(
        self,
        run: impl FnOnce(Transfer<'a>) -> Result<(), ScatterError>,
    ) -> Result<(), ScatterError> {
        let result = run(self.transfer);
        self.one_run.into_iter().for_each(OneRun::put_back);
        result
    }
}

/// Makes the transfer of a plan, and allocates the memory that describes the transfer. Destination
/// numbers address the windows of the numbered tensor (the output of a scatter, the data of a
/// gather). `numbered` converts these numbers to offsets in the numbered tensor.
///
/// # Safety
///
/// - The numbered tensor has the shape that the plan was made for, and the strides in `numbered`.
/// - The listed tensor (the updates of a scatter, the output of a gather) has the shape that the
///   plan requires for updates.
#[inline(always)]
pub(crate) unsafe fn prepare<'a>(
    plan: &'a IndexPlan,
    numbered: &Binding<'_>,
    operands: &Operands<'_>,
    is_kept: bool,
) -> Result<Prepared<'a>, ScatterError> {
    let listed_strides = operands.listed().all_strides()?;
    let mut geometry = plan.geometry(numbered, &listed_strides)?;
    let mut buffers = operands.buffers();
    let one_run = one_run_of(operands, &geometry);
    if let Some(one_run) = &one_run {
        geometry.window.read_side_by_side();
        buffers.source = one_run.as_ptr();
    }
    let copy = match operands.copied {
        Some(data) => Some(plan.copy_geometry(numbered, &data.layout().all_strides()?)?),
        None => None,
    };
    let access = Access {
        operation: *operands.operation,
        buffers,
        context: Context::new(is_kept, operands.output.is_new()),
    };
    // SAFETY: the caller guarantees that the numbered tensor has the shape of the plan and the
    // strides in `numbered`. The caller also guarantees that the listed tensor has the shape that
    // the plan requires. The type `Operands` guarantees that the tensors are valid and that the
    // output shares no byte with another tensor.
    let transfer = unsafe { Transfer::new(operands.direction, plan, access, geometry, copy) };
    Ok(Prepared { transfer, one_run })
}

/// Returns contiguous copies of the update, one for each element of a run, if all updates of a
/// scatter are one value and a run has several elements. Without these copies, the kernel would
/// read the updates of each run one element at a time. Returns `None` if the copies cannot be made.
fn one_run_of(operands: &Operands<'_>, geometry: &Geometry) -> Option<OneRun> {
    let run = geometry.window.run().size;
    let is_wanted = operands.direction == Direction::Scatter
        && run > 1
        && geometry.reads_one_element()
        && !operands.listed_shape().contains(&0);
    let source = operands.source;
    match source.elements() {
        // SAFETY: the updates have an element, and `Operands` guarantees that this element is
        // initialised and valid for reads.
        Elements::Plain(dtype) if is_wanted => unsafe {
            OneRun::new(source.as_ptr(), dtype.size(), run)
        },
        _ => None,
    }
}

/// Runs a call with indices, without a kept plan.
#[inline(always)] // On the path of the smallest calls.
pub(crate) fn once(
    form: &Form,
    operands: &Operands<'_>,
    indices: &Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let (shape, listed) = (operands.shape(), indices.layout().shape());
    operands.check_form(form, listed)?;
    let extents = &Extents::new(form, shape, listed);
    let flat = Flat::new(extents, operands.numbered(), operands.listed());
    let layout = indices.layout();
    let numbers = Numbers::Indices {
        extents,
        layout,
        planning,
    };
    let choice = operands.facts(flat.as_ref(), numbers, execution).choose();
    if let Some(flat) = &flat {
        let call = FlatCall {
            extents,
            flat,
            operands,
            indices,
            planning,
        };
        let is_run = match choice.route {
            // SAFETY: `check_form` has checked the shapes, and `flat` was made from them.
            // `Facts::is_small` has checked `can_run`. If data is copied, `Facts::is_small` has
            // also checked that the data and the output are contiguous.
            Route::Small => unsafe { call.run(execution) }?,
            // SAFETY: `check_form` has checked the shapes. `Facts::can_stream` has checked that
            // windows are single elements and that all tensors are contiguous. Only the updates may
            // instead be one value (a stride of 0).
            Route::Stream => unsafe { stream(&call, execution) }?,
            Route::Nothing | Route::Planned => false,
        };
        if is_run {
            route::note(choice.route);
            return Ok(());
        }
    }
    once_planned(form, operands, indices, planning, choice, execution)
}

/// Runs a long list of single elements without a plan. Returns whether the call ran.
///
/// # Safety
///
/// The windows of the call are single elements. All tensors of the call are contiguous. Only the
/// updates may instead be one value (a stride of 0).
#[inline(never)]
unsafe fn stream(call: &FlatCall<'_>, execution: &Execution<'_>) -> Result<bool, ScatterError> {
    // SAFETY: the caller guarantees what `LongList::run` and `LongGather::run` require.
    unsafe {
        match call.operands.direction {
            Direction::Scatter => {
                LongList::new(call, execution).map_or(Ok(false), |list| list.run(execution))
            }
            Direction::Gather => LongGather::new(call, execution)
                .map_or(Ok(false), |list| list.run(execution).map(|()| true)),
        }
    }
}

/// Makes a plan from the indices, and runs the call with this plan.
///
/// The function is not inlined, so that small calls do not reserve its stack frame.
#[inline(never)]
fn once_planned(
    form: &Form,
    operands: &Operands<'_>,
    indices: &Integers<'_>,
    planning: Planning,
    choice: Choice,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let plan = make_plan(operands.numbered(), *form, *indices, planning, execution)?;
    let mut computed = None;
    let flat = flat_of(&plan, operands, &mut computed);
    let numbers = Numbers::Plan {
        plan: &plan,
        is_kept: false,
    };
    let choice = choice.with_plan(form, &plan, &operands.facts(flat, numbers, execution));
    let result = run_plan(&plan, flat, false, operands, choice, execution);
    plan.into_spares().for_each(scratch::put_back);
    result
}
