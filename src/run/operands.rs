//! The tensors of a call, held against one another: whoever has them may make
//! the call.
//!
//! Knows element types, contents and memory. It knows the shapes of a plan.

use super::route::{Facts, Numbers};
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::{Buffers, Direction};
use crate::execution::Execution;
use crate::kernel::{InstructionSet, Kernels, Operation};
use crate::memory::copied;
use crate::operand::overlap::{self, Overlap};
use crate::operand::{Contents, Elements, Indices, Layout, Source, Target};
use crate::plan::{Flat, Form, IndexPlan};
use crate::reduction::{Reducing, Reduction};

/// The tensors of one scatter or gather, and what is done with their elements.
///
/// - All have elements of one type, which is that of the operation.
/// - The output shares no byte with another tensor.
/// - The output's elements are initialised where they are read: in place, or
///   where elements are cloned, unless into memory that is not.
/// - The output can hold what is written.
/// - Data that is copied has the shape of the output.
///
/// A scatter numbers the windows of its output, and its updates list a window for each
/// tuple. A gather numbers the windows of its data, and its output lists a window for each
/// tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) direction: Direction,
    pub(crate) operation: &'a Operation,
    // Lent: to move the descriptions of four tensors from call to call takes
    // longer than the smallest calls.
    pub(crate) output: &'a Target<'a>,
    /// The updates of a scatter, or the data of a gather.
    pub(crate) source: &'a Source<'a>,
    /// Data that a scatter copies to its output first; `None` in place.
    pub(crate) copied: Option<&'a Source<'a>>,
}

impl<'a> Operands<'a> {
    /// Checks the tensors of a scatter against one another and hands them to `call`. They
    /// are not returned: out of a `Result` they would be copied in pieces and read across
    /// them, for which the smallest calls wait.
    ///
    /// Data that is the very memory of `output` makes the call one in place.
    /// `operation` is for the elements of data, or of the output where there is
    /// none.
    #[inline]
    pub(crate) fn lend<T>(
        operation: &'a Operation,
        output: &'a Target<'a>,
        data: Option<&'a Source<'a>>,
        indices: Option<&Indices<'_>>,
        updates: &'a Source<'a>,
        call: impl FnOnce(&Self) -> Result<T, ScatterError>,
    ) -> Result<T, ScatterError> {
        let expected = data.map_or(output.elements(), |data| data.elements());
        check_dtype("output", output.elements(), expected)?;
        check_dtype("updates", updates.elements(), expected)?;
        let is_rust = |contents| contents == Contents::Rust;
        let all_rust = is_rust(output.contents())
            && is_rust(updates.contents())
            && data.is_none_or(|data| is_rust(data.contents()))
            && indices.is_none_or(|indices| is_rust(indices.contents()));
        // Borrows of Rust's share nothing, and hold values.
        let copied = if all_rust {
            data
        } else {
            let moves = operation.kernels.replaces;
            check_memory(moves, output, data, indices, updates)?
        };
        let operands = Self {
            direction: Direction::Scatter,
            operation,
            output,
            source: updates,
            copied,
        };
        operands.check_data()?;
        call(&operands)
    }

    /// Checks the tensors of a gather against one another and hands them to `call`.
    /// `operation` is for the elements of the output, and only moves.
    #[inline]
    pub(crate) fn lend_gather(
        operation: &'a Operation,
        output: &'a Target<'a>,
        data: &'a Source<'a>,
        indices: Option<&Indices<'_>>,
        call: impl FnOnce(&Self) -> Result<(), ScatterError>,
    ) -> Result<(), ScatterError> {
        check_dtype("output", output.elements(), data.elements())?;
        check_bools(output, [("data", Some(data))])?;
        let indices = indices.map(Indices::as_source);
        refuse_overlap(
            output,
            [("data", Some(data)), ("indices", indices.as_ref())],
        )?;
        call(&Self {
            direction: Direction::Gather,
            operation,
            output,
            source: data,
            copied: None,
        })
    }

