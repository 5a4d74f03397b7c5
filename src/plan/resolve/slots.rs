//! Slots of a paged cache: one index for two axes, the blocks and the rows of a block.
//!
//! This module knows the numbering of slots and the two axes. It does not know how an index is
//! checked against its axis: for the check, the two axes are merged to one.

use super::coordinate::IndexRules;
use super::tuples::Tuples;
use crate::error::ScatterError;
use crate::operand::indices::Integers;
use crate::operand::{Dims, Layout};
use crate::plan::form::{Coordinates, Form};
use crate::plan::scale::Multipliers;

/// The output of a call whose indices are slots, with its first two axes merged to one axis of
/// slots. The position on the merged axis is the number of the slot.
#[derive(Debug)]
pub(crate) struct SlotAxis {
    /// Sizes of the two axes: the number of blocks, and the number of rows of a block.
    sizes: [usize; 2],
    /// Shape of the output with the merged axis.
    shape: Dims<usize>,
    /// The form of the call, for the merged axis.
    pub(crate) form: Form,
}

impl SlotAxis {
    /// Merges the first two axes of an output of shape `output`. Returns `None` if the indices of
    /// `form` are not slots.
    pub(crate) fn new(output: &[usize], form: &Form) -> Result<Option<Self>, ScatterError> {
        let (Coordinates::Slots, [blocks, rows, window @ ..]) = (form.coordinates, output) else {
            return Ok(None);
        };
        // The product cannot overflow if both sizes are the sizes of a tensor in memory. If the
        // tensor has no elements, no slot can be written, and the product is only a bound.
        let slots = blocks.saturating_mul(*rows);
        let sizes = std::iter::once(slots).chain(window.iter().copied());
        Ok(Some(Self {
            sizes: [*blocks, *rows],
            shape: Dims::collect(window.len() + 1, sizes)?,
            form: Form {
                tuple_len: 1,
                coordinates: Form::ALL_EXPLICIT,
                ..*form
            },
        }))
    }

    /// Returns a layout with the merged axis. The layout has the shape of the output, but not its
    /// strides.
    pub(crate) fn layout(&self) -> Layout<'_> {
        Layout::contiguous(&self.shape)
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> u64 {
        self.shape[0] as u64
    }

    /// Returns the list of slots. The destination number of a tuple is the number of its slot.
    pub(crate) fn tuples<'a>(&'a self, indices: Integers<'a>, rules: IndexRules) -> Tuples<'a> {
        let multipliers = Multipliers::of_slices(&self.shape[..1]);
        Tuples::new(&self.form, multipliers, indices, rules)
    }

    /// Returns the destination number of slot `slot`. `multipliers` are the multipliers of the two
    /// axes.
    pub(crate) fn destination(&self, slot: u64, multipliers: &Multipliers<'_>) -> u64 {
        let rows = self.sizes[1].max(1) as u64;
        let along = |axis, position: u64| position.wrapping_mul(multipliers.along(axis));
        (multipliers.origin)
            .wrapping_add(along(0, slot / rows))
            .wrapping_add(along(1, slot % rows))
    }

    /// Returns `error`, with the two axes instead of the merged axis.
    #[cold]
    pub(crate) fn rename(&self, error: ScatterError) -> ScatterError {
        let [blocks, block_size] = self.sizes;
        match error {
            ScatterError::IndexOutOfBounds { tuple, index, .. } => ScatterError::SlotOutOfBounds {
                position: tuple,
                slot: index,
                blocks,
                block_size,
            },
            error => error,
        }
    }
}
