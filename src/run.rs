//! Where the layers meet: indices become a plan, a plan and a row of the
//! kernel table become a call.
//!
//! Everything that can be refused is refused here, before the first write.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

mod planned;

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::element::ElementType;
use crate::error::ScatterError;
use crate::exec::tasks::Workers;
use crate::exec::{Buffers, Call, scratch};
use crate::execution::Execution;
use crate::kernel::{InstructionSet, Row};
use crate::layout::Layout;
use crate::layout::overlap::{self, Overlap};
use crate::memory::out_of_memory;
use crate::plan::{Destinations, Form, Number, Piece, Resolver, ScatterPlan};
use crate::reduction::{Duplicates, Reduction};
use crate::tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};

/// Tuples from which the work on indices is divided among workers: below, it
/// takes less time than waking them.
const PARALLEL_TUPLES: usize = 128 * 1024;

/// Options that a plan is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planning {
    pub(crate) duplicates: Duplicates,
    pub(crate) negatives_wrap: bool,
}

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

impl<'a> Source<'a> {
    pub(crate) fn typed<T>(view: TensorView<'a, T>) -> Self {
        Self {
            ptr: view.as_ptr().cast(),
            layout: view.layout(),
        }
    }

    pub(crate) fn any(view: AnyView<'a>) -> Self {
        Self {
            ptr: view.as_ptr(),
            layout: view.layout(),
        }
    }
}

impl<'a> Target<'a> {
    pub(crate) fn typed<T>(mut view: TensorViewMut<'a, T>) -> Self {
        Self {
            ptr: view.as_mut_ptr().cast(),
            layout: view.layout(),
        }
    }

    pub(crate) fn any(mut view: AnyViewMut<'a>) -> Self {
        Self {
            ptr: view.as_mut_ptr().cast(),
            layout: view.layout(),
        }
    }
}

/// The kernels for plain elements.
pub(crate) fn plain_row(
    element: ElementType,
    execution: &Execution<'_>,
) -> Result<Row, ScatterError> {
    let set = execution
        .instruction_set
        .unwrap_or_else(InstructionSet::best);
    Row::plain(element, execution.reduction, set).ok_or(ScatterError::UnsupportedReduction {
        reduction: execution.reduction,
        element,
    })
}

/// The kernels for elements that are cloned.
pub(crate) fn cloned_row<T: Clone>(execution: &Execution<'_>) -> Result<Row, ScatterError> {
    match execution.reduction {
        Reduction::None => Ok(Row::cloned::<T>()),
        reduction => Err(ScatterError::ReductionOfClones { reduction }),
    }
}

