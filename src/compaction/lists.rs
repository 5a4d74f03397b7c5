//! Reads the lists of row numbers of a call, and checks each number.
//!
//! This module knows the rules for row numbers. It does not know tensors. Each number is read once,
//! because other code may write indices in foreign memory during a call.

use smallvec::SmallVec;

use crate::error::ScatterError;
use crate::memory::{copied, with_room};
use crate::operand::Indices;
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::{Destinations, first_duplicate};
use crate::reduction::{Bounds, Duplicates};

/// Mark of a row number whose move is skipped. No tensor has this many rows.
const SKIPPED: u64 = u64::MAX;

/// The moves of a call in the order of the caller, without the skipped moves. All row numbers are
/// below the number of rows of the tensors.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) from: Vec<u64>,
    pub(super) to: Destinations,
    /// Number of skipped moves.
    pub(super) skipped: usize,
}

/// A row number that is out of bounds.
struct Fault {
    position: usize,
    row: i128,
}

impl Lists {
    /// Reads and checks the two lists. `rows` is the number of rows of the tensors.
    pub(super) fn read(
        from: &Indices<'_>,
        to: &Indices<'_>,
        rows: usize,
        bounds: Bounds,
        duplicates: Duplicates,
    ) -> Result<Self, ScatterError> {
        let (sources, from_fault) = read_list(from.integers()?, rows, bounds)?;
        let (destinations, to_fault) = read_list(to.integers()?, rows, bounds)?;
        check_faults(from_fault, to_fault, rows)?;
        Self::new(sources, destinations, rows, duplicates)
    }

    /// Drops the skipped moves. Returns an error if two other moves have one destination and
    /// `duplicates` rejects this.
    fn new(
        mut from: Vec<u64>,
        mut to: Vec<u64>,
        rows: usize,
        duplicates: Duplicates,
    ) -> Result<Self, ScatterError> {
        let listed = from.len();
        let is_applied = |from: u64, to: u64| from != SKIPPED && to != SKIPPED;
        let applied = (from.iter().zip(&to)).filter(|&(&from, &to)| is_applied(from, to));
        let skipped = listed - applied.count();
        let mut positions: Vec<usize> = Vec::new();
        if skipped > 0 {
            positions = with_room(listed - skipped)?;
            positions.extend((0..listed).filter(|&at| is_applied(from[at], to[at])));
            for (kept, &at) in positions.iter().enumerate() {
                (from[kept], to[kept]) = (from[at], to[at]);
            }
            from.truncate(positions.len());
            to.truncate(positions.len());
        }
        let to = Destinations::Wide(SmallVec::from_vec(to));
        if duplicates == Duplicates::Reject
            && let Some(found) = first_duplicate(&to, rows as u64)?
        {
            let position = |at: usize| positions.get(at).copied().unwrap_or(at);
            return Err(ScatterError::DuplicateIndex {
                tuple: position(found.tuple),
                earlier: position(found.earlier),
            });
        }
        Ok(Self { from, to, skipped })
    }
}

/// Returns an error if the two lists have different shapes, or elements that are not integers.
pub(super) fn check_shapes(from: &Indices<'_>, to: &Indices<'_>) -> Result<(), ScatterError> {
    from.integers()?;
    to.integers()?;
    if from.layout().shape() == to.layout().shape() {
        return Ok(());
    }
    Err(ScatterError::MovesShape {
        from: copied(from.layout().shape())?,
        to: copied(to.layout().shape())?,
    })
}

/// Returns the row numbers of a list, and the first number that is out of bounds and whose move is
/// not skipped. The numbers of skipped moves become [`SKIPPED`].
fn read_list(
    list: Integers<'_>,
    rows: usize,
    bounds: Bounds,
) -> Result<(Vec<u64>, Option<Fault>), ScatterError> {
    let mut numbers = with_room(list.layout().checked_elements()?)?;
    let mut fault = None;
    for_index_type!(list.kind(), I => list.for_each::<I>(|position, value| {
        let row = i128::from(value);
        let number = u64::try_from(row).ok().filter(|&number| number < rows as u64);
        let is_skipped = match bounds {
            Bounds::Skip => true,
            Bounds::SkipNegative => row < 0,
            Bounds::Error | Bounds::Clamp => false,
        };
        if number.is_none() && !is_skipped && fault.is_none() {
            fault = Some(Fault { position, row });
        }
        numbers.push(number.unwrap_or(SKIPPED));
    }));
    Ok((numbers, fault))
}

/// Returns the error for the first position at which a number is out of bounds. If both numbers at
/// this position are out of bounds, the error is about `from`.
fn check_faults(from: Option<Fault>, to: Option<Fault>, rows: usize) -> Result<(), ScatterError> {
    let faults = [("from", from), ("to", to)];
    let found = faults
        .into_iter()
        .filter_map(|(list, fault)| Some((list, fault?)));
    let Some((list, Fault { position, row })) = found.min_by_key(|(_, fault)| fault.position)
    else {
        return Ok(());
    };
    Err(ScatterError::RowOutOfBounds {
        list,
        position,
        row,
        rows,
    })
}
