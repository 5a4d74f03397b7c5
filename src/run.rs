//! Where the layers meet: indices become a plan, a plan and a row of the
//! kernel table become a call.
//!
//! Everything that can be refused is refused here, before the first write.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

mod gathered;
mod making;
mod planless;
mod planned;

pub use gathered::{GatherPlan, GatherRun};
pub(crate) use gathered::{check_gather, gather_shape, moving_kernels, run_gather};
pub(crate) use making::{Planning, make_plan};
use planless::Planless;
pub use planned::{ScatterPlan, ScatterRun};

use std::mem::MaybeUninit;

use crate::element::ElementType;
use crate::error::ScatterError;
use crate::exec::tasks::Workers;
use crate::exec::{self, Buffers, Transfer, direct, scratch};
use crate::execution::Execution;
use crate::indices::Indices;
use crate::kernel::{Kernels, Operation};
use crate::layout::overlap::{self, Footprint, Overlap};
use crate::layout::{Dims, Layout};
use crate::memory::{copied, with_room};
use crate::plan::{Destinations, Form, IndexPlan};
use crate::reduction::{Bounds, Duplicates, Reducing, Reduction};
use crate::tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};

/// A tensor of any kind to read: element `[0, 0, ...]` and where the rest is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    ptr: *const u8,
    layout: Layout<'a>,
}

/// A tensor of any kind to write, possibly not initialised.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    ptr: *mut MaybeUninit<u8>,
    layout: Layout<'a>,
}

/// The tensors of one call but for its indices; no `data` in place.
#[derive(Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) output: Target<'a>,
    pub(crate) updates: Source<'a>,
    pub(crate) data: Option<Source<'a>>,
}

impl<'a, T> From<TensorView<'a, T>> for Source<'a> {
    fn from(view: TensorView<'a, T>) -> Self {
        Self {
            ptr: view.as_ptr().cast(),
            layout: view.layout(),
        }
    }
}

impl<'a> From<AnyView<'a>> for Source<'a> {
    fn from(view: AnyView<'a>) -> Self {
        Self {
            ptr: view.as_ptr(),
            layout: view.layout(),
        }
    }
}

impl<'a, T> From<TensorViewMut<'a, T>> for Target<'a> {
    fn from(mut view: TensorViewMut<'a, T>) -> Self {
        Self {
            ptr: view.as_mut_ptr().cast(),
            layout: view.layout(),
        }
    }
}

impl<'a> From<AnyViewMut<'a>> for Target<'a> {
    fn from(mut view: AnyViewMut<'a>) -> Self {
        Self {
            ptr: view.as_mut_ptr().cast(),
            layout: view.layout(),
        }
    }
}

impl<'a> Source<'a> {
    pub(crate) fn layout(&self) -> Layout<'a> {
        self.layout
    }
}

impl Target<'_> {
    /// Refuses the output of a gather if it has another shape.
    pub(crate) fn check_shape(&self, expected: &[usize]) -> Result<(), ScatterError> {
        let actual = self.layout.shape();
        if actual == expected {
            return Ok(());
        }
        Err(ScatterError::OutputShape {
            expected: copied(expected)?,
            actual: copied(actual)?,
        })
    }
}

impl<'a> Operands<'a> {
    /// Typed tensors. Views borrow their memory, so that an output shares no
    /// byte with an input.
    pub(crate) fn typed<T>(
        output: Target<'a>,
        updates: TensorView<'a, T>,
        data: Option<TensorView<'a, T>>,
    ) -> Self {
        Self {
            output,
            updates: updates.into(),
            data: data.map(Source::from),
        }
    }

    /// Type-erased tensors, refused unless they have one element type and the
    /// output shares no byte with an input and can hold what `kernels` move
    /// into it. `data` that is the very memory of `output` makes the call one in
    /// place.
    #[inline]
    pub(crate) fn any(
        kernels: &Operation,
        output: AnyViewMut<'a>,
        updates: AnyView<'a>,
        data: Option<AnyView<'a>>,
        indices: Option<&AnyView<'_>>,
    ) -> Result<Self, ScatterError> {
        let in_place = check_operands(&output, data.as_ref(), indices, &updates)?;
        let distinct = data.filter(|_| !in_place);
        let moved = kernels.kernels.replaces.then_some(updates);
        check_bools(&output, [("data", distinct), ("updates", moved)])?;
        if data.is_none() && !output.is_initialized() {
            return Err(ScatterError::Uninitialized);
        }
        Ok(Self {
            output: output.into(),
            updates: updates.into(),
            data: distinct.map(Source::from),
        })
    }

    /// The shape of data and output.
    pub(crate) fn shape(&self) -> &[usize] {
        self.output.layout.shape()
    }

    pub(crate) fn updates_shape(&self) -> &[usize] {
        self.updates.layout.shape()
    }

