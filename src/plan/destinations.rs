//! Destination numbers, as compact as they can be.

use smallvec::SmallVec;

use super::number::Number;
use super::resolve::Piece;
use crate::error::ScatterError;
use crate::memory::zeroed;

/// The destination number of every tuple, in order.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one a plan, and boxing would allocate for small plans"
)]
pub(crate) enum Destinations {
    Narrow(SmallVec<[u32; Destinations::INLINE]>),
    Wide(SmallVec<[u64; Destinations::INLINE]>),
}

/// Buffers that destinations of an earlier plan have left.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    pub(crate) narrow: Vec<u32>,
    pub(crate) wide: Vec<u64>,
}

/// Calls a function that is generic over the width of the numbers.
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
    /// As many destinations are kept without an allocation.
    pub(crate) const INLINE: usize = 64;

    /// Where there are at most so many numbers, they are kept narrow: all are
    /// below [`Number::SKIPPED`].
    pub(crate) const NARROW: u64 = u32::MAX as u64;

    /// Room for `len` numbers below `count`, with any values in it.
    pub(crate) fn with_len(len: usize, count: u64, spare: Spare) -> Result<Self, ScatterError> {
        Ok(if count <= Self::NARROW {
            Self::Narrow(room(len, spare.narrow)?)
        } else {
            Self::Wide(room(len, spare.wide)?)
        })
    }

    pub(crate) fn len(&self) -> usize {
        for_numbers!(self, numbers => numbers.len())
    }

    /// The numbers, where they are narrow.
    #[inline]
    pub(crate) fn narrow(&self) -> Option<&[u32]> {
        match self {
            Self::Narrow(numbers) => Some(numbers),
            Self::Wide(_) => None,
        }
    }

    /// Drops the numbers that stand for no destination. Returns the positions
    /// of the others, `skipped` fewer than there were numbers.
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

    /// The number of `tuple`.
    pub(crate) fn get(&self, tuple: usize) -> u64 {
        for_numbers!(self, numbers => numbers[tuple].get())
    }

    /// Learns what a plan is to know of them.
    pub(super) fn describe(&self) -> Piece {
        let mut piece = Piece::EMPTY;
        for_numbers!(self, numbers => piece.extend(numbers));
        piece
    }

    /// Gives every tuple the number that is asked for.
    pub(super) fn fill(&mut self, mut number: impl FnMut(usize) -> u64) {
        for_numbers!(self, numbers => {
            for (tuple, to) in numbers.iter_mut().enumerate() {
                *to = Number::new(number(tuple));
            }
        });
    }

    /// The memory, for another plan; nothing where it was inline.
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

/// `len` numbers: inline if they fit, else in `spare` if it is long enough.
fn room<T: Number>(
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
