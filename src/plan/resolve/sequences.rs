//! Rows that follow one another from a start for each sequence.

#![expect(unsafe_code, reason = "reads starts through the view that holds them")]

use super::coordinate::{Coordinate, IndexRules};
use crate::error::ScatterError;
use crate::operand::indices::{Integers, for_index_type};
use crate::operand::{Dims, Layout, unravel};
use crate::plan::form::{Coordinates, Form};
use crate::plan::number::Number;
use crate::plan::scale::Scale;
use crate::reduction::{Bounds, CacheMode};

/// Checks where every sequence begins and numbers its rows; without `numbers`
/// it checks alone. Returns how many tuples are skipped: of `numbers`, else as
/// the caller counts them. `starts` has one value for each sequence, or one for
/// all.
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
        // What lies between is one dim of slices.
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

struct Sequences {
    count: usize,
    /// Positions that are written, of so many.
    len: usize,
    cache_len: usize,
    mode: CacheMode,
    /// Whether a sequence with a negative position is skipped.
    skips: bool,
}

/// How numbers follow from positions; they wrap, as offsets may be negative.
struct Steps<'a> {
    /// The number where all positions are zero.
    origin: u64,
    /// From one sequence to the next.
    sequence: u64,
    /// Size and step of each axis between the sequences and their positions.
    between: &'a [(usize, u64)],
    /// From one position to the next.
    position: u64,
}

impl Sequences {
    fn resolve<I: Coordinate, N: Number>(
        &self,
        steps: &Steps<'_>,
        starts: Integers<'_>,
        numbers: &mut [N],
    ) -> Result<usize, ScatterError> {
        let stride = (starts.layout().dims_from_last().next()).map_or(0, |(_, stride)| stride);
        // One start for all need not be looked at again for each, where each
        // has nothing to number: there may be more than one could count to.
        let looks = match stride {
            0 if numbers.is_empty() => self.count.min(1),
            _ => self.count,
        };
        let each = numbers.len() / self.count.max(1);
        let mut skipped = 0;
        for sequence in 0..looks {
            let mut start = [I::default()];
            // SAFETY: one value for each sequence, or a stride of 0.
            unsafe { starts.read_run(sequence.cast_signed() * stride, 0, &mut start) };
            let numbers = &mut numbers[sequence * each..][..each];
            if self.skips && start[0] < I::default() {
                skipped += match each {
                    0 => self.len * (self.count / looks),
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

    /// Numbers the rows of a sequence that is written from `start` on.
    fn number<N: Number>(
        &self,
        steps: &Steps<'_>,
        sequence: usize,
        start: usize,
        numbers: &mut [N],
    ) {
        let times = |position: usize, step: u64| (position as u64).wrapping_mul(step);
        let first = (steps.origin).wrapping_add(times(sequence, steps.sequence));
        // Up to the end of the axis, and on from its beginning.
        let rest = self.len.min(self.cache_len - start);
        let parts = [(start, 0..rest), (0, rest..self.len)];
        let (inner, inner_step) = steps.between.last().copied().unwrap_or((1, 0));
        let (mut others, mut outer) = (numbers, 0);
        // No `chunks`: it divides, which for a decode step is most of the time.
        while let Some((block, behind)) = others.split_at_mut_checked(self.len * inner) {
            let first = first.wrapping_add(steps.offset(outer));
            (others, outer) = (behind, outer + 1);
            if self.len == 1 {
                // A decode step, for which the loops below would be most of it.
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

    /// Where a sequence is written from, below the length of the cache unless
    /// nothing is written.
    fn check<I: Coordinate>(&self, index: I, batch: usize) -> Result<usize, ScatterError> {
        // Negative ones are more than any length.
        let position = index.position(0);
        let most = self.cache_len as u64;
        let start = match self.mode {
            CacheMode::Linear => Some(position).filter(|&at| at <= most - self.len as u64),
            CacheMode::Circular if index < I::default() => None,
            CacheMode::Circular => Some(position % most.max(1)),
        };
        (start.and_then(|start| usize::try_from(start).ok()))
            .ok_or_else(|| self.wrong(index.into(), batch))
    }

    #[cold]
    fn wrong(&self, index: i128, batch: usize) -> ScatterError {
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
    /// What is added for a position along the axes between, the innermost left
    /// out.
    fn offset(&self, number: usize) -> u64 {
        let outer = self.between.iter().rev().skip(1);
        let positions = unravel(outer, |dim| dim.0, number);
        positions.fold(0, |offset: u64, (&(_, step), position)| {
            offset.wrapping_add((position as u64).wrapping_mul(step))
        })
    }
}
