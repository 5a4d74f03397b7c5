//! Divides the moves of a call into pieces. No two pieces touch one element, unless both only read
//! it.
//!
//! A piece has one tensor, a range of moves and a part of the columns of each row. This module
//! knows sizes. It does not know memory or workers.

use std::ops::Range;

use super::order::Order;
use super::tensors::Rowed;
use crate::exec::part;
use crate::plan::Span;

/// Minimum bytes of a piece, counted once for all rows that a piece writes.
const PIECE_BYTES: usize = 256 << 10;

/// Intended number of pieces for each worker. A worker that begins late then delays the call by a
/// small part of the work.
const PIECES_EACH: usize = 8;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// How the work on one tensor is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cuts {
    /// Number of ranges of moves.
    ranges: usize,
    /// Number of parts of the columns.
    columns: usize,
    /// Loop of the row that is cut into parts of the columns.
    axis: usize,
    /// Number of iterations of this loop that stay together.
    unit: usize,
}

impl Cuts {
    /// All moves of a tensor in one piece.
    pub(super) const NONE: Self = Self {
        ranges: 1,
        columns: 1,
        axis: 0,
        unit: 1,
    };

    /// Cuts the work on `tensor` into pieces of at least `piece_bytes` bytes, if the moves and the
    /// columns allow this.
    pub(super) fn new(order: &Order, tensor: &Rowed<'_>, piece_bytes: usize) -> Self {
        let wanted = written_bytes(order, tensor) / piece_bytes.max(1);
        if wanted < 2 {
            return Self::NONE;
        }
        // With more ranges, some ranges would have no moves.
        let ranges = wanted.min(order.moves.len() / order.largest).max(1);
        let row = &tensor.place.row;
        // A part of the columns copies the loops, and tasks allocate nothing.
        if ranges >= wanted || !row.dims.is_inline_with(0) {
            return Self {
                ranges,
                ..Self::NONE
            };
        }
        let wanted = wanted.div_ceil(ranges);
        let (axis, unit, steps) = axis_to_cut(row, tensor.kernels.size, wanted);
        Self {
            ranges,
            columns: wanted.min(steps),
            axis,
            unit,
        }
    }

    /// Returns the number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.ranges * self.columns
    }

    /// Returns the moves of piece `index`.
    pub(super) fn moves(&self, order: &Order, index: usize) -> Range<usize> {
        let even = part(order.moves.len(), self.ranges, index / self.columns);
        order.cut_from(even.start)..order.cut_from(even.end)
    }

    /// Returns the columns of piece `index`: a part of the loops `row`. `None`: all columns.
    pub(super) fn columns(&self, row: &Span, index: usize) -> Option<Span> {
        if self.columns == 1 {
            return None;
        }
        let size = row.dims[self.axis].size;
        let steps = part(size.div_ceil(self.unit), self.columns, index % self.columns);
        let end = (steps.end * self.unit).min(size);
        Some(row.restricted(self.axis, steps.start * self.unit, end))
    }
}

/// Returns the loop of `row` to cut into `parts` parts, the number of its iterations that stay
/// together, and the number of places for a cut plus one. Contiguous elements of a cache line stay
/// together.
fn axis_to_cut(row: &Span, size: usize, parts: usize) -> (usize, usize, usize) {
    let line = match row.run().dst {
        1 => (LINE_BYTES / size).max(1),
        _ => 1,
    };
    let innermost = row.dims.len() - 1;
    let axes = row.dims.iter().enumerate().map(|(axis, dim)| {
        let unit = if axis == innermost { line } else { 1 };
        (axis, unit, dim.size.div_ceil(unit))
    });
    let fitting = axes.clone().find(|&(.., steps)| steps >= parts);
    let longest = || axes.max_by_key(|&(.., steps)| steps);
    fitting.or_else(longest).unwrap_or((0, 1, 1))
}

/// Returns the bytes that the moves write to a tensor.
pub(super) fn written_bytes(order: &Order, tensor: &Rowed<'_>) -> usize {
    let row = tensor.place.row.elements() * tensor.kernels.size;
    order.moves.len().saturating_mul(row)
}

/// Returns the bytes of a piece of a call that writes `bytes` bytes with `workers` workers.
pub(super) fn piece_bytes(bytes: usize, workers: usize) -> usize {
    (bytes / (workers * PIECES_EACH)).max(PIECE_BYTES)
}
