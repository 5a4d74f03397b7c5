//! The plan: where every tuple's window goes, and what is known about that.
//!
//! Knows shapes, strides, index types and offsets. Knows nothing of element
//! types, reductions or threads: an immutable list of destinations with a few
//! facts is all that reaches the executor.

mod destinations;
mod geometry;
mod repeats;
mod resolve;
mod sort;

use std::sync::OnceLock;

pub(crate) use destinations::{Destinations, Number, Spare};
#[cfg(test)]
pub(crate) use geometry::Dim;
pub(crate) use geometry::{CopyGeometry, Geometry, Span};
pub(crate) use repeats::Winners;
pub(crate) use resolve::{Piece, Resolver, resolve_contiguous};

use crate::error::ScatterError;
use crate::layout::{Dims, Layout, row_major_strides};

/// The one form that operators are lowered to.
///
/// The first `batch_rank` axes of the output are repetitions, the next
/// `tuple_len` are addressed by the tuples, the rest is the window. The first
/// `tuple_rank` dims of `indices` make the list of tuples; a last one, if
/// there is one, holds the coordinates. `updates` has the batch dims, then the
/// dims of the list, then the window dims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) batch_rank: usize,
    pub(crate) tuple_len: usize,
    pub(crate) tuple_rank: usize,
}

/// A scatter that has been validated and worked out up to its values.
///
/// A plan knows the layout of the output and the destination of every tuple.
/// It can be run many times, from many threads, with other `data`, `updates`,
/// element types and reductions; each run skips the work on `indices`. Make
/// one with [`Scatter::plan`](crate::Scatter::plan).
#[derive(Debug)]
pub struct ScatterPlan {
    shape: Dims<usize>,
    strides: Dims<isize>,
    is_contiguous: bool,
    batch_rank: usize,
    tuple_len: usize,
    tuple_shape: Dims<usize>,
    destinations: Destinations,
    scale: Scale,
    facts: Facts,
    first_repeat: OnceLock<Option<Repeat>>,
    winners: OnceLock<Winners>,
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

/// What validation learns in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Each destination is greater than the one before: all are unique.
    pub(crate) increasing: bool,
    /// How often a destination is not the successor of the one before.
    pub(crate) breaks: usize,
}

/// Two tuples with one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) tuple: usize,
    pub(crate) earlier: usize,
}

impl ScatterPlan {
    /// A plan from destinations that [`Resolver`] has made for `form` and
    /// this `output`.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: Form,
        tuple_shape: &[usize],
        scale: Scale,
        destinations: Destinations,
        facts: Facts,
    ) -> Self {
        Self {
            shape: output.shape().into(),
            strides: output.all_strides(),
            is_contiguous: output.strides().is_none(),
            batch_rank: form.batch_rank,
            tuple_len: form.tuple_len,
            tuple_shape: tuple_shape.into(),
            destinations,
            scale,
            facts,
            first_repeat: OnceLock::new(),
            winners: OnceLock::new(),
        }
    }

    /// Shape of the output it was made for.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides, in elements, of the output it was made for.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Number of tuples.
    pub fn tuples(&self) -> usize {
        self.destinations.len()
    }

    /// Whether two tuples have one destination. Works it out on the first
    /// call, unless the destinations were found to be increasing.
    ///
    /// # Errors
    ///
    /// [`ScatterError::OutOfMemory`] if there is no memory to find out.
    pub fn has_duplicates(&self) -> Result<bool, ScatterError> {
        Ok(self.first_repeat()?.is_some())
    }

    /// The shape that `updates` must have.
    pub(crate) fn updates_shape(&self) -> Dims<usize> {
        let (batch, rest) = self.shape.split_at(self.batch_rank);
        let parts = [batch, &self.tuple_shape, &rest[self.tuple_len..]];
        parts.into_iter().flatten().copied().collect()
    }

    /// Refuses updates of another shape than the plan's tuples and window
    /// ask for.
    pub(crate) fn check_updates(&self, updates: &[usize]) -> Result<(), ScatterError> {
        let (batch, rest) = self.shape.split_at(self.batch_rank);
        check_updates([batch, &self.tuple_shape, &rest[self.tuple_len..]], updates)
    }

    /// The rank of updates of the shape that the plan asks for.
    pub(crate) fn updates_rank(&self) -> usize {
        self.shape.len() - self.tuple_len + self.tuple_shape.len()
    }

    /// The plan as one of contiguous tensors, where the output is one.
    pub(crate) fn flat(&self) -> Option<Flat> {
        let form = Form {
            batch_rank: self.batch_rank,
            tuple_len: self.tuple_len,
            tuple_rank: self.tuple_shape.len(),
        };
        (self.is_contiguous).then(|| Flat::new(&form, &self.shape, self.tuples()))
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
            planned_shape: self.shape.to_vec(),
            planned_strides: self.strides.to_vec(),
            shape: output.shape().to_vec(),
            strides: output.all_strides().to_vec(),
        })
    }

    pub(crate) fn destinations(&self) -> &Destinations {
        &self.destinations
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
        repeats::first_repeat(&self.destinations, self.scale.count)
    }

    /// The last tuple of every destination, in the order of destinations,
    /// worked out once. `None` where memory for it cannot be had.
    pub(crate) fn winners(&self) -> Option<&Winners> {
        if let Some(winners) = self.winners.get() {
            return Some(winners);
        }
        let winners = Winners::find(&self.destinations, self.scale.count, self.facts.increasing)?;
        Some(self.winners.get_or_init(|| winners))
    }

    /// Gives back the memory of the destinations, for another plan.
    pub(crate) fn into_destinations(self) -> Destinations {
        self.destinations
    }
}

impl Form {
    /// The shape of the list of tuples.
    pub(crate) fn tuple_shape<'a>(&self, indices: &Layout<'a>) -> &'a [usize] {
        &indices.shape()[..self.tuple_rank]
    }

    /// As [`ScatterPlan::check_updates`], before there is a plan.
    pub(crate) fn check_updates(
        &self,
        output: &[usize],
        indices: &Layout<'_>,
        updates: &[usize],
    ) -> Result<(), ScatterError> {
        let (batch, rest) = output.split_at(self.batch_rank);
        let window = &rest[self.tuple_len..];
        check_updates([batch, self.tuple_shape(indices), window], updates)
    }
}

/// Where a single element is expected without any dim, one of any rank will
/// do: runtimes write scalars as `[1]`.
fn check_updates(expected: [&[usize]; 3], actual: &[usize]) -> Result<(), ScatterError> {
    if actual.iter().eq(expected.into_iter().flatten()) {
        return Ok(());
    }
    if expected.iter().all(|dims| dims.is_empty()) && actual.iter().all(|&size| size == 1) {
        return Ok(());
    }
    Err(ScatterError::UpdatesShape {
        expected: expected.concat(),
        actual: actual.to_vec(),
    })
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
    pub(crate) fn new(output: &Layout<'_>, form: &Form) -> (Self, Dims<i64>) {
        let axes = form.batch_rank..form.batch_rank + form.tuple_len;
        let sizes = &output.shape()[axes.clone()];
        let strides = output.all_strides();
        let strides = &strides[axes];
        let slices = row_major_strides(sizes);
        let count = sizes.iter().map(|&size| size as u64).product();
        let unit = merged_stride(sizes, strides);
        if let Some(unit) = unit {
            let multipliers = slices.iter().map(|&m| m as i64).collect();
            let scale = Self {
                base: 0,
                unit,
                count,
                numbers_slices: true,
            };
            return (scale, multipliers);
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
        (scale, strides.iter().map(|&stride| stride as i64).collect())
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
