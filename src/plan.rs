//! The plan of a call: the destination of every tuple, and properties of the list of destinations,
//! for example whether destination numbers ascend.
//!
//! This module knows shapes, strides, index types and offsets. This module knows nothing of element
//! types, reductions or threads. The executor receives an immutable list of destinations and the
//! properties of this list.

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

pub(crate) use destinations::{Destinations, Spare, for_numbers, keep_destinations};
use duplicates::Duplicate;
pub(crate) use duplicates::{Sorted, detects_by_sort, first_duplicate, known_distinct};
pub(crate) use flat::{Extents, Flat};
pub(crate) use form::{Coordinates, Form};
pub(crate) use geometry::{CopyGeometry, Dim, Geometry, Span, signed};
pub(crate) use number::Number;
pub(crate) use place::{Binding, WindowOffsets};
pub(crate) use resolve::{
    Block, EmptyCheck, Facts, IndexRules, Piece, SHORT_LIST, SlotAxis, Tuples, check_empty,
    is_expanded_along, resolve_sequences, rows_along,
};
pub(crate) use scale::Scale;

pub(crate) use self::slot::Slot;
use crate::error::ScatterError;
use crate::memory::copied;
use crate::operand::{Dims, Layout};

/// Everything about a call that depends only on the indices and on the layout of the output.
///
/// All indices of a plan have been checked. The list of destinations is immutable, so any number of
/// calls can share a plan.
#[derive(Debug)]
pub(crate) struct IndexPlan {
    /// Shape of the output.
    shape: Dims<usize>,
    /// Strides of the output, in elements.
    strides: Dims<isize>,
    is_contiguous: bool,
    form: Form,
    /// Shape of the list of tuples. The list includes skipped tuples.
    tuple_shape: Dims<usize>,
    updates_shape: Dims<usize>,
    /// Number of coordinates of the only tuple ([`Form::one_tuple`]), for errors.
    one_tuple: Option<usize>,
    /// One size for each axis of the output: the number of repetitions along a batch axis, the
    /// length of a window along a window axis. A size can be smaller than the size of the output
    /// ([`Form::reach`]).
    reach: Dims<usize>,
    /// Whether, along all batch and window axes, the sizes in `reach` equal the sizes of the
    /// output.
    is_whole: bool,
    /// Number of consecutive positions in `indices` that one tuple represents. The number is above
    /// 1 only if the indices of an element scatter or gather are equal along rows: one tuple then
    /// represents a row of equal indices.
    indices_each: usize,
    /// Number of tuples that were not skipped, in the unit of [`IndexPlan::applied`].
    applied: usize,
    /// Number of skipped tuples, in the unit of [`IndexPlan::applied`].
    skipped: usize,
    /// Destination numbers of all applied tuples. If the tuples move no element (for example,
    /// because windows are empty), the list has only the destination numbers of one range of
    /// consecutive tuples. For a scatter, this range contains the first duplicate, if there is one.
    destinations: Destinations,
    /// First tuple of the range of `destinations` if the tuples move no element. 0 if the tuples
    /// move elements.
    first: usize,
    /// For each entry of `destinations`, the position of its tuple in the list of tuples, counted
    /// from `first`. `None` if no tuple was skipped.
    positions: Option<Destinations>,
    scale: Scale,
    facts: Facts,
    first_duplicate: OnceLock<Option<Duplicate>>,
    last_writes: OnceLock<Sorted>,
    groups: OnceLock<Sorted>,
    /// Slot for data that a schedule computes once from the plan.
    pub(crate) slot: Slot,
    /// Slot for a sample of the destinations. The sample is used to choose a schedule.
    pub(crate) sample: Slot,
    /// Strides of contiguous updates and of the output. `Some` only if windows are rows at constant
    /// strides.
    flat: Option<Flat>,
}

