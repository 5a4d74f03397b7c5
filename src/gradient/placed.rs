//! The tensors of the gradients of groups, each with its own layout, and the pass that
//! shares gradients out among them.
//!
//! Knows where each tensor has the windows of a destination and of a tuple. Knows
//! nothing of who works on them.

use std::ops::Range;

use crate::error::ScatterError;
use crate::exec::{GroupPass, sources};
use crate::kernel::{GradientFn, GradientGroup, GradientTensors, Numbered, PerTuple, Shares};
use crate::plan::{IndexPlan, Sorted, WindowOffsets};

/// Groups of one kernel call: enough to hide the call.
const GROUPS: usize = 64;

/// One tensor: its element `[0, 0, ...]`, and where its windows lie.
#[derive(Debug)]
pub(super) struct TensorAt {
    /// Written only where it is that of a gradient.
    base: *mut u8,
    place: WindowOffsets,
    /// Offsets of the windows of sorted tuples, where they are not multiples of a step.
    offsets: Option<Vec<u64>>,
}

/// All tensors of a pass; `None` where there is none or it is not wanted.
#[derive(Debug)]
pub(super) struct TensorsAt {
    pub(super) grad_output: TensorAt,
    pub(super) data: Option<TensorAt>,
    pub(super) updates: Option<TensorAt>,
    pub(super) grad_data: Option<TensorAt>,
    pub(super) grad_updates: Option<TensorAt>,
}

/// What is shared out, and by what kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    pub(super) kernel: GradientFn,
    pub(super) shares: Shares,
    /// Bytes of an element.
    pub(super) size: usize,
    /// Whether data has one window for each destination, in the order of destinations,
    /// and not one for each number.
    pub(super) data_in_order: bool,
}

/// A pass that shares gradients out.
#[derive(Debug)]
pub(super) struct GradientPass<'a> {
    sharing: Sharing,
    plan: &'a IndexPlan,
    /// The tuples by destination.
    sorted: &'a Sorted,
    tensors: TensorsAt,
}

#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
mod shared {
    use super::TensorAt;

    // SAFETY: only kernels use the address, and no two tasks write the same element
    // (`Tile`).
    unsafe impl Sync for TensorAt {}
    // SAFETY: an address alone gives no access.
    unsafe impl Send for TensorAt {}
}

impl TensorAt {
    /// A tensor with a window for each destination.
    pub(super) fn numbered(base: *mut u8, place: WindowOffsets) -> Self {
        Self {
            base,
            place,
            offsets: None,
        }
    }

