//! The tensors of a call, held against one another: whoever has them may make
//! the call.
//!
//! Knows element types, contents and memory. Of a plan it knows the shapes.

#![expect(unsafe_code, reason = "hands the memory of views to small transfers")]

use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::Buffers;
use crate::exec::direct::Direct;
use crate::execution::Execution;
use crate::kernel::{InstructionSet, Kernels, Operation};
use crate::memory::copied;
use crate::operand::overlap::{self, Footprint, Overlap};
use crate::operand::{Contents, Elements, Indices, Layout, Source, Target};
#[cfg(doc)]
use crate::plan::Flat;
use crate::plan::Form;
use crate::reduction::{Reducing, Reduction};

/// The tensors of one scatter, and what is done with their elements.
///
/// - All have elements of one type, which is that of the operation.
/// - The output shares no byte with another tensor.
/// - The output's elements are initialised where they are read: in place, or
///   where elements are cloned, unless into memory that is not.
/// - It can hold what is written.
/// - Data has the shape of the output.
#[derive(Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) operation: &'a Operation,
    // Lent: to move the descriptions of four tensors from call to call takes
    // longer than the smallest calls.
    pub(crate) output: &'a Target<'a>,
    pub(crate) updates: &'a Source<'a>,
    /// `None` in place.
    pub(crate) data: Option<&'a Source<'a>>,
}

impl<'a> Operands<'a> {
    /// Holds tensors against one another and hands them to `call`. They are not
    /// returned: out of a `Result` they would be copied in pieces and read across
    /// them, for which the smallest calls wait.
    ///
    /// Data that is the very memory of `output` makes the call one in place.
    /// `operation` is for the elements of data, or of the output where there is
    /// none.
    #[inline]
    pub(crate) fn lend(
        operation: &'a Operation,
        output: &'a Target<'a>,
        data: Option<&'a Source<'a>>,
        indices: Option<&Indices<'_>>,
        updates: &'a Source<'a>,
        call: impl FnOnce(&Self) -> Result<(), ScatterError>,
    ) -> Result<(), ScatterError> {
        let expected = data.map_or(output.elements(), |data| data.elements());
        check_dtype("output", output.elements(), expected)?;
        check_dtype("updates", updates.elements(), expected)?;
        let is_rust = |contents| contents == Contents::Rust;
        let all_rust = is_rust(output.contents())
            && is_rust(updates.contents())
            && data.is_none_or(|data| is_rust(data.contents()))
            && indices.is_none_or(|indices| is_rust(indices.contents()));
        // Borrows of Rust's share nothing, and hold values.
        let data = if all_rust {
            data
        } else {
            let moves = operation.kernels.replaces;
            check_memory(moves, output, data, indices, updates)?
        };
        let operands = Self {
            operation,
            output,
            updates,
            data,
        };
        operands.check_data()?;
        call(&operands)
    }

    /// The shape of data and output.
    pub(crate) fn shape(&self) -> &[usize] {
        self.output.shape()
    }

    pub(crate) fn updates_shape(&self) -> &[usize] {
        self.updates.shape()
    }

    pub(super) fn buffers(&self) -> Buffers {
        Buffers {
            output: self.output.as_mut_ptr(),
            updates: self.updates.as_ptr(),
            data: self.data.map(|data| data.as_ptr()),
        }
    }

    #[inline]
    fn check_data(&self) -> Result<(), ScatterError> {
        match self.data {
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

/// The tensors of a scatter or of a gather, for calls that need to know nothing
/// else of them.
pub(super) trait Transferred {
    fn operation(&self) -> &Operation;
    /// The layouts of the tensor whose windows are numbered, and of the one that
    /// lists a window for each tuple.
    fn numbered(&self) -> &Layout<'_>;
    fn listed(&self) -> &Layout<'_>;
    /// Data that is copied first.
    fn copied(&self) -> Option<&Layout<'_>>;

    /// Runs a small transfer.
    ///
    /// # Safety
    ///
    /// `direct` has the [`Flat`] of these operands, and its numbers and positions
    /// are of that. If data is copied, it and the output are contiguous.
    unsafe fn run_direct(&self, direct: &Direct<'_>);
}

impl Transferred for Operands<'_> {
    #[inline(always)]
    fn operation(&self) -> &Operation {
        self.operation
    }

    #[inline(always)]
    fn numbered(&self) -> &Layout<'_> {
        self.output.layout()
    }

    #[inline(always)]
    fn listed(&self) -> &Layout<'_> {
        self.updates.layout()
    }

    #[inline(always)]
    fn copied(&self) -> Option<&Layout<'_>> {
        self.data.map(Source::layout)
    }