impl IndexPlan {
    /// Makes a plan for the layout `output`. The list `destinations` has the destination number of
    /// each tuple of `form` that is not skipped. The argument `facts` describes the list of these
    /// numbers, for example whether the numbers ascend. The argument `positions` has the position
    /// of each of these tuples among all tuples of `form`, or is `None` if no tuple is skipped.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: Form,
        indices: &Layout<'_>,
        scale: Scale,
        destinations: Destinations,
        positions: Option<Destinations>,
        facts: Facts,
    ) -> Result<Self, ScatterError> {
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
            one_tuple: form.one_tuple(indices),
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
        // If memory cannot hold the updates, no call can pass such updates, and `flat` stays
        // `None`.
        plan.flat = (updates.elements()).and_then(|_| Flat::new(&plan.extents(), output, &updates));
        if matches!(form.coordinates, Coordinates::Sequences { .. }) {
            // The updates of a sequence are at most as long as the axis, so no row is written
            // twice.
            let _ = plan.first_duplicate.set(None);
        }
        Ok(plan)
    }

    /// Returns the shape of the output that the plan was made for.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the strides, in elements, of the output that the plan was made for.
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Sets the counts of a plan whose tuples move no element. `first` is the position in the list
    /// of the first tuple that has a destination in the plan.
    pub(crate) fn with_counts(self, applied: usize, skipped: usize, first: usize) -> Self {
        Self {
            applied,
            skipped,
            first,
            ..self
        }
    }

    /// Returns the plan with the fact that no two of its destinations are equal.
    pub(crate) fn with_distinct_destinations(self) -> Self {
        let _ = self.first_duplicate.set(None);
        self
    }

    /// Returns the number of tuples that were not skipped. In a cache, all rows of one position of
    /// a sequence, one row for each head, count as one tuple (see [`Form::tuples_each`]).
    pub(crate) fn applied(&self) -> usize {
        self.applied
    }

    /// Returns the number of skipped tuples, in the unit of [`Self::applied`].
    pub(crate) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns the number of destination numbers in the plan: one for each applied tuple of the
    /// list, or fewer if the tuples move no element.
    pub(crate) fn tuples(&self) -> usize {
        self.destinations.len()
    }

    /// Whether windows have the last axis of the output ([`Form::has_last_axis_in_window`]).
    pub(crate) fn has_last_axis_in_window(&self) -> bool {
        self.form.has_last_axis_in_window(self.shape.len())
    }

    /// Returns the shape that `updates` must have.
    pub(crate) fn updates_shape(&self) -> &[usize] {
        &self.updates_shape
    }

    /// Returns the number of coordinates of the only tuple ([`Form::one_tuple`]).
    pub(crate) fn one_tuple(&self) -> Option<usize> {
        self.one_tuple
    }

    /// Checks that `updates` is the shape that updates must have.
    #[inline]
    pub(crate) fn check_updates(&self, updates: &[usize]) -> Result<(), ScatterError> {
        let expected = [&self.updates_shape[..], &[], &[]];
        if form::fits(expected, updates) {
            return Ok(());
        }
        Err(form::other_updates(expected, updates, self.one_tuple))
    }

    /// Whether the plan covers every batch axis and every window axis of the output completely. The
    /// number of repetitions along each batch axis is then equal to the size of the output along
    /// this axis. The length of a window along each window axis is also equal to the size of the
    /// output along this axis.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the shapes of a call that uses this plan.
    pub(crate) fn extents(&self) -> Extents<'_> {
        Extents {
            form: &self.form,
            shape: &self.shape,
            reach: &self.reach,
            tuples: self.listed_tuples(),
            list_rank: self.tuple_shape.len(),
        }
    }

    /// Returns the strides of contiguous updates and of the output. `Some` only if windows are rows
    /// at constant strides.
    pub(crate) fn flat(&self) -> Option<&Flat> {
        self.flat.as_ref()
    }

    /// Returns the layout of the output that the plan was made for.
    pub(crate) fn layout(&self) -> Result<Layout<'_>, ScatterError> {
        match self.is_contiguous {
            true => Ok(Layout::contiguous(&self.shape)),
            false => Layout::strided(&self.shape, &self.strides),
        }
    }

    /// Checks that the elements of `output` have the offsets that the plan was made for.
    pub(crate) fn check_output(&self, output: &Layout<'_>) -> Result<(), ScatterError> {
        match self.is_for(output)? {
            true => Ok(()),
            false => Err(self.mismatch(output)),
        }
    }

    /// Whether the elements of `output` have the offsets that the plan was made for.
    #[inline(always)] // On the path of the smallest calls.
    fn is_for(&self, output: &Layout<'_>) -> Result<bool, ScatterError> {
        if self.is_contiguous
            && output.is_contiguous()
            && form::is_same(&self.shape, output.shape())
        {
            return Ok(true);
        }
        let planned = Layout::strided(&self.shape, &self.strides)?;
        Ok(planned.places_like(output))
    }

    /// Whether the plan was made from `form` for outputs with the layout `output`. The plan may
    /// have another form that was made from `form`. The result is then `false`.
    pub(crate) fn serves(&self, form: &Form, output: &Layout<'_>) -> bool {
        self.form == *form && self.is_for(output) == Ok(true)
    }

    /// Returns the error for a tensor whose layout `actual` is not the layout of the plan.
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

    /// Whether the operator supports no reduction, so that updates always replace existing values.
    pub(crate) fn only_moves(&self) -> bool {
        matches!(self.form.coordinates, Coordinates::Sequences { .. })
    }

    /// Returns the destination numbers.
    pub(crate) fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// Whether no tuple was skipped. The destinations then belong to consecutive tuples of the
    /// list.
    pub(crate) fn skips_none(&self) -> bool {
        self.positions.is_none()
    }

    /// Returns, for each destination number, the position of its tuple in the list of tuples. The
    /// positions are counted from `first`. `None` if no tuple was skipped.
    pub(crate) fn positions(&self) -> Option<&Destinations> {
        self.positions.as_ref()
    }

    /// Returns the position in the list of the tuple to which the destination at `position`
    /// belongs.
    #[inline]
    pub(crate) fn tuple_at(&self, position: usize) -> usize {
        match &self.positions {
            None => self.first + position,
            // The number of tuples fits a `usize`, so the conversion cannot fail.
            Some(tuples) => {
                let tuple = usize::try_from(tuples.get(position)).unwrap_or(usize::MAX);
                self.first.saturating_add(tuple)
            }
        }
    }

    /// Returns the number of tuples in the list. The list includes skipped tuples.
    pub(crate) fn listed_tuples(&self) -> usize {
        self.tuple_shape.iter().product()
    }

    /// Returns the number of strands. Strands are consecutive parts of the list with equal numbers
    /// of tuples. Two strands share no destination, whatever the values of the indices. If tuples
    /// were skipped, the list is one strand.
    pub(crate) fn strands(&self) -> usize {
        if self.positions.is_some() {
            return 1;
        }
        self.tuple_shape[..self.form.leading()].iter().product()
    }

    /// Returns the relation between destination numbers and offsets in the output.
    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the properties of the list of destination numbers that the check of the indices has
    /// found, for example whether destination numbers ascend.
    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    /// Whether the destinations are already known to be distinct, without a search for duplicates.
    pub(crate) fn is_known_unique(&self) -> bool {
        self.facts.increasing || matches!(self.first_duplicate.get(), Some(None))
    }

    /// Whether duplicate detection would sort the destinations.
    pub(crate) fn detects_by_sort(&self) -> bool {
        !self.facts.ordered && duplicates::detects_by_sort(self.tuples(), self.scale.count)
    }

    /// Returns the bytes of scratch memory that duplicate detection needs.
    pub(crate) fn detection_bytes(&self) -> usize {
        if self.facts.ordered {
            return 0;
        }
        duplicates::detection_bytes(self.tuples(), self.scale.count)
    }

    /// Returns the first duplicate, or `None` if there is no duplicate. The plan searches once and
    /// keeps the result.
    pub(crate) fn first_duplicate(&self) -> Result<Option<Duplicate>, ScatterError> {
        if let Some(&known) = self.first_duplicate.get() {
            return Ok(known);
        }
        let found = self.detect_duplicate()?;
        Ok(*self.first_duplicate.get_or_init(|| found))
    }

    /// Searches for the first duplicate, like [`Self::first_duplicate`], but does not keep the
    /// result in the plan. A kept result could change the schedule that the next call chooses.
    pub(crate) fn detect_duplicate(&self) -> Result<Option<Duplicate>, ScatterError> {
        if self.is_known_unique() {
            return Ok(None);
        }
        if self.facts.ordered {
            return Ok(duplicates::first_of_ordered(&self.destinations));
        }
        duplicates::first_duplicate(&self.destinations, self.scale.count)
    }

    /// Returns an error if two tuples of the plan have the same destination.
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

    /// Returns the last tuple of every destination that has tuples, in ascending order of
    /// destinations. The plan computes this list once and keeps it.
    pub(crate) fn last_writes(&self) -> Result<&Sorted, ScatterError> {
        if let Some(last_writes) = self.last_writes.get() {
            return Ok(last_writes);
        }
        let mut last_writes = self.sort(self.facts.increasing)?;
        last_writes.keep_last(&self.destinations);
        Ok(self.last_writes.get_or_init(|| last_writes))
    }

    /// Returns all applied tuples in ascending order of their destinations. Tuples of one
    /// destination keep their order. The plan computes this list once and keeps it.
    pub(crate) fn groups(&self) -> Result<&Sorted, ScatterError> {
        if let Some(groups) = self.groups.get() {
            return Ok(groups);
        }
        let groups = self.sort(self.facts.ordered)?;
        Ok(self.groups.get_or_init(|| groups))
    }

    /// Makes a plan with one tuple for each destination that has tuples in this plan. The new
    /// tuples are in ascending order of destinations.
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
        // `used` has the sizes of repetitions and windows, and the updates of the new plan have
        // these sizes too.
        let mut used = Dims::copied(&self.reach)?;
        let indexed = form.indexed();
        used[indexed.clone()].copy_from_slice(&self.shape[indexed]);
        let (output, indices) = (Layout::of_parts(&used, &self.strides), Layout::line(count));
        let plan = Self::new(
            &output,
            form,
            &indices,
            self.scale,
            destinations,
            None,
            piece.facts,
        )?;
        // The output of the new plan is the output of this plan, which can be larger than `used`.
        Ok(Self {
            shape: Dims::copied(&self.shape)?,
            strides: Dims::copied(&self.strides)?,
            is_contiguous: self.is_contiguous,
            is_whole: self.is_whole,
            flat: None,
            ..plan
        })
    }

    /// Sorts the tuples by destination. `in_order`: whether the tuples are already sorted.
    fn sort(&self, in_order: bool) -> Result<Sorted, ScatterError> {
        Sorted::new(&self.destinations, self.scale.count, in_order)
    }

    /// Returns the position of the first tuple with the same destination as the tuple at
    /// `position`. The destinations must be in ascending order. If `position` is past the end,
    /// returns the number of tuples.
    pub(crate) fn start_of_equals(&self, position: usize) -> usize {
        if position >= self.tuples() {
            return self.tuples();
        }
        let number = self.destinations.get(position);
        Sorted::InOrder.first_from(&self.destinations, number)
    }

    /// Returns the buffers of the lists of the plan, so that another plan can reuse them.
    pub(crate) fn into_spares(self) -> impl Iterator<Item = Spare> {
        let lists = [Some(self.destinations), self.positions];
        lists.into_iter().flatten().map(Destinations::into_spare)
    }
}
