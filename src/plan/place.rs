//! A plan combined with the strides of tensors: loops over the tensors and offsets of their
//! windows.
//!
//! Each tensor has the shape of the output that the plan was made for, or the shape of its updates.
//! This module knows shapes and strides. This module knows nothing of the values in the tensors.

use std::ops::Range;

use super::IndexPlan;
use super::geometry::{CopyGeometry, Dim, Geometry, Span, merged, offset, single_stride};
use crate::error::ScatterError;
use crate::operand::{Dims, Layout};

/// Conversion of destination numbers to offsets in one tensor of the output's shape: the window of
/// destination number `n` begins at element `base + n * unit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'s> {
    /// Strides of the tensor, in elements.
    pub(super) strides: &'s [isize],
    /// Offset of the window of destination number 0 from element `[0, 0, ...]`, in elements.
    pub(super) base: isize,
    /// Distance from the window of one destination number to the window of the next destination
    /// number, in elements.
    pub(super) unit: isize,
}

/// Offsets of the windows of one tensor, in elements. The offset of an element is the sum of the
/// offsets of its repetition, its window and its position in the window.
#[derive(Debug)]
pub(crate) struct WindowOffsets {
    /// Offset of the first repetition.
    base: isize,
    /// Sizes and strides of the repetitions.
    repetitions: Dims<(usize, isize)>,
    /// Sizes and strides of the list of windows. The list has one window for each destination
    /// number ([`IndexPlan::numbered`]), or one window for each tuple ([`IndexPlan::listed`]).
    windows: Dims<(usize, isize)>,
    /// Sizes and strides of a window.
    window: Dims<(usize, isize)>,
}

impl WindowOffsets {
    /// Returns a copy, or an error if the allocation failed.
    pub(crate) fn copied(&self) -> Result<Self, ScatterError> {
        Ok(Self {
            base: self.base,
            repetitions: Dims::copied(&self.repetitions)?,
            windows: Dims::copied(&self.windows)?,
            window: Dims::copied(&self.window)?,
        })
    }

    /// Returns the offset of a repetition.
    pub(crate) fn of_repetition(&self, number: usize) -> isize {
        self.base + offset(&self.repetitions, number)
    }

    /// Returns the offset of a window from its repetition. `number` is the position of the window
    /// in the list of windows: a destination number, or the position of a tuple.
    pub(crate) fn of_window(&self, number: usize) -> isize {
        offset(&self.windows, number)
    }

    /// Returns the offset of a row-major position from its window.
    pub(crate) fn in_window(&self, position: usize) -> isize {
        offset(&self.window, position)
    }

    /// Returns the size and the stride of the innermost dim of a window. Positions from one
    /// multiple of the size to the next are at this stride.
    pub(crate) fn run(&self) -> (usize, isize) {
        self.window.last().copied().unwrap_or((1, 1))
    }

    /// Returns the stride between windows. `None` if this stride is not constant.
    pub(crate) fn step(&self) -> Option<isize> {
        single_stride(&self.windows)
    }
}

impl IndexPlan {
    /// Computes the loops over a tensor of the output's shape and over updates with these strides.
    /// The cost is proportional to the rank.
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

    /// Returns the strides of updates. Returns no strides where updates are a scalar that the
    /// caller has stored as a tensor of one element.
    fn strides_of_updates<'s>(&self, strides: &'s [isize]) -> &'s [isize] {
        let is_scalar = strides.len() != self.updates_shape.len();
        if is_scalar { &[] } else { strides }
    }

    /// Computes the loops over a tensor of the output's shape and over data with these strides.
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

    /// Returns the conversion of destination numbers to offsets in the output that the plan was
    /// made for.
    pub(crate) fn own_binding(&self) -> Binding<'_> {
        Binding {
            strides: &self.strides,
            base: self.scale.base,
            unit: self.scale.unit,
        }
    }

    /// Returns the conversion of destination numbers to offsets in a tensor with the output's shape
    /// and the strides `strides`. Returns `None` if the destinations are not at a constant stride
    /// in this tensor.
    pub(crate) fn binding<'s>(&self, strides: &'s [isize]) -> Option<Binding<'s>> {
        self.as_planned(strides).or_else(|| {
            Some(Binding {
                strides,
                base: 0,
                unit: self.slice_stride(strides)?,
            })
        })
    }

    /// Returns the stride between neighbouring slices in a tensor of the output's shape. `None` if
    /// this stride is not constant, or if destination numbers do not count slices.
    fn slice_stride(&self, strides: &[isize]) -> Option<isize> {
        if !self.scale.numbers_slices {
            return None;
        }
        let indexed = self.form.indexed();
        let sizes = &self.shape[indexed.clone()];
        let slices = Layout::of_parts(sizes, &strides[indexed]);
        slices.dims_from_last().merged(sizes)
    }

    /// Returns the conversion of destination numbers to offsets in a tensor with these strides.
    /// Returns `None` unless every element has the same offset in this tensor and in the output
    /// that the plan was made for.
    fn as_planned<'s>(&self, strides: &'s [isize]) -> Option<Binding<'s>> {
        let mut axes = self.shape.iter().zip(self.strides.iter().zip(strides));
        let is_same = axes.all(|(&size, (planned, stride))| size <= 1 || planned == stride);
        is_same.then_some(Binding {
            strides,
            ..self.own_binding()
        })
    }

    /// Returns the offsets of the windows, by destination number, in a tensor of the output's
    /// shape. `None` if the destination numbers are offsets and the tensor has another layout than
    /// the plan.
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
        Ok(Some(self.window_offsets(base, windows, batch, window)?))
    }

    /// Returns the offsets of the windows, by tuple, in a tensor of the shape of updates.
    pub(crate) fn listed(&self, strides: &[isize]) -> Result<WindowOffsets, ScatterError> {
        let strides = self.strides_of_updates(strides);
        let (batch, rest) = strides.split_at(self.form.batch_rank);
        let (tuples, window) = rest.split_at(self.tuple_shape.len());
        self.window_offsets(0, merged(&self.tuple_shape, tuples)?, batch, window)
    }

    /// Makes offsets with the strides of the batch axes and of the window axes.
    fn window_offsets(
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

    /// Returns loops that only count repetitions and elements of a window. These loops serve
    /// transfers of several tensors, where each tensor has its own [`WindowOffsets`].
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
