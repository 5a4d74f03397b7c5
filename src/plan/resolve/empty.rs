//! Checks of lists of tuples that move no element, because windows or repetitions are empty.
//!
//! With stride 0, one index in memory is the index of many tuples. Therefore a list can have more
//! tuples than a loop can visit. This module checks each index in memory once. This module computes
//! all facts about the list from the indices in memory.

use super::coordinate::IndexRules;
use super::tuples::{COPIED_TUPLES, Tuples};
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::operand::indices::Integers;
use crate::operand::{Dims, Layout, unravel};
use crate::plan::form::Form;
use crate::plan::number::Number;
use crate::plan::scale::Scale;

/// Result of the check of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmptyCheck {
    /// Number of tuples, skipped tuples included.
    pub(crate) listed: usize,
    /// Number of tuples that are not skipped.
    pub(crate) applied: usize,
    /// Range of tuples that contains the first duplicate, if there is one: first tuple and number
    /// of tuples.
    pub(crate) duplicate_search: (usize, usize),
}

/// Dims of a list, outermost first.
struct Repeated<'a> {
    /// Number of positions along each dim.
    sizes: &'a [usize],
    /// Number of positions with separate indices in memory along each dim: all positions, or one
    /// position along a dim of stride 0.
    stored: &'a [usize],
}

/// Checks all indices of a list, each index in memory once.
pub(crate) fn check_empty(
    output: &Layout<'_>,
    form: &Form,
    indices: Integers<'_>,
    rules: IndexRules,
    set: InstructionSet,
) -> Result<EmptyCheck, ScatterError> {
    let (first, last) = form.list;
    let strides = indices.layout().all_strides()?;
    let mut stored = Dims::copied(indices.layout().shape())?;
    // If no coordinate of a tuple is read from `indices`, no index can be out of bounds. The check
    // of one tuple then gives the result for all tuples.
    let reads = !form.read().is_empty();
    for (size, &stride) in stored.iter_mut().zip(&*strides).take(last).skip(first) {
        if stride == 0 || !reads {
            *size = (*size).min(1);
        }
    }
    let layout = Layout::of_parts(&stored, &strides);
    let (_, multipliers) = Scale::new(output, form);
    let tuples = Tuples::new(form, multipliers, indices, rules).within(&layout);
    let dims = Repeated {
        sizes: &indices.layout().shape()[first..last],
        stored: &stored[first..last],
    };
    dims.check(&tuples, set, form.indices_each(&stored))
}

