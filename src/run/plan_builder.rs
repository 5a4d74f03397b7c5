//! Makes plans from indices: checks every index and computes every destination number.
//!
//! The destination numbers of long lists are computed in pieces on the pool, and those of short
//! lists on the calling thread. This module knows index types and shapes. It does not know element
//! types or reductions.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::ScatterError;
use crate::exec::part;
use crate::exec::scratch;
use crate::execution::Execution;
use crate::memory::with_room;
use crate::operand::Layout;
use crate::operand::indices::Integers;
use crate::plan::{
    Coordinates, Destinations, EmptyCheck, Form, IndexPlan, IndexRules, Number, Piece, Scale,
    Tuples, check_empty, is_expanded_along, resolve_sequences, rows_along,
};
use crate::reduction::Duplicates;
use crate::work::{self, Work};

/// Minimum number of indices for which all workers compare the indices with their neighbours. The
/// calling thread alone compares fewer indices.
const PARALLEL_TUPLES: usize = 1024 * 1024;

/// Rows that a worker compares before it checks whether another worker found a difference.
const ROWS_PER_CHECK: usize = 1024;

/// Options of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planning {
    pub(crate) duplicates: Duplicates,
    pub(crate) rules: IndexRules,
    /// Whether the plan is for a gather. A gather only reads its destinations, so two tuples with
    /// equal destinations are no duplicates.
    pub(crate) gathers: bool,
}

/// Makes a plan: checks every index and computes every destination number. `output`: layout of the
/// tensor whose windows are addressed by destination numbers. This tensor is the output of a
/// scatter, or the data of a gather.
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
    // If the tuples move no element, `check_empty_tuples` checks all tuples, and the plan has
    // destination numbers for only a part of the tuples.
    let is_empty = !planning.gathers && output.shape().contains(&0);
    let empty = (is_empty || form.moves_nothing(output.shape(), layout.shape()))
        .then(|| check_empty_tuples(output, &form, indices, planning, execution))
        .transpose()?;
    let (first, tuples) = empty.map_or((0, tuples), |empty| empty.duplicate_search);
    let (scale, multipliers) = Scale::new(output, &form);
    let spare = scratch::take_spare(tuples, scale.count);
    let mut destinations = Destinations::with_len(tuples, scale.count, spare)?;
    let work = Numbering {
        tuples: Tuples::new(&form, multipliers, indices, planning.rules),
        output,
        form: &form,
        indices,
        rules: planning.rules,
        execution,
    };
    let piece = match &mut destinations {
        Destinations::Narrow(numbers) => work.resolve(first, numbers),
        Destinations::Wide(numbers) => work.resolve(first, numbers),
    }?;
    let mut plan = IndexPlan::new(output, form, layout, scale, destinations, &piece)?;
    if let Some(empty) = empty {
        let skipped = empty.listed - empty.applied;
        plan = plan.with_counts(empty.applied, skipped, first);
    }
    if planning.duplicates == Duplicates::Reject {
        plan.refuse_duplicates()?;
    }
    Ok(plan)
}

/// Checks the indices of tuples that move no element: windows are empty, there are no repetitions,
/// or the output of a scatter has a size of 0. If an index in memory stands for several tuples, the
/// function checks this index once.
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
        // Sequences have no duplicates, so no tuple needs a number.
        return Ok(EmptyCheck {
            listed,
            applied: listed - skipped,
            duplicate_search: (0, 0),
        });
    }
    let mut checked = check_empty(output, form, indices, rules, execution.instructions())?;
    if planning.gathers {
        checked.duplicate_search = (0, 0);
    }
    Ok(checked)
}

/// Returns `form` with the trailing dims of the list moved into its window, if the values of the
/// indices do not depend on these dims. Otherwise returns `form` unchanged.
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
    // Each worker compares a few rows at a time, so that one difference soon stops all workers.
    workers.run(parts, &|index| {
        let part = part(count, parts, index);
        for first in part.clone().step_by(ROWS_PER_CHECK) {
            let compared = first..part.end.min(first + ROWS_PER_CHECK);
            // If the comparison fails for lack of memory, the rows count as different. The plan
            // is then larger, but correct.
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
    /// Computes the destination numbers of the tuples from `first` on, on the calling thread or in
    /// pieces on the pool.
    ///
    /// The first piece with an error decides which error is returned. The error therefore does
    /// not depend on the number of pieces.
    fn resolve<N: Number>(&self, first: usize, numbers: &mut [N]) -> Result<Piece, ScatterError> {
        work::note(Work::Resolving);
        if matches!(self.form.coordinates, Coordinates::Sequences { .. }) {
            let (output, form) = (self.output, self.form);
            let skipped = resolve_sequences(output, form, self.indices, self.rules, numbers)?;
            let mut piece = Piece::EMPTY;
            piece.extend(numbers);
            // If the tuples move no element, `check_empty_tuples` has already counted the skipped
            // tuples.
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
        let mut pieces: Vec<OnceLock<_>> = with_room(numbers.len().div_ceil(len))?;
        pieces.extend(numbers.chunks(len).map(|_| OnceLock::new()));
        workers.run_chunks(numbers, len, &|index, chunk| {
            pieces[index].get_or_init(|| self.tuples.resolve(set, first + index * len, chunk));
        })?;
        let mut whole = Piece::EMPTY;
        for piece in pieces {
            // A chunk without a result has unchecked indices. `run_chunks` returns an error if the
            // pool does not run every chunk, so this error is only a safeguard.
            let piece = piece.into_inner().ok_or(ScatterError::PoolFailed {
                tasks: 1,
                completed: 0,
                surplus: 0,
            })?;
            whole.join(&piece?);
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
