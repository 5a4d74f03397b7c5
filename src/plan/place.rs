//! Where windows lie in tensors other than the output that a plan was made for: of its
//! shape, or of that of its updates, with any strides.
//!
//! Knows shapes and strides. Knows nothing of what the tensors hold.

use super::IndexPlan;
use super::geometry::{Geometry, merged};
use crate::error::ScatterError;
use crate::operand::{Dims, offset_of};

/// How destination numbers are to be read for a tensor of the output's shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'s> {
    /// Of the tensor, in elements.
    pub(super) strides: &'s [isize],
    /// Number `n` lies `base + n * unit` elements from its element `[0, 0, ...]`.
    pub(super) base: isize,
    pub(super) unit: isize,
}

/// Where the windows of one tensor lie: offsets, in elements, to be added up.
#[derive(Debug)]
pub(crate) struct WindowOffsets {
    base: isize,
    repetitions: Dims<(usize, isize)>,
    /// By destination number, or by tuple.
    windows: Dims<(usize, isize)>,
    /// By the row-major position in a window.
    window: Dims<(usize, isize)>,
}

fn offset(dims: &[(usize, isize)], number: usize) -> isize {
    if let [(_, step)] = *dims {
        return number.cast_signed() * step;
    }
    offset_of(dims.iter().rev().copied(), number)
}

impl WindowOffsets {
    pub(crate) fn copied(&self) -> Result<Self, ScatterError> {
        Ok(Self {
            base: self.base,
            repetitions: Dims::copied(&self.repetitions)?,
            windows: Dims::copied(&self.windows)?,
            window: Dims::copied(&self.window)?,
        })
    }

    /// Where a repetition begins.
    pub(crate) fn of_repetition(&self, number: usize) -> isize {
        self.base + offset(&self.repetitions, number)
    }

    /// Where a window begins in its repetition.
    pub(crate) fn of_window(&self, number: usize) -> isize {
        offset(&self.windows, number)
    }

    /// Where a position of a window lies in it.
    pub(crate) fn in_window(&self, position: usize) -> isize {
        offset(&self.window, position)
    }

    /// How many positions of a window are one step apart, and the step: those from any
    /// multiple of that number on.
    pub(crate) fn run(&self) -> (usize, isize) {
        self.window.last().copied().unwrap_or((1, 1))
    }

    /// The distance from each window to the next, where it is constant.
    pub(crate) fn step(&self) -> Option<isize> {
        match self.windows[..] {
            [] => Some(0),
            [(_, step)] => Some(step),
            _ => None,
        }
    }
}

impl IndexPlan {
    /// How numbers are to be read for the output that it was made for.
    pub(crate) fn own_binding(&self) -> Binding<'_> {
        Binding {
            strides: &self.strides,
            base: self.scale.base,
            unit: self.scale.unit,
        }
    }

    /// The same for a tensor of its shape that has these strides; `None` where numbers
    /// are not evenly spaced there.
    pub(crate) fn binding<'s>(
        &self,
        strides: &'s [isize],
    ) -> Result<Option<Binding<'s>>, ScatterError> {
        if let Some(binding) = self.as_planned(strides) {
            return Ok(Some(binding));
        }
        let indexed = self.form.batch_rank..self.form.batch_rank + self.form.tuple_len;
        let slices = merged(&self.shape[indexed.clone()], &strides[indexed])?;
        let unit = match slices[..] {
            [] => Some(0),
            [(_, step)] => Some(step),
            _ => None,
        };
        let unit = unit.filter(|_| self.scale.numbers_slices);
        Ok(unit.map(|unit| Binding {
            strides,
            base: 0,
            unit,
        }))
    }

    /// For a tensor that lies as the output that it was made for.
    fn as_planned<'s>(&self, strides: &'s [isize]) -> Option<Binding<'s>> {
        let mut axes = self.shape.iter().zip(self.strides.iter().zip(strides));
        let is_same = axes.all(|(&size, (planned, stride))| size <= 1 || planned == stride);
        is_same.then_some(Binding {
            strides,
            ..self.own_binding()
        })
    }

    /// Where the numbered windows lie of a tensor of the output's shape; `None` where
    /// numbers say it of the output's own layout alone.
    pub(crate) fn numbered(
        &self,
        strides: &[isize],
    ) -> Result<Option<WindowOffsets>, ScatterError> {
        let indexed = self.form.batch_rank..self.form.batch_rank + self.form.tuple_len;
        let (base, windows) = if self.scale.numbers_slices {
            (0, merged(&self.shape[indexed.clone()], &strides[indexed])?)
        } else if let Some(binding) = self.as_planned(strides) {
            let dims = [(usize::MAX, binding.unit)];
            (binding.base, Dims::collect(1, dims)?)
        } else {
            return Ok(None);
        };
        let window = self.form.batch_rank + self.form.tuple_len;
        Ok(Some(WindowOffsets {
            base,
            windows,
            ..self.place(&strides[..self.form.batch_rank], &strides[window..])?
        }))
    }

    /// Where the windows of tuples lie in a tensor of the shape of updates.
    pub(crate) fn listed(&self, strides: &[isize]) -> Result<WindowOffsets, ScatterError> {
        let strides = self.strides_of_updates(strides);
        let (batch, rest) = strides.split_at(self.form.batch_rank);
        let (tuples, window) = rest.split_at(self.tuple_shape.len());
        Ok(WindowOffsets {
            windows: merged(&self.tuple_shape, tuples)?,
            ..self.place(batch, window)?
        })
    }

    fn place(&self, batch: &[isize], window: &[isize]) -> Result<WindowOffsets, ScatterError> {
        let axis = self.form.batch_rank + self.form.tuple_len;
        Ok(WindowOffsets {
            base: 0,
            repetitions: merged(&self.reach[..self.form.batch_rank], batch)?,
            windows: Dims::new(),
            window: merged(&self.reach[axis..], window)?,
        })
    }

    /// Repetitions, tuples and windows counted, whatever lies where: for transfers of
    /// several tensors, each with a [`WindowOffsets`] of its own.
    pub(crate) fn counted(&self) -> Result<Geometry, ScatterError> {
        let axis = self.form.batch_rank + self.form.tuple_len;
        let repetitions = self.reach[..self.form.batch_rank].iter().product();
        Geometry::counted(repetitions, self.reach[axis..].iter().product())
    }
}
