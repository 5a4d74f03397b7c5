//! Lists of tuples that move nothing, as their windows are empty.
//!
//! There may be more of them than one could count to: of an index that stands
//! for many tuples by stride 0, one is checked. What is said of such a list
//! follows from the indices that lie in memory.

use super::coordinate::IndexRules;
use super::tuples::{COPIED_TUPLES, Tuples};
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::operand::indices::Integers;
use crate::operand::{Dims, Layout, unravel};
use crate::plan::form::Form;
use crate::plan::number::Number;
use crate::plan::scale::Scale;

/// What was learnt from the indices of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmptyCheck {
    pub(crate) listed: usize,
    /// Tuples that are not skipped.
    pub(crate) applied: usize,
    /// From this tuple on, so many have the first duplicate among them, if there is
    /// one.
    pub(crate) telling: (usize, usize),
}

/// The dims of a list, outermost first: how long each is, and how many positions along it
/// have separate indices (all, or one).
struct Repeated<'a> {
    sizes: &'a [usize],
    own: &'a [usize],
}

/// Checks all indices of a list, each that lies in memory once.
pub(crate) fn check_empty(
    output: &Layout<'_>,
    form: &Form,
    indices: Integers<'_>,
    rules: IndexRules,
    set: InstructionSet,
) -> Result<EmptyCheck, ScatterError> {
    let (first, last) = form.list;
    let strides = indices.layout().all_strides()?;
    let mut own = Dims::copied(indices.layout().shape())?;
    // Tuples without coordinates that are read are all the same.
    let reads = !form.read().is_empty();
    for (size, &stride) in own.iter_mut().zip(&*strides).take(last).skip(first) {
        if stride == 0 || !reads {
            *size = (*size).min(1);
        }
    }
    let layout = Layout::of_parts(&own, &strides);
    let (_, multipliers) = Scale::new(output, form);
    let tuples = Tuples::new(form, multipliers, indices, rules).within(&layout);
    let dims = Repeated {
        sizes: &indices.layout().shape()[first..last],
        own: &own[first..last],
    };
    dims.check(&tuples, set, form.indices_each(&own))
}

impl Repeated<'_> {
    /// Numbers all tuples that have separate indices, block by block. Each tuple stands for
    /// so many positions in `indices`.
    fn check(
        &self,
        tuples: &Tuples<'_>,
        set: InstructionSet,
        positions: usize,
    ) -> Result<EmptyCheck, ScatterError> {
        let own: usize = self.own.iter().product();
        let listed: usize = self.sizes.iter().product();
        let (mut applied, mut first_applied) = (0, None);
        let mut numbers = [0_u64; COPIED_TUPLES];
        for first in (0..own).step_by(COPIED_TUPLES) {
            let block = &mut numbers[..COPIED_TUPLES.min(own - first)];
            let piece = (tuples.resolve(set, first, block))
                .map_err(|error| self.named(error, positions))?;
            applied += block.len() - piece.skipped;
            let first_here = block.iter().position(|number| number.is_destination());
            first_applied = first_applied.or(first_here.map(|position| first + position));
        }
        Ok(EmptyCheck {
            listed,
            applied: applied * (listed / own.max(1)),
            telling: first_applied.map_or((0, 0), |tuple| self.telling(self.listed(tuple), listed)),
        })
    }

    /// Tuples that show a duplicate of the first one that is applied, where an index
    /// stands for several tuples. Those before it are skipped.
    fn telling(&self, first_applied: usize, listed: usize) -> (usize, usize) {
        let Some(repeated) = self
            .own
            .iter()
            .zip(self.sizes)
            .rposition(|(own, size)| own < size)
        else {
            return (0, listed);
        };
        let step: usize = self.sizes[repeated + 1..].iter().product();
        (first_applied, (step + 1).min(listed - first_applied))
    }

    /// The position in the whole list of the tuple that is number `own` here:
    /// the first of those that have its indices.
    fn listed(&self, own: usize) -> usize {
        let (mut listed, mut step) = (0, 1);
        let dims = self.own.iter().zip(self.sizes).rev();
        for ((_, &size), position) in unravel(dims, |&(&own, _)| own, own) {
            listed += position * step;
            step *= size;
        }
        listed
    }

    /// An error that names the tuple by its position in the whole list, where each stands
    /// for so many positions in `indices`.
    fn named(&self, mut error: ScatterError, positions: usize) -> ScatterError {
        if let ScatterError::IndexOutOfBounds { tuple, .. } = &mut error {
            *tuple = self.listed(*tuple / positions) * positions;
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

    /// Single coordinates of rows without elements.
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
            checked.map(|checked| (checked.applied, checked.telling))
        };
        let applied = |applied, telling| Ok((applied, telling));
        let all = check(&[3, 4], &[many, 2], &[0, 1], Bounds::Error);
        assert_eq!(
            all,
            applied(2 * many, (0, 3)),
            "tuple 2 is a duplicate of tuple 0"
        );
        let all = check(&[3, 4], &[2, many], &[1, 0], Bounds::Error);
        assert_eq!(all, applied(2 * many, (0, 2)), "tuple 1 is one of tuple 0");
        let all = check(&[3, 4], &[2, 1], &[1, 0], Bounds::Error);
        assert_eq!(all, applied(2, (0, 2)), "nothing stands for several");
        let some = check(&[9, 4], &[2, many], &[1, 0], Bounds::Skip);
        assert_eq!(
            some,
            applied(many, (many, 2)),
            "the first of 4 is far behind"
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
        assert_eq!(got, wrong(1 << 40, 9), "behind all of the first");
        let got = check(&[3, -10], &[5, 2, 7], &[0, 1, 0], Bounds::Error);
        assert_eq!(got, wrong(7, -10), "in the middle");
    }
}
