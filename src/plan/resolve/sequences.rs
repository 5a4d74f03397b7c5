//! Computes the destination numbers of the rows of a cache: for each sequence, consecutive rows
//! from a start position.
//!
//! This module knows where each sequence starts and how long the cache is. This module knows
//! nothing of what the rows hold.

#![expect(unsafe_code, reason = "reads starts at the offsets of their view")]

use super::coordinate::{Coordinate, IndexRules};
use crate::error::ScatterError;
use crate::operand::indices::{Integers, for_index_type};
use crate::operand::{Dims, Layout, unravel};
use crate::plan::form::{Coordinates, Form};
use crate::plan::number::Number;
use crate::plan::scale::Scale;
use crate::reduction::{Bounds, CacheMode};

/// Checks the start position of every sequence and computes the destination numbers of its rows. If
/// `numbers` is empty, the function only checks. `starts` has one value for each sequence or one
/// value for all.
///
/// Returns the number of skipped tuples. If `numbers` is empty, a skipped sequence counts as `len`
/// tuples (the positions that are written along the axis of the rows). Otherwise a skipped sequence
/// counts as one tuple for each of its entries in `numbers`.
pub(crate) fn resolve_sequences<N: Number>(
    output: &Layout<'_>,
    form: &Form,
    starts: Integers<'_>,
    rules: IndexRules,
    numbers: &mut [N],
) -> Result<usize, ScatterError> {
    let Coordinates::Sequences { axis, len, mode } = form.coordinates else {
        return Ok(0);
    };
    let (shape, skips) = (output.shape(), rules.bounds == Bounds::Skip);
    let (between, cache_len) = (&shape[1..axis], shape[axis]);
    let sequences = Sequences {
        count: shape[0],
        len,
        cache_len,
        mode,
        skips,
    };
    if output.is_contiguous() {
        // The axes between axis 0 and `axis` merge to one dim of slices.
        let between = [(between.iter().product(), cache_len as u64)];
        let steps = Steps {
            origin: 0,
            sequence: between[0].1.wrapping_mul(between[0].0 as u64),
            between: &between,
            position: 1,
        };
        return for_index_type!(starts.kind(), I => sequences.resolve::<I, N>(&steps, starts, numbers));
    }
    let (_, multipliers) = Scale::new(output, form);
    let dims = between.iter().zip(1..);
    let dims = dims.map(|(&size, dim)| (size, multipliers.along(dim)));
    let steps = Steps {
        origin: multipliers.origin,
        sequence: multipliers.along(0),
        between: &Dims::collect(between.len(), dims)?,
        position: multipliers.along(axis),
    };
    for_index_type!(starts.kind(), I => sequences.resolve::<I, N>(&steps, starts, numbers))
}

/// Sequences of rows along one axis of a cache.
struct Sequences {
    /// Number of sequences.
    count: usize,
    /// Number of positions that one call writes in each sequence. The positions are counted along
    /// the axis of the rows.
    len: usize,
    /// Capacity of the cache for each sequence: the size of the axis of the rows.
    cache_len: usize,
    mode: CacheMode,
    /// Whether a sequence with a negative start position is skipped.
    skips: bool,
}

/// Differences between the destination numbers of rows of a cache. Destination numbers wrap,
/// because a difference can be negative. A cache has one list of rows for each sequence.
struct Steps<'a> {
    /// Destination number of the row whose positions are all 0.
    origin: u64,
    /// Difference between the destination numbers of rows at equal positions in one sequence and in
    /// the next sequence (axis 0).
    sequence: u64,
    /// Size and difference of each axis between axis 0 and the axis of the rows. The difference is
    /// between the destination numbers of rows at neighbouring positions of the axis.
    between: &'a [(usize, u64)],
    /// Difference between the destination numbers of one row of a sequence and of the next row.
    position: u64,
}

