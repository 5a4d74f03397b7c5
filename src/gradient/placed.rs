//! The pass that computes gradients group by group, and the tensors of the pass. A group has all
//! tuples of one destination. Each tensor has a separate layout.
//!
//! This module knows where each tensor stores the window of a destination or of a tuple. This
//! module does not know the workers, or how groups are divided among workers.

use std::ops::Range;

use crate::error::ScatterError;
use crate::exec::{GroupPass, sources};
use crate::kernel::{GradientFn, GradientGroup, GradientTensors, Numbered, PerTuple, Shares};
use crate::plan::{IndexPlan, Sorted, WindowOffsets};

/// Maximum number of groups (destinations with all their tuples) in one kernel call. With this
/// number of groups, the overhead of a call is a small part of the cost of the call.
const GROUPS: usize = 64;

/// Memory of one tensor: the address of element `[0, 0, ...]`, and the offsets of the tensor's
/// windows.
#[derive(Debug)]
pub(super) struct TensorAt {
    /// Address of element `[0, 0, ...]`. Kernels write to the tensor only if it is a requested
    /// gradient.
    base: *mut u8,
    place: WindowOffsets,
    /// Offset of the window of each sorted tuple. `None`: the tensor has one window for each
    /// destination, or the kernel computes the offsets as tuple position times a constant stride.
    offsets: Option<Vec<u64>>,
}

/// Addresses and offsets of all tensors that the pass over groups reads or writes. A group has all
/// tuples of one destination. `None`: the pass does not access the tensor.
#[derive(Debug)]
pub(super) struct TensorsAt {
    pub(super) grad_output: TensorAt,
    pub(super) data: Option<TensorAt>,
    pub(super) updates: Option<TensorAt>,
    pub(super) grad_data: Option<TensorAt>,
    pub(super) grad_updates: Option<TensorAt>,
}

/// Kernel that computes the gradients of groups (a group has all tuples of one destination), and
/// the parameters of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    pub(super) kernel: GradientFn,
    pub(super) shares: Shares,
    /// Bytes of an element.
    pub(super) size: usize,
    /// Whether data has windows only for destinations with tuples, in ascending order of
    /// destinations. Otherwise data has one window for each destination number.
    pub(super) data_in_order: bool,
}

/// Pass over the groups of a plan. The pass computes the gradients for data and for updates. A
/// group has all tuples of one destination.
///
/// Each tensor is a separate reference. If the pass owned `Option<TensorAt>` values, compiled code
/// would read fields of an absent tensor before it tests whether the tensor is present. These reads
/// have no effect on results, but valgrind reports them as reads of uninitialised memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct GradientPass<'a> {
    sharing: Sharing,
    plan: &'a IndexPlan,
    /// The tuples, sorted by destination.
    sorted: &'a Sorted,
    grad_output: &'a TensorAt,
    data: Option<&'a TensorAt>,
    updates: Option<&'a TensorAt>,
    grad_data: Option<&'a TensorAt>,
    grad_updates: Option<&'a TensorAt>,
}

#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
mod shared {
    use super::TensorAt;

    // SAFETY: only kernels dereference the address, and no two tasks write the same element (a
    // `Tile` states which elements a task may write).
    unsafe impl Sync for TensorAt {}
    // SAFETY: an address alone gives no access to memory.
    unsafe impl Send for TensorAt {}
}

impl TensorAt {
    /// Makes the `TensorAt` for a tensor that has one window for each destination.
    pub(super) fn numbered(base: *mut u8, place: WindowOffsets) -> Self {
        Self {
            base,
            place,
            offsets: None,
        }
    }

    /// Makes the `TensorAt` for a tensor that has one window for each tuple of a plan.
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

