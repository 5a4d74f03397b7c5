//! From index tuples to destination numbers.
//!
//! The one place that knows integer types of indices. Every coordinate is
//! read once, checked against its own axis in its own type, and only then
//! multiplied.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

use super::destinations::Number;
use super::{Facts, Form, Scale};
use crate::element::{ElementType, Index};
use crate::error::ScatterError;
use crate::layout::{Dims, Layout};
use crate::tensor::AnyView;

/// Tuples that are worked on together: enough for vector loops.
const BLOCK: usize = 64;

/// The same for small calls, few enough that a tiny one does not pay for
/// clearing them.
const SMALL_BLOCK: usize = 16;

/// An integer type that indices can have.
trait Coordinate: Index + Into<i128> + Default {
    /// The position on an axis of `size` elements, at least `size` if there is
    /// none. `wrap` is `size` where negative values count from the end, else 0.
    fn position(self, wrap: u64) -> u64;
}

macro_rules! impl_coordinate {
    (signed: $($signed:ty),*; unsigned: $($unsigned:ty),*) => {
        $(impl Coordinate for $signed {
            fn position(self, wrap: u64) -> u64 {
                let value = i64::from(self);
                value.cast_unsigned().wrapping_add((value >> 63).cast_unsigned() & wrap)
            }
        })*
        $(impl Coordinate for $unsigned {
            fn position(self, _wrap: u64) -> u64 {
                u64::from(self)
            }
        })*
    };
}

impl_coordinate!(signed: i8, i16, i32, i64; unsigned: u8, u16, u32, u64);

/// An indexed axis of the output.
#[derive(Clone, Copy, Debug)]
struct Axis {
    axis: usize,
    size: usize,
    /// What one step along the axis adds to the destination number.
    multiplier: i64,
}

/// Reads the tuples of an index tensor and numbers their destinations.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    indices: AnyView<'a>,
    /// The tuple dims, merged where the index tensor allows it: size, stride.
    dims: Dims<(usize, isize)>,
    coordinate_stride: isize,
    axes: Dims<Axis>,
    /// Number of the tuple whose coordinates are all zero.
    origin: u64,
    negatives_wrap: bool,
}

/// What was learnt from a piece of the list of tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    first: u64,
    last: u64,
    facts: Facts,
}

/// A coordinate that no axis holds.
struct Outlier {
    /// Position of the tuple in its block.
    tuple: usize,
    axis: Axis,
    index: i128,
}

impl<'a> Resolver<'a> {
    /// `form` describes `indices`, which lie within its dims and strides.
    pub(crate) fn new(
        output: &Layout<'_>,
        form: &Form,
        indices: AnyView<'a>,
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
        match self.indices.element() {
            ElementType::I8 => self.resolve_as::<i8, N>(first, numbers),
            ElementType::I16 => self.resolve_as::<i16, N>(first, numbers),
            ElementType::I32 => self.resolve_as::<i32, N>(first, numbers),
            ElementType::I64 => self.resolve_as::<i64, N>(first, numbers),
            ElementType::U8 => self.resolve_as::<u8, N>(first, numbers),
            ElementType::U16 => self.resolve_as::<u16, N>(first, numbers),
            ElementType::U32 => self.resolve_as::<u32, N>(first, numbers),
            ElementType::U64 => self.resolve_as::<u64, N>(first, numbers),
            actual => Err(ScatterError::IndexType { actual }),
        }
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
            let outlier = unsafe { cursor.resolve::<I, N, BLOCK>(axes, self.origin, block) };
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

/// Where the coordinates of a block of tuples are read.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    indices: AnyView<'a>,
    /// Offset of the first tuple, and distance from one to the next.
    offset: isize,
    step: isize,
    negatives_wrap: bool,
}

impl Cursor<'_> {
    /// Numbers a block of tuples. `axes` gives each indexed axis, in any
    /// order, with the offset of its coordinate in a tuple. Axis by axis, so
    /// that the loops over tuples are free of branches.
    ///
    /// # Safety
    ///
    /// `I` is the type of the indices; the offsets of all the coordinates are
    /// offsets of elements of their layout.
    #[inline]
    unsafe fn resolve<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        axes: impl Iterator<Item = (Axis, isize)>,
        origin: u64,
        numbers: &mut [N],
    ) -> Option<Outlier> {
        let mut sums = [origin; BLOCK];
        let mut raw = [I::default(); BLOCK];
        let raw = &mut raw[..numbers.len()];
        let mut outlier: Option<Outlier> = None;
        for (axis, coordinate) in axes {
            // SAFETY: the caller vouches for the offsets.
            unsafe { (self.indices).read_run(self.offset + coordinate, self.step, raw) };
            let size = axis.size as u64;
            let wrap = if self.negatives_wrap { size } else { 0 };
            let mut inside = true;
            for (sum, &index) in sums.iter_mut().zip(&*raw) {
                let position = index.position(wrap);
                inside &= position < size;
                *sum = sum.wrapping_add(position.wrapping_mul(axis.multiplier.cast_unsigned()));
            }
            if !inside {
                let found = raw.iter().position(|index| index.position(wrap) >= size)?;
                let candidate = (found, axis.axis);
                if (outlier.as_ref()).is_none_or(|first| candidate < (first.tuple, first.axis.axis))
                {
                    outlier = Some(Outlier {
                        tuple: found,
                        axis,
                        index: raw[found].into(),
                    });
                }
            }
        }
        for (number, sum) in numbers.iter_mut().zip(sums) {
            *number = N::new(sum);
        }
        outlier
    }
}

