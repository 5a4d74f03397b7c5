//! The owners of the slices of a table: the arithmetic of [`Sharding`] for destination numbers.
//!
//! This module knows destination numbers. It does not know tuples.

use super::{Rule, Sharding};
use crate::error::ScatterError;
use crate::memory::with_room;

/// The owner of each slice of one table. A slice is a row, or one of several slices of a row if
/// tuples have several coordinates.
#[derive(Debug)]
pub(super) enum Owners {
    /// Part `p` has the slices from `p * slices` to `(p + 1) * slices - 1`.
    Blocks { slices: u64 },
    /// Row `r` belongs to part `r % parts`. Each row has `each` slices.
    Modulo { parts: u64, each: u64 },
    /// First slice of each part.
    Starts(Vec<u64>),
}

impl Owners {
    /// Returns the owners of the slices of a table of `rows` rows with `each` slices. `rows * each`
    /// fits 64 bits.
    pub(super) fn new(sharding: &Sharding, rows: usize, each: u64) -> Result<Self, ScatterError> {
        let each = each.max(1);
        Ok(match &sharding.rule {
            Rule::Blocks => Self::Blocks {
                slices: (rows.div_ceil(sharding.parts) as u64 * each).max(1),
            },
            Rule::Modulo => Self::Modulo {
                parts: sharding.parts as u64,
                each,
            },
            Rule::Starts(starts) => {
                let mut slices = with_room(starts.len())?;
                // No slice number reaches a start that saturates.
                slices.extend(
                    starts
                        .iter()
                        .map(|&start| (start as u64).saturating_mul(each)),
                );
                Self::Starts(slices)
            }
        })
    }

    /// Returns the part that has the slice with the destination number `number`.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are at most `u32::MAX` parts"
    )]
    pub(super) fn part(&self, number: u64) -> u32 {
        match self {
            Self::Blocks { slices } => (number / slices) as u32,
            Self::Modulo { parts, each } => (number / each % parts) as u32,
            Self::Starts(starts) => (starts.partition_point(|&start| start <= number) - 1) as u32,
        }
    }

    /// Returns the number of the slice `number` among the slices of its part `part`.
    #[inline]
    pub(super) fn local(&self, part: u32, number: u64) -> u64 {
        match self {
            Self::Blocks { slices } => number - u64::from(part) * slices,
            Self::Modulo { parts, each } => number / each / parts * each + number % each,
            Self::Starts(starts) => number - starts[part as usize],
        }
    }
}