    /// Returns the base address and the stride of the runs that begin at `position` in the windows
    /// of a repetition. `size`: bytes of an element.
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
    /// Makes the pass that computes gradients for the groups of `plan`. `sorted` has the tuples of
    /// the plan, sorted by destination.
    ///
    /// # Safety
    ///
    /// - Every tensor has initialised elements of the kernel's type in all its windows. Updates and
    ///   the gradient for updates have one window for each repetition and each tuple. The other
    ///   tensors have one window for each repetition and each destination number of the plan.
    /// - If `sharing.data_in_order` is set, data instead has one window for each repetition and
    ///   each destination with tuples.
    /// - Until the pass has run, nothing else uses the gradients that the pass writes. These
    ///   gradients share no byte with another tensor, except that the gradient for data may be the
    ///   gradient of the output.
    /// - `sorted` has the tuples of `plan`.
    #[expect(
        unsafe_code,
        reason = "its contract covers every later access to the tensors"
    )]
    pub(super) unsafe fn new(
        sharing: Sharing,
        plan: &'a IndexPlan,
        sorted: &'a Sorted,
        tensors: &'a TensorsAt,
    ) -> Self {
        Self {
            sharing,
            plan,
            sorted,
            grad_output: &tensors.grad_output,
            data: tensors.data.as_ref(),
            updates: tensors.updates.as_ref(),
            grad_data: tensors.grad_data.as_ref(),
            grad_updates: tensors.grad_updates.as_ref(),
        }
    }

    /// Returns the address of a gradient that the pass writes: the gradient for data, or else the
    /// gradient for updates.
    pub(super) fn address(&self) -> *mut u8 {
        let written = self.grad_data.or(self.grad_updates);
        written.map_or(std::ptr::null_mut(), |written| written.base)
    }

    /// Returns the number of elements in one piece of a window. Inside a piece, the elements of
    /// each tensor are at a constant stride. Pieces begin at multiples of this number.
    fn piece_len(&self) -> usize {
        let others = [self.data, self.updates, self.grad_data, self.grad_updates];
        let runs = others
            .into_iter()
            .flatten()
            .map(|tensor| tensor.place.run().0);
        runs.fold(self.grad_output.place.run().0, usize::min).max(1)
    }

    /// Returns the tensors of a kernel call for one repetition. In each window, the run of the call
    /// begins at `position` and has `len` elements.
    fn tensors(&self, repetition: usize, position: usize, len: usize) -> GradientTensors<'_> {
        let numbered = |tensor: &TensorAt| tensor.runs(repetition, position, self.sharing.size);
        let listed = |tensor: &'a TensorAt| PerTuple {
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

    /// Returns the group of the destination `number`. `tuples`: positions of the group's tuples
    /// among the sorted tuples. `ordinal`: number of destinations that have tuples and a lower
    /// destination number.
    fn group(&self, number: u64, ordinal: usize, tuples: Range<usize>) -> GradientGroup {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let offset = |tensor: Option<&TensorAt>, number| {
            tensor.map_or(0, |tensor| tensor.place.of_window(number))
        };
        let data_window = if self.sharing.data_in_order {
            ordinal
        } else {
            number
        };
        GradientGroup {
            grad_output: self.grad_output.place.of_window(number),
            data: offset(self.data, data_window),
            grad_data: offset(self.grad_data, number),
            start: tuples.start,
            end: tuples.end,
        }
    }

    /// Returns the ordinal of the destination of the sorted tuple at `position`: the number of
    /// destinations that have tuples and a lower destination number. Data has the window of this
    /// destination at the ordinal. Returns 0 if data has one window for each destination number, or
    /// if there are at most `position` tuples.
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

    /// Runs the kernel for the groups `groups` (a group has all tuples of one destination), for a
    /// range of columns (positions in a window), in one repetition.
    ///
    /// # Safety
    ///
    /// During the call, nothing else reads or writes the elements at `columns` in the repetition
    /// `repetition`. These elements are in the windows of the destinations of `groups` and in the
    /// windows of the groups' tuples.
    #[expect(unsafe_code, reason = "the only call of a gradient kernel")]
    unsafe fn run_kernel(
        &self,
        repetition: usize,
        columns: Range<usize>,
        groups: &[GradientGroup],
    ) {
        let piece = self.piece_len();
        let mut position = columns.start;
        while position < columns.end {
            let len = (piece - position % piece).min(columns.end - position);
            let tensors = self.tensors(repetition, position, len);
            // SAFETY: the caller of `new` guarantees that all windows of the tensors have
            // initialised elements of the kernel's type. The plan checked that the destinations
            // are in bounds. The caller of `run_kernel` guarantees that nothing else uses the
            // elements that the kernel writes.
            unsafe { (self.sharing.kernel)(&tensors, groups, &self.sharing.shares) };
            position += len;
        }
    }
}

impl GroupPass for GradientPass<'_> {
    #[expect(unsafe_code, reason = "implements an unsafe method of `GroupPass`")]
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
                    // SAFETY: the Safety section of `run` requires that nothing else uses certain
                    // elements in `repetitions`. These are the elements at `columns` (positions in
                    // a window) of the windows of the groups' destinations and of the windows of
                    // the groups' tuples. A group has all tuples of one destination.
                    unsafe { self.run_kernel(repetition, columns.clone(), &groups[..len]) };
                }
                len = 0;
            }
        }
    }
}
