//! Indices become a plan: every one is checked, every destination numbered, on
//! the calling thread or in pieces on the pool.

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

/// Indices from which on all workers, and not one, hold them against their neighbours.
const PARALLEL_TUPLES: usize = 1024 * 1024;

/// Rows that are looked at between two looks at what other workers found.
const ROWS: usize = 1024;

/// Options that a plan is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planning {
    pub(crate) duplicates: Duplicates,
    pub(crate) rules: IndexRules,
    /// Whether numbered windows are read: then there are no duplicates.
    pub(crate) gathers: bool,
}

/// Makes a plan: checks every index and numbers every destination.
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
    // What is worked out of tuples that move nothing is another number.
    let is_empty = !planning.gathers && output.shape().contains(&0);
    let nothing = (is_empty || form.moves_nothing(output.shape(), layout.shape()))
        .then(|| check_nothing(output, &form, indices, planning, execution))
        .transpose()?;
    let (first, tuples) = nothing.map_or((0, tuples), |nothing| nothing.duplicate_search);
    let (scale, multipliers) = Scale::new(output, &form);
    let spare = scratch::take_spare(tuples, scale.count);
    let mut destinations = Destinations::with_len(tuples, scale.count, spare)?;
    let work = Resolving {
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
    if let Some(nothing) = nothing {
        let skipped = nothing.listed - nothing.applied;
        plan = plan.with_counts(nothing.applied, skipped, first);
    }
    if planning.duplicates == Duplicates::Reject {
        plan.refuse_duplicates()?;
    }
    Ok(plan)
}

/// Checks the indices of tuples that move nothing, each that lies in memory
/// once.
fn check_nothing(
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
        // No two rows of sequences meet.
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

/// A form whose indices repeat along the trailing dims of the list, as the
/// one that has those dims in its window.
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
    // In small steps, so that a difference that one finds stops all.
    workers.run(parts, &|index| {
        let part = part(count, parts, index);
        for first in part.clone().step_by(ROWS) {
            let rows_of_step = first..part.end.min(first + ROWS);
            // Without memory to tell, nothing is lost but time.
            let same = || is_expanded_along(indices, rows.list.1, rows_of_step) == Ok(true);
            if differs.load(Ordering::Relaxed) || !same() {
                differs.store(true, Ordering::Relaxed);
                break;
            }
        }
    })?;
    Ok(if differs.into_inner() { form } else { rows })
}

/// What numbering the tuples of a plan takes.
struct Resolving<'a> {
    tuples: Tuples<'a>,
    output: &'a Layout<'a>,
    form: &'a Form,
    indices: Integers<'a>,
    rules: IndexRules,
    execution: &'a Execution<'a>,
}

impl Resolving<'_> {
    /// Numbers the tuples from `first` on: on the calling thread, or in pieces on
    /// the pool. The first piece with an error decides, so it is the same however
    /// many there are.
    fn resolve<N: Number>(&self, first: usize, numbers: &mut [N]) -> Result<Piece, ScatterError> {
        work::note(Work::Resolving);
        if matches!(self.form.coordinates, Coordinates::Sequences { .. }) {
            let (output, form) = (self.output, self.form);
            let skipped = resolve_sequences(output, form, self.indices, self.rules, numbers)?;
            let mut piece = Piece::EMPTY;
            piece.extend(numbers);
            // Of tuples that move nothing, all have been counted before.
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
        let len = numbers.len().div_ceil(workers.parts());
        let mut pieces: Vec<OnceLock<_>> = with_room(numbers.len().div_ceil(len))?;
        pieces.extend(numbers.chunks(len).map(|_| OnceLock::new()));
        workers.run_chunks(numbers, len, &|index, chunk| {
            pieces[index].get_or_init(|| self.tuples.resolve(set, first + index * len, chunk));
        })?;
        let mut whole = Piece::EMPTY;
        // All tasks have run, so no piece is missing.
        for piece in pieces.into_iter().filter_map(OnceLock::into_inner) {
            whole.join(&piece?);
        }
        Ok(whole)
    }
}
