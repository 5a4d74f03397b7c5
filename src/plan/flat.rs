//! Transfers that a few strides describe completely.
//!
//! A transfer moves windows between a numbered tensor and a listed tensor. The numbered tensor is
//! the output of a scatter or the data of a gather. Destination numbers address the windows of the
//! numbered tensor. The listed tensor is the updates of a scatter or the output of a gather. In
//! each repetition, the listed tensor has one window for each tuple.
//!
//! In a transfer of this module, each window is a row of contiguous elements, or a single element.
//! In each of the two tensors, neighbouring windows are at one constant stride, and neighbouring
//! repetitions are at one constant stride. This module knows shapes and strides. This module does
//! not know the values of indices.

use super::form::{Coordinates, Form};
use crate::operand::Layout;

/// Sizes and strides of a transfer between two tensors. Strides are in elements.
///
/// One tensor is the numbered tensor (the output of a scatter, the data of a gather). Destination
/// numbers address the windows of this tensor. The other tensor is the listed tensor (the updates
/// of a scatter, the output of a gather). In each repetition, the listed tensor has one window for
/// each tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flat {
    /// Number of repetitions.
    pub(crate) outer: usize,
    /// Stride between repetitions in the numbered tensor.
    pub(crate) outer_numbered: isize,
    /// Stride between repetitions in the listed tensor.
    pub(crate) outer_listed: isize,
    /// Exclusive upper bound of the destination numbers: the number of positions along the axes
    /// that tuples address, within one repetition.
    pub(crate) slices: usize,
    /// Stride between the windows of successive destination numbers in the numbered tensor.
    pub(crate) unit: isize,
    /// Number of tuples.
    pub(crate) tuples: usize,
    /// Stride between the windows of successive tuples in the listed tensor.
    pub(crate) step: isize,
    /// Number of elements of a window.
    pub(crate) run: usize,
    /// Number of elements of the whole numbered tensor (the output of a scatter, the data of a
    /// gather).
    pub(crate) elements: usize,
}

/// Shapes of one transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents<'a> {
    pub(crate) form: &'a Form,
    /// Shape of the numbered tensor (the output of a scatter, the data of a gather).
    pub(crate) shape: &'a [usize],
    /// One size for each axis of the numbered tensor. Along a batch axis, the size is the number of
    /// repetitions. Along a window axis, the size is the length of a window. The sizes are those of
    /// `shape`, except for [`Coordinates::Placed`]. For [`Coordinates::Placed`], the sizes are
    /// those of the shape of the indices, which can be smaller.
    pub(crate) reach: &'a [usize],
    /// Number of tuples in the list of tuples.
    pub(crate) tuples: usize,
    /// Number of dims of the list of tuples.
    pub(crate) list_rank: usize,
}

impl<'a> Extents<'a> {
    /// Computes the extents of a transfer.
    ///
    /// - `shape`: shape of the numbered tensor (the output of a scatter, the data of a gather).
    /// - `indices`: shape of the indices.
    #[inline(always)] // On the path of the smallest calls.
    pub(crate) fn new(form: &'a Form, shape: &'a [usize], indices: &'a [usize]) -> Self {
        let (tuples, list_rank) = match form.coordinates {
            Coordinates::Sequences { axis, len, .. } => {
                (shape[..axis].iter().product::<usize>() * len, axis + 1)
            }
            _ => {
                let list = &indices[form.list.0..form.list.1];
                (list.iter().product(), list.len())
            }
        };
        Self {
            form,
            shape,
            reach: form.reach(shape, indices),
            tuples,
            list_rank,
        }
    }

    /// Returns the sizes of the axes that tuples address.
    #[inline]
    pub(crate) fn sizes(&self) -> &'a [usize] {
        &self.shape[self.form.indexed()]
    }
}

impl Flat {
    /// Computes the sizes and strides of a transfer. Returns `None` if windows or repetitions are
    /// not at one constant stride in a tensor, or if windows are neither contiguous rows nor single
    /// elements. [`Layout::elements`] must have returned `Some` for the two layouts, and the shapes
    /// of the layouts must fit `extents`.
    #[inline(always)]
    pub(crate) fn new(
        extents: &Extents<'_>,
        numbered: &Layout<'_>,
        listed: &Layout<'_>,
    ) -> Option<Self> {
        let are_contiguous = numbered.is_contiguous() && listed.is_contiguous();
        let is_whole = !matches!(extents.form.coordinates, Coordinates::Placed { .. });
        if are_contiguous && is_whole {
            return Some(Self::contiguous(extents));
        }
        Self::strided(extents, numbered, listed)
    }

    /// Computes the [`Flat`] of a transfer between two contiguous tensors, from the shapes alone.
    /// The repetitions cover the batch axes completely, and the windows cover the window axes
    /// completely. The batch axes and the window axes are those of the numbered tensor (the output
    /// of a scatter, the data of a gather).
    #[inline(always)]
    fn contiguous(extents: &Extents<'_>) -> Self {
        let (batch, rest) = extents.shape.split_at(extents.form.batch_rank);
        let (indexed, window) = rest.split_at(extents.form.tuple_len);
        let run: usize = window.iter().product();
        let slices: usize = indexed.iter().product();
        let outer: usize = batch.iter().product();
        let (slice, tuples) = (slices * run, extents.tuples);
        Self {
            outer,
            outer_numbered: slice.cast_signed(),
            outer_listed: (tuples * run).cast_signed(),
            slices,
            unit: run.cast_signed(),
            tuples,
            step: run.cast_signed(),
            run,
            elements: outer * slice,
        }
    }