    /// A tensor with a window for each tuple of a plan.
    pub(super) fn listed(
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

    /// The runs that begin at a position of each window of a repetition, with elements of
    /// `size` bytes.
    fn runs(&self, repetition: usize, position: usize, size: usize) -> Numbered {
        let first = self.place.of_repetition(repetition) + self.place.in_window(position);
        let (_, step) = self.place.run();
        Numbered {
            base: self.base.wrapping_offset(first * size.cast_signed()),
            step,
        }
    }
}

impl<'a> GradientPass<'a> {
    /// By the sorted tuples of a plan.
    ///
    /// # Safety
    ///
    /// - Every tensor has initialised elements of the kernel's type wherever its place has
    ///   windows: one for each repetition and each number of the plan, or for each tuple of
    ///   it. Those of gradients are this call's alone, and share no byte with another, but
    ///   that the one for data may be that of the output.
    /// - The list of sorted tuples is that of the plan; data that is in order has a window
    ///   for each destination that has tuples.
    #[expect(
        unsafe_code,
        reason = "the contract of every later access is made here"
    )]
    pub(super) unsafe fn new(
        sharing: Sharing,
        plan: &'a IndexPlan,
        sorted: &'a Sorted,
        tensors: TensorsAt,
    ) -> Self {
        Self {
            sharing,
            plan,
            sorted,
            tensors,
        }
    }

    /// Where something is written.
    pub(super) fn address(&self) -> *mut u8 {
        let tensors = &self.tensors;
        let written = tensors.grad_data.as_ref().or(tensors.grad_updates.as_ref());
        written.map_or(std::ptr::null_mut(), |written| written.base)
    }

    /// How many positions of a window all tensors have one step apart: those from any
    /// multiple of that number on.
    fn even_positions(&self) -> usize {
        let tensors = &self.tensors;
        let others = [
            &tensors.data,
            &tensors.updates,
            &tensors.grad_data,
            &tensors.grad_updates,
        ];
        let runs = others
            .into_iter()
            .flatten()
            .map(|tensor| tensor.place.run().0);
        runs.fold(tensors.grad_output.place.run().0, usize::min)
            .max(1)
    }

    /// The runs of `len` elements from a position of all windows of a repetition on.
    fn tensors(&self, repetition: usize, position: usize, len: usize) -> GradientTensors<'_> {
        let tensors = &self.tensors;
        let numbered = |tensor: &TensorAt| tensor.runs(repetition, position, self.sharing.size);
        let listed = |tensor| PerTuple {
            run: numbered(tensor),
            sources: sources::sources(self.sorted, tensor.place.step(), tensor.offsets.as_deref()),
        };
        GradientTensors {
            len,
            grad_output: numbered(&tensors.grad_output),
            data: tensors.data.as_ref().map(numbered),
            updates: tensors.updates.as_ref().map(listed),
            grad_data: tensors.grad_data.as_ref().map(numbered),
            grad_updates: tensors.grad_updates.as_ref().map(listed),
        }
    }

    /// A destination, which is the `ordinal`-th that has tuples, and its tuples.
    fn group(&self, number: u64, ordinal: usize, tuples: Range<usize>) -> GradientGroup {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let of = |tensor: &Option<TensorAt>, number| {
            let place = tensor.as_ref().map(|tensor| &tensor.place);
            place.map_or(0, |place| place.of_window(number))
        };
        let of_data = if self.sharing.data_in_order {
            ordinal
        } else {
            number
        };
        GradientGroup {
            grad_output: self.tensors.grad_output.place.of_window(number),
            data: of(&self.tensors.data, of_data),
            grad_data: of(&self.tensors.grad_data, number),
            start: tuples.start,
            end: tuples.end,
        }
    }

    /// How many destinations come before that of the tuple at a position, where the windows
    /// of data are those of destinations that have tuples.
    fn first_ordinal(&self, position: usize) -> usize {
        let destinations = self.plan.destinations();
        if !self.sharing.data_in_order || position >= destinations.len() {
            return 0;
        }
        let Ok(distinct) = self.plan.last_writes() else {
            debug_assert!(false, "found when windows were saved");
            return 0;
        };
        distinct.first_from(destinations, self.sorted.get(destinations, position).0)
    }

    /// # Safety
    ///
    /// Who calls may write these columns of the windows of these groups, and of their
    /// tuples, in this repetition.
    #[expect(unsafe_code, reason = "the one call of a kernel for gradients")]
    unsafe fn share(&self, repetition: usize, columns: Range<usize>, groups: &[GradientGroup]) {
        let each = self.even_positions();
        let mut position = columns.start;
        while position < columns.end {
            let len = (each - position % each).min(columns.end - position);
            let tensors = self.tensors(repetition, position, len);
            // SAFETY: who made the pass vouches for the tensors, the plan for the
            // destinations and for their tuples; the caller vouches for what is written.
            unsafe { (self.sharing.kernel)(&tensors, groups, &self.sharing.shares) };
            position += len;
        }
    }
}

impl GroupPass for GradientPass<'_> {
    #[expect(unsafe_code, reason = "as the kernel that it calls")]
    unsafe fn run(
        &self,
        positions: Range<usize>,
        columns: Range<usize>,
        repetitions: Range<usize>,
    ) {
        let last = positions.end;
        let mut ordinal = self.first_ordinal(positions.start);
        let mut groups = [GradientGroup::default(); GROUPS];
        let mut len = 0;
        for (number, tuples) in self.sorted.groups(self.plan.destinations(), positions) {
            let is_last = tuples.end == last;
            groups[len] = self.group(number, ordinal, tuples);
            (len, ordinal) = (len + 1, ordinal + 1);
            if len == GROUPS || is_last {
                for repetition in repetitions.clone() {
                    // SAFETY: the caller vouches for these groups and columns.
                    unsafe { self.share(repetition, columns.clone(), &groups[..len]) };
                }
                len = 0;
            }
        }
    }
}