/// Makes a plan: checks every index and numbers every destination.
pub(crate) fn make_plan(
    output: &Layout<'_>,
    form: Form,
    indices: AnyView<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<ScatterPlan, ScatterError> {
    if !indices.element().is_index() {
        return Err(ScatterError::IndexType {
            actual: indices.element(),
        });
    }
    output.check(1)?;
    let (resolver, scale) = Resolver::new(output, &form, indices, planning.negatives_wrap);
    let tuples = form.tuple_shape.iter().product();
    let spare = scratch::take_spare(tuples);
    let mut destinations = Destinations::with_len(tuples, scale.count, spare)?;
    let facts = match &mut destinations {
        Destinations::Narrow(numbers) => resolve(&resolver, numbers, execution),
        Destinations::Wide(numbers) => resolve(&resolver, numbers, execution),
    }?
    .facts();
    let plan = ScatterPlan::new(output, form, scale, destinations, facts);
    if planning.duplicates == Duplicates::Reject
        && let Some(repeat) = plan.first_repeat()?
    {
        return Err(ScatterError::DuplicateIndex {
            tuple: repeat.tuple,
            earlier: repeat.earlier,
        });
    }
    Ok(plan)
}

/// Numbers all tuples: on the calling thread, or in pieces on the pool. The
/// first piece with an error decides, so it is the same however many there are.
fn resolve<N: Number>(
    resolver: &Resolver<'_>,
    numbers: &mut [N],
    execution: &Execution<'_>,
) -> Result<Piece, ScatterError> {
    if numbers.len() < PARALLEL_TUPLES {
        return resolver.resolve(0, numbers);
    }
    let workers = Workers::new(execution.pool, execution.max_workers);
    let len = numbers.len().div_ceil(workers.parts());
    let pieces: Vec<OnceLock<_>> = numbers.chunks(len).map(|_| OnceLock::new()).collect();
    workers.run_chunks(numbers, len, &|index, chunk| {
        pieces[index].get_or_init(|| resolver.resolve(index * len, chunk));
    })?;
    let mut whole = Piece::EMPTY;
    for piece in pieces {
        match piece.into_inner() {
            Some(piece) => whole.join(&piece?),
            None => {
                return Err(ScatterError::PoolFailed {
                    tasks: 1,
                    completed: 0,
                });
            }
        }
    }
    Ok(whole)
}

/// Runs a plan. `data` is `None` in place.
///
/// # Safety
///
/// - The elements of `output`, `updates` and `data` are those that `row`
///   works on, and share no byte with one another.
/// - In place, or where `row` clones, the elements of `output` are initialised.
pub(crate) unsafe fn execute(
    plan: &ScatterPlan,
    row: Row,
    output: Target<'_>,
    updates: Source<'_>,
    data: Option<Source<'_>>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    plan.check_output(&output.layout)?;
    let updates_strides = plan.check_updates(&updates.layout)?;
    if let Some(data) = &data {
        check_data(output.layout.shape(), data.layout.shape())?;
    }
    let data_strides = data.map(|data| data.layout.all_strides());
    let buffers = Buffers {
        output: output.ptr,
        updates: updates.ptr,
        data: data.map(|data| data.ptr),
    };
    // SAFETY: layout and shapes have just been checked against the plan's;
    // views keep their elements readable, or writable and to themselves, and
    // the caller vouches for the rest.
    let call = unsafe {
        Call::new(
            plan,
            row,
            buffers,
            &updates_strides,
            data_strides.as_deref(),
        )
    };
    let workers = Workers::new(execution.pool, execution.max_workers);
    call.run(&workers, execution.schedule)
}

/// A row-major result of `shape`, made by `fill`, which writes every element
/// of its target or fails.
pub(crate) fn allocate<T: Copy>(
    shape: &[usize],
    fill: impl FnOnce(Target<'_>) -> Result<(), ScatterError>,
) -> Result<Vec<T>, ScatterError> {
    let layout = Layout::contiguous(shape);
    let elements = layout.check(size_of::<T>())?;
    let mut result: Vec<T> = Vec::new();
    (result.try_reserve_exact(elements)).map_err(|_| out_of_memory::<T>(elements))?;
    fill(Target {
        ptr: result.as_mut_ptr().cast(),
        layout,
    })?;
    // SAFETY: `fill` has written every element, within the capacity.
    unsafe { result.set_len(elements) };
    Ok(result)
}

/// Data must have the shape of the output.
pub(crate) fn check_data(expected: &[usize], actual: &[usize]) -> Result<(), ScatterError> {
    if expected == actual {
        return Ok(());
    }
    Err(ScatterError::DataShape {
        expected: expected.to_vec(),
        actual: actual.to_vec(),
    })
}

/// Types and memory of type-erased operands. Returns whether `data` is the
/// very memory of `output`: then the call is in place.
pub(crate) fn check_operands(
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
    let same_memory = data.is_some_and(|data| {
        data.as_ptr().addr() == output.footprint().address
            && data.layout().places_like(&output.layout())
    });
    let distinct = data.filter(|_| !same_memory);
    for (tensor, input) in [
        ("data", distinct),
        ("indices", indices),
        ("updates", Some(updates)),
    ] {
        let Some(input) = input else { continue };
        match overlap::between(&output.footprint(), &input.footprint()) {
            Overlap::Disjoint => {}
            Overlap::Shared => return Err(ScatterError::InputOverlap { tensor }),
            Overlap::Undecided => return Err(ScatterError::OverlapUndecided { tensor }),
        }
    }
    Ok(same_memory)
}
