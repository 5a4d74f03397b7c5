//! The list of destination numbers. The numbers of a list have 32 bits if their exclusive upper
//! bound is at most [`Destinations::NARROW`], else 64 bits.
//!
//! This module knows the widths and the memory of destination numbers. It knows nothing of the
//! meaning of a destination number.

use smallvec::SmallVec;

use super::number::Number;
use super::resolve::Piece;
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::kernel::filter::{PositionEntries, filter};
use crate::memory::zeroed;

/// Maximum number of entries that one filter call reads. The buffers for its results are on the
/// stack.
const FILTERED: usize = 1024;

/// Destination numbers in the order of their tuples. A plan also uses this type to store the
/// positions of tuples.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a plan has one list, and a box would be an allocation for small plans"
)]
pub(crate) enum Destinations {
    Narrow(SmallVec<[u32; Destinations::INLINE]>),
    Wide(SmallVec<[u64; Destinations::INLINE]>),
}

/// Buffers of earlier plans, which the destinations of a new plan can reuse.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    pub(crate) narrow: Vec<u32>,
    pub(crate) wide: Vec<u64>,
}

/// Evaluates `$call` with the list of destination numbers as `$numbers`. `$call` is compiled twice:
/// for numbers of 32 bits and for numbers of 64 bits.
macro_rules! for_numbers {
    ($destinations:expr, $numbers:ident => $call:expr) => {
        match $destinations {
            $crate::plan::Destinations::Narrow($numbers) => $call,
            $crate::plan::Destinations::Wide($numbers) => $call,
        }
    };
}

pub(crate) use for_numbers;

impl Destinations {
    /// Maximum number of destination numbers that are stored inline, without an allocation.
    pub(crate) const INLINE: usize = 64;

    /// Largest exclusive upper bound of numbers that are stored in 32 bits. All numbers below this
    /// bound are below [`Number::SKIPPED`] of 32 bits.
    pub(crate) const NARROW: u64 = u32::MAX as u64;

    /// Makes a list of `len` numbers with arbitrary values. `count` is the exclusive upper bound of
    /// the numbers that will be stored. A list that is not inline uses the buffer of `spare` if
    /// this buffer has at least `len` entries.
    pub(crate) fn with_len(len: usize, count: u64, spare: Spare) -> Result<Self, ScatterError> {
        Ok(if count <= Self::NARROW {
            Self::Narrow(buffer(len, spare.narrow)?)
        } else {
            Self::Wide(buffer(len, spare.wide)?)
        })
    }

    /// Returns the number of entries of the list.
    pub(crate) fn len(&self) -> usize {
        for_numbers!(self, numbers => numbers.len())
    }

    /// Returns the destination numbers if they have 32 bits. Returns `None` if they have 64 bits.
    #[inline]
    pub(crate) fn narrow(&self) -> Option<&[u32]> {
        match self {
            Self::Narrow(numbers) => Some(numbers),
            Self::Wide(_) => None,
        }
    }

    /// Removes the entries of skipped tuples. Returns the position that each remaining entry had
    /// before the removal. `skipped` is the number of entries to remove.
    pub(crate) fn drop_skipped(&mut self, skipped: usize) -> Result<Self, ScatterError> {
        let len = self.len();
        let mut positions = Self::with_len(len - skipped, len as u64, Spare::default())?;
        for_numbers!(self, numbers => {
            let mut applied = (0..len).filter(|&at| numbers[at].is_destination());
            positions.fill(|_| applied.next().map_or(0, |position| position as u64));
            numbers.retain(|number| number.is_destination());
        });
        Ok(positions)
    }

    /// Replaces every destination number by `number` of it. Entries of skipped tuples stay.
    pub(crate) fn replace(&mut self, number: impl Fn(u64) -> u64) {
        for_numbers!(self, numbers => {
            for entry in numbers.iter_mut().filter(|entry| entry.is_destination()) {
                *entry = Number::new(number(entry.get()));
            }
        });
    }

    /// Returns the destination number at position `tuple`.
    pub(crate) fn get(&self, tuple: usize) -> u64 {
        for_numbers!(self, numbers => numbers[tuple].get())
    }

    /// Returns the summary of all destination numbers of the list: the first number, the last
    /// number, and the facts about the order of the numbers.
    pub(crate) fn describe(&self) -> Piece {
        let mut piece = Piece::EMPTY;
        for_numbers!(self, numbers => piece.extend(numbers));
        piece
    }

    /// Sets every entry to the result of `number` for the position of the entry. Calls `number` in
    /// ascending order of positions.
    pub(crate) fn fill(&mut self, mut number: impl FnMut(usize) -> u64) {
        for_numbers!(self, numbers => {
            for (tuple, to) in numbers.iter_mut().enumerate() {
                *to = Number::new(number(tuple));
            }
        });
    }

    /// Returns the buffer of the list, so that another plan can reuse the buffer. The result is
    /// empty if the numbers were stored inline.
    pub(crate) fn into_spare(self) -> Spare {
        let mut spare = Spare::default();
        match self {
            Self::Narrow(numbers) if numbers.spilled() => spare.narrow = numbers.into_vec(),
            Self::Wide(numbers) if numbers.spilled() => spare.wide = numbers.into_vec(),
            _ => {}
        }
        spare
    }
}

/// Copies the destination numbers of `numbers` to `kept`, without the entries of skipped tuples.
/// Writes the position of each copied number to `positions`. The first number has the position
/// `first`. `kept` and `positions` have one entry for each destination number of `numbers`.
pub(crate) fn keep_destinations(
    numbers: &[u32],
    first: usize,
    kept: &mut [u32],
    positions: &mut [u32],
) {
    let (mut block, mut block_positions) = ([0; FILTERED], [0; FILTERED]);
    let mut len = 0;
    for (index, numbers) in numbers.chunks(FILTERED).enumerate() {
        let entries = PositionEntries {
            first: Number::new((first + index * FILTERED) as u64),
            kept: &mut block_positions,
        };
        let destinations = 0..u32::SKIPPED.into();
        let set = InstructionSet::LAST;
        let count = filter(set, numbers, &destinations, &mut block, entries);
        kept[len..len + count].copy_from_slice(&block[..count]);
        positions[len..len + count].copy_from_slice(&block_positions[..count]);
        len += count;
    }
}

/// Makes `len` numbers with arbitrary values. They are inline if `len` is at most
/// [`Destinations::INLINE`]. Otherwise they are in `spare` if it is long enough, else in new
/// memory.
fn buffer<T: Number>(
    len: usize,
    mut spare: Vec<T>,
) -> Result<SmallVec<[T; Destinations::INLINE]>, ScatterError>
where
    [T; Destinations::INLINE]: smallvec::Array<Item = T>,
{
    if len <= Destinations::INLINE {
        return Ok(SmallVec::from_elem(T::new(0), len));
    }
    if spare.len() < len {
        drop(spare);
        spare = zeroed(len)?;
    }
    spare.truncate(len);
    Ok(SmallVec::from_vec(spare))
}
