//! Lists of tuples that move nothing, as their windows are empty.
//!
//! There may be more of them than one could count to: of an index that stands
//! for many tuples by stride 0, one is checked. What is said of such a list
//! follows from the indices that lie in memory.

use super::block::IndexRules;
use super::listed::{BLOCK, Resolver};
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::operand::indices::Integers;
use crate::operand::{Dims, Layout, unravel};
use crate::plan::destinations::Number;
use crate::plan::form::Form;

/// The tuples of a list that have indices of their own.
pub(crate) struct Distinct<'a> {
    /// Of these alone.
    resolver: Resolver<'a>,
    /// The dims of the list, outermost first.
    dims: Dims<Repeated>,
    /// Positions in `indices` that one tuple stands for.
    indices_each: usize,
}

/// A dim of the list.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    size: usize,
    /// Positions along it that have indices of their own: all, or one.
    own: usize,
}

/// What was learnt from the indices of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) listed: usize,
    /// Tuples that are not skipped.
    pub(crate) applied: usize,
    /// From this tuple on, so many have the first duplicate among them, if there is
    /// one.
    pub(crate) telling: (usize, usize),
}

impl<'a> Distinct<'a> {
    pub(crate) fn new(
        output: &Layout<'_>,
        form: &Form,
        indices: Integers<'a>,
        rules: IndexRules,
    ) -> Result<Self, ScatterError> {
        let layout = indices.layout();
        let strides = layout.all_strides()?;
        // Tuples without coordinates of their own are all the same.
        let reads = !form.read().is_empty();
        let own = |size: usize, stride| {
            if stride == 0 || !reads {
                size.min(1)
            } else {
                size
            }
        };
        let (first, last) = form.list;
        let dims = (first..last).map(|dim| Repeated {
            size: layout.shape()[dim],
            own: own(layout.shape()[dim], strides[dim]),
        });
        let dims = Dims::collect(last - first, dims)?;
        let (resolver, _) = Resolver::of_positions(output, form, indices, rules, own)?;
        Ok(Self {
            resolver,
            dims,
            indices_each: form.indices_each(layout.shape()),
        })
    }

    /// Checks all indices, once each.
    pub(crate) fn check(&self, set: InstructionSet) -> Result<Checked, ScatterError> {
        let own: usize = self.dims.iter().map(|dim| dim.own).product();
        let listed: usize = self.dims.iter().map(|dim| dim.size).product();
        let (mut applied, mut first_applied) = (0, None);
        let mut numbers = [0_u64; BLOCK];
        for first in (0..own).step_by(BLOCK) {
            let block = &mut numbers[..BLOCK.min(own - first)];
            let checked = self.resolver.resolve(set, first, block);
            checked.map_err(|error| self.named(error))?;
            let mut applied_here = (block.iter().enumerate())
                .filter(|&(_, &number)| number != u64::SKIPPED)
                .map(|(position, _)| first + position);
            if let Some(tuple) = applied_here.next() {
                first_applied.get_or_insert(tuple);
                applied += 1 + applied_here.count();
            }
        }
        Ok(Checked {
            listed,
            applied: applied * (listed / own.max(1)),
            telling: first_applied.map_or((0, 0), |tuple| self.telling(self.listed(tuple), listed)),
        })
    }

    /// Tuples that show a duplicate of the first one that is applied, where an index
    /// stands for several tuples. Those before it are skipped.
    fn telling(&self, first_applied: usize, listed: usize) -> (usize, usize) {
        let repeated = self.dims.iter().rposition(|dim| dim.own < dim.size);
        let Some(repeated) = repeated else {
            return (0, listed);
        };
        let behind = self.dims[repeated + 1..].iter();
        let step: usize = behind.map(|dim| dim.size).product();
        (first_applied, (step + 1).min(listed - first_applied))
    }

    /// The position in the whole list of the tuple that is number `own` here:
    /// the first of those that have its indices.
    fn listed(&self, own: usize) -> usize {
        let (mut listed, mut step) = (0, 1);
        for (dim, position) in unravel(self.dims.iter().rev(), |dim| dim.own, own) {
            listed += position * step;
            step *= dim.size;
        }
        listed
    }

    /// An error that names the tuple by its position in the whole list.
    fn named(&self, error: ScatterError) -> ScatterError {
        match error {
            ScatterError::IndexOutOfBounds {
                tuple,
                axis,
                index,
                size,
            } => ScatterError::IndexOutOfBounds {
                tuple: self.listed(tuple / self.indices_each) * self.indices_each,
                axis,
                index,
                size,
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Checked, Distinct};
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
    ) -> Result<Checked, ScatterError> {
        let view = TensorView::strided(values, 0, shape, strides).expect("inside");
        let form = Form {
            batch_rank: 0,
            tuple_len: 1,
            list: (0, shape.len()),
            coordinates: Form::ALL_EXPLICIT,
        };
        let rules = IndexRules {
            negatives_wrap: true,
            bounds,
        };
        let (output, indices) = (Layout::contiguous(&[9, 0]), Indices::from(view));
        let indices = indices.integers().expect("integers");
        let distinct = Distinct::new(&output, &form, indices, rules).expect("few dims");
        distinct.check(InstructionSet::best())
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
