//! The plan: where every tuple's window goes, and what is known about that.
//!
//! Knows shapes, strides, index types and offsets. Knows nothing of element
//! types, reductions or threads: an immutable list of destinations with a few
//! facts is all that reaches the executor.

mod destinations;
mod form;
mod geometry;
mod repeats;
mod resolve;
mod slot;
mod sort;

use std::sync::OnceLock;

pub(crate) use destinations::{Destinations, Number, Spare};
pub(crate) use form::{Arranged, Coordinates, Form};
#[cfg(test)]
pub(crate) use geometry::Dim;
pub(crate) use geometry::{CopyGeometry, Geometry, Span, signed};
pub(crate) use repeats::Sorted;
pub(crate) use resolve::{
    Block, Checked, Contiguous, Distinct, IndexRules, Piece, Resolver, repeats_along,
    resolve_sequences,
};

use self::slot::Slot;
use crate::error::ScatterError;
use crate::memory::copied;
use crate::operand::{Dims, Layout, row_major_strides};

/// What depends on indices alone: the layout of the output and the destination
/// of every tuple, checked. An immutable list that any number of runs share.
#[derive(Debug)]
pub(crate) struct IndexPlan {
    /// The output as it was given.
    shape: Dims<usize>,
    strides: Dims<isize>,
    is_contiguous: bool,
    /// Its axes in the order batch, tuple, window, where that is another.
    order: Option<Arranged>,
    form: Form,
    tuple_shape: Dims<usize>,
    /// How far repetitions and window reach along each axis, and whether that
    /// is as far as the output does.
    reach: Dims<usize>,
    is_whole: bool,
    /// Positions in `indices` that one tuple stands for.
    positions: usize,
    /// Tuples that were not skipped.
    applied: usize,
    /// Of all of these; where they move nothing, of as many of the first as
    /// show whether any have one destination.
    destinations: Destinations,
    /// Which tuple each destination belongs to, where some were skipped.
    kept: Option<Destinations>,
    scale: Scale,
    facts: Facts,
    first_repeat: OnceLock<Option<Repeat>>,
    last_writes: OnceLock<Sorted>,
    groups: OnceLock<Sorted>,
    slot: Slot,
}

/// What the indices of a plan came to.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) destinations: Destinations,
    /// Which tuple each destination belongs to, where some were skipped.
    pub(crate) kept: Option<Destinations>,
    pub(crate) facts: Facts,
}

/// What a destination number means: number `n` lies `base + n * unit` elements
/// from element `[0, 0, ...]` of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) base: isize,
    pub(crate) unit: isize,
    /// Numbers lie in `0..count`.
    pub(crate) count: u64,
    /// Whether every number in `0..count` is a slice, numbered in row-major
    /// order (and not an offset in elements).
    pub(crate) numbers_slices: bool,
}

impl Scale {
    /// Bytes of the output that the numbers spread over, with elements of
    /// `size`.
    pub(crate) fn bytes(&self, size: usize) -> u64 {
        let unit = self.unit.unsigned_abs() as u64 * size as u64;
        self.count.saturating_mul(unit)
    }
}

/// What validation learns in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Each destination is greater than the one before: all are unique.
    pub(crate) increasing: bool,
    /// None is less than the one before: equal ones stand together.
    pub(crate) ordered: bool,
    /// How often a destination is not the successor of the one before.
    pub(crate) breaks: usize,
}

/// Two tuples with one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) tuple: usize,
    pub(crate) earlier: usize,
}

impl Resolved {
    /// `piece` is what was learnt from all of the destinations.
    pub(crate) fn new(mut destinations: Destinations, piece: &Piece) -> Result<Self, ScatterError> {
        if piece.skipped == 0 {
            return Ok(Self {
                destinations,
                kept: None,
                facts: piece.facts(),
            });
        }
        let kept = Some(destinations.drop_skipped(piece.skipped)?);
        let mut rest = Piece::EMPTY;
        match &destinations {
            Destinations::Narrow(numbers) => rest.extend(numbers),
            Destinations::Wide(numbers) => rest.extend(numbers),
        }
        Ok(Self {
            destinations,
            kept,
            facts: rest.facts(),
        })
    }
}

