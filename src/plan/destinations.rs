//! Destination numbers, as compact as they can be.

use std::fmt;

use smallvec::SmallVec;

use crate::error::ScatterError;
use crate::memory::zeroed;

/// A destination number in memory: `u32`, or `u64` where the output is too
/// large for that.
pub(crate) trait Number: Copy + Ord + fmt::Debug + Send + Sync + bytemuck::Zeroable {
    /// The number. Not `Into<u64>`, so that `as` never stands in a loop.
    fn get(self) -> u64;
    /// `value` is below [`Destinations::NARROW`] for `u32`.
    fn new(value: u64) -> Self;
}

impl Number for u32 {
    fn get(self) -> u64 {
        self.into()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "only numbers below `NARROW` are stored narrow"
    )]
    fn new(value: u64) -> Self {
        value as Self
    }
}

impl Number for u64 {
    fn get(self) -> u64 {
        self
    }

    fn new(value: u64) -> Self {
        value
    }
}

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

impl Destinations {
    /// As many destinations are kept without an allocation.
    pub(crate) const INLINE: usize = 64;

    /// Numbers below this fit the narrow form.
    pub(crate) const NARROW: u64 = 1 << 32;

    /// Room for `len` numbers below `count`, with any values in it.
    pub(crate) fn with_len(len: usize, count: u64, spare: Spare) -> Result<Self, ScatterError> {
        Ok(if count <= Self::NARROW {
            Self::Narrow(room(len, spare.narrow)?)
        } else {
            Self::Wide(room(len, spare.wide)?)
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(numbers) => numbers.len(),
            Self::Wide(numbers) => numbers.len(),
        }
    }

    /// The number of `tuple`.
    pub(crate) fn get(&self, tuple: usize) -> u64 {
        match self {
            Self::Narrow(numbers) => numbers[tuple].get(),
            Self::Wide(numbers) => numbers[tuple],
        }
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
