//! A plan held against the strides of tensors: loops over them, and where their windows lie.
//!
//! A tensor has the shape of the output that the plan was made for, or that of its updates.
//! Knows shapes and strides. Knows nothing of what the tensors hold.

use std::ops::Range;

use super::IndexPlan;
use super::geometry::{CopyGeometry, Dim, Geometry, Span, merged, offset, one_step};
use crate::error::ScatterError;
use crate::operand::{Dims, Layout};

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
        one_step(&self.windows)
    }
}

impl IndexPlan {
    /// Loops for updates of the plan's shape that have these strides. Takes
    /// time proportional to the rank.
    pub(crate) fn geometry(&self, updates_strides: &[isize]) -> Result<Geometry, ScatterError> {
        self.geometry_of(&self.own_binding(), updates_strides)
    }

    /// The same beside another tensor of the output's shape.
    pub(crate) fn geometry_of(
        &self,
        numbered: &Binding<'_>,
        updates_strides: &[isize],
    ) -> Result<Geometry, ScatterError> {
        let updates_strides = self.strides_of_updates(updates_strides);
        let tuple_rank = self.tuple_shape.len();
        let batch_rank = self.form.batch_rank;
        let (batch, rest) = updates_strides.split_at(batch_rank);
        let (tuple_strides, window_strides) = rest.split_at(tuple_rank);
        let window_axis = self.form.indexed().end;
        let strides = numbered.strides;
        let (outer_sizes, window_sizes) = (&self.reach[..batch_rank], &self.reach[window_axis..]);
        let mut outer = Span::over(outer_sizes, &strides[..batch_rank], batch)?;
        outer.dst += numbered.base;
        let window = Span::over(window_sizes, &strides[window_axis..], window_strides)?;
        let tuples = merged(&self.tuple_shape, tuple_strides)?;
        let length = window.run().size.cast_signed();
        let joins = window.is_row()
            && numbered.unit == length
            && matches!(tuples[..], [(_, step)] if step == length);
        let mut geometry = Geometry {
            unit: numbered.unit,
            outer,
            window,
            tuples,
            joins,
        };
        geometry.lengthen_run(self.tuples())?;
        Ok(geometry)
    }

    /// Those of updates, without those of a scalar that is written as a tensor of one
    /// element.
    fn strides_of_updates<'s>(&self, strides: &'s [isize]) -> &'s [isize] {
        let is_scalar = strides.len() != self.updates_shape.len();
        if is_scalar { &[] } else { strides }
    }

    /// Loops for data of the plan's shape that has these strides.
    pub(crate) fn copy_geometry(
        &self,
        data_strides: &[isize],
    ) -> Result<CopyGeometry, ScatterError> {
        self.copy_geometry_of(&self.own_binding(), data_strides)
    }

    /// The same beside another tensor of the output's shape.
    pub(crate) fn copy_geometry_of(
        &self,
        numbered: &Binding<'_>,
        data_strides: &[isize],
    ) -> Result<CopyGeometry, ScatterError> {
        let rank = self.shape.len();
        let batch_rank = self.form.batch_rank;
        let indexed = self.form.indexed();
        let span = |axes: Range<usize>| {
            let (sizes, written) = (&self.shape[axes.clone()], &numbered.strides[axes.clone()]);
            Span::over(sizes, written, &data_strides[axes])
        };
        let sizes = &self.shape[indexed.clone()];
        let slices = (self.scale.numbers_slices)
            .then(|| {
                let slices = Layout::of_parts(sizes, &data_strides[indexed.clone()]);
                slices.dims_from_last().merged(sizes)
            })
            .flatten()
            .map(|src| Dim {
                size: sizes.iter().product(),
                dst: numbered.unit,
                src,
            });
        Ok(CopyGeometry {
            whole: span(0..rank)?,
            outer: span(0..batch_rank)?,
            inner: span(batch_rank..rank)?,
            slices,
            window: span(indexed.end..rank)?,
        })
    }

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
        let indexed = self.form.indexed();
        let slices = merged(&self.shape[indexed.clone()], &strides[indexed])?;
        let unit = one_step(&slices).filter(|_| self.scale.numbers_slices);
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
        let indexed = self.form.indexed();
        let (base, windows) = if self.scale.numbers_slices {
            (0, merged(&self.shape[indexed.clone()], &strides[indexed])?)
        } else if let Some(binding) = self.as_planned(strides) {
            let dims = [(usize::MAX, binding.unit)];
            (binding.base, Dims::collect(1, dims)?)
        } else {
            return Ok(None);
        };
        let window = self.form.indexed().end;
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
        let axis = self.form.indexed().end;
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
        let axis = self.form.indexed().end;
        let repetitions = self.reach[..self.form.batch_rank].iter().product();
        Geometry::counted(repetitions, self.reach[axis..].iter().product())
    }
}
