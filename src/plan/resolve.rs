//! From index tuples to destination numbers.
//!
//! The one place where the integer types of indices meet code.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

mod block;
mod contiguous;
mod piece;

use self::block::{Axis, Coordinate, Cursor};
pub(crate) use self::contiguous::resolve_contiguous;
pub(crate) use self::piece::Piece;
use super::destinations::Number;
use super::{Form, Scale};
use crate::error::ScatterError;
use crate::indices::{Indices, for_index_type};
use crate::layout::{Dims, Layout};

/// Tuples that are worked on together: enough for vector loops.
const BLOCK: usize = 64;

/// Reads the tuples of an index tensor and numbers their destinations.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    indices: Indices<'a>,
    /// The tuple dims, merged where the index tensor allows it: size, stride.
    dims: Dims<(usize, isize)>,
    coordinate_stride: isize,
    axes: Dims<Axis>,
    /// Number of the tuple whose coordinates are all zero.
    origin: u64,
    negatives_wrap: bool,
}

impl<'a> Resolver<'a> {
    /// `form` describes `indices`, which lie within its dims and strides.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: &Form,
        indices: Indices<'a>,
        negatives_wrap: bool,
    ) -> (Self, Scale) {
        let (scale, multipliers) = Scale::new(output, form);
        let layout = indices.layout();
        let strides = layout.all_strides();
        let (tuple_strides, coordinate_stride) = strides.split_at(form.tuple_rank);
        let axes = (form.batch_rank..)
            .zip(multipliers)
            .map(|(axis, multiplier)| Axis {
                axis,
                size: output.shape()[axis],
                multiplier,
            });
        let resolver = Self {
            indices,
            dims: merged(form.tuple_shape(&layout), tuple_strides),
            coordinate_stride: coordinate_stride.first().copied().unwrap_or(0),
            axes: axes.collect(),
            origin: scale.base.wrapping_neg().cast_unsigned() as u64,
            negatives_wrap,
        };
        (resolver, scale)
    }

    /// Writes the destination numbers of the tuples from `first` on.
    pub(crate) fn resolve<N: Number>(
        &self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        for_index_type!(self.indices.kind(), I => self.resolve_as::<I, N>(first, numbers))
    }

    fn resolve_as<I: Coordinate, N: Number>(
        &self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        let (inner, step) = self.dims.last().copied().unwrap_or((1, 0));
        let mut piece = Piece::EMPTY;
        let mut done = 0;
        while done < numbers.len() {
            let tuple = first + done;
            let len = BLOCK.min(inner - tuple % inner).min(numbers.len() - done);
            let block = &mut numbers[done..done + len];
            let cursor = Cursor {
                indices: self.indices,
                offset: self.offset(tuple),
                step,
                negatives_wrap: self.negatives_wrap,
            };
            let coordinates = (0..).map(|position| position * self.coordinate_stride);
            let axes = self.axes.iter().copied().zip(coordinates);
            // SAFETY: dims, strides and number of axes are those of the view
            // (`Form`), and the block stays within its dims.
            let outlier = unsafe {
                match self.axes[..] {
                    [axis] if axis.multiplier == 1 && self.origin == 0 => {
                        cursor.resolve_single::<I, N, BLOCK>(axis, block)
                    }
                    _ => cursor.resolve::<I, N, BLOCK>(axes, self.origin, block),
                }
            };
            if let Some(outlier) = outlier {
                return Err(outlier.error(tuple));
            }
            piece.extend(block);
            done += len;
        }
        Ok(piece)
    }

    /// Offset of the first coordinate of `tuple` in the index tensor.
    fn offset(&self, mut tuple: usize) -> isize {
        let mut offset = 0;
        for &(size, stride) in self.dims.iter().rev() {
            offset += (tuple % size).cast_signed() * stride;
            tuple /= size;
        }
        offset
    }
}

/// Dims in row-major order, with neighbours that have one stride merged.
pub(crate) fn merged(shape: &[usize], strides: &[isize]) -> Dims<(usize, isize)> {
    let mut dims: Dims<(usize, isize)> = Dims::new();
    for (&size, &stride) in shape.iter().zip(strides) {
        if size == 1 {
            continue;
        }
        match dims.last_mut() {
            Some((count, outer)) if *outer == stride.wrapping_mul(size.cast_signed()) => {
                (*count, *outer) = (*count * size, stride);
            }
            _ => dims.push((size, stride)),
        }
    }
    dims
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn dims_merge_where_strides_allow() {
        assert_eq!(merged(&[2, 3, 4], &[12, 4, 1])[..], [(24, 1)], "all");
        assert_eq!(
            merged(&[2, 3, 4], &[24, 8, 2])[..],
            [(24, 2)],
            "every other"
        );
        assert_eq!(merged(&[2, 3], &[1, 2])[..], [(2, 1), (3, 2)], "transposed");
        assert_eq!(merged(&[5, 1, 3], &[3, 77, 1])[..], [(15, 1)], "size 1");
        assert_eq!(merged(&[2, 3], &[0, 0])[..], [(6, 0)], "one for all");
        assert!(merged(&[1, 1], &[9, 9]).is_empty(), "a single tuple");
    }
}
