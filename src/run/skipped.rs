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
use crate::plan::{Destinations, Facts, Piece, keep_destinations};

/// The parts of a list whose destination numbers the pool computed. Without parts, the calling
/// thread computed all numbers.
#[derive(Default)]
pub(super) struct Shares {
    /// Number of tuples of each part, except the last part, which can be shorter.
    pub(super) len: usize,
    /// Number of tuples of each part that are not skipped.
    pub(super) applied: Vec<usize>,
}

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
/// remove. If the pool computed the numbers in `shares`, the pool also removes the entries.
pub(super) fn drop_skipped(
    destinations: &mut Destinations,
    skipped: usize,
    shares: &Shares,
    execution: &Execution<'_>,
) -> Result<Applied, ScatterError> {
    let applied = destinations.len() - skipped;
    let buffer = || {
        let spare = scratch::take_spare(applied, Destinations::NARROW);
        Destinations::with_len(applied, Destinations::NARROW, spare)
    };
    // Positions are below the number of tuples, so they have 32 bits too.
    if let Destinations::Narrow(numbers) = destinations
        && numbers.len() as u64 <= Destinations::NARROW
        && let (mut kept, mut positions) = (buffer()?, buffer()?)
        && let (Destinations::Narrow(to), Destinations::Narrow(at)) = (&mut kept, &mut positions)
    {
        let facts = keep(numbers, to, at, shares, execution)?;
        scratch::put_back(mem::replace(destinations, kept).into_spare());
        return Ok(Applied { positions, facts });
    }
    let positions = destinations.drop_skipped(skipped)?;
    let facts = destinations.describe().facts;
    Ok(Applied { positions, facts })
}

/// Copies the destination numbers of `numbers` to `kept`, without the entries of skipped tuples,
/// and their positions to `positions`. Returns the facts about the numbers in `kept`.
fn keep(
    numbers: &[u32],
    mut kept: &mut [u32],
    mut positions: &mut [u32],
    shares: &Shares,
    execution: &Execution<'_>,
) -> Result<Facts, ScatterError> {
    let part = |numbers, first, kept, positions| Part {
        numbers,
        first,
        kept,
        positions,
        piece: Piece::EMPTY,
    };
    if shares.applied.len() <= 1 {
        let mut whole = part(numbers, 0, kept, positions);
        whole.run();
        return Ok(whole.piece.facts);
    }
    let mut parts = with_room(shares.applied.len())?;
    let cut = numbers.chunks(shares.len).zip(&shares.applied).enumerate();
    for (index, (numbers, &applied)) in cut {
        let (own, own_positions);
        (own, kept) = kept.split_at_mut(applied);
        (own_positions, positions) = positions.split_at_mut(applied);
        parts.push(part(numbers, index * shares.len, own, own_positions));
    }
    let call = execution.begin();
    (call.workers()).run_chunks(&mut parts, 1, &|_, part| part[0].run())?;
    let mut whole = Piece::EMPTY;
    parts.iter().for_each(|part| whole.join(&part.piece));
    Ok(whole.facts)
}
