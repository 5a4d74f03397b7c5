//! The rows of tensors, and the checks of the tensors of a call.
//!
//! This module knows shapes, strides and memory. It does not know which rows are moved.

use crate::error::ScatterError;
use crate::execution::Execution;
use crate::kernel::Kernels;
use crate::memory::with_room;
use crate::operand::overlap::{self, Overlap};
use crate::operand::{Contents, Indices, Layout, Target};
use crate::ops::resolve_axis;
use crate::plan::{Dim, Span};
use crate::reduction::Reducing;
use crate::run::{operation, refuse_overlap};

/// Which slices of a tensor are its rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rows {
    /// The slices along one axis.
    Along(isize),
    /// The slots of a paged cache: the positions of the first two axes, in row-major order.
    Paged,
}

/// Offset of each row of a tensor, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offsets {
    /// All rows are at one stride.
    Line(isize),
    /// Blocks of `size` rows.
    Blocks {
        size: usize,
        block: isize,
        row: isize,
    },
}

/// Where the rows of a tensor are. The tensor has elements.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) offsets: Offsets,
    /// Loops over the elements of one row.
    pub(super) row: Span,
}

/// A tensor of a call: its kernels, its memory and its rows.
#[derive(Debug)]
pub(super) struct Rowed<'t> {
    pub(super) target: &'t Target<'t>,
    pub(super) kernels: &'static Kernels,
    pub(super) place: Place,
}

impl Rows {
    /// Returns the number of rows of a tensor.
    pub(super) fn count(self, layout: &Layout<'_>) -> Result<usize, ScatterError> {
        match (self, layout.shape()) {
            (Self::Along(axis), shape) => Ok(shape[resolve_axis(axis, shape.len())?]),
            // The layout fits in memory, so the product does not overflow.
            (Self::Paged, &[blocks, size, ..]) => Ok(blocks * size),
            (Self::Paged, shape) => Err(ScatterError::PagedRank { rank: shape.len() }),
        }
    }

    /// Returns the place of the rows of a tensor. Returns `None` if the tensor has no elements.
    fn place(self, layout: &Layout<'_>) -> Result<Option<Place>, ScatterError> {
        let shape = layout.shape();
        if shape.contains(&0) {
            return Ok(None);
        }
        let strides = layout.all_strides()?;
        let (axes, offsets) = match self {
            Self::Along(axis) => {
                let axis = resolve_axis(axis, shape.len())?;
                (axis..axis + 1, Offsets::Line(strides[axis]))
            }
            Self::Paged => (0..2, Offsets::paged(shape, &strides)),
        };
        let inside = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let row = Span::new(inside.map(|axis| Dim {
            size: shape[axis],
            dst: strides[axis],
            src: strides[axis],
        }))?;
        Ok(Some(Place { offsets, row }))
    }
}

impl Offsets {
    /// Returns the offsets of the slots of a paged cache.
    fn paged(shape: &[usize], strides: &[isize]) -> Self {
        let (blocks, size) = (shape[0], shape[1]);
        let (block, row) = (strides[0], strides[1]);
        if size == 1 {
            return Self::Line(block);
        }
        if blocks == 1 || row.checked_mul(size.cast_signed()) == Some(block) {
            return Self::Line(row);
        }
        Self::Blocks { size, block, row }
    }

    /// Returns the offset of row `number`.
    #[inline(always)]
    pub(super) fn of(self, number: usize) -> isize {
        match self {
            Self::Line(row) => number.cast_signed() * row,
            Self::Blocks { size, block, row } => {
                (number / size).cast_signed() * block + (number % size).cast_signed() * row
            }
        }
    }
}

/// Checks the tensors of a call, and returns those that have elements. Each tensor must have
/// `expected` rows. `None`: the tensors must have the number of rows of the first tensor.
pub(super) fn check<'t>(
    rows: Rows,
    targets: &'t [Target<'t>],
    expected: Option<usize>,
    execution: &Execution<'_>,
) -> Result<Vec<Rowed<'t>>, ScatterError> {
    let mut expected = expected;
    let mut rowed = with_room(targets.len())?;
    for (tensor, target) in targets.iter().enumerate() {
        let rows_here = rows.count(target.layout())?;
        let expected = *expected.get_or_insert(rows_here);
        if rows_here != expected {
            return Err(ScatterError::RowCount {
                tensor,
                rows: rows_here,
                expected,
            });
        }
        if target.contents() == Contents::Unwritten {
            return Err(ScatterError::Uninitialized);
        }
        let kernels = operation(target.elements(), Reducing::default(), execution)?.kernels;
        if let Some(place) = rows.place(target.layout())? {
            rowed.push(Rowed {
                target,
                kernels,
                place,
            });
        }
    }
    refuse_shared(targets)?;
    Ok(rowed)
}

/// Returns an error if two tensors share a byte, or if this cannot be decided.
fn refuse_shared(targets: &[Target<'_>]) -> Result<(), ScatterError> {
    let is_borrowed = |at: usize| targets[at].contents().is_borrowed();
    if (0..targets.len()).all(is_borrowed) {
        // Rust borrows do not overlap.
        return Ok(());
    }
    let mut footprints = with_room(targets.len())?;
    footprints.extend(targets.iter().map(Target::footprint));
    let known = |first, second| is_borrowed(first) && is_borrowed(second);
    match overlap::among(&footprints, known)? {
        None | Some((Overlap::Disjoint, ..)) => Ok(()),
        Some((Overlap::Shared, first, second)) => {
            Err(ScatterError::TensorsOverlap { first, second })
        }
        Some((Overlap::Undecided, ..)) => Err(ScatterError::OverlapUndecided { tensor: "tensors" }),
    }
}

/// Returns an error if a list of rows shares a byte with a tensor, or if this cannot be decided.
pub(super) fn refuse_lists(
    targets: &[Target<'_>],
    from: &Indices<'_>,
    to: &Indices<'_>,
) -> Result<(), ScatterError> {
    let (from, to) = (from.as_source(), to.as_source());
    for target in targets {
        refuse_overlap(target, [("from", Some(&from)), ("to", Some(&to))])?;
    }
    Ok(())
}
