//! Makes plans from indices: checks every index and computes every destination number.
//!
//! The workers of the pool compute the destination numbers of a list of at least `numbered_tuples`
//! tuples (a threshold of the machine), in pieces. The calling thread computes the destination
//! numbers of a shorter list. The calling thread also computes the destination numbers of the rows
//! that a call of [`Scatter::cache`](crate::Scatter::cache) writes: consecutive rows from the start
//! position of each sequence.
//!
//! This module knows index types and shapes. This module does not know element types or reductions.

use std::sync::atomic::{AtomicBool, Ordering};

use super::skipped::{Shares, drop_skipped};
use crate::error::ScatterError;
use crate::exec::part;
use crate::exec::scratch;
use crate::execution::Execution;
use crate::memory::with_room;
use crate::operand::Layout;
use crate::operand::indices::Integers;
use crate::plan::{
    Coordinates, Destinations, EmptyCheck, Form, IndexPlan, IndexRules, Number, Piece, Scale,
    SlotAxis, Tuples, check_empty, detects_by_sort, first_duplicate, is_expanded_along,
    resolve_sequences, rows_along,
};
use crate::reduction::Duplicates;
use crate::work::{self, Work};

/// Minimum number of indices for which all workers check whether the indices are equal along rows.
/// The calling thread alone checks a smaller number of indices.
const PARALLEL_TUPLES: usize = 1024 * 1024;

/// Number of rows that a worker checks before the worker reads whether another worker has found
/// unequal indices in a row. A row has the indices along the trailing dims of the list.
const ROWS_PER_CHECK: usize = 1024;

/// Options of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planning {
    pub(crate) duplicates: Duplicates,
    pub(crate) rules: IndexRules,
    /// Whether the plan is for a gather. A gather only reads its destinations, so tuples with equal
    /// destinations do not count as duplicates.
    pub(crate) gathers: bool,
}

