//! Scatters and gathers of a table whose rows are divided among several owners, for example the
//! processes of a cluster.
//!
//! A [`Sharding`] says which part of the table has which row. A [`ShardedPlan`] splits the tuples of
//! one sender by the part of their destination. A [`MergeOrder`] describes the tuples that the owner
//! of a part has received from all senders.
//!
//! This module knows destination numbers and the order of tuples. It knows nothing of element types,
//! and nothing of the transport between processes.

mod distinct;
mod merge_order;
mod owners;
mod sharded_plan;
mod split;

pub use merge_order::MergeOrder;
pub use sharded_plan::{Packing, ShardedPlan};

use crate::error::ScatterError;
use crate::memory::copied;

/// Division of the rows of a table among parts. Each row has one owner: the part that stores the
/// row.
///
/// # Examples
///
/// ```
/// use ndscatter::Sharding;
///
/// // Two parts share seven rows: rows 0 to 3 and rows 4 to 6.
/// let sharding = Sharding::blocks(2)?;
/// assert_eq!(sharding.rows_of(0, 7), 4);
/// assert_eq!(sharding.rows_of(1, 7), 3);
/// // Row 5 is row 1 of part 1.
/// assert_eq!(sharding.owner(5, 7), Some((1, 1)));
/// assert_eq!(sharding.row(1, 1, 7), Some(5));
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Sharding {
    parts: usize,
    rule: Rule,
}

/// Rule that gives the owner of a row.
#[derive(Debug, PartialEq, Eq)]
enum Rule {
    Blocks,
    Modulo,
    /// The first row of each part, in ascending order. The first entry is 0.
    Starts(Vec<usize>),
}

/// Constructors.
impl Sharding {
    /// Divides the rows into `parts` blocks of consecutive rows. Every block has
    /// `rows.div_ceil(parts)` rows. The last blocks may have fewer rows, or none. This is the
    /// division of `torch.chunk`, and of a `DTensor` with the placement `Shard(0)`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::PartCount`] if `parts` is 0 or above `u32::MAX`.
    pub fn blocks(parts: usize) -> Result<Self, ScatterError> {
        Self::new(parts, Rule::Blocks)
    }

    /// Gives row `r` to part `r % parts`. Row `r` is row `r / parts` of this part.
    ///
    /// # Errors
    ///
    /// [`ScatterError::PartCount`] if `parts` is 0 or above `u32::MAX`.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::Sharding;
    ///
    /// let sharding = Sharding::modulo(3)?;
    /// assert_eq!(sharding.owner(5, 7), Some((2, 1)));
    /// assert_eq!(sharding.rows_of(2, 7), 2);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn modulo(parts: usize) -> Result<Self, ScatterError> {
        Self::new(parts, Rule::Modulo)
    }

    /// Gives the rows from `starts[p]` to `starts[p + 1] - 1` to part `p`. The last part has all
    /// rows from its start to the end of the table. A part whose start is the start of the next
    /// part, or is past the end of the table, has no rows.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::PartCount`] if `starts` is empty or has more than `u32::MAX` entries.
    /// - [`ScatterError::PartStart`] if the first start is not 0, or if a start is below the start
    ///   before it.
    /// - [`ScatterError::OutOfMemory`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::Sharding;
    ///
    /// let sharding = Sharding::starts(&[0, 2, 2])?;
    /// assert_eq!(sharding.owner(1, 7), Some((0, 1)));
    /// assert_eq!(sharding.owner(6, 7), Some((2, 4)));
    /// assert_eq!(sharding.rows_of(1, 7), 0);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn starts(starts: &[usize]) -> Result<Self, ScatterError> {
        let mut least = 0;
        for (part, &start) in starts.iter().enumerate() {
            if start < least || (part == 0 && start > 0) {
                return Err(ScatterError::PartStart { part, start, least });
            }
            least = start;
        }
        Self::new(starts.len(), Rule::Starts(copied(starts)?))
    }

    fn new(parts: usize, rule: Rule) -> Result<Self, ScatterError> {
        // The owners of tuples are stored in 32 bits.
        if parts == 0 || u32::try_from(parts).is_err() {
            return Err(ScatterError::PartCount { parts });
        }
        Ok(Self { parts, rule })
    }
}

/// Rows and their owners.
impl Sharding {
    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the number of rows that part `part` has of a table of `rows` rows. The number is 0
    /// if there is no such part.
    pub fn rows_of(&self, part: usize, rows: usize) -> usize {
        if part >= self.parts {
            return 0;
        }
        match &self.rule {
            Rule::Blocks => {
                let block = rows.div_ceil(self.parts);
                rows.saturating_sub(part.saturating_mul(block)).min(block)
            }
            Rule::Modulo => rows.saturating_sub(part).div_ceil(self.parts),
            Rule::Starts(starts) => {
                let end = starts.get(part + 1).map_or(rows, |&end| end.min(rows));
                end.saturating_sub(starts[part])
            }
        }
    }

    /// Returns the part that has row `row` of a table of `rows` rows, and the position of the row in
    /// this part. Returns `None` if the table has no such row.
    pub fn owner(&self, row: usize, rows: usize) -> Option<(usize, usize)> {
        (row < rows).then(|| match &self.rule {
            Rule::Blocks => {
                let block = rows.div_ceil(self.parts);
                (row / block, row % block)
            }
            Rule::Modulo => (row % self.parts, row / self.parts),
            Rule::Starts(starts) => {
                let part = starts.partition_point(|&start| start <= row) - 1;
                (part, row - starts[part])
            }
        })
    }

    /// Returns the row of the table that is row `local` of part `part`. `rows` is the number of rows
    /// of the table. Returns `None` if the part has no such row.
    pub fn row(&self, part: usize, local: usize, rows: usize) -> Option<usize> {
        (local < self.rows_of(part, rows)).then(|| match &self.rule {
            Rule::Blocks => part * rows.div_ceil(self.parts) + local,
            Rule::Modulo => local * self.parts + part,
            Rule::Starts(starts) => starts[part] + local,
        })
    }
}
