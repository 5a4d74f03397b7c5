//! A few tuples of any layout, without preparations.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

use std::ops::Range;

use super::block::{Axis, Coordinate, IndexRules, Outlier};
use crate::error::ScatterError;
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::destinations::Number;
use crate::plan::flat::Extents;
use crate::reduction::Bounds;

/// The most tuples that [`resolve_few`] numbers.
pub(crate) const FEW: usize = 16;

/// Numbers the slices that the tuples of a list address, one for each entry of
/// `numbers`: what [`Resolver`](super::Resolver) does, whose preparations would
/// take longer. Returns how many tuples are skipped.
pub(crate) fn resolve_few(
    extents: &Extents<'_>,
    indices: &Integers<'_>,
    rules: IndexRules,
    numbers: &mut [u32],
) -> Result<usize, ScatterError> {
    let mut offsets = [0; FEW];
    let offsets = &mut offsets[..numbers.len()];
    if numbers.is_empty() {
        return Ok(0);
    }
    let list = Few {
        read: extents.form.read(),
        sizes: extents.sizes(),
        extents,
        indices,
        rules,
    };
    let coordinate_stride = list.spread(offsets, numbers);
    for_index_type!(indices.kind(), I => list.resolve::<I>(coordinate_stride, offsets, numbers))
}

struct Few<'a> {
    /// Tuple axes whose coordinates are read, and the sizes of all.
    read: Range<usize>,
    sizes: &'a [usize],
    extents: &'a Extents<'a>,
    indices: &'a Integers<'a>,
    rules: IndexRules,
}

impl Few<'_> {
    /// Writes where the first coordinate of each tuple lies, and its number if the
    /// coordinates that are read are zero. Returns the distance from one coordinate
    /// to the next.
    fn spread(&self, offsets: &mut [isize], numbers: &mut [u32]) -> isize {
        let form = self.extents.form;
        let (first, end) = form.list;
        let (mut coordinate_stride, mut len) = (0, 1);
        let mut axis = self.indices.layout().shape().len();
        for (size, stride) in self.indices.layout().dims_from_last() {
            axis -= 1;
            if axis >= end {
                coordinate_stride = stride;
                continue;
            }
            if axis < first || size == 1 {
                continue;
            }
            let step = match form.is_implied(axis - first) {
                true => self.multiplier(axis - first),
                false => 0,
            };
            // What has been written is what the dims behind this one make: once more
            // for each position along it.
            for at in len..len * size {
                offsets[at] = offsets[at - len].wrapping_add(stride);
                numbers[at] = numbers[at - len].wrapping_add(step);
            }
            len *= size;
        }
        coordinate_stride
    }

    /// What a step along a tuple axis adds to a number.
    fn multiplier(&self, tuple_axis: usize) -> u32 {
        let behind = self.sizes[tuple_axis + 1..].iter().product::<usize>();
        Number::new(behind as u64)
    }

    fn resolve<I: Coordinate>(
        &self,
        coordinate_stride: isize,
        offsets: &[isize],
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        let sizes = &self.sizes[self.read.clone()];
        let Some(last) = self.read.clone().next_back() else {
            return Ok(0);
        };
        let unit = self.multiplier(last);
        let mut skipped = 0;
        for (tuple, (number, &first)) in numbers.iter_mut().zip(offsets).enumerate() {
            // Of the coordinates that are read, in row-major order.
            let (mut slice, mut is_applied, mut offset) = (0_u32, true, first);
            for (coordinate, &size) in sizes.iter().enumerate() {
                let mut index = [I::default()];
                // SAFETY: the offset of an element, as it follows the layout's dims
                // and strides.
                unsafe { self.indices.read_run(offset, 0, &mut index) };
                let position = (self.rules.position(index[0], size as u64))
                    .ok_or_else(|| self.outlier(index[0].into(), tuple, coordinate))?;
                is_applied &= position < size as u64;
                slice = slice.wrapping_mul(Number::new(size as u64));
                slice = slice.wrapping_add(Number::new(position));
                offset = offset.wrapping_add(coordinate_stride);
            }
            *number = number.wrapping_add(slice.wrapping_mul(unit));
            if !is_applied {
                (*number, skipped) = (u32::SKIPPED, skipped + 1);
            }
        }
        Ok(skipped)
    }

    #[cold]
    fn outlier(&self, index: i128, tuple: usize, coordinate: usize) -> ScatterError {
        let tuple_axis = self.read.start + coordinate;
        let outlier = Outlier {
            tuple,
            axis: Axis {
                axis: self.extents.form.axis(tuple_axis),
                size: self.sizes[tuple_axis],
                multiplier: 0,
            },
            index,
        };
        let shape = self.indices.layout().shape();
        outlier.error(0, self.extents.form.indices_each(shape))
    }
}