/// Makes a plan: checks every index and computes the destination numbers.
///
/// `output` is the layout of the tensor whose windows are addressed by destination numbers: the
/// output of a scatter, or the data of a gather.
pub(crate) fn make_plan(
    output: &Layout<'_>,
    form: Form,
    indices: Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<IndexPlan, ScatterError> {
    output.check(1)?;
    let form = in_rows(form, indices, execution)?;
    let layout = indices.layout();
    let tuples: usize = form
        .tuple_shape(output.shape(), layout.shape())?
        .iter()
        .product();
    // If the tuples move no element, `check_empty_tuples` checks all tuples. The plan then has
    // destination numbers only for the tuples among which a duplicate is searched.
    let is_empty = !planning.gathers && output.shape().contains(&0);
    let empty = (is_empty || form.moves_nothing(output.shape(), layout.shape()))
        .then(|| check_empty_tuples(output, &form, indices, planning, execution))
        .transpose()?;
    let (first, tuples) = empty.map_or((0, tuples), |empty| empty.duplicate_search);
    let (scale, multipliers) = Scale::new(output, &form);
    let slots = SlotAxis::new(output.shape(), &form)?;
    let bound = scale.count.max(slots.as_ref().map_or(0, SlotAxis::slots));
    let spare = scratch::take_spare(tuples, bound);
    let mut destinations = Destinations::with_len(tuples, bound, spare)?;
    let work = Numbering {
        tuples: match &slots {
            Some(slots) => slots.tuples(indices, planning.rules),
            None => Tuples::new(&form, multipliers, indices, planning.rules),
        },
        output,
        form: &form,
        indices,
        rules: planning.rules,
        execution,
    };
    let mut shares = Shares::default();
    let resolved = match &mut destinations {
        Destinations::Narrow(numbers) => work.resolve(first, numbers, &mut shares),
        Destinations::Wide(numbers) => work.resolve(first, numbers, &mut shares),
    };
    let mut piece = resolved.map_err(|error| renamed(slots.as_ref(), error))?;
    let mut is_distinct = false;
    if let Some(slots) = slots.filter(|_| !scale.numbers_slices) {
        if !planning.gathers && piece.skipped == 0 {
            is_distinct = proves_distinct(&destinations, slots.slots(), scale.count)?;
        }
        destinations.replace(|slot| slots.destination(slot, &multipliers));
        piece.facts = destinations.describe().facts;
    }
    let (mut positions, mut facts) = (None, piece.facts);
    if piece.skipped > 0 {
        let applied = drop_skipped(&mut destinations, piece.skipped, &shares, execution)?;
        (positions, facts) = (Some(applied.positions), applied.facts);
    }
    let mut plan = IndexPlan::new(output, form, layout, scale, destinations, positions, facts)?;
    if let Some(empty) = empty {
        let skipped = empty.listed - empty.applied;
        plan = plan.with_counts(empty.applied, skipped, first);
    }
    if is_distinct {
        plan = plan.with_distinct_destinations();
    }
    if planning.duplicates == Duplicates::Reject {
        plan.refuse_duplicates()?;
    }
    Ok(plan)
}

/// Checks the indices of a call whose tuples move no element. In such a call windows are empty, the
/// number of repetitions is 0, or a size of a scatter's output is 0. An index in memory that stands
/// for several tuples is checked once.
fn check_empty_tuples(
    output: &Layout<'_>,
    form: &Form,
    indices: Integers<'_>,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<EmptyCheck, ScatterError> {
    let rules = planning.rules;
    if let Coordinates::Sequences { len, .. } = form.coordinates {
        let skipped = resolve_sequences::<u32>(output, form, indices, rules, &mut [])?;
        let listed = output.shape()[0] * len;
        // The rows of sequences are never duplicates, so no destination numbers are needed to
        // search for duplicates.
        return Ok(EmptyCheck {
            listed,
            applied: listed - skipped,
            duplicate_search: (0, 0),
        });
    }
    let (set, slots) = (
        execution.instructions(),
        SlotAxis::new(output.shape(), form)?,
    );
    let checked = match &slots {
        Some(slots) => check_empty(&slots.layout(), &slots.form, indices, rules, set),
        None => check_empty(output, form, indices, rules, set),
    };
    let mut checked = checked.map_err(|error| renamed(slots.as_ref(), error))?;
    if planning.gathers {
        checked.duplicate_search = (0, 0);
    }
    Ok(checked)
}

/// Whether a search among `slots`, which are below `count`, proves them distinct. A search among the
/// offsets of the slots, which are below `offsets`, could sort a list for which a bitmap of the slots
/// is small. For other lists the result is `false`, without a search.
fn proves_distinct(slots: &Destinations, count: u64, offsets: u64) -> Result<bool, ScatterError> {
    let tuples = slots.len();
    Ok(detects_by_sort(tuples, offsets)
        && !detects_by_sort(tuples, count)
        && first_duplicate(slots, count)?.is_none())
}

/// Returns the error of a list. If the list has slots, the error names the slot.
fn renamed(slots: Option<&SlotAxis>, error: ScatterError) -> ScatterError {
    match slots {
        Some(slots) => slots.rename(error),
        None => error,
    }
}

/// Returns `form` with the trailing dims of the list moved into its window, if the indices have
/// equal values along these dims. Otherwise returns `form` unchanged.
fn in_rows(
    form: Form,
    indices: Integers<'_>,
    execution: &Execution<'_>,
) -> Result<Form, ScatterError> {
    let Some(rows) = form.in_rows() else {
        return Ok(form);
    };
    let layout = indices.layout();
    let shape = layout.shape();
    if shape.contains(&0) {
        return Ok(form);
    }
    let count = rows_along(indices, rows.list.1)?;
    let values = shape.iter().product::<usize>();
    let differs = AtomicBool::new(!is_expanded_along(indices, rows.list.1, 0..count.min(1))?);
    let call = execution.begin();
    let workers = call.workers();
    let parts = if values < PARALLEL_TUPLES || differs.load(Ordering::Relaxed) {
        1
    } else {
        workers.parts()
    };
    // Each worker reads `differs` before each block of rows, so that all workers stop soon after
    // one worker has found a difference.
    workers.run(parts, &|index| {
        let part = part(count, parts, index);
        for first in part.clone().step_by(ROWS_PER_CHECK) {
            let compared = first..part.end.min(first + ROWS_PER_CHECK);
            // If the comparison of the indices in each row of a block fails for lack of memory, the
            // rows count as rows with different indices. The plan then has more destination numbers
            // than necessary, but the plan is correct.
            let are_same = || is_expanded_along(indices, rows.list.1, compared) == Ok(true);
            if differs.load(Ordering::Relaxed) || !are_same() {
                differs.store(true, Ordering::Relaxed);
                break;
            }
        }
    })?;
    Ok(if differs.into_inner() { form } else { rows })
}

/// Inputs for the computation of the destination numbers of a plan.
struct Numbering<'a> {
    tuples: Tuples<'a>,
    output: &'a Layout<'a>,
    form: &'a Form,
    indices: Integers<'a>,
    rules: IndexRules,
    execution: &'a Execution<'a>,
}