    /// The layout of the tensor whose windows are numbered.
    #[inline(always)]
    pub(crate) fn numbered(&self) -> &'a Layout<'a> {
        match self.direction {
            Direction::Scatter => self.output.layout(),
            Direction::Gather => self.source.layout(),
        }
    }

    /// The layout of the tensor that lists a window for each tuple.
    #[inline(always)]
    pub(super) fn listed(&self) -> &'a Layout<'a> {
        match self.direction {
            Direction::Scatter => self.source.layout(),
            Direction::Gather => self.output.layout(),
        }
    }

    /// The shape of the tensor whose windows are numbered.
    pub(crate) fn shape(&self) -> &'a [usize] {
        self.numbered().shape()
    }

    /// The shape of the tensor that lists a window for each tuple.
    pub(crate) fn listed_shape(&self) -> &'a [usize] {
        self.listed().shape()
    }

    /// What the route of a call depends on.
    #[inline(always)]
    pub(super) fn facts<'f>(
        &'f self,
        flat: Option<&'f Flat>,
        numbers: Numbers<'f>,
        execution: &'f Execution<'f>,
    ) -> Facts<'f> {
        Facts {
            execution,
            direction: self.direction,
            operation: self.operation,
            numbered: self.numbered(),
            listed: self.listed(),
            copied: self.copied.map(Source::layout),
            is_new: self.output.is_new(),
            flat,
            numbers,
        }
    }

    pub(super) fn buffers(&self) -> Buffers {
        Buffers {
            output: self.output.as_mut_ptr(),
            source: self.source.as_ptr(),
            data: self.copied.map(|data| data.as_ptr()),
        }
    }

    /// Refuses updates or an output of another shape than `form` asks for.
    #[inline]
    pub(super) fn check_form(&self, form: &Form, indices: &[usize]) -> Result<(), ScatterError> {
        let (shape, listed) = (self.shape(), self.listed_shape());
        match self.direction {
            Direction::Scatter => form.check_updates(shape, indices, listed),
            Direction::Gather if form.is_updates_shape(shape, indices, listed) => Ok(()),
            Direction::Gather => self.check_output(&form.updates_shape(shape, indices)?),
        }
    }

    /// Refuses tensors of other shapes than those of a plan, and another layout of the
    /// numbered tensor.
    #[inline(always)] // As all that is on the way of the smallest calls.
    pub(super) fn check_plan(&self, plan: &IndexPlan) -> Result<(), ScatterError> {
        match self.direction {
            Direction::Scatter => {
                plan.check_output(self.numbered())?;
                plan.check_updates(self.listed_shape())
            }
            Direction::Gather => {
                self.check_output(plan.updates_shape())?;
                plan.check_output(self.numbered())
            }
        }
    }

    fn check_output(&self, expected: &[usize]) -> Result<(), ScatterError> {
        let actual = self.output.shape();
        if actual == expected {
            return Ok(());
        }
        Err(ScatterError::OutputShape {
            expected: copied(expected)?,
            actual: copied(actual)?,
        })
    }

    #[inline]
    fn check_data(&self) -> Result<(), ScatterError> {
        match self.copied {
            Some(data) if data.shape() != self.shape() => Err(self.other_data(data.shape())),
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
}

/// What serves elements that are reduced so.
#[inline]
pub(crate) fn operation(
    elements: Elements,
    reducing: Reducing,
    execution: &Execution<'_>,
) -> Result<Operation, ScatterError> {
    let set = execution.instructions();
    match elements {
        Elements::Plain(dtype) => plain(dtype, reducing, set),
        Elements::Cloned(kernels) => match reducing.reduction {
            Reduction::None => Ok(Operation::moving(kernels)),
            reduction => Err(ScatterError::ReductionOfClones { reduction }),
        },
    }
}

#[inline]
fn plain(dtype: DType, reducing: Reducing, set: InstructionSet) -> Result<Operation, ScatterError> {
    // Nothing to reduce, for which no small call should pay: by the table's own
    // shortcut, a call of one row took 10 ns more.
    if reducing.reduction == Reduction::None
        && let Some(kernels) = Kernels::plain(dtype, Reduction::None, set)
    {
        return Ok(Operation::moving(kernels));
    }
    let reduction = reducing.reduction;
    let unsupported = || ScatterError::UnsupportedReduction { reduction, dtype };
    Operation::plain(dtype, reducing, set).ok_or_else(unsupported)
}

/// Refuses a tensor of another element type than the others.
#[inline]
pub(crate) fn check_dtype(
    tensor: &'static str,
    actual: Elements,
    expected: Elements,
) -> Result<(), ScatterError> {
    match (actual, expected) {
        (Elements::Plain(actual), Elements::Plain(expected)) if actual != expected => {
            Err(ScatterError::DTypeMismatch {
                tensor,
                expected,
                actual,
            })
        }
        // Views of elements that are cloned have one Rust type by their own.
        _ => Ok(()),
    }
}

/// Refuses memory that is shared, and contents that would not be what views
/// promise. Returns the data, unless it is the very memory of the output.
#[inline(never)]
fn check_memory<'a>(
    moves: bool,
    output: &Target<'_>,
    data: Option<&'a Source<'a>>,
    indices: Option<&Indices<'_>>,
    updates: &Source<'_>,
) -> Result<Option<&'a Source<'a>>, ScatterError> {
    let in_place = data.is_some_and(|data| is_memory_of(data, output));
    let distinct = data.filter(|_| !in_place);
    let indices = indices.map(Indices::as_source);
    refuse_overlap(
        output,
        [
            ("data", distinct),
            ("indices", indices.as_ref()),
            ("updates", Some(updates)),
        ],
    )?;
    let moved = moves.then_some(updates);
    check_bools(output, [("data", distinct), ("updates", moved)])?;
    if data.is_none() && output.contents() == Contents::Unwritten {
        return Err(ScatterError::Uninitialized);
    }
    Ok(distinct)
}

