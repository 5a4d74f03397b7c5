//! Splits a list of destination numbers by the parts that have these destinations. The split is
//! stable: entries of one part keep their order.
//!
//! The workers of the pool divide a long list into pieces. A worker splits each piece alone. The
//! segments of the pieces are then copied to the places of their parts. This module does not know
//! what an entry is used for.

use super::owners::Owners;
use crate::error::ScatterError;
use crate::exec::tasks::Workers;
use crate::execution::Execution;
use crate::memory::{with_room, zeroed};
use crate::plan::{Destinations, Number, for_numbers};

/// A list of destinations, split by parts.
#[derive(Debug)]
pub(super) struct Split {
    /// Number of entries of each part.
    pub(super) counts: Vec<usize>,
    /// For each entry of the split list, the label of the entry.
    pub(super) labels: Vec<i64>,
    /// For each entry of the split list, the number of its destination in its part.
    pub(super) destinations: Vec<i64>,
}

/// An entry of the list: its label, and the number of its destination in its part.
type Entry = (i64, i64);

/// Consecutive entries of one part in one piece.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Position of the first entry among the entries of all pieces.
    from: usize,
    /// Position of the first entry in the split list.
    to: usize,
}

/// Splits `destinations` among `parts` parts. The argument `label` returns the label of the entry at
/// a position of the list.
pub(super) fn split(
    destinations: &Destinations,
    owners: &Owners,
    parts: usize,
    label: &(impl Fn(usize) -> usize + Sync),
    execution: &Execution<'_>,
) -> Result<Split, ScatterError> {
    let call = execution.begin();
    let workers = call.workers();
    let pieces = if (destinations.len() as u64) < workers.machine().variants.numbered_tuples {
        1
    } else {
        // Each piece has at least one entry for each part on average. Otherwise the counts of the
        // pieces would need more memory than the entries.
        workers.parts().min(destinations.len() / parts).max(1)
    };
    let len = destinations.len().div_ceil(pieces).max(1);
    let mut entries: Vec<Entry> = zeroed(destinations.len())?;
    let counts = for_numbers!(destinations, numbers => {
        split_pieces(numbers, owners, parts, label, &mut entries, len, workers)
    })?;
    let mut totals = zeroed(parts)?;
    for counts in &counts {
        for (total, count) in totals.iter_mut().zip(counts) {
            *total += count;
        }
    }
    let segments = segments(&counts, parts, len)?;
    Ok(Split {
        counts: totals,
        labels: join(&entries, &segments, |entry| entry.0, len, workers)?,
        destinations: join(&entries, &segments, |entry| entry.1, len, workers)?,
    })
}

/// Splits each piece of `len` numbers, and writes its entries to the same positions of `entries`.
/// Returns the number of entries of each part, for each piece.
fn split_pieces<N: Number>(
    numbers: &[N],
    owners: &Owners,
    parts: usize,
    label: &(impl Fn(usize) -> usize + Sync),
    entries: &mut [Entry],
    len: usize,
    workers: &Workers<'_>,
) -> Result<Vec<Vec<usize>>, ScatterError> {
    let counts = workers.map_chunks(entries, len, &|piece, entries| {
        let first = piece * len;
        let numbers = &numbers[first..first + entries.len()];
        split_piece(
            numbers,
            owners,
            parts,
            |position| label(first + position),
            entries,
        )
    })?;
    let mut all = with_room(counts.len())?;
    for counts in counts {
        all.push(counts?);
    }
    Ok(all)
}

/// Writes the entries of `numbers` to `entries`, in the order of their parts. Returns the number of
/// entries of each part.
fn split_piece<N: Number>(
    numbers: &[N],
    owners: &Owners,
    parts: usize,
    label: impl Fn(usize) -> usize,
    entries: &mut [Entry],
) -> Result<Vec<usize>, ScatterError> {
    let mut counts: Vec<usize> = zeroed(parts)?;
    let mut owned: Vec<u32> = with_room(numbers.len())?;
    owned.extend(numbers.iter().map(|number| owners.part(number.get())));
    for &part in &owned {
        counts[part as usize] += 1;
    }
    let mut next: Vec<usize> = with_room(parts)?;
    next.extend(starts(&counts));
    for (position, (number, &part)) in numbers.iter().zip(&owned).enumerate() {
        let next = &mut next[part as usize];
        entries[*next] = (
            label(position).cast_signed() as i64,
            owners.local(part, number.get()).cast_signed(),
        );
        *next += 1;
    }
    Ok(counts)
}

/// Returns the position of the first entry of each part, if the entries are in the order of the
/// parts.
pub(super) fn starts(counts: &[usize]) -> impl Iterator<Item = usize> + '_ {
    let mut end = 0;
    counts.iter().map(move |count| {
        end += count;
        end - count
    })
}

/// Returns the segments of the split list in their order: the entries of part 0 in all pieces, then
/// the entries of part 1, and so on. Segments without entries are left out.
fn segments(counts: &[Vec<usize>], parts: usize, len: usize) -> Result<Vec<Segment>, ScatterError> {
    // Each segment has an entry.
    let entries: usize = counts.iter().flatten().sum();
    let mut segments = with_room(counts.len().saturating_mul(parts).min(entries))?;
    let mut from: Vec<usize> = with_room(counts.len())?;
    from.extend((0..counts.len()).map(|piece| piece * len));
    let mut to = 0;
    for part in 0..parts {
        for (from, counts) in from.iter_mut().zip(counts) {
            let count = counts[part];
            if count > 0 {
                segments.push(Segment { from: *from, to });
            }
            *from += count;
            to += count;
        }
    }
    Ok(segments)
}

/// Returns one field of all entries, in the order of the segments.
fn join(
    entries: &[Entry],
    segments: &[Segment],
    field: fn(&Entry) -> i64,
    len: usize,
    workers: &Workers<'_>,
) -> Result<Vec<i64>, ScatterError> {
    let mut joined = zeroed(entries.len())?;
    workers.run_chunks(&mut joined, len, &|piece, joined| {
        let mut position = piece * len;
        let end = position + joined.len();
        let mut rest = joined;
        let mut segment = segments.partition_point(|segment| segment.to <= position);
        while position < end {
            let Segment { from, to } = segments[segment - 1];
            let stop = segments.get(segment).map_or(end, |next| next.to.min(end));
            let (copied, after) = rest.split_at_mut(stop - position);
            let source = &entries[from + (position - to)..][..copied.len()];
            for (joined, entry) in copied.iter_mut().zip(source) {
                *joined = field(entry);
            }
            (rest, position, segment) = (after, stop, segment + 1);
        }
    })?;
    Ok(joined)
}
