//! Long lists of single elements that are gathered into new memory: each index is
//! checked just before it is followed, and no plan is made.

#![expect(unsafe_code, reason = "hands the memory of one call to its kernels")]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::small_call::FlatCall;
use crate::error::ScatterError;
use crate::exec::{Buffers, part};
use crate::execution::Execution;
use crate::kernel::{CheckedGather, GatherBounds, InstructionSet};
use crate::plan::{Block, Flat, Tuples};

/// Tuples whose indices are followed together as they lie, and those that are numbered
/// together where some of these count from the end.
const FOLLOWED_TUPLES: usize = 2048;
const NUMBERED_TUPLES: usize = 512;

/// Tuples that are worth another worker: some 100 microseconds of one, where it takes
/// some 15 to wake it (an argument).
const WORKER_TUPLES: usize = 128 * 1024;

/// A call of contiguous tensors whose indices list all coordinates.
pub(super) struct LongGather<'a> {
    buffers: Buffers,
    /// Bytes of an element.
    size: usize,
    flat: &'a Flat,
    tuples: Tuples<'a>,
    kernel: CheckedGather,
    /// Whether data is small enough to be near.
    is_near: bool,
    /// Indices are checked with these.
    set: InstructionSet,
}

impl<'a> LongGather<'a> {
    /// The call, if there is a kernel for its elements.
    pub(super) fn new(call: &'a FlatCall<'_>, execution: &Execution<'_>) -> Option<Self> {
        let kernels = call.operands.operation.kernels;
        let bytes = call.flat.elements.saturating_mul(kernels.size) as u64;
        Some(Self {
            buffers: call.operands.buffers(),
            size: kernels.size,
            flat: call.flat,
            tuples: Tuples::of_slices(call.extents, call.indices, call.planning.rules),
            kernel: kernels.gather_checked?,
            is_near: bytes <= execution.machine_in_use().variants.near_bytes,
            set: execution.instructions(),
        })
    }

    /// Runs it. When an index is out of bounds, others have been followed.
    ///
    /// # Safety
    ///
    /// The output has an element for each tuple.
    #[inline(never)]
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<(), ScatterError> {
        let count = self.flat.tuples;
        if count < WORKER_TUPLES {
            // SAFETY: handed on as it is.
            return unsafe { self.gather(0..count) };
        }
        let call = execution.begin();
        let (workers, parts) = (call.workers(), call.workers().parts());
        let first_wrong = AtomicUsize::new(count);
        workers.run(parts, &|index| {
            let tuples = part(count, parts, index);
            let first = tuples.start;
            // SAFETY: parts have no tuple in common; the caller vouches for the rest.
            let gathered = unsafe { self.gather(tuples) };
            if gathered.is_err() {
                first_wrong.fetch_min(first, Ordering::Relaxed);
            }
        })?;
        // Workers only say whose tuples a wrong one is among.
        // SAFETY: handed on as it is; all workers are done.
        unsafe { self.gather(first_wrong.into_inner()..count) }
    }

    /// Gathers for a range of tuples, up to the first block with one that is wrong.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]; nobody else writes the elements of these tuples.
    unsafe fn gather(&self, range: Range<usize>) -> Result<(), ScatterError> {
        let output: *mut u8 = self.buffers.output.cast();
        let next = |first| output.wrapping_add(first * self.size);
        for first in range.clone().step_by(FOLLOWED_TUPLES) {
            let end = range.end.min(first + FOLLOWED_TUPLES);
            // SAFETY: the caller vouches for so many elements of the output.
            if unsafe { self.gather_as_they_lie(next(first), first, end - first) } {
                continue;
            }
            for first in (first..end).step_by(NUMBERED_TUPLES) {
                let count = NUMBERED_TUPLES.min(end - first);
                // SAFETY: as above.
                unsafe { self.gather_numbered(next(first), first, count) }?;
            }
        }
        Ok(())
    }

    /// Gathers for a block of tuples whose indices are numbers of elements as they lie,
    /// and says whether they were.
    ///
    /// # Safety
    ///
    /// From `output` on there are `count` elements that nobody else writes.
    #[inline]
    unsafe fn gather_as_they_lie(&self, output: *mut u8, first: usize, count: usize) -> bool {
        let Some((indices, bytes, below)) = self.tuples.unchecked(first) else {
            return false;
        };
        let kernel = match bytes {
            4 => self.kernel.u32,
            _ => self.kernel.u64,
        };
        let form = GatherBounds {
            below,
            is_near: self.is_near,
        };
        // SAFETY: a contiguous list has the indices, and data as many elements as the one
        // axis is long; the caller vouches for the output.
        unsafe { kernel(output, self.buffers.source, indices, count, form) }
    }

    /// Gathers for a block of tuples that are numbered first. Apart, as the numbers lie on
    /// the stack.
    ///
    /// # Safety
    ///
    /// As for [`Self::gather_as_they_lie`].
    #[inline(never)]
    unsafe fn gather_numbered(
        &self,
        output: *mut u8,
        first: usize,
        count: usize,
    ) -> Result<(), ScatterError> {
        let mut numbers = [0_u64; NUMBERED_TUPLES];
        let numbers = &mut numbers[..count];
        let block = self.tuples.resolve_block(self.set, first, numbers)?;
        let form = GatherBounds {
            below: self.flat.elements,
            is_near: self.is_near,
        };
        let (kernel, numbers) = match block {
            Block::Narrow(numbers) => (self.kernel.u32, numbers.as_ptr().cast()),
            Block::Wide(numbers) => (self.kernel.u64, numbers.as_ptr().cast()),
        };
        // SAFETY: so many numbers lie there, and data has so many elements; the caller
        // vouches for the output.
        let are_inside = unsafe { kernel(output, self.buffers.source, numbers, count, form) };
        debug_assert!(are_inside, "numbers of elements");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::work::{self, Work};
    use crate::{AnyViewMut, CallingThread, Execution, Gather, Reduction, Scatter};
    use crate::{TensorView, TensorViewMut};

    fn output_of(memory: &mut [f64], is_new: bool) -> AnyViewMut<'_> {
        let output = AnyViewMut::from(TensorViewMut::from(memory));
        match is_new {
            true => output.of_new_memory(),
            false => output,
        }
    }

    /// What is done about the indices of a gather of 600 elements, and of a sum of as many,
    /// into memory that is new or not.
    fn works(is_new: bool) -> [Vec<Work>; 2] {
        let (data, indices) = ([0.5_f64; 300], [7_i64; 600]);
        let (mut gathered, mut sums) = ([0.0; 600], data);
        let execution = Execution::new().pool(&CallingThread);
        work::take();
        let output = output_of(&mut gathered, is_new);
        Gather::along(0)
            .execution(execution)
            .write_into(
                TensorView::from(&data[..]).into(),
                TensorView::from(&indices[..]),
                output,
            )
            .expect("a gather");
        let of_gather = work::take();
        let output = output_of(&mut sums, is_new);
        Scatter::along(0)
            .reduction(Reduction::Add)
            .execution(execution)
            .in_place(
                output,
                TensorView::from(&indices[..]),
                TensorView::from(&gathered[..]).into(),
            )
            .expect("a sum");
        [of_gather, work::take()]
    }

    #[test]
    fn only_new_memory_does_without_a_plan() {
        assert_eq!(works(true), [[], []]);
        for works in works(false) {
            assert!(works.contains(&Work::Resolving));
        }
    }
}
