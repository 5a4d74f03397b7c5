//! Lists of tuples of any layout, read or implied.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

use super::block::{Axis, Coordinate, Cursor, IndexRules};
use super::piece::Piece;
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::operand::indices::{Integers, for_index_type};
use crate::operand::{Dims, Layout};
use crate::plan::destinations::Number;
use crate::plan::form::{Coordinates, Form};
use crate::plan::scale::Scale;
use crate::reduction::Bounds;

/// Tuples that are worked on together: enough for vector loops.
pub(super) const BLOCK: usize = 128;

/// Reads the tuples of an index tensor and numbers their destinations.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    indices: Integers<'a>,
    /// The dims of the list, merged where the strides allow it.
    dims: Dims<ListDim>,
    /// The axes whose coordinates are read.
    axes: Dims<Axis>,
    coordinate_stride: isize,
    /// Number of the first tuple if its coordinates that are read are zero.
    origin: u64,
    rules: IndexRules,
    /// Positions in `indices` that one tuple stands for.
    indices_each: usize,
}

/// A dim of the list of tuples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ListDim {
    size: usize,
    /// Distance between the indices of neighbours.
    stride: isize,
    /// What one step adds to the destination number.
    number: i64,
}

impl<'a> Resolver<'a> {
    /// `form` describes `indices`, which lie within its dims and strides.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: &Form,
        indices: Integers<'a>,
        rules: IndexRules,
    ) -> Result<(Self, Scale), ScatterError> {
        Self::of_positions(output, form, indices, rules, |size, _| size)
    }

    /// Of some positions of the list alone: along each of its dims, of a size
    /// and a stride, of the first so many as `positions` says.
    pub(super) fn of_positions(
        output: &Layout<'_>,
        form: &Form,
        indices: Integers<'a>,
        rules: IndexRules,
        positions: impl Fn(usize, isize) -> usize,
    ) -> Result<(Self, Scale), ScatterError> {
        let (scale, multipliers) = Scale::new(output, form)?;
        let layout = indices.layout();
        let strides = layout.all_strides()?;
        let list = form.list.0..form.list.1;
        // Of tuple axis `axis`: what is read, else the dim that implies it.
        let read = form.read();
        let dims = list.clone().enumerate().map(|(dim, axis)| ListDim {
            size: positions(layout.shape()[axis], strides[axis]),
            stride: strides[axis],
            number: match form.coordinates {
                Coordinates::Listed { implied } if dim >= implied => 0,
                _ if read.contains(&dim) => 0,
                _ => multipliers[dim],
            },
        });
        let axes = read.clone().map(|tuple_axis| Axis {
            axis: form.axis(tuple_axis),
            size: output.shape()[form.axis(tuple_axis)],
            multiplier: multipliers[tuple_axis],
        });
        let coordinate_stride = match form.coordinates {
            Coordinates::Listed { .. } => strides.get(list.end).copied().unwrap_or(0),
            _ => 0,
        };
        let resolver = Self {
            indices,
            dims: merged_list(dims)?,
            axes: Dims::collect(read.len(), axes)?,
            coordinate_stride,
            origin: scale.base.wrapping_neg().cast_unsigned() as u64,
            rules,
            indices_each: form.indices_each(layout.shape()),
        };
        Ok((resolver, scale))
    }

    /// Writes the destination numbers of the tuples from `first` on, with
    /// instructions of `set`, if the machine has them.
    pub(crate) fn resolve<N: Number>(
        &self,
        set: InstructionSet,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        for_index_type!(self.indices.kind(), I => match set.min(InstructionSet::best()) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: it is no better than what the machine has.
            InstructionSet::Avx2 => unsafe { self.resolve_avx2::<I, N>(first, numbers) },
            _ => self.resolve_as::<I, N>(first, numbers),
        })
    }

    /// [`Self::resolve_as`], compiled for AVX2: comparing 64-bit indices is
    /// what the baseline of x86-64 has no vectors for.
    ///
    /// # Safety
    ///
    /// The machine has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn resolve_avx2<I: Coordinate, N: Number>(
        &self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        self.resolve_as::<I, N>(first, numbers)
    }

    #[inline(always)]
    fn resolve_as<I: Coordinate, N: Number>(
        &self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        let inner = self.dims.last().copied().unwrap_or(ListDim {
            size: 1,
            stride: 0,
            number: 0,
        });
        let mut piece = Piece::EMPTY;
        let mut done = 0;
        while done < numbers.len() {
            let tuple = first + done;
            let len = BLOCK
                .min(inner.size - tuple % inner.size)
                .min(numbers.len() - done);
            let block = &mut numbers[done..done + len];
            let (offset, number) = self.start(tuple);
            let cursor = Cursor {
                indices: self.indices,
                offset,
                step: inner.stride,
                number: self.origin.wrapping_add(number),
                number_step: inner.number,
                rules: self.rules,
            };
            let coordinates = (0..).map(|position| position * self.coordinate_stride);
            let axes = self.axes.iter().copied().zip(coordinates);
            // SAFETY: dims, strides and number of axes are those of the view
            // (`Form`), and the block stays within its dims.
            let outlier = unsafe {
                match self.axes[..] {
                    [axis] => cursor.resolve_single::<I, N, BLOCK>(axis, block),
                    _ => cursor.resolve::<I, N, BLOCK>(axes.clone(), block),
                }
            };
            if let Some(outlier) = outlier {
                if self.rules.bounds == Bounds::Error {
                    return Err(outlier.error(tuple, self.indices_each));
                }
                // SAFETY: as above.
                let skipped = unsafe { cursor.settle::<I, N, BLOCK>(axes, block) };
                piece.skipped +=
                    skipped.map_err(|outlier| outlier.error(tuple, self.indices_each))?;
            }
            piece.extend(block);
            done += len;
        }
        Ok(piece)
    }

    /// Offset of the first coordinate of `tuple` in the index tensor, and what
    /// its position adds to its number.
    fn start(&self, mut tuple: usize) -> (isize, u64) {
        let (mut offset, mut number) = (0, 0_u64);
        for dim in self.dims.iter().rev() {
            let position = (tuple % dim.size).cast_signed();
            offset += position * dim.stride;
            let steps = (position as i64).wrapping_mul(dim.number);
            number = number.wrapping_add(steps.cast_unsigned());
            tuple /= dim.size;
        }
        (offset, number)
    }
}

