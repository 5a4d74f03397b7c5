//! Small contiguous index tensors, without preparations.

#![expect(
    unsafe_code,
    reason = "reads indices at the offsets of a contiguous view"
)]

use super::IndexRules;
use super::block::{Axis, Coordinate, Cursor};
use crate::error::ScatterError;
use crate::indices::{Indices, for_index_type};
use crate::reduction::Bounds;

/// Tuples that are worked on together: few enough that a tiny call does not
/// pay for clearing them.
const BLOCK: usize = 16;

/// Numbers the slices that contiguous tuples address, `sizes` being those of
/// the axes from `first_axis` on: what [`Resolver`](super::Resolver) does, without its
/// preparations, for small calls.
pub(crate) fn resolve_contiguous(
    indices: Indices<'_>,
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
    for_index_type!(indices.kind(), I => contiguous.resolve::<I>(numbers))
}

/// Arguments of [`resolve_contiguous`].
struct Contiguous<'a> {
    indices: Indices<'a>,
    first_axis: usize,
    sizes: &'a [usize],
    negatives_wrap: bool,
}

impl Contiguous<'_> {
    fn resolve<I: Coordinate>(&self, numbers: &mut [u32]) -> Result<(), ScatterError> {
        if let &[size] = self.sizes {
            // One coordinate a tuple, side by side: no block to collect them.
            let axis = Axis {
                axis: self.first_axis,
                size,
                multiplier: 1,
            };
            // SAFETY: `numbers` has one entry a tuple of the contiguous view.
            let outlier = unsafe {
                self.cursor(0, 1)
                    .resolve_single::<I, u32, BLOCK>(axis, numbers)
            };
            return outlier.map_or(Ok(()), |outlier| Err(outlier.error(0, 1)));
        }
        let tuple_len = self.sizes.len();
        for (block, numbers) in numbers.chunks_mut(BLOCK).enumerate() {
            let first = block * BLOCK;
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
            let cursor = self.cursor(first * tuple_len, tuple_len);
            // SAFETY: `numbers` has one entry a tuple of the contiguous view,
            // and `sizes` one a coordinate.
            let outlier = unsafe { cursor.resolve::<I, u32, BLOCK>(axes, numbers) };
            if let Some(outlier) = outlier {
                return Err(outlier.error(first, 1));
            }
        }
        Ok(())
    }

    fn cursor(&self, offset: usize, step: usize) -> Cursor<'_> {
        Cursor {
            indices: self.indices,
            offset: offset.cast_signed(),
            step: step.cast_signed(),
            number: 0,
            number_step: 0,
            rules: IndexRules {
                negatives_wrap: self.negatives_wrap,
                bounds: Bounds::Error,
            },
        }
    }
}
