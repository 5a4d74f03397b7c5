//! Conversion of index tuples to destination numbers.
//!
//! In the plan, only this module and its submodules are generic over the integer types of indices.

mod blocks;
mod coordinate;
mod empty;
mod expanded;
mod piece;
mod sequences;
mod slots;
#[cfg(test)]
mod tests;
mod tuples;

pub(crate) use self::blocks::Block;
pub(crate) use self::coordinate::IndexRules;
pub(crate) use self::empty::{EmptyCheck, check_empty};
pub(crate) use self::expanded::{is_expanded_along, rows_along};
pub(crate) use self::piece::{Facts, Piece};
pub(crate) use self::sequences::resolve_sequences;
pub(crate) use self::slots::SlotAxis;
pub(crate) use self::tuples::{SHORT_LIST, Tuples};
