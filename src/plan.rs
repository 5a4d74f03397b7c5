//! The plan: where every tuple's window goes, and what is known about that.
//!
//! Knows shapes, strides, index types and offsets. Knows nothing of element
//! types, reductions or threads: an immutable list of destinations with a few
//! facts is all that reaches the executor.

mod destinations;
mod duplicates;
mod flat;
mod form;
mod geometry;
mod number;
mod place;
mod resolve;
mod scale;
mod slot;
mod sort;

use std::sync::OnceLock;

pub(crate) use destinations::{Destinations, Spare};
use duplicates::Duplicate;
pub(crate) use duplicates::{Sorted, are_seen_distinct};
pub(crate) use flat::{Extents, Flat};
pub(crate) use form::{Coordinates, Form};
#[cfg(test)]
pub(crate) use geometry::Dim;
pub(crate) use geometry::{CopyGeometry, Geometry, Span, signed};
pub(crate) use number::Number;
pub(crate) use place::{Binding, WindowOffsets};
pub(crate) use resolve::{
    Block, EmptyCheck, Facts, IndexRules, Piece, SHORT_LIST, Tuples, check_empty,
    is_expanded_along, resolve_sequences, rows_along,
};
pub(crate) use scale::Scale;

pub(crate) use self::slot::Slot;
use crate::error::ScatterError;
use crate::memory::copied;
use crate::operand::{Dims, Layout};

/// What depends on indices alone: the layout of the output and the destination
/// of every tuple, checked. An immutable list that any number of runs share.
#[derive(Debug)]
pub(crate) struct IndexPlan {
    shape: Dims<usize>,
    strides: Dims<isize>,
    is_contiguous: bool,
    form: Form,
    tuple_shape: Dims<usize>,
    updates_shape: Dims<usize>,
    /// How far repetitions and window reach along each axis, and whether that
    /// is as far as the output does.
    reach: Dims<usize>,
    is_whole: bool,
    /// Positions in `indices` that one tuple stands for.
    indices_each: usize,
    /// Tuples that were not skipped and those that were, as the caller counts
    /// them.
    applied: usize,
    skipped: usize,
    /// Of all of these; where they move nothing, of as many from `first` on as show
    /// whether any have one destination.
    destinations: Destinations,
    first: usize,
    /// Which tuple each destination belongs to, where some were skipped.
    positions: Option<Destinations>,
    scale: Scale,
    facts: Facts,
    first_duplicate: OnceLock<Option<Duplicate>>,
    last_writes: OnceLock<Sorted>,
    groups: OnceLock<Sorted>,
    /// Room for what runs work out from the plan.
    pub(crate) slot: Slot,
    /// Room for what a choice has seen of the tuples.
    pub(crate) sample: Slot,
    flat: Option<Flat>,
}

