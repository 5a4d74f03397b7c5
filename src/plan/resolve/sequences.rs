//! Computes the destination numbers of the rows that a call addresses in a cache: for each
//! sequence, consecutive rows from a start position.
//!
//! This module uses the start position of each sequence and the shape and strides of the cache. It
//! does not use what the rows hold.

#![expect(unsafe_code, reason = "reads starts at the offsets of their view")]

use super::coordinate::{Coordinate, IndexRules};
use crate::error::ScatterError;
use crate::operand::indices::{Integers, for_index_type};
use crate::operand::{Dims, Layout, unravel};
use crate::plan::form::{Coordinates, Form};
use crate::plan::number::Number;
use crate::plan::scale::Scale;
use crate::reduction::CacheMode;

/// Checks the start position of every sequence and computes the destination numbers of the rows of
/// every sequence. If `numbers` is empty, the function only checks the start positions. `starts`
/// has one value for each sequence, or one value for all sequences.
///
/// Returns the number of skipped tuples. If `numbers` is empty, each skipped sequence adds `len`,
/// the number of positions that a call addresses in a sequence. If `numbers` is not empty, each
/// skipped sequence adds the number of its entries in `numbers`.
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
    let (shape, skips) = (output.shape(), rules.bounds.skips());
    let (between, cache_len) = (&shape[1..axis], shape[axis]);
    let sequences = Sequences {
        count: shape[0],
        len,
        cache_len,
        mode,
        skips,
    };
    if output.is_contiguous() {
        // All axes between axis 0 and `axis` merge to one axis, because the cache is contiguous.
        // One position on the merged axis is a block of `cache_len` rows.
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
    /// Number of consecutive positions along the axis of the rows that one call addresses in each
    /// sequence.
    len: usize,
    /// Number of positions of the cache for each sequence: the size of the axis of the rows.
    cache_len: usize,
    mode: CacheMode,
    /// Whether a sequence with a negative start position is skipped. Otherwise a negative start
    /// position is an error.
    skips: bool,
}

/// Differences between the destination numbers of neighbouring rows, for each axis of a cache. The
/// differences are `u64` values that wrap, because a difference can be negative.
struct Steps<'a> {
    /// Destination number of the row at position 0 on every axis.
    origin: u64,
    /// Difference along axis 0: destination number of a row in the next sequence, minus the number
    /// of the row at the same position in this sequence.
    sequence: u64,
    /// Size of each axis between axis 0 and the axis of the rows, and the difference of destination
    /// numbers from one position on that axis to the next.
    between: &'a [(usize, u64)],
    /// Difference along the axis of the rows: destination number of the next row of a sequence,
    /// minus the number of this row.
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
        // If `numbers` is empty and all sequences share one start position, that position is
        // checked once. With stride 0, there can be more sequences than a loop can visit.
        let checked = match stride {
            0 if numbers.is_empty() => self.count.min(1),
            _ => self.count,
        };
        let each = numbers.len() / self.count.max(1);
        let mut skipped = 0;
        for sequence in 0..checked {
            let mut start = [I::default()];
            // SAFETY: `starts` has one value for each of the `count` sequences, or one value with
            // stride 0. `I` is the type of `starts`, because `resolve_sequences` has dispatched on
            // it.
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

    /// Computes the destination numbers of the rows of sequence `sequence`. `start` is the position
    /// of the first row.
    fn number<N: Number>(
        &self,
        steps: &Steps<'_>,
        sequence: usize,
        start: usize,
        numbers: &mut [N],
    ) {
        let times = |position: usize, step: u64| (position as u64).wrapping_mul(step);
        let first = (steps.origin).wrapping_add(times(sequence, steps.sequence));
        // The rows from `start` to the end of the axis, and the rows that continue at position 0 of
        // the axis (in circular mode).
        let before_end = self.len.min(self.cache_len - start);
        let parts = [(start, 0..before_end), (0, before_end..self.len)];
        let (inner, inner_step) = steps.between.last().copied().unwrap_or((1, 0));
        let (mut others, mut outer) = (numbers, 0);
        // The loop does not use `chunks_mut`, because `chunks_mut` computes a division. That
        // division would be most of the cost of a decode step (`len` 1).
        while let Some((block, behind)) = others.split_at_mut_checked(self.len * inner) {
            let first = first.wrapping_add(steps.offset(outer));
            (others, outer) = (behind, outer + 1);
            if self.len == 1 {
                // `len` is 1, as in a decode step. The nested loops below would be most of the cost
                // of such a step.
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

    /// Checks the start position `index` of sequence `batch` and returns it as a position on the
    /// axis (modulo `cache_len` in circular mode). The result is below `cache_len`, unless `len` is
    /// 0.
    fn check<I: Coordinate>(&self, index: I, batch: usize) -> Result<usize, ScatterError> {
        // As unsigned numbers, negative start positions are greater than any length.
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
    /// Returns the difference of destination numbers for position `number`, in row-major order,
    /// along the axes of `between` except the innermost axis.
    fn offset(&self, number: usize) -> u64 {
        let outer = self.between.iter().rev().skip(1);
        let positions = unravel(outer, |dim| dim.0, number);
        positions.fold(0, |offset: u64, (&(_, step), position)| {
            offset.wrapping_add((position as u64).wrapping_mul(step))
        })
    }
}