impl Numbering<'_> {
    /// Computes one destination number for each element of `numbers`, from the tuple `first` on.
    ///
    /// The calling thread alone computes the destination numbers of a list of fewer than
    /// `numbered_tuples` tuples, and of lists of the form [`Coordinates::Sequences`]. A list of
    /// this form contains consecutive rows of a cache from the start position of each sequence. The
    /// workers of the pool compute the destination numbers of other lists, in pieces.
    ///
    /// If several pieces have an error, the function returns the error of the piece that is first
    /// in the list. The error therefore does not depend on the number of pieces. If the pool
    /// computes the numbers, the function describes the pieces in `shares`.
    fn resolve<N: Number>(
        &self,
        first: usize,
        numbers: &mut [N],
        shares: &mut Shares,
    ) -> Result<Piece, ScatterError> {
        work::note(Work::Resolving);
        if matches!(self.form.coordinates, Coordinates::Sequences { .. }) {
            let (output, form) = (self.output, self.form);
            let skipped = resolve_sequences(output, form, self.indices, self.rules, numbers)?;
            let mut piece = Piece::EMPTY;
            piece.extend(numbers);
            // If the tuples move no element, `numbers` is empty, and `check_empty_tuples` has
            // already counted the skipped tuples.
            piece.skipped = skipped.min(numbers.len());
            return Ok(piece);
        }
        let set = self.execution.instructions();
        let machine = self.execution.machine_in_use();
        if (numbers.len() as u64) < machine.variants.numbered_tuples {
            return self.tuples.resolve(set, first, numbers);
        }
        let call = self.execution.begin();
        let workers = call.workers();
        let len = numbers.len().div_ceil(workers.parts()).max(1);
        let pieces = workers.map_chunks(numbers, len, &|index, chunk| {
            self.tuples.resolve(set, first + index * len, chunk)
        })?;
        let mut whole = Piece::EMPTY;
        shares.len = len;
        shares.applied = with_room(pieces.len())?;
        for (piece, chunk) in pieces.into_iter().zip(numbers.chunks(len)) {
            let piece = piece?;
            shares.applied.push(chunk.len() - piece.skipped);
            whole.join(&piece);
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Execution, Layout, Machine, Scatter, TensorView};

    #[test]
    fn empty_lists_are_planned_where_every_list_is_numbered_in_pieces() {
        let machine: Machine = "numbered_tuples = 0".parse().expect("a machine");
        let scatter = Scatter::along(0).execution(Execution::new().machine(&machine));
        let indices: [i64; 0] = [];
        let plan = scatter.plan(Layout::contiguous(&[4]), TensorView::from(&indices));
        assert_eq!(plan.expect("an empty list").tuples(), 0);
    }
}