impl IndexPlan {
    /// A plan from the `destinations` that [`Tuples`] has numbered for `form` and this `output`.
    /// `piece` is what was learnt from all of them.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: Form,
        indices: &Layout<'_>,
        scale: Scale,
        mut destinations: Destinations,
        piece: &Piece,
    ) -> Result<Self, ScatterError> {
        let (mut positions, mut facts) = (None, piece.facts);
        if piece.skipped > 0 {
            positions = Some(destinations.drop_skipped(piece.skipped)?);
            facts = destinations.describe().facts;
        }
        let (shape, indices) = (output.shape(), indices.shape());
        let reach = form.reach(shape, indices);
        let tuple_axes = form.indexed();
        let tuple_shape = form.tuple_shape(shape, indices)?;
        let (listed, applied) = (tuple_shape.iter().product(), destinations.len());
        let each = form.tuples_each(shape).max(1);
        let mut plan = Self {
            is_whole: (0..shape.len())
                .filter(|axis| !tuple_axes.contains(axis))
                .all(|axis| reach[axis] == shape[axis]),
            tuple_shape,
            updates_shape: form.updates_shape(shape, indices)?,
            reach: Dims::copied(reach)?,
            shape: Dims::copied(shape)?,
            strides: output.all_strides()?,
            is_contiguous: output.is_contiguous(),
            indices_each: form.indices_each(indices),
            applied: applied / each,
            skipped: usize::saturating_sub(listed, applied) / each,
            form,
            destinations,
            first: 0,
            positions,
            scale,
            facts,
            first_duplicate: OnceLock::new(),
            last_writes: OnceLock::new(),
            groups: OnceLock::new(),
            slot: Slot::default(),
            sample: Slot::default(),
            flat: None,
        };
        let updates = Layout::contiguous(&plan.updates_shape);
        // Of more updates than memory can hold there is no run.
        plan.flat = (updates.elements()).and_then(|_| Flat::new(&plan.extents(), output, &updates));
        if matches!(form.coordinates, Coordinates::Sequences { .. }) {
            // An update is no longer than its axis, so no row is met twice.
            let _ = plan.first_duplicate.set(None);
        }
        Ok(plan)
    }

    /// Shape of the output it was made for.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides, in elements, of the output it was made for.
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The same plan, whose tuples move nothing, with so many of them;
    /// destinations are those of the tuples from `first` on.
    pub(crate) fn of_nothing(self, applied: usize, skipped: usize, first: usize) -> Self {
        Self {
            applied,
            skipped,
            first,
            ..self
        }
    }

    /// Number of tuples that are applied: all but those that were skipped.
    pub(crate) fn applied(&self) -> usize {
        self.applied
    }

    /// Number of tuples that were skipped.
    pub(crate) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Number of destinations to go through: that of the tuples that are
    /// applied, where they move anything.
    pub(crate) fn tuples(&self) -> usize {
        self.destinations.len()
    }

    /// The shape that `updates` must have.
    pub(crate) fn updates_shape(&self) -> &[usize] {
        &self.updates_shape
    }

    /// Refuses updates of another shape.
    #[inline]
    pub(crate) fn check_updates(&self, updates: &[usize]) -> Result<(), ScatterError> {
        form::check_shape([&self.updates_shape, &[], &[]], updates)
    }

    /// Whether repetitions and windows are whole: they reach as far as the
    /// output does.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The shapes of a run.
    pub(crate) fn extents(&self) -> Extents<'_> {
        Extents {
            form: &self.form,
            shape: &self.shape,
            reach: &self.reach,
            tuples: self.listed_tuples(),
            list_rank: self.tuple_shape.len(),
        }
    }

    /// Where the elements of contiguous updates lie, if a few numbers say it.
    pub(crate) fn flat(&self) -> Option<&Flat> {
        self.flat.as_ref()
    }

    /// The layout of the output planned for.
    pub(crate) fn layout(&self) -> Result<Layout<'_>, ScatterError> {
        match self.is_contiguous {
            true => Ok(Layout::contiguous(&self.shape)),
            false => Layout::strided(&self.shape, &self.strides),
        }
    }

    /// Whether `output` lies in memory as the output planned for.
    pub(crate) fn check_output(&self, output: &Layout<'_>) -> Result<(), ScatterError> {
        if self.is_contiguous
            && output.is_contiguous()
            && form::is_same(&self.shape, output.shape())
        {
            return Ok(());
        }
        let planned = Layout::strided(&self.shape, &self.strides)?;
        if planned.places_like(output) {
            return Ok(());
        }
        Err(self.mismatch(output))
    }

    /// The error for a tensor that lies otherwise than the output planned for.
    #[cold]
    pub(crate) fn mismatch(&self, actual: &Layout<'_>) -> ScatterError {
        ScatterError::with_facts(|| {
            Ok(ScatterError::PlanMismatch {
                planned_shape: copied(&self.shape)?,
                planned_strides: copied(&self.strides)?,
                shape: copied(actual.shape())?,
                strides: copied(&actual.all_strides()?)?,
            })
        })
    }

    /// Whether updates only replace what is there, by the rule of the form.
    pub(crate) fn only_moves(&self) -> bool {
        matches!(self.form.coordinates, Coordinates::Sequences { .. })
    }

    pub(crate) fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// Whether every tuple has a destination, so that the n-th destination is
    /// that of the n-th tuple.
    pub(crate) fn skips_none(&self) -> bool {
        self.positions.is_none()
    }

    /// The tuple of each destination, where some were skipped.
    pub(crate) fn positions(&self) -> Option<&Destinations> {
        self.positions.as_ref()
    }

    /// The tuple that the destination at `position` belongs to.
    #[inline]
    pub(crate) fn tuple_at(&self, position: usize) -> usize {
        match &self.positions {
            None => self.first + position,
            // Tuples were counted with a `usize`.
            Some(tuples) => {
                let tuple = usize::try_from(tuples.get(position)).unwrap_or(usize::MAX);
                self.first.saturating_add(tuple)
            }
        }
    }

    /// Number of tuples, those that were skipped included.
    pub(crate) fn listed_tuples(&self) -> usize {
        self.tuple_shape.iter().product()
    }

    /// How many strands the list of tuples has: equal parts, one after another,
    /// that share no destination, by the shape of the list alone.
    pub(crate) fn strands(&self) -> usize {
        if self.positions.is_some() {
            return 1;
        }
        self.tuple_shape[..self.form.leading()].iter().product()
    }

    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    /// Whether destinations are known to be unique without further work.
    pub(crate) fn is_known_unique(&self) -> bool {
        self.facts.increasing || matches!(self.first_duplicate.get(), Some(None))
    }

    /// Whether it takes a sort to look for duplicates.
    pub(crate) fn looks_by_sort(&self) -> bool {
        !self.facts.ordered && duplicates::takes_a_sort(self.tuples(), self.scale.count)
    }

    /// Bytes that it takes to look for duplicates.
    pub(crate) fn detection_bytes(&self) -> usize {
        if self.facts.ordered {
            return 0;
        }
        duplicates::detection_bytes(self.tuples(), self.scale.count)
    }

    /// The first duplicate, worked out once.
    pub(crate) fn first_duplicate(&self) -> Result<Option<Duplicate>, ScatterError> {
        if let Some(&known) = self.first_duplicate.get() {
            return Ok(known);
        }
        let found = self.look_for_duplicate()?;
        Ok(*self.first_duplicate.get_or_init(|| found))
    }

    /// [`Self::first_duplicate`], but the plan does not learn from it: what it
    /// knows decides which schedule the next run takes.
    pub(crate) fn look_for_duplicate(&self) -> Result<Option<Duplicate>, ScatterError> {
        if self.is_known_unique() {
            return Ok(None);
        }
        if self.facts.ordered {
            return Ok(duplicates::first_of_ordered(&self.destinations));
        }
        duplicates::first_duplicate(&self.destinations, self.scale.count)
    }

    /// The error for a plan that has duplicates.
    pub(crate) fn refuse_duplicates(&self) -> Result<(), ScatterError> {
        let named = |position| self.tuple_at(position) * self.indices_each;
        match self.first_duplicate()? {
            None => Ok(()),
            Some(duplicate) => Err(ScatterError::DuplicateIndex {
                tuple: named(duplicate.tuple),
                earlier: named(duplicate.earlier),
            }),
        }
    }

    /// The last tuple of every destination, in the order of destinations;
    /// worked out once.
    pub(crate) fn last_writes(&self) -> Result<&Sorted, ScatterError> {
        if let Some(last_writes) = self.last_writes.get() {
            return Ok(last_writes);
        }
        let mut last_writes = self.sort(self.facts.increasing)?;
        last_writes.keep_last(&self.destinations);
        Ok(self.last_writes.get_or_init(|| last_writes))
    }

    /// All tuples in the order of their destinations, those of one destination
    /// in their own; worked out once.
    pub(crate) fn groups(&self) -> Result<&Sorted, ScatterError> {
        if let Some(groups) = self.groups.get() {
            return Ok(groups);
        }
        let groups = self.sort(self.facts.ordered)?;
        Ok(self.groups.get_or_init(|| groups))
    }

    /// A plan of one tuple for each destination that has any, in the order of
    /// destinations.
    pub(crate) fn of_destinations(&self) -> Result<Self, ScatterError> {
        let distinct = self.last_writes()?;
        let count = distinct.len(self.tuples());
        let mut destinations = Destinations::with_len(count, self.scale.count, Spare::default())?;
        destinations.fill(|at| distinct.get(&self.destinations, at).0);
        let piece = destinations.describe();
        let form = Form {
            list: (0, 1),
            coordinates: Form::ALL_EXPLICIT,
            ..self.form
        };
        // Of an output that ends where repetitions and windows do.
        let mut shape = Dims::copied(&self.reach)?;
        let indexed = form.indexed();
        shape[indexed.clone()].copy_from_slice(&self.shape[indexed]);
        let output = Layout::of_parts(&shape, &self.strides);
        let indices = Layout::line(count);
        Self::new(&output, form, &indices, self.scale, destinations, &piece)
    }

    fn sort(&self, in_order: bool) -> Result<Sorted, ScatterError> {
        Sorted::new(&self.destinations, self.scale.count, in_order)
    }

    /// Where the tuples begin that have the destination of the one at
    /// `position`, in a list that is ordered.
    pub(crate) fn start_of_equals(&self, position: usize) -> usize {
        if position >= self.tuples() {
            return self.tuples();
        }
        let number = self.destinations.get(position);
        Sorted::InOrder.first_from(&self.destinations, number)
    }

    /// Gives back the memory of the destinations, for another plan.
    pub(crate) fn into_destinations(self) -> Destinations {
        self.destinations
    }
}