    /// Computes the [`Flat`] of a transfer between two tensors of any layout, from the strides of
    /// two layouts. The argument `numbered` is the layout of the output of a scatter, or of the
    /// data of a gather. The argument `listed` is the layout of the updates of a scatter, or of the
    /// output of a gather. Returns `None` in the cases that [`Flat::new`] states. Also returns
    /// `None` if the tensor of `numbered` has no elements, or if the tensor of `listed` has another
    /// rank than `extents` requires.
    #[inline(never)]
    fn strided(extents: &Extents<'_>, numbered: &Layout<'_>, listed: &Layout<'_>) -> Option<Self> {
        let (form, reach) = (extents.form, extents.reach);
        let elements = numbered.elements()?;
        let same_rank = listed.shape().len() == reach.len() - form.tuple_len + extents.list_rank;
        if elements == 0 || !same_rank {
            return None;
        }
        let (batch, rest) = reach.split_at(form.batch_rank);
        let window = &rest[form.tuple_len..];
        let mut dims = numbered.dims_from_last();
        let window_step = dims.merged(window)?;
        let unit = dims.merged(extents.sizes())?;
        let outer_numbered = dims.merged(batch)?;
        let mut dims = listed.dims_from_last();
        let listed_window_step = dims.merged(window)?;
        let step = dims.merged(&listed.shape()[form.batch_rank..][..extents.list_rank])?;
        let outer_listed = dims.merged(batch)?;
        let run = window.iter().product();
        let is_row = run == 1 || (window_step, listed_window_step) == (1, 1);
        is_row.then_some(Self {
            outer: batch.iter().product(),
            outer_numbered,
            outer_listed,
            slices: extents.sizes().iter().product(),
            unit,
            tuples: extents.tuples,
            step,
            run,
            elements,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Coordinates, Extents, Flat, Form};
    use crate::operand::Layout;

    fn flat(
        form: Form,
        data: &Layout<'_>,
        indices: &[usize],
        updates: &Layout<'_>,
    ) -> Option<Flat> {
        Flat::new(&Extents::new(&form, data.shape(), indices), data, updates)
    }

    /// Returns the form of a `scatter_update` along axis 1 of a tensor with three axes.
    fn along_axis_1() -> Form {
        Form {
            batch_rank: 1,
            tuple_len: 1,
            list: (0, 2),
            coordinates: Form::ALL_EXPLICIT,
        }
    }

    #[test]
    fn explicit_contiguous_strides_give_the_same_result() {
        let (data, updates) = ([2, 5, 4], [2, 3, 2, 4]);
        let contiguous = [&data[..], &updates].map(Layout::contiguous);
        let expected = Flat {
            outer: 2,
            outer_numbered: 20,
            outer_listed: 24,
            slices: 5,
            unit: 4,
            tuples: 6,
            step: 4,
            run: 4,
            elements: 40,
        };
        let got = flat(along_axis_1(), &contiguous[0], &[3, 2], &contiguous[1]);
        assert_eq!(got, Some(expected), "contiguous");
        let strided = [
            Layout::strided(&data, &[20, 4, 1]).expect("ranks agree"),
            Layout::strided(&updates, &[24, 8, 4, 1]).expect("ranks agree"),
        ];
        let got = flat(along_axis_1(), &strided[0], &[3, 2], &strided[1]);
        assert_eq!(got, Some(expected), "strided");
    }

    #[test]
    fn only_constant_strides_are_flat() {
        let (data, updates) = ([2, 5, 4], [2, 3, 2, 4]);
        let of = |data_strides, updates_strides| {
            let data = Layout::strided(&data, data_strides).expect("ranks agree");
            let updates = Layout::strided(&updates, updates_strides).expect("ranks agree");
            flat(along_axis_1(), &data, &[3, 2], &updates)
        };
        let padded = of(&[40, -8, 1], &[100, 16, 8, 1]).expect("constant strides");
        assert_eq!((padded.unit, padded.step, padded.run), (-8, 8, 4), "rows");
        assert_eq!(
            (padded.outer_numbered, padded.outer_listed),
            (40, 100),
            "repetitions"
        );
        assert_eq!(of(&[40, 8, 2], &[24, 8, 4, 1]), None, "windows with gaps");
        assert_eq!(of(&[20, 4, 1], &[24, 8, 4, 2]), None, "updates with gaps");
        assert_eq!(of(&[20, 4, 1], &[24, 9, 4, 1]), None, "two list strides");
    }

    #[test]
    fn small_windows_are_shorter_than_their_stride() {
        let form = Form {
            batch_rank: 0,
            tuple_len: 1,
            list: (0, 1),
            coordinates: Coordinates::Placed { axis: 0 },
        };
        let (data, updates) = (Layout::contiguous(&[6, 4]), Layout::contiguous(&[2, 3]));
        let flat = flat(form, &data, &[2, 3], &updates).expect("rows");
        assert_eq!((flat.unit, flat.step, flat.run), (4, 3, 3), "three of four");
        assert_eq!(flat.elements, 24, "elements of all of data");
    }
}