impl IndexPlan {
    /// A plan from what [`Resolver`] has made for `form` and this `output`, of
    /// which it was given the axes in `order`, where that is another.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: Form,
        order: Option<Arranged>,
        indices: &Layout<'_>,
        scale: Scale,
        resolved: Resolved,
    ) -> Result<Self, ScatterError> {
        let shape = order.as_ref().map_or(output.shape(), |order| &order.shape);
        let reach = form.reach(shape, indices);
        let tuple_axes = form.batch_rank..form.batch_rank + form.tuple_len;
        let plan = Self {
            is_whole: (0..shape.len())
                .filter(|axis| !tuple_axes.contains(axis))
                .all(|axis| reach[axis] == shape[axis]),
            tuple_shape: form.tuple_shape(shape, indices)?,
            reach: Dims::copied(reach)?,
            shape: Dims::copied(output.shape())?,
            strides: output.all_strides()?,
            is_contiguous: output.strides().is_none(),
            order,
            positions: form.positions(indices),
            applied: resolved.destinations.len(),
            form,
            destinations: resolved.destinations,
            kept: resolved.kept,
            scale,
            facts: resolved.facts,
            first_repeat: OnceLock::new(),
            last_writes: OnceLock::new(),
            groups: OnceLock::new(),
            slot: Slot::default(),
        };
        if matches!(form.coordinates, Coordinates::Sequences { .. }) {
            // An update is no longer than its axis, so no row is met twice.
            let _ = plan.first_repeat.set(None);
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

    /// The same plan, whose tuples move nothing, with so many of them.
    pub(crate) fn of_nothing(self, applied: usize) -> Self {
        Self { applied, ..self }
    }

    /// Number of tuples that are applied: all but those that were skipped.
    pub(crate) fn applied(&self) -> usize {
        self.applied
    }

    /// Number of tuples that were skipped.
    pub(crate) fn skipped(&self) -> usize {
        self.listed_tuples().saturating_sub(self.applied)
    }

    /// Number of destinations to go through: that of the tuples that are
    /// applied, where they move anything.
    pub(crate) fn tuples(&self) -> usize {
        self.destinations.len()
    }

    /// Shape and strides of the output, its axes in the order of the form.
    fn arranged(&self) -> (&[usize], &[isize]) {
        match &self.order {
            Some(order) => (&order.shape, &order.strides),
            None => (&self.shape, &self.strides),
        }
    }

    /// The strides of a tensor whose dims are those of the output, in the order
    /// of the form.
    pub(crate) fn arranged_strides(
        &self,
        layout: &Layout<'_>,
    ) -> Result<Dims<isize>, ScatterError> {
        let strides = layout.all_strides()?;
        match &self.order {
            Some(order) => form::arranged(&strides, &order.axes),
            None => Ok(strides),
        }
    }

    /// The shape of updates with their axes in the order of the form.
    fn arranged_updates_shape(&self) -> Result<Dims<usize>, ScatterError> {
        let (batch, rest) = self.reach.split_at(self.form.batch_rank);
        let parts = [batch, &self.tuple_shape, &rest[self.form.tuple_len..]];
        let sizes = parts.into_iter().flatten().copied();
        Dims::collect(self.updates_rank(), sizes)
    }

    /// The shape that `updates` must have.
    pub(crate) fn updates_shape(&self) -> Result<Dims<usize>, ScatterError> {
        let arranged = self.arranged_updates_shape()?;
        let Some(order) = &self.order else {
            return Ok(arranged);
        };
        let mut shape = Dims::copied(&arranged)?;
        for (&axis, &size) in order.axes.iter().zip(&*arranged) {
            shape[axis] = size;
        }
        Ok(shape)
    }

    /// Refuses updates of another shape than the plan's tuples and window
    /// ask for.
    pub(crate) fn check_updates(&self, updates: &[usize]) -> Result<(), ScatterError> {
        if self.order.is_some() {
            return form::check_shape([&self.updates_shape()?, &[], &[]], updates);
        }
        let (batch, rest) = self.reach.split_at(self.form.batch_rank);
        let window = &rest[self.form.tuple_len..];
        form::check_shape([batch, &self.tuple_shape, window], updates)
    }

    /// The rank of updates of the shape that the plan asks for.
    pub(crate) fn updates_rank(&self) -> usize {
        self.shape.len() - self.form.tuple_len + self.tuple_shape.len()
    }

    /// Whether repetitions and windows are whole: they reach as far as the
    /// output does.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The plan as one of contiguous tensors, where the output is one.
    pub(crate) fn flat(&self) -> Option<Flat> {
        let suits =
            self.is_contiguous && self.order.is_none() && self.kept.is_none() && self.is_whole();
        suits.then(|| Flat::new(&self.form, &self.shape, self.tuples()))
    }

    /// Whether `output` lies in memory as the output planned for.
    pub(crate) fn check_output(&self, output: &Layout<'_>) -> Result<(), ScatterError> {
        if self.is_contiguous && output.strides().is_none() && output.shape() == &self.shape[..] {
            return Ok(());
        }
        let planned = Layout::strided(&self.shape, &self.strides)?;
        if planned.places_like(output) {
            return Ok(());
        }
        Err(ScatterError::PlanMismatch {
            planned_shape: copied(&self.shape)?,
            planned_strides: copied(&self.strides)?,
            shape: copied(output.shape())?,
            strides: copied(&output.all_strides()?)?,
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
    pub(crate) fn keeps_all(&self) -> bool {
        self.kept.is_none()
    }

    /// The tuple that the destination at `position` belongs to.
    #[inline]
    pub(crate) fn tuple_at(&self, position: usize) -> usize {
        match &self.kept {
            None => position,
            // Tuples were counted with a `usize`.
            Some(kept) => usize::try_from(kept.get(position)).unwrap_or(usize::MAX),
        }
    }

    /// Number of tuples, those that were skipped included.
    pub(crate) fn listed_tuples(&self) -> usize {
        self.tuple_shape.iter().product()
    }

    /// How many strands the list of tuples has: equal parts, one after another,
    /// that share no destination, by the shape of the list alone.
    pub(crate) fn strands(&self) -> usize {
        if self.kept.is_some() {
            return 1;
        }
        self.tuple_shape[..self.form.leading()].iter().product()
    }

    /// Room for what runs work out from the plan.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    /// Whether destinations are known to be unique without further work.
    pub(crate) fn is_known_unique(&self) -> bool {
        self.facts.increasing || matches!(self.first_repeat.get(), Some(None))
    }

    /// Bytes that it takes to look for repeats.
    pub(crate) fn looking_bytes(&self) -> usize {
        if self.facts.ordered {
            return 0;
        }
        repeats::looking_bytes(self.tuples(), self.scale.count)
    }

    /// The repeat with the lowest position, worked out once.
    pub(crate) fn first_repeat(&self) -> Result<Option<Repeat>, ScatterError> {
        if self.facts.increasing {
            return Ok(None);
        }
        if let Some(&known) = self.first_repeat.get() {
            return Ok(known);
        }
        let found = self.look_for_repeat()?;
        Ok(*self.first_repeat.get_or_init(|| found))
    }

    /// [`Self::first_repeat`], but the plan does not learn from it: what it
    /// knows decides which schedule the next run takes.
    pub(crate) fn look_for_repeat(&self) -> Result<Option<Repeat>, ScatterError> {
        if self.is_known_unique() {
            return Ok(None);
        }
        if self.facts.ordered {
            return Ok(repeats::first_of_ordered(&self.destinations));
        }
        repeats::first_repeat(&self.destinations, self.scale.count)
    }

    /// The error for a plan whose destinations repeat.
    pub(crate) fn refuse_repeats(&self) -> Result<(), ScatterError> {
        let named = |position| self.tuple_at(position) * self.positions;
        match self.first_repeat()? {
            None => Ok(()),
            Some(repeat) => Err(ScatterError::DuplicateIndex {
                tuple: named(repeat.tuple),
                earlier: named(repeat.earlier),
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

/// A scatter of contiguous row-major tensors: three numbers say where
/// everything lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    /// Repetitions.
    pub(crate) outer: usize,
    /// Slices of one repetition of the output.
    pub(crate) slices: usize,
    /// Tuples, hence slices of one repetition of the updates.
    pub(crate) tuples: usize,
    /// Elements of a slice.
    pub(crate) run: usize,
}

impl Flat {
    /// `shape` is that of the output and has passed [`Layout::elements`].
    #[inline]
    pub(crate) fn new(form: &Form, shape: &[usize], tuples: usize) -> Self {
        let (batch, rest) = shape.split_at(form.batch_rank);
        let (indexed, window) = rest.split_at(form.tuple_len);
        Self {
            outer: batch.iter().product(),
            slices: indexed.iter().product(),
            tuples,
            run: window.iter().product(),
        }
    }

    /// Elements of the output.
    pub(crate) fn elements(&self) -> usize {
        self.outer * self.slices * self.run
    }
}

impl Scale {
    /// The numbering of destinations for an output: slices where the indexed
    /// axes merge to one stride, else offsets from the lowest address.
    pub(crate) fn new(output: &Layout<'_>, form: &Form) -> Result<(Self, Dims<i64>), ScatterError> {
        let axes = form.batch_rank..form.batch_rank + form.tuple_len;
        let sizes = &output.shape()[axes.clone()];
        let strides = output.all_strides()?;
        let strides = &strides[axes];
        let slices = row_major_strides(sizes)?;
        let in_64_bits = |values: &[isize]| {
            Dims::collect(values.len(), values.iter().map(|&value| value as i64))
        };
        let count = sizes.iter().map(|&size| size as u64).product();
        let unit = merged_stride(sizes, strides);
        if let Some(unit) = unit {
            let scale = Self {
                base: 0,
                unit,
                count,
                numbers_slices: true,
            };
            return Ok((scale, in_64_bits(&slices)?));
        }
        let reach = |stride: isize, size: usize| stride * (size.cast_signed() - 1);
        let (mut low, mut high) = (0, 0);
        for (&size, &stride) in sizes.iter().zip(strides) {
            low += reach(stride, size).min(0);
            high += reach(stride, size).max(0);
        }
        let scale = Self {
            base: low,
            unit: 1,
            count: high.abs_diff(low) as u64 + 1,
            numbers_slices: false,
        };
        Ok((scale, in_64_bits(strides)?))
    }
}

/// The one stride between neighbouring slices, where there is one. Axes of
/// size 1 have no say; an empty output has no strides to honour.
fn merged_stride(sizes: &[usize], strides: &[isize]) -> Option<isize> {
    let mut merged: Option<(isize, usize)> = None;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        if size == 1 {
            continue;
        }
        merged = match merged {
            None => Some((stride, size.max(1))),
            Some((unit, count)) if stride == unit.wrapping_mul(count.cast_signed()) => {
                Some((unit, count * size.max(1)))
            }
            Some(_) => return None,
        };
    }
    Some(merged.map_or(0, |(unit, _)| unit))
}
