//! Removes the skipped tuples from a list of destination numbers, on the calling thread or on the
//! pool.
//!
//! This module knows destination numbers and workers. It knows nothing of indices: the list marks
//! the skipped tuples.

use std::mem;

use crate::error::ScatterError;
use crate::exec::scratch;
use crate::execution::Execution;
use crate::memory::with_room;
use crate::plan::{Destinations, Facts, Number, Piece, keep_destinations};

/// The tuples that are not skipped.
pub(super) struct Applied {
    /// Position of each tuple in the list before the removal.
    pub(super) positions: Destinations,
    /// Facts about the order of the destination numbers.
    pub(super) facts: Facts,
}

/// Part of a list of destination numbers, with the memory for its tuples that are not skipped.
struct Part<'a> {
    numbers: &'a [u32],
    /// Position, in the whole list, of the first entry of `numbers`.
    first: usize,
    kept: &'a mut [u32],
    positions: &'a mut [u32],
    /// Summary of the destination numbers in `kept`.
    piece: Piece,
}

impl Part<'_> {
    fn run(&mut self) {
        keep_destinations(self.numbers, self.first, self.kept, self.positions);
        self.piece.extend(self.kept);
    }
}

/// Removes the entries of skipped tuples from `destinations`. `skipped` is the number of entries to
/// remove. The pool removes the entries of long lists.
pub(super) fn drop_skipped(
    destinations: &mut Destinations,
    skipped: usize,
    execution: &Execution<'_>,
) -> Result<Applied, ScatterError> {
    let applied = destinations.len() - skipped;
    let buffer = || {
        let spare = scratch::take_spare(applied, Destinations::NARROW);
        Destinations::with_len(applied, Destinations::NARROW, spare)
    };
    // A list that is stored inline is short. Setting up the buffers and reading the machine would
    // cost more than the removal. In a longer list, positions are below the number of tuples, so
    // they have 32 bits too.
    if let Destinations::Narrow(numbers) = destinations
        && numbers.len() > Destinations::INLINE
        && numbers.len() as u64 <= Destinations::NARROW
        && let (mut kept, mut positions) = (buffer()?, buffer()?)
        && let (Destinations::Narrow(to), Destinations::Narrow(at)) = (&mut kept, &mut positions)
    {
        let facts = keep(numbers, to, at, execution)?;
        scratch::put_back(mem::replace(destinations, kept).into_spare());
        return Ok(Applied { positions, facts });
    }
    let positions = destinations.drop_skipped(skipped)?;
    let facts = destinations.describe().facts;
    Ok(Applied { positions, facts })
}

/// Copies the destination numbers of `numbers` to `kept`, without the entries of skipped tuples,
/// and their positions to `positions`. Returns the facts about the numbers in `kept`. If the list
/// has at least `numbered_tuples` tuples ([`Variants`](crate::machine::Variants)), each worker of
/// the pool copies a part of the list.
fn keep(
    numbers: &[u32],
    mut kept: &mut [u32],
    mut positions: &mut [u32],
    execution: &Execution<'_>,
) -> Result<Facts, ScatterError> {
    let variants = execution.machine_in_use().variants;
    if (numbers.len() as u64) < variants.numbered_tuples {
        let mut whole = Part {
            numbers,
            first: 0,
            kept,
            positions,
            piece: Piece::EMPTY,
        };
        whole.run();
        return Ok(whole.piece.facts);
    }
    let call = execution.begin();
    let workers = call.workers();
    let len = numbers.len().div_ceil(workers.parts()).max(1);
    let mut counts = with_room(numbers.len().div_ceil(len))?;
    counts.resize(numbers.len().div_ceil(len), 0);
    workers.run_chunks(&mut counts, 1, &|index, count| {
        let part = &numbers[index * len..numbers.len().min((index + 1) * len)];
        count[0] = part.iter().filter(|number| number.is_destination()).count();
    })?;
    let mut parts = with_room(counts.len())?;
    for (index, (numbers, count)) in numbers.chunks(len).zip(counts).enumerate() {
        let (own, others) = kept.split_at_mut(count);
        let (own_positions, other_positions) = positions.split_at_mut(count);
        (kept, positions) = (others, other_positions);
        parts.push(Part {
            numbers,
            first: index * len,
            kept: own,
            positions: own_positions,
            piece: Piece::EMPTY,
        });
    }
    workers.run_chunks(&mut parts, 1, &|_, part| part[0].run())?;
    let mut piece = Piece::EMPTY;
    parts.iter().for_each(|part| piece.join(&part.piece));
    Ok(piece.facts)
}
