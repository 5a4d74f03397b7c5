//! What the contract says of the values of `indices`: where each one points,
//! and which are refused.

use std::collections::HashMap;

use ndscatter::{Bounds, ScatterError};

/// What an index means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IndexRule {
    /// Whether negative ones count from the end.
    pub(crate) negative: bool,
    pub(crate) bounds: Bounds,
}

impl IndexRule {
    /// What holds where no option is set.
    pub(crate) const DEFAULT: Self = Self {
        negative: true,
        bounds: Bounds::Error,
    };

    /// The position on an axis of `size` elements that `index` comes to.
    pub(crate) fn place(self, index: i128, size: usize) -> Option<usize> {
        let end = i128::try_from(size).expect("sizes fit");
        let from_end = index < 0 && self.negative;
        let index = if from_end { index + end } else { index };
        let inside = (0..end).contains(&index);
        let index = match self.bounds {
            Bounds::Clamp if size > 0 => index.clamp(0, end - 1),
            _ if inside => index,
            _ => return None,
        };
        Some(usize::try_from(index).expect("it is below a usize"))
    }

    /// [`Self::place`] of an index that is no error; `None` drops its tuple.
    pub(crate) fn resolve(self, index: i128, size: usize) -> Option<usize> {
        let place = self.place(index, size);
        let dropped = place.is_none() && self.bounds == Bounds::Skip;
        assert!(place.is_some() || dropped, "{index} is an error: {self:?}");
        place
    }
}

/// A valid axis, counted from the front.
pub(crate) fn resolve_axis(axis: isize, rank: usize) -> usize {
    let axis = i128::try_from(axis).expect("it fits");
    let place = IndexRule::DEFAULT.place(axis, rank);
    place.expect("the axis is in range")
}

/// What the contract refuses in the values of `indices`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusals {
    pub(crate) rule: IndexRule,
    pub(crate) reject_duplicates: bool,
}

impl Refusals {
    /// The error that `count` tuples deserve: the first tuple out of bounds,
    /// by its lowest axis; then the first that repeats an earlier one.
    /// `axes` are the axes that the coordinates address, with their sizes.
    /// `implied` are the coordinates that a tuple has by its position.
    pub(crate) fn first(
        self,
        indices: &[i128],
        count: usize,
        axes: &[(usize, usize)],
        implied: impl Fn(usize) -> Vec<usize>,
    ) -> Option<ScatterError> {
        let coordinates = |tuple: usize| indices[tuple * axes.len()..].iter().zip(axes);
        for tuple in (0..count).filter(|_| self.rule.bounds != Bounds::Skip) {
            for (&index, &(axis, size)) in coordinates(tuple) {
                if self.rule.place(index, size).is_none() {
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
