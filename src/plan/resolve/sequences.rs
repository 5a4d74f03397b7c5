//! Rows that follow one another from a start for each sequence.

#![expect(unsafe_code, reason = "reads starts through the view that holds them")]

use super::block::Coordinate;
use crate::error::ScatterError;
use crate::operand::Layout;
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::destinations::Number;
use crate::plan::{Coordinates, Form, IndexRules, Piece, Scale};
use crate::reduction::{Bounds, CacheMode};

/// Checks where every sequence begins and numbers its rows; without `numbers`
/// it checks alone, and counts the tuples that are skipped. `output` is arranged
/// as `form` says, and `starts` has one value for each sequence, or one for all.
pub(crate) fn resolve_sequences<N: Number>(
    output: &Layout<'_>,
    form: &Form,
    starts: Integers<'_>,
    rules: IndexRules,
    numbers: &mut [N],
) -> Result<Piece, ScatterError> {
    let Coordinates::Sequences { len, mode, .. } = form.coordinates else {
        return Ok(Piece::EMPTY);
    };
    let (scale, multipliers) = Scale::new(output, form)?;
    let sequences = Sequences {
        batches: output.shape()[0],
        len,
        mode,
        skips: rules.bounds == Bounds::Skip,
        cache_len: output.shape()[1],
        origin: scale.base.wrapping_neg().cast_unsigned() as u64,
        multipliers: [multipliers[0], multipliers[1]],
    };
    for_index_type!(starts.kind(), I => sequences.resolve::<I, N>(starts, numbers))
}

struct Sequences {
    batches: usize,
    len: usize,
    mode: CacheMode,
    /// Whether a sequence with a negative position is skipped.
    skips: bool,
    cache_len: usize,
    origin: u64,
    multipliers: [i64; 2],
}

impl Sequences {
    fn resolve<I: Coordinate, N: Number>(
        &self,
        starts: Integers<'_>,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        let stride = starts.layout().all_strides()?.first().copied().unwrap_or(0);
        // One start for all need not be looked at again for each, where each
        // has nothing to number: there may be more than one could count to.
        let batches = match stride {
            0 if numbers.is_empty() => self.batches.min(1),
            _ => self.batches,
        };
        let mut piece = Piece::EMPTY;
        for batch in 0..batches {
            let mut start = [I::default()];
            // SAFETY: one value for each sequence, or a stride of 0.
            unsafe { starts.read_run(batch.cast_signed() * stride, 0, &mut start) };
            let start: i128 = start[0].into();
            if self.skips && start < 0 {
                let sequences = self.batches / batches;
                piece.skipped += self.len * sequences;
                if !numbers.is_empty() {
                    numbers[batch * self.len..][..self.len].fill(N::SKIPPED);
                }
                continue;
            }
            let start = self.check(start, batch)?;
            if numbers.is_empty() {
                continue;
            }
            let numbers = &mut numbers[batch * self.len..][..self.len];
            for (row, number) in numbers.iter_mut().enumerate() {
                // Both are less than the length of the cache.
                let rest = self.cache_len - start;
                let position = if row < rest { start + row } else { row - rest };
                *number = N::new(self.number(batch, position));
            }
            piece.extend(numbers);
        }
        Ok(piece)
    }

    fn number(&self, batch: usize, position: usize) -> u64 {
        let [outer, inner] = self.multipliers.map(i64::cast_unsigned);
        (self.origin)
            .wrapping_add((batch as u64).wrapping_mul(outer))
            .wrapping_add((position as u64).wrapping_mul(inner))
    }

    /// Where a sequence is written from, below the length of the cache.
    fn check(&self, index: i128, batch: usize) -> Result<usize, ScatterError> {
        let (len, cache_len) = (self.len as i128, self.cache_len as i128);
        let start = match index {
            0.. if self.mode == CacheMode::Circular => Some(index % cache_len.max(1)),
            0.. if index <= cache_len - len => Some(index),
            _ => None,
        };
        (start.and_then(|start| usize::try_from(start).ok())).ok_or(ScatterError::WriteIndex {
            batch,
            index,
            update_len: self.len,
            cache_len: self.cache_len,
            mode: self.mode,
        })
    }
}
