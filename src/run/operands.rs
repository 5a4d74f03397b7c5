//! Checks the tensors of a call against one another.
//!
//! Code that has an [`Operands`] relies on the guarantees of this type. This module uses the
//! element types, contents and memory of tensors, and the shapes of a plan. It does not use the
//! values of indices.

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

/// Checked tensors of one scatter or gather, and the operation on their elements.
///
/// - All tensors have the element type that `operation` is for.
/// - The output shares no byte with another tensor of the call.
/// - The elements of the output are initialised if the call reads or drops them. A call in place
///   reads them. A call with cloned elements drops the previous elements of the output, unless the
///   output is uninitialised memory.
/// - Every value that the call writes is valid for the elements of the output.
/// - The data in `copied`, if there is any, has the shape of the output.
///
/// In a scatter, destination numbers address the windows of the output, and the updates have one
/// window for each tuple. In a gather, destination numbers address the windows of the data, and the
/// output has one window for each tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) direction: Direction,
    pub(crate) operation: &'a Operation,
    // These fields are references, because moving the descriptions of the tensors between functions
    // would cost more than the rest of a smallest call.
    pub(crate) output: &'a Target<'a>,
    /// The updates of a scatter, or the data of a gather.
    pub(crate) source: &'a Source<'a>,
    /// Data that a scatter copies to its output before it applies the updates. `None` for a scatter
    /// in place and for a gather.
    pub(crate) copied: Option<&'a Source<'a>>,
}

impl<'a> Operands<'a> {
    /// Checks the tensors of a scatter against one another, then calls `call` with the checked
    /// operands.
    ///
    /// `operation` is for the element type of `data`, or of `output` if there is no data. If `data`
    /// is the memory of `output`, the call is in place.
    ///
    /// The function does not return the operands. The compiler would copy returned operands out of
    /// a `Result` in pieces. In the smallest calls, loads that span several pieces would wait for
    /// the stores of these pieces.
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
        // If all contents are `Contents::Rust`, no check of the memory is needed: the borrows do
        // not overlap, and their elements are valid values.
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

    /// Checks the tensors of a gather against one another, then calls `call` with the checked
    /// operands.
    ///
    /// `operation` is for the element type of the output, and moves elements without a reduction.
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

    /// Returns the layout of the tensor whose windows are addressed by destination numbers (the
    /// output of a scatter, the data of a gather).
    #[inline(always)]
    pub(crate) fn numbered(&self) -> &'a Layout<'a> {
        match self.direction {
            Direction::Scatter => self.output.layout(),
            Direction::Gather => self.source.layout(),
        }
    }

    /// Returns the layout of the tensor that has one window for each tuple (the updates of a
    /// scatter, the output of a gather).
    #[inline(always)]
    pub(super) fn listed(&self) -> &'a Layout<'a> {
        match self.direction {
            Direction::Scatter => self.source.layout(),
            Direction::Gather => self.output.layout(),
        }
    }

    /// Returns the shape of the tensor whose windows are addressed by destination numbers (the
    /// output of a scatter, the data of a gather).
    pub(crate) fn shape(&self) -> &'a [usize] {
        self.numbered().shape()
    }

    /// Returns the shape of the tensor that has one window for each tuple (the updates of a
    /// scatter, the output of a gather).
    pub(crate) fn listed_shape(&self) -> &'a [usize] {
        self.listed().shape()
    }

    /// Returns the facts about the call from which its route is chosen.
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

    /// Returns the addresses of the output, of the source and of the data to copy.
    pub(super) fn buffers(&self) -> Buffers {
        Buffers {
            output: self.output.as_mut_ptr(),
            source: self.source.as_ptr(),
            data: self.copied.map(|data| data.as_ptr()),
        }
    }

    /// Returns an error if the updates of a scatter, or the output of a gather, do not have the
    /// shape that `form` requires for indices of the shape `indices`.
    #[inline]
    pub(super) fn check_form(&self, form: &Form, indices: &[usize]) -> Result<(), ScatterError> {
        let (shape, listed) = (self.shape(), self.listed_shape());
        match self.direction {
            Direction::Scatter => form.check_updates(shape, indices, listed),
            Direction::Gather if form.is_updates_shape(shape, indices, listed) => Ok(()),
            Direction::Gather => self.check_output(&form.updates_shape(shape, indices)?),
        }
    }

    /// Returns an error if the tensors do not fit the plan. The updates of a scatter, or the output
    /// of a gather, need the shape that the plan requires for them. The output of a scatter, or the
    /// data of a gather, needs the shape and the layout that the plan was made for.
    #[inline(always)] // On the path of the smallest calls.
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

    /// Returns an error if the shape of the output is not `expected`.
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

    /// Returns an error if the data to copy does not have the shape of the output.
    #[inline]
    fn check_data(&self) -> Result<(), ScatterError> {
        match self.copied {
            Some(data) if data.shape() != self.shape() => Err(self.data_shape_error(data.shape())),
            _ => Ok(()),
        }
    }

    #[cold]
    fn data_shape_error(&self, actual: &[usize]) -> ScatterError {
        ScatterError::with_facts(|| {
            Ok(ScatterError::DataShape {
                expected: copied(self.shape())?,
                actual: copied(actual)?,
            })
        })
    }
}

/// Returns the operation that applies `reducing` to elements of the type `elements`.
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
    // Calls without a reduction have a separate path. With the general lookup in
    // `Operation::plain`, a call that moves one row cost 10 ns more.
    if reducing.reduction == Reduction::None
        && let Some(kernels) = Kernels::plain(dtype, Reduction::None, set)
    {
        return Ok(Operation::moving(kernels));
    }
    let reduction = reducing.reduction;
    let unsupported = || ScatterError::UnsupportedReduction { reduction, dtype };
    Operation::plain(dtype, reducing, set).ok_or_else(unsupported)
}

/// Returns an error if `actual` is not the element type `expected`. `tensor` is the name of the
/// tensor in the error.
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
        // Cloned elements need no check: the signature of a call gives one Rust type to all its
        // views of cloned elements.
        _ => Ok(()),
    }
}

/// Checks the memory of a scatter whose contents are not all `Contents::Rust`. Returns the data to
/// copy, or `None` if the call is in place. `moves`: whether updates replace the existing values.
///
/// Returns an error if the output shares memory with an input. Returns an error if the call would
/// move booleans that may be any byte into Rust booleans. Returns an error if the call has no data
/// and the output may be uninitialised.
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

/// Checks whether `data` is the memory of the output: both have the same address, and every element
/// has the same offset in both. The result is `false` if both are Rust borrows.
#[inline]
pub(crate) fn is_memory_of(data: &Source<'_>, output: &Target<'_>) -> bool {
    data.as_ptr().addr() == output.as_mut_ptr().addr()
        && !(data.contents().is_borrowed() && output.contents().is_borrowed())
        && data.layout().places_like(output.layout())
}

/// Returns an error if the call would move booleans that may be any byte into Rust booleans.
/// `moved`: the inputs from which the call moves elements.
#[inline]
pub(crate) fn check_bools<const N: usize>(
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

/// Returns an error if the output shares a byte with an input, or if this cannot be decided.
#[inline]
pub(crate) fn refuse_overlap<const N: usize>(
    output: &Target<'_>,
    inputs: [(&'static str, Option<&Source<'_>>); N],
) -> Result<(), ScatterError> {
    for (tensor, input) in inputs {
        let Some(input) = input else { continue };
        // Rust borrows do not overlap.
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