/// Dims in row-major order, with neighbours merged whose strides are one.
fn merged_list(dims: impl Iterator<Item = ListDim>) -> Result<Dims<ListDim>, ScatterError> {
    let mut list: Dims<ListDim> = Dims::new();
    for dim in dims {
        if dim.size == 1 {
            continue;
        }
        let size = dim.size.cast_signed();
        match list.last_mut() {
            Some(outer)
                if outer.stride == dim.stride.wrapping_mul(size)
                    && outer.number == dim.number.wrapping_mul(size as i64) =>
            {
                *outer = ListDim {
                    size: outer.size * dim.size,
                    ..dim
                };
            }
            _ => list.push(dim)?,
        }
    }
    Ok(list)
}

/// Dims in row-major order, with neighbours that have one stride merged.
pub(crate) fn merged(
    shape: &[usize],
    strides: &[isize],
) -> Result<Dims<(usize, isize)>, ScatterError> {
    let dims = shape.iter().zip(strides).map(|(&size, &stride)| ListDim {
        size,
        stride,
        number: 0,
    });
    let list = merged_list(dims)?;
    Dims::collect(list.len(), list.iter().map(|dim| (dim.size, dim.stride)))
}

#[cfg(test)]
mod tests {
    use super::merged;
    use crate::operand::Dims;

    fn dims(shape: &[usize], strides: &[isize]) -> Dims<(usize, isize)> {
        merged(shape, strides).expect("few dims")
    }

    #[test]
    fn dims_merge_where_strides_allow() {
        assert_eq!(dims(&[2, 3, 4], &[12, 4, 1])[..], [(24, 1)], "all");
        assert_eq!(dims(&[2, 3, 4], &[24, 8, 2])[..], [(24, 2)], "every other");
        assert_eq!(dims(&[2, 3], &[1, 2])[..], [(2, 1), (3, 2)], "transposed");
        assert_eq!(dims(&[5, 1, 3], &[3, 77, 1])[..], [(15, 1)], "size 1");
        assert_eq!(dims(&[2, 3], &[0, 0])[..], [(6, 0)], "one for all");
        assert!(dims(&[1, 1], &[9, 9]).is_empty(), "a single tuple");
    }
}
