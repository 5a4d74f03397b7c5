//! What validation learns in passing, piece by piece.

use crate::plan::number::Number;

/// Numbers that are looked at together: their breaks are counted in 32 bits,
/// as wide as most numbers are, which vector loops like.
const RUN: usize = 1 << 16;

/// What validation learns in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Each destination is greater than the one before: all are unique.
    pub(crate) increasing: bool,
    /// None is less than the one before: equal ones stand together.
    pub(crate) ordered: bool,
    /// How often a destination is not the successor of the one before.
    pub(crate) breaks: usize,
}

/// What was learnt from a piece of the list of tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    first: u64,
    last: u64,
    /// What is known once the last piece has been taken in.
    pub(crate) facts: Facts,
    /// Tuples without a destination; with any, the facts say nothing.
    pub(crate) skipped: usize,
}

impl Piece {
    /// Of no tuples; any number follows it in order.
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

    fn is_empty(&self) -> bool {
        self.last == u64::MAX
    }

    /// Takes in the numbers that follow.
    #[inline(always)] // Into callers that are compiled for several instruction sets.
    pub(crate) fn extend<N: Number>(&mut self, numbers: &[N]) {
        for run in numbers.chunks(RUN) {
            self.join(&Self::of(run));
        }
    }

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

    /// Takes in the piece that follows.
    pub(crate) fn join(&mut self, next: &Self) {
        let skipped = self.skipped + next.skipped;
        if self.is_empty() {
            *self = *next;
        } else if !next.is_empty() {
            self.follow(next);
        }
        self.skipped = skipped;
    }

    fn follow(&mut self, next: &Self) {
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

    /// The facts of a list that is taken in in two pieces, cut anywhere.
    #[test]
    fn facts_do_not_depend_on_where_a_list_is_cut() {
        let cases: [(&[u32], bool, bool, usize); 6] = [
            (&[1, 2, 3, 4], true, true, 0),
            (&[1, 2, 4, 5], true, true, 1),
            // A repeat, which a cut may fall on.
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
