//! From index tuples to destination numbers.
//!
//! The one place where the integer types of indices meet code.

mod block;
mod contiguous;
mod distinct;
mod expanded;
mod few;
mod listed;
mod piece;
mod sequences;

pub(crate) use self::block::IndexRules;
pub(crate) use self::contiguous::{Block, Contiguous};
pub(crate) use self::distinct::{Checked, Distinct};
pub(crate) use self::expanded::{is_expanded_along, rows_along};
pub(crate) use self::few::{FEW, resolve_few};
pub(crate) use self::listed::Resolver;
pub(crate) use self::piece::{Facts, Piece};
pub(crate) use self::sequences::resolve_sequences;
