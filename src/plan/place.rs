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
    /// Loops for updates of the plan's shape that have these strides, beside a tensor of the
    /// output's shape. Takes time proportional to the rank.
    pub(crate) fn geometry(
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

    /// Loops for data of the plan's shape that has these strides, beside a tensor of the
    /// output's shape.
    pub(crate) fn copy_geometry(
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
        let slices = self.slice_stride(data_strides).map(|src| Dim {
            size: self.shape[indexed.clone()].iter().product(),
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
    pub(crate) fn binding<'s>(&self, strides: &'s [isize]) -> Option<Binding<'s>> {
        self.as_planned(strides).or_else(|| {
            Some(Binding {
                strides,
                base: 0,
                unit: self.slice_stride(strides)?,
            })
        })
    }

    /// The distance from one numbered slice to the next in a tensor of the output's shape;
    /// `None` where it is not constant, or where numbers are not those of slices.
    fn slice_stride(&self, strides: &[isize]) -> Option<isize> {
        if !self.scale.numbers_slices {
            return None;
        }
        let indexed = self.form.indexed();
        let sizes = &self.shape[indexed.clone()];
        let slices = Layout::of_parts(sizes, &strides[indexed]);
        slices.dims_from_last().merged(sizes)
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
            let sizes = &self.shape[indexed.clone()];
            (0, merged(sizes, &strides[indexed.clone()])?)
        } else if let Some(binding) = self.as_planned(strides) {
            (binding.base, Dims::copied(&[(usize::MAX, binding.unit)])?)
        } else {
            return Ok(None);
        };
        let (batch, window) = (&strides[..indexed.start], &strides[indexed.end..]);
        Ok(Some(self.place(base, windows, batch, window)?))
    }

    /// Where the windows of tuples lie in a tensor of the shape of updates.
    pub(crate) fn listed(&self, strides: &[isize]) -> Result<WindowOffsets, ScatterError> {
        let strides = self.strides_of_updates(strides);
        let (batch, rest) = strides.split_at(self.form.batch_rank);
        let (tuples, window) = rest.split_at(self.tuple_shape.len());
        self.place(0, merged(&self.tuple_shape, tuples)?, batch, window)
    }

    /// The offsets of windows, with the strides of repetitions and within a window.
    fn place(
        &self,
        base: isize,
        windows: Dims<(usize, isize)>,
        batch: &[isize],
        window: &[isize],
    ) -> Result<WindowOffsets, ScatterError> {
        let axes = self.form.indexed();
        Ok(WindowOffsets {
            base,
            repetitions: merged(&self.reach[..axes.start], batch)?,
            windows,
            window: merged(&self.reach[axes.end..], window)?,
        })
    }

    /// Repetitions, tuples and windows counted, whatever lies where: for transfers of
    /// several tensors, each with a [`WindowOffsets`] of its own.
    pub(crate) fn counted(&self) -> Result<Geometry, ScatterError> {
        let axes = self.form.indexed();
        let span = |sizes: &[usize]| {
            let size = sizes.iter().product();
            Span::new(std::iter::once(Dim { size, ..Dim::ONE }))
        };
        Ok(Geometry {
            unit: 1,
            outer: span(&self.reach[..axes.start])?,
            window: span(&self.reach[axes.end..])?,
            tuples: Dims::new(),
            joins: false,
        })
    }
}
