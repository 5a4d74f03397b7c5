//! Transfers that a few numbers describe: windows are rows of neighbours, at even
//! distances on both sides.
//!
//! Knows shapes and strides. Knows nothing of the values of indices.

use super::form::{Coordinates, Form};
use crate::operand::Layout;

/// Where everything lies, in elements. "Numbered" is the side whose windows are
/// addressed by number, "listed" the one that has a window for each tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flat {
    /// Repetitions, and the distance from one to the next on either side.
    pub(crate) outer: usize,
    pub(crate) outer_numbered: isize,
    pub(crate) outer_listed: isize,
    /// Numbers lie below this, and their windows so far apart.
    pub(crate) slices: usize,
    pub(crate) unit: isize,
    /// Tuples, and how far apart their windows are listed.
    pub(crate) tuples: usize,
    pub(crate) step: isize,
    /// Elements of a window.
    pub(crate) run: usize,
    /// Elements of the whole numbered side.
    pub(crate) elements: usize,
}

/// The shapes of one transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents<'a> {
    pub(crate) form: &'a Form,
    /// The shape of the numbered side.
    pub(crate) shape: &'a [usize],
    /// How far repetitions and window reach along each axis.
    pub(crate) reach: &'a [usize],
    /// Tuples of the list, and its dims.
    pub(crate) tuples: usize,
    pub(crate) list_rank: usize,
}

impl<'a> Extents<'a> {
    /// For indices of the shape `indices`.
    #[inline(always)] // As all that is on the way of the smallest calls.
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

    /// Sizes of the axes that tuples address.
    #[inline]
    pub(crate) fn sizes(&self) -> &'a [usize] {
        &self.shape[self.form.indexed()]
    }
}

impl Flat {
    /// What lies so, if it does. The layouts have passed [`Layout::elements`],
    /// and their shapes fit `extents`.
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

    /// A scatter_update along axis 1 of a tensor of three.
    fn along_axis_1() -> Form {
        Form {
            batch_rank: 1,
            tuple_len: 1,
            list: (0, 2),
            coordinates: Form::ALL_EXPLICIT,
        }
    }

    #[test]
    fn strides_written_out_say_what_no_strides_say() {
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
    fn even_distances_will_do_and_others_will_not() {
        let (data, updates) = ([2, 5, 4], [2, 3, 2, 4]);
        let of = |data_strides, updates_strides| {
            let data = Layout::strided(&data, data_strides).expect("ranks agree");
            let updates = Layout::strided(&updates, updates_strides).expect("ranks agree");
            flat(along_axis_1(), &data, &[3, 2], &updates)
        };
        let padded = of(&[40, -8, 1], &[100, 16, 8, 1]).expect("even distances");
        assert_eq!((padded.unit, padded.step, padded.run), (-8, 8, 4), "rows");
        assert_eq!(
            (padded.outer_numbered, padded.outer_listed),
            (40, 100),
            "repetitions"
        );
        assert_eq!(of(&[40, 8, 2], &[24, 8, 4, 1]), None, "windows with gaps");
        assert_eq!(of(&[20, 4, 1], &[24, 8, 4, 2]), None, "updates with gaps");
        assert_eq!(of(&[20, 4, 1], &[24, 9, 4, 1]), None, "an uneven list");
    }

    #[test]
    fn windows_that_reach_less_far_are_shorter_than_their_distance() {
        let form = Form {
            batch_rank: 0,
            tuple_len: 1,
            list: (0, 1),
            coordinates: Coordinates::Placed { axis: 0 },
        };
        let (data, updates) = (Layout::contiguous(&[6, 4]), Layout::contiguous(&[2, 3]));
        let flat = flat(form, &data, &[2, 3], &updates).expect("rows");
        assert_eq!((flat.unit, flat.step, flat.run), (4, 3, 3), "three of four");
        assert_eq!(flat.elements, 24, "all are data");
    }
}
