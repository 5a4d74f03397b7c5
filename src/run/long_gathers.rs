//! Gathers long lists of single elements into new memory without a plan. Each index is checked
//! just before its element is read.
//!
//! New memory may hold any values after an error. The gather may therefore write elements before
//! all indices are checked.

#![expect(unsafe_code, reason = "passes the memory of one call to kernels")]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::small_call::FlatCall;
use crate::error::ScatterError;
use crate::exec::{Buffers, part};
use crate::execution::Execution;
use crate::kernel::{CheckedGather, GatherBounds, InstructionSet};
use crate::plan::{Block, Flat, Tuples};

/// Number of tuples per block on the fast path. On the fast path, the kernel checks the indices in
/// memory and uses them directly as element numbers.
const FOLLOWED_TUPLES: usize = 2048;

/// Number of tuples per block on the fallback. On the fallback, element numbers are computed before
/// the kernel runs. The fallback gathers a block of the fast path again if one of the block's
/// indices is negative or out of bounds. The fallback gathers all blocks if the indices in memory
/// cannot be element numbers (more than one index per tuple, for example).
const NUMBERED_TUPLES: usize = 512;

/// Minimum number of tuples for which several workers gather. One worker gathers this number of
/// tuples in about 100 microseconds. Waking a worker costs about 15 microseconds (estimated, not
/// measured).
const WORKER_TUPLES: usize = 128 * 1024;

/// A gather of single elements from contiguous data, with a list of indices.
pub(super) struct LongGather<'a> {
    buffers: Buffers,
    /// Bytes of an element.
    size: usize,
    flat: &'a Flat,
    tuples: Tuples<'a>,
    kernel: CheckedGather,
    /// Whether the data has at most `near_bytes` bytes. Data up to this limit, which depends on the
    /// machine, is not prefetched.
    is_near: bool,
    /// Instruction set of the code that checks indices on the fallback.
    set: InstructionSet,
}

impl<'a> LongGather<'a> {
    /// Makes the gather of `call`. `None` if there is no kernel for the element type.
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

    /// Runs the call. If an index is out of bounds, returns the error of the first such index.
    /// After an error, elements of the output may have been written for the other tuples.
    ///
    /// # Safety
    ///
    /// The output is contiguous and has one element for each tuple.
    #[inline(never)]
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<(), ScatterError> {
        let count = self.flat.tuples;
        if count < WORKER_TUPLES {
            // SAFETY: the caller guarantees that the output is contiguous and has one element for
            // each tuple. No other thread uses the output.
            return unsafe { self.gather(0..count) };
        }
        let call = execution.begin();
        let (workers, parts) = (call.workers(), call.workers().parts());
        let first_wrong = AtomicUsize::new(count);
        workers.run(parts, &|index| {
            let tuples = part(count, parts, index);
            let first = tuples.start;
            // SAFETY: no two workers have a tuple in common, so no two workers write one element of
            // the output. The caller guarantees that the output is contiguous and has one element
            // for each tuple.
            let gathered = unsafe { self.gather(tuples) };
            if gathered.is_err() {
                first_wrong.fetch_min(first, Ordering::Relaxed);
            }
        })?;
        // If a part has an invalid index, its worker stores only the start of the part in
        // `first_wrong`, which keeps the smallest start. A second gather from that start to the end
        // of the list returns the error of the first invalid index. Without an error, the second
        // gather has no tuples.
        // SAFETY: the caller guarantees that the output is contiguous and has one element for each
        // tuple. All workers have finished.
        unsafe { self.gather(first_wrong.into_inner()..count) }
    }

    /// Gathers a range of tuples. Stops at the first block with an invalid index and returns the
    /// error of this index.
    ///
    /// # Safety
    ///
    /// The output is contiguous and has one element for each tuple, as [`Self::run`] requires. No
    /// other code uses the output's elements of the tuples in `range` during the call.
    unsafe fn gather(&self, range: Range<usize>) -> Result<(), ScatterError> {
        let output: *mut u8 = self.buffers.output.cast();
        let next = |first| output.wrapping_add(first * self.size);
        for first in range.clone().step_by(FOLLOWED_TUPLES) {
            let end = range.end.min(first + FOLLOWED_TUPLES);
            // SAFETY: the output has one element for each tuple (Safety section). So `end - first`
            // elements can be written at `next(first)`, and no other code uses these elements.
            if unsafe { self.gather_stored(next(first), first, end - first) } {
                continue;
            }
            for first in (first..end).step_by(NUMBERED_TUPLES) {
                let count = NUMBERED_TUPLES.min(end - first);
                // SAFETY: the output has one element for each tuple (Safety section). So `count`
                // elements can be written at `next(first)`, and no other code uses these elements.
                unsafe { self.gather_numbered(next(first), first, count) }?;
            }
        }
        Ok(())
    }

    /// Gathers a block of tuples and uses the indices in memory directly as element numbers.
    /// Returns whether every index of the block is an element number. A negative index is not an
    /// element number, even if it counts from the end.
    ///
    /// # Safety
    ///
    /// `count` elements can be written at `output`, and no other code uses these elements during
    /// the call.
    #[inline]
    unsafe fn gather_stored(&self, output: *mut u8, first: usize, count: usize) -> bool {
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
        // SAFETY: the list is contiguous and has `count` indices at `indices`. The kernel reads an
        // element only if its number is less than `below`, the data's number of elements. The
        // caller guarantees that `count` elements can be written at `output`, and that no other
        // code uses these elements (Safety section).
        unsafe { kernel(output, self.buffers.source, indices, count, form) }
    }

    /// Computes the element numbers of a block of tuples and gathers the elements. The function is
    /// not inlined, because it stores the element numbers on the stack.
    ///
    /// # Safety
    ///
    /// As for [`Self::gather_stored`]: `count` elements can be written at `output`, and no other
    /// code uses these elements during the call.
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
            Block::Narrow(numbers) | Block::Skipping(numbers) => {
                (self.kernel.u32, numbers.as_ptr().cast())
            }
            Block::Wide(numbers) => (self.kernel.u64, numbers.as_ptr().cast()),
        };
        // SAFETY: `numbers` has `count` entries. The kernel reads an element only if its number is
        // below the data's number of elements. The caller guarantees that `count` elements can be
        // written at `output`, and that no other code uses these elements (Safety section).
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

    /// Returns the recorded [`Work`] of two calls: a gather of 600 elements, and a scatter that
    /// adds 600 elements. The argument `is_new` states whether the outputs of both calls are marked
    /// as new memory.
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
        let gather_works = work::take();
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
        [gather_works, work::take()]
    }

    #[test]
    fn only_new_memory_does_without_a_plan() {
        assert_eq!(works(true), [[], []]);
        for works in works(false) {
            assert!(works.contains(&Work::Resolving));
        }
    }
}