    #[inline(always)]
    unsafe fn run_direct(&self, direct: &Direct<'_>) {
        // SAFETY: whoever has the operands may make the call; the caller vouches
        // for the rest.
        unsafe { direct.scatter(self.buffers()) };
    }
}

impl Transferred for GatherOperands<'_> {
    #[inline(always)]
    fn operation(&self) -> &Operation {
        self.operation
    }

    #[inline(always)]
    fn numbered(&self) -> &Layout<'_> {
        self.data.layout()
    }

    #[inline(always)]
    fn listed(&self) -> &Layout<'_> {
        self.output.layout()
    }

    #[inline(always)]
    fn copied(&self) -> Option<&Layout<'_>> {
        None
    }

    #[inline(always)]
    unsafe fn run_direct(&self, direct: &Direct<'_>) {
        // SAFETY: whoever has the operands may make the call; where tuples are
        // skipped, elements that are cloned have been refused.
        unsafe { direct.gather(self.output.as_mut_ptr().cast(), self.data.as_ptr()) };
    }
}

/// The tensors of one gather, held against one another as [`Operands`] are.
#[derive(Debug)]
pub(crate) struct GatherOperands<'a> {
    pub(super) operation: &'a Operation,
    pub(super) output: &'a Target<'a>,
    pub(super) data: &'a Source<'a>,
}

impl<'a> GatherOperands<'a> {
    /// `operation` is for the elements of the output, and only moves.
    pub(crate) fn new(
        operation: &'a Operation,
        output: &'a Target<'a>,
        data: &'a Source<'a>,
        indices: Option<&Indices<'_>>,
    ) -> Result<Self, ScatterError> {
        check_dtype("output", output.elements(), data.elements())?;
        check_bools(output, [("data", Some(data))])?;
        let indices = indices.map(Indices::as_source);
        refuse_overlap(
            output,
            [("data", Some(data)), ("indices", indices.as_ref())],
        )?;
        Ok(Self {
            operation,
            output,
            data,
        })
    }

    /// Refuses an output of another shape.
    pub(super) fn check_output(&self, expected: &[usize]) -> Result<(), ScatterError> {
        let actual = self.output.shape();
        if actual == expected {
            return Ok(());
        }
        Err(ScatterError::OutputShape {
            expected: copied(expected)?,
            actual: copied(actual)?,
        })
    }

    /// Refuses an output of another shape than data and indices ask for.
    #[inline]
    pub(super) fn check_form(&self, form: &Form, indices: &[usize]) -> Result<(), ScatterError> {
        if form.is_updates_shape(self.data.shape(), indices, self.output.shape()) {
            return Ok(());
        }
        self.check_output(&form.updates_shape(self.data.shape(), indices)?)
    }

    /// Refuses elements that have no zero, for tuples that were skipped.
    pub(super) fn check_zeros(&self) -> Result<(), ScatterError> {
        match self.data.elements() {
            Elements::Plain(_) => Ok(()),
            Elements::Cloned(_) => Err(ScatterError::UnsupportedOption { option: "bounds" }),
        }
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
    match Operation::plain(dtype, reducing, set) {
        Some(operation) => Ok(operation),
        None => Err(ScatterError::UnsupportedReduction {
            reduction: reducing.reduction,
            dtype,
        }),
    }
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
        refuse_shared_bytes(&output.footprint(), &input.footprint(), tensor)?;
    }
    Ok(())
}

/// Refuses two outputs that share a byte.
pub(crate) fn refuse_shared(
    output: &Target<'_>,
    other: &Target<'_>,
    tensor: &'static str,
) -> Result<(), ScatterError> {
    if output.contents().is_borrowed() && other.contents().is_borrowed() {
        return Ok(());
    }
    refuse_shared_bytes(&output.footprint(), &other.footprint(), tensor)
}

#[inline]
fn refuse_shared_bytes(
    output: &Footprint<'_>,
    other: &Footprint<'_>,
    tensor: &'static str,
) -> Result<(), ScatterError> {
    match overlap::between(output, other)? {
        Overlap::Disjoint => Ok(()),
        Overlap::Shared => Err(ScatterError::InputOverlap { tensor }),
        Overlap::Undecided => Err(ScatterError::OverlapUndecided { tensor }),
    }
}
