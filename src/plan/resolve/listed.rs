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
use crate::operand::{Dims, Layout, unravel};
use crate::plan::destinations::Number;
use crate::plan::form::{Coordinates, Form};
use crate::plan::geometry::{Dim, push_merged};
use crate::plan::scale::Scale;
use crate::reduction::Bounds;

/// Tuples that are worked on together: enough for vector loops.
pub(super) const BLOCK: usize = 128;

/// Reads the tuples of an index tensor and numbers their destinations.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    indices: Integers<'a>,
    /// The dims of the list, merged where the strides allow it: a step adds `dst`
    /// to the destination number, and goes `src` on in `indices`.
    dims: Dims<Dim>,
    /// The axes whose coordinates are read.
    axes: Dims<Axis>,
    coordinate_stride: isize,
    /// Number of the first tuple if its coordinates that are read are zero.
    origin: u64,
    rules: IndexRules,
    /// Positions in `indices` that one tuple stands for.
    indices_each: usize,
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
        let mut dims = Dims::new();
        for (dim, axis) in list.clone().enumerate() {
            let is_implied = form.is_implied(dim);
            let dim = Dim {
                size: positions(layout.shape()[axis], strides[axis]),
                dst: if is_implied { multipliers[dim] } else { 0 },
                src: strides[axis],
            };
            if dim.size != 1 {
                push_merged(&mut dims, dim)?;
            }
        }
        let axes = read.clone().map(|tuple_axis| Axis {
            axis: form.axis(tuple_axis),
            size: output.shape()[form.axis(tuple_axis)],
            multiplier: multipliers[tuple_axis] as i64,
        });
        let coordinate_stride = match form.coordinates {
            Coordinates::Explicit { .. } => strides.get(list.end).copied().unwrap_or(0),
            _ => 0,
        };
        let resolver = Self {
            indices,
            dims,
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
        let inner = self.dims.last().copied().unwrap_or(Dim {
            size: 1,
            ..Dim::default()
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
                step: inner.src,
                number: self.origin.wrapping_add(number),
                number_step: inner.dst as i64,
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
    fn start(&self, tuple: usize) -> (isize, u64) {
        let (mut offset, mut number) = (0, 0_u64);
        for (dim, position) in unravel(self.dims.iter().rev(), |dim| dim.size, tuple) {
            offset += position.cast_signed() * dim.src;
            let steps = (position as u64).wrapping_mul((dim.dst as i64).cast_unsigned());
            number = number.wrapping_add(steps);
        }
        (offset, number)
    }
}