impl IndexRules {
    /// The position that an index of an axis of `size` stands for: no less than
    /// `size` where its tuple is skipped, `None` where it is an error.
    #[inline(always)]
    fn position<I: Coordinate>(self, index: I, size: u64) -> Option<u64> {
        let wrap = if self.negatives_wrap { size } else { 0 };
        let position = index.position(wrap);
        match self.bounds {
            _ if position < size => Some(position),
            Bounds::Skip => Some(position),
            Bounds::Clamp if size > 0 => Some(if index < I::default() { 0 } else { size - 1 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, resolve_few};
    use crate::kernel::InstructionSet;
    use crate::operand::{Indices, Layout, TensorView};
    use crate::plan::form::{Coordinates, Form};
    use crate::plan::{Extents, IndexRules, Resolver};
    use crate::reduction::Bounds;

    const SHAPE: [usize; 3] = [3, 4, 5];

    fn form(tuple_len: usize, list: (usize, usize), coordinates: Coordinates) -> Form {
        Form {
            batch_rank: 0,
            tuple_len,
            list,
            coordinates,
        }
    }

    /// Holds what it says of a list against what is said of long ones.
    fn check(form: &Form, view: TensorView<'_, i32>, rules: IndexRules) -> bool {
        let (shape, output) = (view.shape().to_vec(), Layout::contiguous(&SHAPE));
        let indices = Indices::from(view);
        let indices = indices.integers().expect("integers");
        let extents = Extents::new(form, &SHAPE, &shape);
        let mut few = [0; FEW];
        let few = &mut few[..extents.tuples];
        let skipped = resolve_few(&extents, &indices, rules, few);
        let (resolver, _) = Resolver::new(&output, form, indices, rules).expect("few dims");
        let mut expected = vec![0; few.len()];
        let piece = resolver.resolve(InstructionSet::best(), 0, &mut expected);
        let case = format!("{form:?}, {shape:?}, {rules:?}");
        assert_eq!(skipped, piece.map(|piece| piece.skipped), "{case}");
        if skipped.is_ok() {
            assert_eq!(*few, expected, "{case}");
        }
        skipped.is_ok()
    }

    #[test]
    fn few_tuples_are_numbered_as_many_are() {
        let listed = |implied| Coordinates::Explicit { implied };
        let placed = |axis| Coordinates::Placed { axis };
        let forms: [(Form, &[usize]); 9] = [
            (form(1, (0, 2), listed(0)), &[2, 3]),
            (form(2, (0, 2), listed(0)), &[3, 2, 2]),
            (form(3, (0, 1), listed(0)), &[4, 3]),
            (form(2, (0, 1), listed(1)), &[3, 1]),
            (form(3, (0, 2), listed(2)), &[3, 4, 1]),
            (form(3, (0, 3), placed(0)), &[1, 3, 4]),
            (form(3, (0, 3), placed(1)), &[2, 1, 5]),
            (form(3, (0, 3), placed(2)), &[2, 4, 2]),
            (form(2, (0, 2), placed(1)), &[3, 2, 2]),
        ];
        let values: Vec<i32> = (0..200).map(|at| at * 7 % 11 - 5).collect();
        let small: Vec<i32> = (0..200).map(|at| at * 7 % 5 - 2).collect();
        let mut fine = 0;
        for (form, shape) in forms {
            for steps in [[1, 1, 1], [2, 3, 1], [0, 2, 3], [1, 0, 2]] {
                let (mut strides, mut stride) = (vec![0; shape.len()], 1);
                for (axis, &size) in shape.iter().enumerate().rev() {
                    strides[axis] = stride * steps[axis];
                    stride *= size.cast_signed();
                }
                for (values, negatives_wrap, bounds) in [
                    (&values, true, Bounds::Error),
                    (&small, true, Bounds::Error),
                    (&small, false, Bounds::Error),
                    (&values, true, Bounds::Skip),
                    (&values, false, Bounds::Skip),
                    (&values, true, Bounds::Clamp),
                    (&values, false, Bounds::Clamp),
                ] {
                    let rules = IndexRules {
                        negatives_wrap,
                        bounds,
                    };
                    let view = TensorView::strided(values, 0, shape, &strides).expect("inside");
                    fine += usize::from(check(&form, view, rules));
                }
            }
        }
        assert!(fine >= 9 * 4 * 5, "{fine} without an error");
    }
}
