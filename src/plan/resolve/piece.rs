//! Facts about the order of a list of destination numbers (for example, whether the numbers
//! increase). The facts are computed piece by piece while the indices are validated.
//!
//! This module reads only destination numbers. This module does not depend on how destination
//! numbers are computed or used.

use crate::plan::number::Number;

/// Maximum number of destination numbers that the loop of one call of [`Piece::of`] reads. The loop
/// counts breaks ([`Facts::breaks`]) in 32 bits, and this maximum prevents an overflow of the
/// counter. Most destination numbers also have 32 bits, so the compiler can vectorise the loop
/// without conversions between widths.
const RUN: usize = 1 << 16;

/// Facts about the order of a list of destination numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Whether each destination number is greater than the number before it. If true, all
    /// destinations are distinct.
    pub(crate) increasing: bool,
    /// Whether no destination number is less than the number before it. If true, equal destination
    /// numbers are adjacent.
    pub(crate) ordered: bool,
    /// Number of positions, except the first position of the list, where a destination number is
    /// not the number before it plus 1.
    pub(crate) breaks: usize,
}

/// Facts about a piece of the list of tuples (a range of consecutive tuples).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// First destination number.
    first: u64,
    /// Last destination number. `u64::MAX` if the piece is empty.
    last: u64,
    /// Facts about all destination numbers of the piece.
    pub(crate) facts: Facts,
    /// Number of skipped tuples of the piece. If this number is not 0, `facts` has no meaning and
    /// must not be used.
    pub(crate) skipped: usize,
}

impl Piece {
    /// A piece without tuples.
    pub(crate) const EMPTY: Self = Self {
        first: 0,
        last: u64::MAX,
        facts: Facts {
            increasing: true,
            ordered: true,
            breaks: 0,
        },
        skipped: 0,
    };

    /// Whether the piece has no tuples. Also true if destination numbers have 64 bits and the last
    /// tuple of the piece is skipped, but then `facts` has no meaning.
    fn is_empty(&self) -> bool {
        self.last == u64::MAX
    }

    /// Appends `numbers`, the destination numbers that follow the piece in the list, and updates
    /// the facts about the piece. `skipped` stays unchanged: the caller counts skipped tuples.
    #[inline(always)] // Callers are compiled for several instruction sets.
    pub(crate) fn extend<N: Number>(&mut self, numbers: &[N]) {
        for run in numbers.chunks(RUN) {
            self.join(&Self::of(run));
        }
    }

    /// Returns the piece of the list that has the destination numbers `numbers`, at most [`RUN`].
    /// The returned value stores the first number, the last number and the [`Facts`] about all
    /// numbers.
    #[inline(always)]
    fn of<N: Number>(numbers: &[N]) -> Self {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return Self::EMPTY;
        };
        let (mut increasing, mut ordered) = (true, true);
        let mut breaks = 0_u32;
        for (&before, &after) in numbers.iter().zip(&numbers[1..]) {
            increasing &= before < after;
            ordered &= before <= after;
            breaks += u32::from(!after.follows(before));
        }
        Self {
            first: first.get(),
            last: last.get(),
            facts: Facts {
                increasing,
                ordered,
                breaks: breaks as usize,
            },
            skipped: 0,
        }
    }

    /// Extends the piece `self` by the piece `next`, which follows `self` in the list. `self`,
    /// `next` or both may be empty.
    pub(crate) fn join(&mut self, next: &Self) {
        let skipped = self.skipped + next.skipped;
        if self.is_empty() {
            *self = *next;
        } else if !next.is_empty() {
            self.append(next);
        }
        self.skipped = skipped;
    }

    /// Extends the piece `self` by the piece `next`, which follows `self` in the list. `self` and
    /// `next` must not be empty. `skipped` stays unchanged.
    fn append(&mut self, next: &Self) {
        self.facts.increasing &= next.facts.increasing && self.last < next.first;
        self.facts.ordered &= next.facts.ordered && self.last <= next.first;
        self.facts.breaks +=
            next.facts.breaks + usize::from(self.last.wrapping_add(1) != next.first);
        self.last = next.last;
    }
}

#[cfg(test)]
mod tests {
    use super::Piece;

    /// Cuts each list into two pieces, once at every position, and joins the two pieces again. The
    /// facts about the joined pieces must be equal to the facts about the whole list.
    #[test]
    fn facts_do_not_depend_on_where_a_list_is_cut() {
        let cases: [(&[u32], bool, bool, usize); 6] = [
            (&[1, 2, 3, 4], true, true, 0),
            (&[1, 2, 4, 5], true, true, 1),
            // The number 2 occurs twice. The cut at position 2 puts the two equal numbers into
            // different pieces.
            (&[1, 2, 2, 3], false, true, 1),
            (&[1, 3, 2, 4], false, false, 3),
            (&[4, 3, 2, 1], false, false, 3),
            (&[7], true, true, 0),
        ];
        for (numbers, increasing, ordered, breaks) in cases {
            for cut in 0..=numbers.len() {
                let mut whole = Piece::EMPTY;
                whole.extend(&numbers[..cut]);
                let mut rest = Piece::EMPTY;
                rest.extend(&numbers[cut..]);
                whole.join(&rest);
                let facts = whole.facts;
                assert_eq!(facts.increasing, increasing, "{numbers:?} cut at {cut}");
                assert_eq!(facts.ordered, ordered, "{numbers:?} cut at {cut}");
                assert_eq!(facts.breaks, breaks, "{numbers:?} cut at {cut}");
            }
        }
    }
}
