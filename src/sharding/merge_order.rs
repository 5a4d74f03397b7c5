//! The order in which the owner of a part applies the entries that it has received.
//!
//! This module knows counts. It does not know destinations.

use std::ops::Range;

use super::split::starts;
use crate::error::ScatterError;
use crate::memory::with_room;

/// The order in which the owner of a part applies the entries of all senders. The entries of sender
/// 0 come first, in their order. The entries of sender 1 follow, and so on.
///
/// An owner that applies the entries in this order gets the bits of one loop over the tuples of
/// sender 0, then the tuples of sender 1, and so on.
///
/// # Examples
///
/// ```
/// use ndscatter::MergeOrder;
///
/// // The owner has received 2 entries from sender 0, none from sender 1, and 3 from sender 2.
/// let order = MergeOrder::new(&[2, 0, 3])?;
/// assert_eq!(order.len(), 5);
/// assert_eq!(order.range(2), Some(2..5));
/// // The entry at position 3 is entry 1 of sender 2.
/// assert_eq!(order.source(3), Some((2, 1)));
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct MergeOrder {
    /// Position of the first entry of each sender, and the number of all entries.
    starts: Vec<usize>,
}

impl MergeOrder {
    /// Returns the order for owners that receive `counts[s]` entries from each sender `s`.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::ShapeOverflow`] if the number of all entries is above `isize::MAX`.
    /// - [`ScatterError::OutOfMemory`].
    pub fn new(counts: &[usize]) -> Result<Self, ScatterError> {
        let len = (counts.iter()).try_fold(0_usize, |sum, &count| sum.checked_add(count));
        let Some(len) = len.filter(|&len| isize::try_from(len).is_ok()) else {
            return Err(ScatterError::with_facts(|| {
                Ok(ScatterError::ShapeOverflow {
                    shape: crate::memory::copied(counts)?,
                })
            }));
        };
        let mut all = with_room(counts.len() + 1)?;
        all.extend(starts(counts).chain([len]));
        Ok(Self { starts: all })
    }

    /// Returns the number of senders.
    pub fn senders(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of entries of all senders.
    pub fn len(&self) -> usize {
        self.starts[self.senders()]
    }

    /// Whether no sender has an entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the positions of the entries of sender `sender`. Returns `None` if there is no such
    /// sender.
    pub fn range(&self, sender: usize) -> Option<Range<usize>> {
        let end = self.starts.get(sender.checked_add(1)?)?;
        Some(self.starts[sender]..*end)
    }

    /// Returns the sender of the entry at `position`, and the position of the entry among the
    /// entries of this sender. Returns `None` if there is no such entry.
    pub fn source(&self, position: usize) -> Option<(usize, usize)> {
        (position < self.len()).then(|| {
            let sender = self.starts.partition_point(|&start| start <= position) - 1;
            (sender, position - self.starts[sender])
        })
    }
}
