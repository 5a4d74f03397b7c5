//! The tensors of the gradients of groups, each with a layout of its own.
//!
//! Knows where each tensor has the windows of a destination and of a tuple. Knows
//! nothing of who works on them.

use super::sources;
use crate::error::ScatterError;
use crate::kernel::{GradientFn, GradientGroup, GradientTensors, Numbered, PerTuple, Shares};
use crate::plan::{IndexPlan, Sorted, WindowOffsets};

/// One tensor: its element `[0, 0, ...]`, and where its windows lie.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Written only where it is that of a gradient.
    base: *mut u8,
    place: WindowOffsets,
    /// Offsets of the windows of sorted tuples, where they are not multiples of a step.
    offsets: Option<Vec<u64>>,
}

/// All tensors of a call; `None` where there is none or it is not wanted.
#[derive(Debug)]
pub(crate) struct AllPlaced {
    pub(crate) grad_output: Placed,
    pub(crate) data: Option<Placed>,
    pub(crate) updates: Option<Placed>,
    pub(crate) grad_data: Option<Placed>,
    pub(crate) grad_updates: Option<Placed>,
}

/// The same, lent to tasks, and what they do. Lent one by one: of an option of a reference
/// nobody looks behind the reference before it is known to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupGradients<'a> {
    pub(crate) kernel: GradientFn,
    pub(crate) shares: Shares,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Whether data has one window for each destination, in the order of destinations,
    /// and not one for each number.
    pub(crate) data_in_order: bool,
    /// The tuples by destination.
    pub(crate) sorted: &'a Sorted,
    grad_output: &'a Placed,
    data: Option<&'a Placed>,
    updates: Option<&'a Placed>,
    grad_data: Option<&'a Placed>,
    grad_updates: Option<&'a Placed>,
}

/// What is shared out, of elements of so many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    pub(crate) kernel: GradientFn,
    pub(crate) shares: Shares,
    pub(crate) size: usize,
    pub(crate) data_in_order: bool,
}

#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
mod shared {
    use super::Placed;

    // SAFETY: the address is only used by kernels, by tasks of which no two write the
    // same element (`Tile`).
    unsafe impl Sync for Placed {}
    // SAFETY: an address alone gives no access.
    unsafe impl Send for Placed {}
}

impl Placed {
    /// A tensor with a window for each destination.
    pub(crate) fn numbered(base: *mut u8, place: WindowOffsets) -> Self {
        Self {
            base,
            place,
            offsets: None,
        }
    }

    /// A tensor with a window for each tuple of a plan.
    pub(crate) fn listed(
        base: *mut u8,
        place: WindowOffsets,
        plan: &IndexPlan,
        sorted: &Sorted,
    ) -> Result<Self, ScatterError> {
        let step = place.step().filter(|_| plan.skips_none());
        let window = |position| place.of_window(plan.tuple_at(position));
        let offsets = sources::offsets(plan, sorted, step, window)?;
        Ok(Self {
            base,
            place,
            offsets,
        })
    }

    /// The runs from a position of each window of a repetition on, of elements of so many
    /// bytes.
    fn runs(&self, repetition: usize, position: usize, size: usize) -> Numbered {
        let first = self.place.of_repetition(repetition) + self.place.in_window(position);
        let (_, step) = self.place.run();
        Numbered {
            base: self.base.wrapping_offset(first * size.cast_signed()),
            step,
        }
    }
}

impl<'a> GroupGradients<'a> {
    /// By a list of sorted tuples.
    pub(crate) fn new(tensors: &'a AllPlaced, sharing: Sharing, sorted: &'a Sorted) -> Self {
        Self {
            kernel: sharing.kernel,
            shares: sharing.shares,
            size: sharing.size,
            data_in_order: sharing.data_in_order,
            sorted,
            grad_output: &tensors.grad_output,
            data: tensors.data.as_ref(),
            updates: tensors.updates.as_ref(),
            grad_data: tensors.grad_data.as_ref(),
            grad_updates: tensors.grad_updates.as_ref(),
        }
    }

    /// Where something is written.
    pub(super) fn address(&self) -> *mut u8 {
        let written = self.grad_data.or(self.grad_updates);
        written.map_or(std::ptr::null_mut(), |written| written.base)
    }

    /// How many positions of a window all tensors have one step apart: those from any
    /// multiple of that number on.
    pub(super) fn run(&self) -> usize {
        let tensors = [
            Some(self.grad_output),
            self.data,
            self.updates,
            self.grad_data,
            self.grad_updates,
        ];
        let runs = tensors
            .into_iter()
            .flatten()
            .map(|tensor| tensor.place.run().0);
        runs.min().unwrap_or(1).max(1)
    }

    /// The runs of `len` elements from a position of all windows of a repetition on.
    pub(super) fn tensors(
        &self,
        repetition: usize,
        position: usize,
        len: usize,
    ) -> GradientTensors<'a> {
        let numbered = |tensor: &Placed| tensor.runs(repetition, position, self.size);
        let listed = |tensor: &'a Placed| PerTuple {
            run: numbered(tensor),
            sources: sources::sources(self.sorted, tensor.place.step(), tensor.offsets.as_deref()),
        };
        GradientTensors {
            len,
            grad_output: numbered(self.grad_output),
            data: self.data.map(numbered),
            updates: self.updates.map(listed),
            grad_data: self.grad_data.map(numbered),
            grad_updates: self.grad_updates.map(listed),
        }
    }

    /// A destination, which is the `ordinal`-th that has tuples, and its tuples.
    pub(super) fn group(
        &self,
        number: u64,
        ordinal: usize,
        tuples: std::ops::Range<usize>,
    ) -> GradientGroup {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let of = |tensor: &Placed, number| tensor.place.of_window(number);
        let of_data = if self.data_in_order { ordinal } else { number };
        GradientGroup {
            grad_output: of(self.grad_output, number),
            data: self.data.map_or(0, |data| of(data, of_data)),
            grad_data: self.grad_data.map_or(0, |data| of(data, number)),
            start: tuples.start,
            end: tuples.end,
        }
    }
}