/// Whether an input is the very memory of the output.
#[inline]
pub(crate) fn is_memory_of(data: &Source<'_>, output: &Target<'_>) -> bool {
    data.as_ptr().addr() == output.as_mut_ptr().addr()
        && !(data.contents().is_borrowed() && output.contents().is_borrowed())
        && data.layout().places_like(output.layout())
}

/// Refuses to move bytes of foreign booleans into those of Rust.
#[inline]
fn check_bools<const N: usize>(
    output: &Target<'_>,
    moved: [(&'static str, Option<&Source<'_>>); N],
) -> Result<(), ScatterError> {
    let holds_bools = matches!(output.elements(), Elements::Plain(DType::Bool));
    if !(holds_bools && output.contents() == Contents::Rust) {
        return Ok(());
    }
    for (tensor, input) in moved {
        if input.is_some_and(|input| input.contents() != Contents::Rust) {
            return Err(ScatterError::ForeignBool { tensor });
        }
    }
    Ok(())
}

/// Refuses an output that shares a byte with an input.
#[inline]
pub(crate) fn refuse_overlap<const N: usize>(
    output: &Target<'_>,
    inputs: [(&'static str, Option<&Source<'_>>); N],
) -> Result<(), ScatterError> {
    for (tensor, input) in inputs {
        let Some(input) = input else { continue };
        // Borrows of Rust's share nothing.
        if output.contents().is_borrowed() && input.contents().is_borrowed() {
            continue;
        }
        match overlap::between(&output.footprint(), &input.footprint())? {
            Overlap::Disjoint => {}
            Overlap::Shared => return Err(ScatterError::InputOverlap { tensor }),
            Overlap::Undecided => return Err(ScatterError::OverlapUndecided { tensor }),
        }
    }
    Ok(())
}
