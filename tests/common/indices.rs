//! The contract's rules for the values of `indices`: the position of each index, and the errors.

use std::collections::HashMap;

use ndscatter::{Bounds, ScatterError};

/// The options that decide the position of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IndexRule {
    /// Whether negative indices count from the end.
    pub(crate) negative: bool,
    pub(crate) bounds: Bounds,
}

impl IndexRule {
    /// The rule without any option set.
    pub(crate) const DEFAULT: Self = Self {
        negative: true,
        bounds: Bounds::Error,
    };

    /// Returns the position of `index` on an axis of `size` elements. `None`: the index is out of
    /// bounds.
    pub(crate) fn place(self, index: i128, size: usize) -> Option<usize> {
        let end = i128::try_from(size).expect("the size fits i128");
        let from_end = index < 0 && self.negative;
        let index = if from_end { index + end } else { index };
        let inside = (0..end).contains(&index);
        let index = match self.bounds {
            Bounds::Clamp if size > 0 => index.clamp(0, end - 1),
            _ if inside => index,
            _ => return None,
        };
        Some(usize::try_from(index).expect("the position is below `size`"))
    }

    /// Returns [`Self::place`] of an index that is not an error. `None`: its tuple is skipped.
    pub(crate) fn resolve(self, index: i128, size: usize) -> Option<usize> {
        let place = self.place(index, size);
        let dropped = place.is_none() && self.drops(index);
        assert!(place.is_some() || dropped, "{index} is an error: {self:?}");
        place
    }

    /// Whether the tuple of `index`, which is out of bounds, is skipped.
    pub(super) fn drops(self, index: i128) -> bool {
        match self.bounds {
            Bounds::Error | Bounds::Clamp => false,
            Bounds::Skip => true,
            Bounds::SkipNegative => index < 0,
        }
    }
}

/// Converts a valid axis to an axis counted from the front.
pub(crate) fn resolve_axis(axis: isize, rank: usize) -> usize {
    let axis = i128::try_from(axis).expect("the axis fits i128");
    let place = IndexRule::DEFAULT.place(axis, rank);
    place.expect("the axis is in range")
}

/// The rules by which values of `indices` are errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusals {
    pub(crate) rule: IndexRule,
    pub(crate) reject_duplicates: bool,
}

impl Refusals {
    /// Returns the error for the first `count` tuples, if there is one. An index out of bounds
    /// comes before a duplicate. It is reported for the first such tuple, at its lowest axis. A
    /// duplicate is reported for the first tuple that repeats an earlier one.
    ///
    /// `axes` are the axes that the coordinates address, with their sizes. `implied(tuple)` returns
    /// the coordinates that follow from the tuple's position.
    pub(crate) fn first(
        self,
        indices: &[i128],
        count: usize,
        axes: &[(usize, usize)],
        implied: impl Fn(usize) -> Vec<usize>,
    ) -> Option<ScatterError> {
        let coordinates = |tuple: usize| indices[tuple * axes.len()..].iter().zip(axes);
        for tuple in 0..count {
            for (&index, &(axis, size)) in coordinates(tuple) {
                if self.rule.place(index, size).is_none() && !self.rule.drops(index) {
                    return Some(ScatterError::IndexOutOfBounds {
                        tuple,
                        axis,
                        index,
                        size,
                    });
                }
            }
        }
        let mut last = HashMap::new();
        for tuple in (0..count).filter(|_| self.reject_duplicates) {
            let places =
                coordinates(tuple).map(|(&index, &(_, size))| self.rule.place(index, size));
            let Some(places) = places.collect::<Option<Vec<_>>>() else {
                continue;
            };
            if let Some(earlier) = last.insert((implied(tuple), places), tuple) {
                return Some(ScatterError::DuplicateIndex { tuple, earlier });
            }
        }
        None
    }
}
