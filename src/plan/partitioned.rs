//! Tuples brought together by ranges of their destinations, for plans that run
//! more than once.
//!
//! Knows what is kept. Knows nothing of how it is made or used.

use std::ops::Range;
use std::sync::OnceLock;

/// The tuples of a plan, in order within each range of destination numbers.
#[derive(Debug)]
pub(crate) struct Partitioned<N> {
    /// A range has `1 << shift` numbers.
    pub(crate) shift: u32,
    /// Where the tuples of each range lie.
    pub(crate) ranges: Vec<Range<usize>>,
    /// The destination number at each place.
    pub(crate) numbers: Vec<N>,
    pub(crate) order: Order,
}

/// Which tuple lies where.
#[derive(Debug)]
pub(crate) enum Order {
    /// The place of each tuple: values are moved there before they are applied.
    Places(Vec<u32>),
    /// The tuple at each place.
    Tuples(Vec<u32>),
}

/// Those of a plan, by the width of its numbers; made by the first run that
/// wants them.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    pub(crate) narrow: OnceLock<Partitioned<u32>>,
    pub(crate) wide: OnceLock<Partitioned<u64>>,
}