impl Sequences {
    /// Checks the start positions of all sequences, and computes the destination numbers of their
    /// rows. Returns the number of skipped tuples.
    fn resolve<I: Coordinate, N: Number>(
        &self,
        steps: &Steps<'_>,
        starts: Integers<'_>,
        numbers: &mut [N],
    ) -> Result<usize, ScatterError> {
        let stride = (starts.layout().dims_from_last().next()).map_or(0, |(_, stride)| stride);
        // If no destination numbers are needed, one start position for all sequences is checked
        // once. There can be more sequences than a loop can visit.
        let checked = match stride {
            0 if numbers.is_empty() => self.count.min(1),
            _ => self.count,
        };
        let each = numbers.len() / self.count.max(1);
        let mut skipped = 0;
        for sequence in 0..checked {
            let mut start = [I::default()];
            // SAFETY: `starts` has one value for each of the `count` sequences, or one value with
            // stride 0. `I` is the type of `starts`: `resolve_sequences` has dispatched on it.
            unsafe { starts.read_run(sequence.cast_signed() * stride, 0, &mut start) };
            let numbers = &mut numbers[sequence * each..][..each];
            if self.skips && start[0] < I::default() {
                skipped += match each {
                    0 => self.len * (self.count / checked),
                    _ => each,
                };
                numbers.fill(N::SKIPPED);
                continue;
            }
            let start = self.check(start[0], sequence)?;
            if each > 0 {
                self.number(steps, sequence, start, numbers);
            }
        }
        Ok(skipped)
    }

    /// Computes the destination numbers of the rows of a sequence. `start` is the position of the
    /// first row of the sequence.
    fn number<N: Number>(
        &self,
        steps: &Steps<'_>,
        sequence: usize,
        start: usize,
        numbers: &mut [N],
    ) {
        let times = |position: usize, step: u64| (position as u64).wrapping_mul(step);
        let first = (steps.origin).wrapping_add(times(sequence, steps.sequence));
        // The rows up to the end of the axis, and the rows that continue at its beginning.
        let before_end = self.len.min(self.cache_len - start);
        let parts = [(start, 0..before_end), (0, before_end..self.len)];
        let (inner, inner_step) = steps.between.last().copied().unwrap_or((1, 0));
        let (mut others, mut outer) = (numbers, 0);
        // `chunks` would divide, and the division would be most of the cost of a decode step.
        while let Some((block, behind)) = others.split_at_mut_checked(self.len * inner) {
            let first = first.wrapping_add(steps.offset(outer));
            (others, outer) = (behind, outer + 1);
            if self.len == 1 {
                // A decode step. The loops below would be most of the cost of a decode step.
                let mut number = first.wrapping_add(times(start, steps.position));
                for inner in block {
                    *inner = N::new(number);
                    number = number.wrapping_add(inner_step);
                }
                continue;
            }
            for (position, rows) in parts.clone() {
                let first = first.wrapping_add(times(position, steps.position));
                for (at, row) in rows.enumerate() {
                    let mut number = first.wrapping_add(times(at, steps.position));
                    for inner in block[row..].iter_mut().step_by(self.len) {
                        *inner = N::new(number);
                        number = number.wrapping_add(inner_step);
                    }
                }
            }
        }
    }

    /// Checks the start position of sequence `batch` and returns this position. The position is
    /// below `cache_len`, unless no row is written.
    fn check<I: Coordinate>(&self, index: I, batch: usize) -> Result<usize, ScatterError> {
        // Negative start positions become larger than any length.
        let position = index.position(0);
        let cache_len = self.cache_len as u64;
        let start = match self.mode {
            CacheMode::Linear => Some(position).filter(|&at| at <= cache_len - self.len as u64),
            CacheMode::Circular if index < I::default() => None,
            CacheMode::Circular => Some(position % cache_len.max(1)),
        };
        (start.and_then(|start| usize::try_from(start).ok()))
            .ok_or_else(|| self.out_of_range(index.into(), batch))
    }

    /// Returns the error for a start position that is out of range.
    #[cold]
    fn out_of_range(&self, index: i128, batch: usize) -> ScatterError {
        ScatterError::WriteIndex {
            batch,
            index,
            update_len: self.len,
            cache_len: self.cache_len,
            mode: self.mode,
        }
    }
}

impl Steps<'_> {
    /// Returns the increment for position `number` along the axes of `between`, except the
    /// innermost axis.
    fn offset(&self, number: usize) -> u64 {
        let outer = self.between.iter().rev().skip(1);
        let positions = unravel(outer, |dim| dim.0, number);
        positions.fold(0, |offset: u64, (&(_, step), position)| {
            offset.wrapping_add((position as u64).wrapping_mul(step))
        })
    }
}