impl Outlier {
    /// The error, for a block that begins at tuple `first`.
    #[cold]
    fn error(&self, first: usize) -> ScatterError {
        ScatterError::IndexOutOfBounds {
            tuple: first + self.tuple,
            axis: self.axis.axis,
            index: self.index,
            size: self.axis.size,
        }
    }
}

/// Numbers the slices that contiguous tuples address, `sizes` being those of
/// the axes from `first_axis` on: what [`Resolver`] does, without its
/// preparations, for small calls.
pub(crate) fn resolve_contiguous(
    indices: AnyView<'_>,
    first_axis: usize,
    sizes: &[usize],
    negatives_wrap: bool,
    numbers: &mut [u32],
) -> Result<(), ScatterError> {
    let contiguous = Contiguous {
        indices,
        first_axis,
        sizes,
        negatives_wrap,
    };
    match indices.element() {
        ElementType::I8 => contiguous.resolve::<i8>(numbers),
        ElementType::I16 => contiguous.resolve::<i16>(numbers),
        ElementType::I32 => contiguous.resolve::<i32>(numbers),
        ElementType::I64 => contiguous.resolve::<i64>(numbers),
        ElementType::U8 => contiguous.resolve::<u8>(numbers),
        ElementType::U16 => contiguous.resolve::<u16>(numbers),
        ElementType::U32 => contiguous.resolve::<u32>(numbers),
        ElementType::U64 => contiguous.resolve::<u64>(numbers),
        actual => Err(ScatterError::IndexType { actual }),
    }
}

/// Arguments of [`resolve_contiguous`].
struct Contiguous<'a> {
    indices: AnyView<'a>,
    first_axis: usize,
    sizes: &'a [usize],
    negatives_wrap: bool,
}

impl Contiguous<'_> {
    fn resolve<I: Coordinate>(&self, numbers: &mut [u32]) -> Result<(), ScatterError> {
        let tuple_len = self.sizes.len();
        for (block, numbers) in numbers.chunks_mut(SMALL_BLOCK).enumerate() {
            let first = block * SMALL_BLOCK;
            let cursor = Cursor {
                indices: self.indices,
                offset: (first * tuple_len).cast_signed(),
                step: tuple_len.cast_signed(),
                negatives_wrap: self.negatives_wrap,
            };
            let mut multiplier = 1;
            let axes = (0..tuple_len).rev().map(|coordinate| {
                let size = self.sizes[coordinate];
                let axis = Axis {
                    axis: self.first_axis + coordinate,
                    size,
                    multiplier,
                };
                multiplier *= (size as u64).cast_signed();
                (axis, coordinate.cast_signed())
            });
            // SAFETY: `numbers` has one entry a tuple of the contiguous view,
            // and `sizes` one a coordinate.
            let outlier = unsafe { cursor.resolve::<I, u32, SMALL_BLOCK>(axes, 0, numbers) };
            if let Some(outlier) = outlier {
                return Err(outlier.error(first));
            }
        }
        Ok(())
    }
}

impl Piece {
    /// Of no tuples; any number follows it in order.
    pub(crate) const EMPTY: Self = Self {
        first: 0,
        last: u64::MAX,
        facts: Facts {
            increasing: true,
            breaks: 0,
        },
    };

    fn is_empty(&self) -> bool {
        self.last == u64::MAX
    }

    fn extend<N: Number>(&mut self, numbers: &[N]) {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return;
        };
        let mut increasing = true;
        let mut breaks = 0;
        for (before, after) in numbers.iter().zip(&numbers[1..]) {
            increasing &= before < after;
            breaks += usize::from(before.get() + 1 != after.get());
        }
        self.join(&Self {
            first: first.get(),
            last: last.get(),
            facts: Facts { increasing, breaks },
        });
    }

    /// Takes in the piece that follows.
    pub(crate) fn join(&mut self, next: &Self) {
        if next.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = *next;
            return;
        }
        self.facts.increasing &= next.facts.increasing && self.last < next.first;
        self.facts.breaks += next.facts.breaks + usize::from(self.last + 1 != next.first);
        self.last = next.last;
    }

    /// What is known once the last piece has been taken in.
    pub(crate) fn facts(&self) -> Facts {
        self.facts
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
    use super::{Coordinate, merged};

    #[test]
    fn positions() {
        // Counted from the end, and one further.
        assert_eq!((-1_i8).position(4), 3, "last");
        assert_eq!((-4_i64).position(4), 0, "first");
        assert!((-5_i32).position(4) >= 4, "before the first");
        // Negative values forbidden.
        assert!((-1_i16).position(0) >= 4, "forbidden");
        // The extremes must not wrap into the axis.
        assert!(i64::MIN.position(4) >= 4, "i64::MIN");
        assert!(
            i64::MIN.position(1 << 62) >= 1 << 62,
            "i64::MIN of a long axis"
        );
        assert_eq!(u64::MAX.position(4), u64::MAX, "beyond i64");
    }

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