impl Repeated<'_> {
    /// Checks all tuples that have separate indices in memory, block by block. Each of these tuples
    /// belongs to `positions` positions in `indices`.
    fn check(
        &self,
        tuples: &Tuples<'_>,
        set: InstructionSet,
        positions: usize,
    ) -> Result<EmptyCheck, ScatterError> {
        let stored: usize = self.stored.iter().product();
        let listed: usize = self.sizes.iter().product();
        let (mut applied, mut first_applied) = (0, None);
        let mut numbers = [0_u64; COPIED_TUPLES];
        for first in (0..stored).step_by(COPIED_TUPLES) {
            let block = &mut numbers[..COPIED_TUPLES.min(stored - first)];
            let piece = (tuples.resolve(set, first, block))
                .map_err(|error| self.rename_tuple(error, positions))?;
            applied += block.len() - piece.skipped;
            let first_here = block.iter().position(|number| number.is_destination());
            first_applied = first_applied.or(first_here.map(|position| first + position));
        }
        Ok(EmptyCheck {
            listed,
            applied: applied * (listed / stored.max(1)),
            duplicate_search: first_applied.map_or((0, 0), |tuple| {
                self.duplicate_search(self.listed_position(tuple), listed)
            }),
        })
    }

    /// Returns the range of tuples that contains the first duplicate, as first tuple and number of
    /// tuples. `first_applied`: position of the first tuple that the bounds rule does not skip.
    /// `listed`: number of all tuples. If one index in memory stands for several tuples, the range
    /// ends at the next tuple that reads the indices of `first_applied`.
    fn duplicate_search(&self, first_applied: usize, listed: usize) -> (usize, usize) {
        let Some(repeated) = self
            .stored
            .iter()
            .zip(self.sizes)
            .rposition(|(stored, size)| stored < size)
        else {
            return (0, listed);
        };
        let step: usize = self.sizes[repeated + 1..].iter().product();
        (first_applied, (step + 1).min(listed - first_applied))
    }

    /// Returns the position of a tuple in the list of all tuples. `stored`: position of the tuple
    /// among the tuples that have separate indices in memory. If several tuples of the list read
    /// these indices, the result is the position of the first of them.
    fn listed_position(&self, stored: usize) -> usize {
        let (mut listed, mut step) = (0, 1);
        let dims = self.stored.iter().zip(self.sizes).rev();
        for ((_, &size), position) in unravel(dims, |&(&stored, _)| stored, stored) {
            listed += position * step;
            step *= size;
        }
        listed
    }

    /// Replaces the tuple in an error by its position in the list of all tuples. Each tuple stands
    /// for `positions` positions in `indices`.
    fn rename_tuple(&self, mut error: ScatterError, positions: usize) -> ScatterError {
        if let ScatterError::IndexOutOfBounds { tuple, .. } = &mut error {
            *tuple = self.listed_position(*tuple / positions) * positions;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::{EmptyCheck, check_empty};
    use crate::error::ScatterError;
    use crate::kernel::InstructionSet;
    use crate::operand::Indices;
    use crate::operand::Layout;
    use crate::operand::TensorView;
    use crate::plan::{Form, IndexRules};
    use crate::reduction::Bounds;

    /// Checks single coordinates that address rows without elements.
    fn check(
        values: &[i64],
        shape: &[usize],
        strides: &[isize],
        bounds: Bounds,
    ) -> Result<EmptyCheck, ScatterError> {
        let view = TensorView::strided(values, 0, shape, strides).expect("inside");
        let form = Form {
            batch_rank: 0,
            tuple_len: 1,
            list: (0, shape.len()),
            coordinates: Form::ALL_EXPLICIT,
        };
        let rules = IndexRules::new(true, bounds);
        let (output, indices) = (Layout::contiguous(&[9, 0]), Indices::from(view));
        let indices = indices.integers().expect("integers");
        check_empty(&output, &form, indices, rules, InstructionSet::best())
    }

    #[test]
    fn an_index_that_stands_for_many_tuples_is_checked_once() {
        let many = 1 << 40;
        let check = |values: &[i64], shape: &[usize], strides: &[isize], bounds| {
            let checked = check(values, shape, strides, bounds);
            checked.map(|checked| (checked.applied, checked.duplicate_search))
        };
        let applied = |applied, duplicate_search| Ok((applied, duplicate_search));
        let all = check(&[3, 4], &[many, 2], &[0, 1], Bounds::Error);
        assert_eq!(
            all,
            applied(2 * many, (0, 3)),
            "tuple 2 is a duplicate of tuple 0"
        );
        let all = check(&[3, 4], &[2, many], &[1, 0], Bounds::Error);
        assert_eq!(all, applied(2 * many, (0, 2)), "tuple 1 repeats tuple 0");
        let all = check(&[3, 4], &[2, 1], &[1, 0], Bounds::Error);
        assert_eq!(all, applied(2, (0, 2)), "nothing repeats");
        let some = check(&[9, 4], &[2, many], &[1, 0], Bounds::Skip);
        assert_eq!(
            some,
            applied(many, (many, 2)),
            "the first tuple with index 4 is far behind"
        );
    }

    #[test]
    fn errors_name_the_tuple_of_the_whole_list() {
        let wrong = |tuple, index| {
            Err(ScatterError::IndexOutOfBounds {
                tuple,
                axis: 0,
                index,
                size: 9,
            })
        };
        let got = check(&[3, 9], &[2, 1 << 40], &[1, 0], Bounds::Error);
        assert_eq!(got, wrong(1 << 40, 9), "after the first index");
        let got = check(&[3, -10], &[5, 2, 7], &[0, 1, 0], Bounds::Error);
        assert_eq!(got, wrong(7, -10), "in the middle");
    }
}
