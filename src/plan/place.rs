//! A plan combined with the strides of a call's tensors: loops over the tensors, and offsets of
//! windows.
//!
//! Each tensor has the shape of the output that the plan was made for, or the shape of the updates
//! of that output. This module knows shapes and strides. This module does not know the values in
//! the tensors.

use std::ops::Range;

use super::IndexPlan;
use super::geometry::{CopyGeometry, Dim, Geometry, Span, merged, offset, single_stride};
use crate::error::ScatterError;
use crate::operand::{Dims, Layout};

/// Conversion of destination numbers to offsets in one tensor of the output's shape. In the first
/// repetition, the window of destination number `n` begins at offset `base + n * unit`, in elements
/// from element `[0, 0, ...]`.
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

/// Offsets of the windows of one tensor, in elements. The offset of an element is the sum of three
/// offsets: of its repetition, of its window within the repetition, and of its position within the
/// window.
#[derive(Debug)]
pub(crate) struct WindowOffsets {
    /// Offset of window 0 in the first repetition.
    base: isize,
    /// Sizes and strides of the dims of the repetitions.
    repetitions: Dims<(usize, isize)>,
    /// Sizes and strides of the list of windows. In [`IndexPlan::numbered`], the list has one
    /// window for each destination number. In [`IndexPlan::listed`], the list has one window for
    /// each tuple.
    windows: Dims<(usize, isize)>,
    /// Sizes and strides of the dims of a window.
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

    /// Returns the offset of window 0 in repetition `number`.
    pub(crate) fn of_repetition(&self, number: usize) -> isize {
        self.base + offset(&self.repetitions, number)
    }

    /// Returns the offset of a window relative to window 0 of its repetition. The argument `number`
    /// is the position of the window in the list of windows: a destination number, or the position
    /// of a tuple.
    pub(crate) fn of_window(&self, number: usize) -> isize {
        offset(&self.windows, number)
    }

    /// Returns the offset of an element relative to the start of its window. `position` is the
    /// row-major position of the element in the window.
    pub(crate) fn in_window(&self, position: usize) -> isize {
        offset(&self.window, position)
    }

    /// Returns the size and the stride of the innermost merged dim of a window. Each block of
    /// `size` successive elements, counted in row-major order from the start of the window, is at
    /// this stride.
    pub(crate) fn run(&self) -> (usize, isize) {
        self.window.last().copied().unwrap_or((1, 1))
    }

    /// Cuts the elements of a window into lines of `len` elements, where `len` divides the size of
    /// [`run`](Self::run) and is not 0. Returns the number of lines of a block, and a stride. In
    /// each block of lines, counted from the start of the window, the first elements of the lines
    /// are at this stride.
    pub(crate) fn lines(&self, len: usize) -> (usize, isize) {
        let (size, step) = self.run();
        match *self.window {
            _ if size > len => (size / len, step.wrapping_mul(len.cast_signed())),
            [.., outer, _] => outer,
            _ => (1, 0),
        }
    }

    /// Returns the stride between neighbouring windows of the list. Returns `None` if this stride
    /// is not constant.
    pub(crate) fn step(&self) -> Option<isize> {
        single_stride(&self.windows)
    }
}

impl IndexPlan {
    /// Computes the loops over a tensor of the output's shape and over updates. `numbered` has the
    /// strides of the first tensor. The cost depends on the rank, not on the number of tuples.
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

    /// Returns the strides of updates, for the rank that the plan requires. The result is empty if
    /// the plan requires a scalar and the caller has stored the scalar as a tensor of one element.
    fn strides_of_updates<'s>(&self, strides: &'s [isize]) -> &'s [isize] {
        let is_scalar = strides.len() != self.updates_shape.len();
        if is_scalar { &[] } else { strides }
    }

    /// Computes the loops over a tensor of the output's shape and over data. `numbered` has the
    /// strides of the first tensor.
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
    /// and the strides `strides`.
    ///
    /// The result is never `None` if the tensor has the strides of the output that the plan was
    /// made for. For other strides, the result is `None` if destination numbers are offsets, or if
    /// the stride between neighbouring slices of the tensor is not constant.
    pub(crate) fn binding<'s>(&self, strides: &'s [isize]) -> Option<Binding<'s>> {
        self.as_planned(strides).or_else(|| {
            Some(Binding {
                strides,
                base: 0,
                unit: self.slice_stride(strides)?,
            })
        })
    }

    /// Returns the stride between neighbouring slices in a tensor with the output's shape and the
    /// strides `strides`. Returns `None` if this stride is not constant, or if destination numbers
    /// are offsets and do not count slices.
    fn slice_stride(&self, strides: &[isize]) -> Option<isize> {
        if !self.scale.numbers_slices {
            return None;
        }
        let indexed = self.form.indexed();
        let sizes = &self.shape[indexed.clone()];
        let slices = Layout::of_parts(sizes, &strides[indexed]);
        slices.dims_from_last().merged(sizes)
    }

    /// Returns the conversion of destination numbers to offsets in a tensor of the output's shape.
    /// Returns `None` unless `strides` are the strides of the output that the plan was made for.
    /// Strides of axes of size 0 or 1 are not compared.
    fn as_planned<'s>(&self, strides: &'s [isize]) -> Option<Binding<'s>> {
        let mut axes = self.shape.iter().zip(self.strides.iter().zip(strides));
        let is_same = axes.all(|(&size, (planned, stride))| size <= 1 || planned == stride);
        is_same.then_some(Binding {
            strides,
            ..self.own_binding()
        })
    }

    /// Returns the offsets of the windows in a tensor of the output's shape. The list of windows is
    /// in the order of destination numbers. Returns `None` if destination numbers are offsets and
    /// the tensor has other strides than the output that the plan was made for.
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

    /// Returns the offsets of the windows in a tensor that has the shape of updates. The list of
    /// windows is in the order of tuples.
    pub(crate) fn listed(&self, strides: &[isize]) -> Result<WindowOffsets, ScatterError> {
        let strides = self.strides_of_updates(strides);
        let (batch, rest) = strides.split_at(self.form.batch_rank);
        let (tuples, window) = rest.split_at(self.tuple_shape.len());
        self.window_offsets(0, merged(&self.tuple_shape, tuples)?, batch, window)
    }

    /// Makes offsets. `batch` and `window` are the strides of the batch axes and of the window
    /// axes.
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

    /// Returns a geometry with one loop that counts repetitions and one loop that counts the
    /// elements of a window. Transfers of several tensors use these loops. The [`WindowOffsets`] of
    /// each tensor convert the counts to offsets.
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
