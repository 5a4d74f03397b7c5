//! What validation learns in passing, piece by piece.

use crate::plan::Facts;
use crate::plan::destinations::Number;

/// What was learnt from a piece of the list of tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    first: u64,
    last: u64,
    facts: Facts,
}

impl Piece {
    /// Of no tuples; any number follows it in order.
    pub(crate) const EMPTY: Self = Self {
        first: 0,
        last: u64::MAX,
        facts: Facts {
            increasing: true,
            breaks: 0,
        },
    };

    fn is_empty(&self) -> bool {
        self.last == u64::MAX
    }

    pub(super) fn extend<N: Number>(&mut self, numbers: &[N]) {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return;
        };
        let mut increasing = true;
        let mut breaks = 0;
        for (before, after) in numbers.iter().zip(&numbers[1..]) {
            increasing &= before < after;
            breaks += usize::from(before.get() + 1 != after.get());
        }
        self.join(&Self {
            first: first.get(),
            last: last.get(),
            facts: Facts { increasing, breaks },
        });
    }

    /// Takes in the piece that follows.
    pub(crate) fn join(&mut self, next: &Self) {
        if next.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = *next;
            return;
        }
        self.facts.increasing &= next.facts.increasing && self.last < next.first;
        self.facts.breaks += next.facts.breaks + usize::from(self.last + 1 != next.first);
        self.last = next.last;
    }

    /// What is known once the last piece has been taken in.
    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }
}
