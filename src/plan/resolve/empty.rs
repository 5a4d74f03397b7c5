//! Check of the indices of a call that moves no element, because its windows, its repetitions or
//! its output are empty.
//!
//! If a dim of `indices` has stride 0, one value in memory is the index of many tuples. Such a list
//! can have more tuples than a loop can visit. The loops of this module therefore visit only the
//! stored tuples: one tuple for each position along the other dims of the list. The results for the
//! whole list are computed from the results for the stored tuples.

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
    /// Number of all tuples of the list, skipped tuples included.
    pub(crate) listed: usize,
    /// Number of tuples that are not skipped.
    pub(crate) applied: usize,
    /// Range of tuples that contains the first duplicate and the earlier tuple with the same
    /// destination, if the list has a duplicate. The values are the first tuple of the range and
    /// the number of tuples in the range.
    pub(crate) duplicate_search: (usize, usize),
}

/// Dims of a list of tuples, outermost first.
struct Repeated<'a> {
    /// Number of positions along each dim of the list.
    sizes: &'a [usize],
    /// Number of positions along each dim that the check visits: one position along a dim of stride
    /// 0, all positions along every other dim. If no coordinate is read from `indices`, one
    /// position along every dim. A dim of size 0 has no position. The tuples at these positions are
    /// the stored tuples.
    stored: &'a [usize],
}

/// Checks all indices of a list. An index that serves several tuples along a dim of stride 0 is
/// checked once.
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
    // If no coordinate is read from `indices`, no coordinate can be out of bounds. The result of
    // the check is then equal for all tuples, so one tuple is checked.
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
    /// Checks all stored tuples, block by block. `positions`: number of elements of `indices` that
    /// belong to one tuple ([`Form::indices_each`]).
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

    /// Computes [`EmptyCheck::duplicate_search`]. `first_applied`: position in the list of the
    /// first tuple that the bounds rule does not skip. `listed`: number of all tuples. If no dim
    /// has fewer stored positions than positions, the range is the whole list. Otherwise several
    /// tuples get their coordinates from the same elements of `indices`. The range then begins with
    /// the tuple `first_applied`, and ends with the next tuple that gets its coordinates from the
    /// same elements of `indices` as the tuple `first_applied`. That next tuple is a duplicate,
    /// unless its position along a batch dim is one of its coordinates. Only gathers have batch
    /// dims with empty windows, and a gather has no duplicates.
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

    /// Returns the position of a stored tuple in the list of all tuples. `stored`: position of the
    /// tuple among the stored tuples. If several tuples of the list get their coordinates from the
    /// same elements of `indices` as this stored tuple, the result is the position of the first of
    /// these tuples.
    fn listed_position(&self, stored: usize) -> usize {
        let (mut listed, mut step) = (0, 1);
        let dims = self.stored.iter().zip(self.sizes).rev();
        for ((_, &size), position) in unravel(dims, |&(&stored, _)| stored, stored) {
            listed += position * step;
            step *= size;
        }
        listed
    }

    /// Converts the tuple number of an out-of-bounds error from a number among the stored tuples to
    /// a number in the whole list. The error names a tuple by the position of its first element in
    /// `indices`, and each tuple has `positions` elements.
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

    /// Checks a list of tuples with one coordinate each. The output has 9 rows of 0 elements.
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