    fn buffers(&self) -> Buffers {
        Buffers {
            output: self.output.ptr,
            updates: self.updates.ptr,
            data: self.data.map(|data| data.ptr),
        }
    }

    /// Data must have the shape of the output.
    #[inline]
    pub(crate) fn check_data(&self) -> Result<(), ScatterError> {
        match self.data.map(|data| data.layout.shape()) {
            Some(actual) if actual != self.shape() => Err(self.other_data(actual)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn other_data(&self, actual: &[usize]) -> ScatterError {
        ScatterError::with_facts(|| {
            Ok(ScatterError::DataShape {
                expected: copied(self.shape())?,
                actual: copied(actual)?,
            })
        })
    }

    fn are_contiguous(&self) -> bool {
        self.output.layout.strides().is_none()
            && self.updates.layout.strides().is_none()
            && self.data.is_none_or(|data| data.layout.strides().is_none())
    }
}

/// The kernels for plain elements.
#[inline]
pub(crate) fn plain_kernels(
    element: ElementType,
    reducing: Reducing,
    execution: &Execution<'_>,
) -> Result<Operation, ScatterError> {
    let set = execution.instructions();
    // Nothing to reduce, for which no small call should pay: by the table's own
    // shortcut, a call of one row took 10 ns more.
    if reducing.reduction == Reduction::None
        && let Some(row) = Kernels::plain(element, Reduction::None, set)
    {
        return Ok(Operation::moving(row));
    }
    match Operation::plain(element, reducing, set) {
        Some(kernels) => Ok(kernels),
        None => Err(ScatterError::UnsupportedReduction {
            reduction: reducing.reduction,
            element,
        }),
    }
}

/// The kernels for elements that are cloned.
pub(crate) fn cloned_kernels<T: Clone>(reducing: Reducing) -> Result<Operation, ScatterError> {
    match reducing.reduction {
        Reduction::None => Ok(Operation::moving(Kernels::cloned::<T>())),
        reduction => Err(ScatterError::ReductionOfClones { reduction }),
    }
}

/// Refuses to reduce where the operator that was planned only moves.
fn check_reduction(plan: &IndexPlan, kernels: &Operation) -> Result<(), ScatterError> {
    if plan.only_moves() && kernels.group.is_some() {
        return Err(ScatterError::UnsupportedOption {
            option: "reduction",
        });
    }
    Ok(())
}

/// Runs a plan, which may be kept for further runs.
///
/// # Safety
///
/// - The elements of `operands` are those that `kernels` work on, and those of
///   the output share no byte with the others.
/// - In place, or where `kernels` clone, the elements of the output are
///   initialised.
pub(crate) unsafe fn execute(
    plan: &IndexPlan,
    is_kept: bool,
    kernels: &Operation,
    operands: &Operands<'_>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    check_reduction(plan, kernels)?;
    plan.check_output(&operands.output.layout)?;
    plan.check_updates(operands.updates.layout.shape())?;
    operands.check_data()?;
    if execution.schedule.is_none()
        && operands.are_contiguous()
        && let (Some(flat), Destinations::Narrow(numbers)) = (plan.flat(), plan.destinations())
        && direct::suits(&flat, kernels, operands.data.is_none())
    {
        // SAFETY: shapes have just been checked against the plan's, and the
        // plan has numbered slices of an output that is contiguous.
        unsafe { direct::run(kernels.kernels, &flat, operands.buffers(), numbers) };
        return Ok(());
    }
    // SAFETY: layout and shapes have just been checked against the plan's; the
    // caller vouches for the rest.
    unsafe { execute_by_schedule(plan, is_kept, kernels, operands, execution) }
}

/// The rest of [`execute`], apart from it so that small calls do not pay for
/// its stack.
///
/// # Safety
///
/// As for [`execute`], and layout and shapes of `operands` are the plan's.
#[inline(never)]
unsafe fn execute_by_schedule(
    plan: &IndexPlan,
    is_kept: bool,
    kernels: &Operation,
    operands: &Operands<'_>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let updates_strides = if plan.updates_rank() == operands.updates.layout.shape().len() {
        plan.arranged_strides(&operands.updates.layout)?
    } else {
        // A scalar written as a tensor of one element.
        Dims::new()
    };
    let data_strides = (operands.data).map(|data| plan.arranged_strides(&data.layout));
    let data_strides = data_strides.transpose()?;
    let geometry = plan.geometry(&updates_strides)?;
    let copy = data_strides.map(|strides| plan.copy_geometry(&strides));
    let copy = copy.transpose()?;
    // SAFETY: the caller has checked layout and shapes against the plan's;
    // views keep their elements readable, or writable and to themselves, and
    // the caller vouches for the rest.
    let transfer = unsafe {
        let buffers = operands.buffers();
        Transfer::scatter(plan, *kernels, buffers, geometry, copy)
    };
    let workers = Workers::new(execution.pool, execution.max_workers);
    exec::run(
        &transfer.of_kept_plan(is_kept),
        &workers,
        execution.schedule,
    )
}

/// Plans and runs once.
///
/// # Safety
///
/// As for [`execute`], and data, if any, has the shape of the output.
pub(crate) unsafe fn once(
    form: Form,
    kernels: &Operation,
    operands: &Operands<'_>,
    indices: &Indices<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let output = operands.output.layout;
    form.check_updates(
        output.shape(),
        &indices.layout(),
        operands.updates.layout.shape(),
    )?;
    let plain = form.coordinates == Form::ALL_LISTED
        && planning.duplicates == Duplicates::Allow
        && planning.rules.bounds == Bounds::Error
        && execution.schedule.is_none();
    if plain && operands.are_contiguous() && indices.layout().strides().is_none() {
        let planless = Planless::new(&form, kernels, operands, indices, planning);
        // SAFETY: shapes have just been checked against one another; the
        // caller vouches for the rest.
        if unsafe { planless.run(execution) }? {
            return Ok(());
        }
    }
    // SAFETY: the caller vouches for what `execute` asks.
    unsafe { once_planned(form, kernels, operands, indices, planning, execution) }
}

/// The rest of [`once`], apart from it so that small calls do not pay for its
/// stack.
///
/// # Safety
///
/// As for [`execute`].
#[inline(never)]
unsafe fn once_planned(
    form: Form,
    kernels: &Operation,
    operands: &Operands<'_>,
    indices: &Indices<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let output = operands.output.layout;
    let plan = make_plan(&output, form, *indices, planning, execution)?;
    // SAFETY: the caller vouches for what `execute` asks.
    let result = unsafe { execute(&plan, false, kernels, operands, execution) };
    scratch::put_back(plan.into_destinations().into_spare());
    result
}

/// A row-major result of `shape`, made by `fill`, which writes every element
/// of its target or fails.
pub(crate) fn allocate<T: Copy>(
    shape: &[usize],
    fill: impl FnOnce(Target<'_>) -> Result<(), ScatterError>,
) -> Result<Vec<T>, ScatterError> {
    let layout = Layout::contiguous(shape);
    let elements = layout.check(size_of::<T>())?;
    let mut result: Vec<T> = with_room(elements)?;
    fill(Target {
        ptr: result.as_mut_ptr().cast(),
        layout,
    })?;
    // SAFETY: `fill` has written every element, within the capacity.
    unsafe { result.set_len(elements) };
    Ok(result)
}

/// Types and memory of type-erased operands. Returns whether `data` is the
/// very memory of `output`: then the call is in place.
#[inline]
fn check_operands(
    output: &AnyViewMut<'_>,
    data: Option<&AnyView<'_>>,
    indices: Option<&AnyView<'_>>,
    updates: &AnyView<'_>,
) -> Result<bool, ScatterError> {
    let expected = data.map_or(output.element(), AnyView::element);
    for (tensor, actual) in [("output", output.element()), ("updates", updates.element())] {
        if actual != expected {
            return Err(ScatterError::ElementTypeMismatch {
                tensor,
                expected,
                actual,
            });
        }
    }
    let place = output.footprint();
    let same_memory = data.is_some_and(|data| {
        data.as_ptr().addr() == place.address && data.layout().places_like(&output.layout())
    });
    let distinct = data.filter(|_| !same_memory);
    refuse_overlap(
        &place,
        [
            ("data", distinct),
            ("indices", indices),
            ("updates", Some(updates)),
        ],
    )?;
    Ok(same_memory)
}

/// Refuses to move bytes of foreign booleans into those of Rust.
#[inline]
pub(crate) fn check_bools<const N: usize>(
    output: &AnyViewMut<'_>,
    moved: [(&'static str, Option<AnyView<'_>>); N],
) -> Result<(), ScatterError> {
    if !output.holds_rust_bools() {
        return Ok(());
    }
    for (tensor, input) in moved {
        if input.is_some_and(|input| input.is_foreign()) {
            return Err(ScatterError::ForeignBool { tensor });
        }
    }
    Ok(())
}

/// Refuses an output that shares a byte with an input.
#[inline]
fn refuse_overlap<const N: usize>(
    output: &Footprint<'_>,
    inputs: [(&'static str, Option<&AnyView<'_>>); N],
) -> Result<(), ScatterError> {
    for (tensor, input) in inputs {
        let Some(input) = input else { continue };
        match overlap::between(output, &input.footprint())? {
            Overlap::Disjoint => {}
            Overlap::Shared => return Err(ScatterError::InputOverlap { tensor }),
            Overlap::Undecided => return Err(ScatterError::OverlapUndecided { tensor }),
        }
    }
    Ok(())
}
