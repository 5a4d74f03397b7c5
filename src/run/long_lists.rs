//! Scatters long lists of single elements into an output that fits a cache, without a plan. Each
//! index is checked just before its update is applied.
//!
//! One worker applies the list, or several workers do. Each of several workers has a private copy
//! that is merged, or a range of the elements of one copy (`ranges`).
//!
//! The updates are applied to a copy of the output, so that an error leaves the output unchanged.
//! No copy is needed if no index is an error, or if the output is new memory. The output then holds
//! the data.

#![expect(unsafe_code, reason = "passes the memory of one call to kernels")]

mod kept;
mod ranges;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::route::may_write_unchecked;
use super::small_call::FlatCall;
use crate::error::ScatterError;
use crate::exec::one_value::OneValue;
use crate::exec::scratch::Scratch;
use crate::exec::tasks::Workers;
use crate::exec::{Buffers, Copies, Merged, part};
use crate::execution::Execution;
use crate::kernel::identity::Private;
use crate::kernel::{Elements, InstructionSet, Operation, Spread};
use crate::machine::Variants;
use crate::plan::{Block, Flat, Tuples};

/// Tuples of a block that is checked and then applied.
const CHECKED_TUPLES: usize = 512;

/// Tuples of a block while indices are prefetched.
const FAR_CHECKED_TUPLES: usize = 256;

/// Prefetch distance of indices, in tuples.
const AHEAD: usize = 512;

/// Distance in bytes up to which the first and the last element of a block are near. The block then
/// counts as sorted, and no indices are prefetched during the next block. Prefetching made sorted
/// lists slower.
const NEAR_BYTES: u64 = 4096;

/// Minimum number of tuples for which each of several workers updates a private copy of the output,
/// if the reduction allows copies to be merged.
const PRIVATE_COPY_TUPLES: usize = 256 * 1024;

/// Minimum number of tuples per element of a private copy. Each worker has a private copy of the
/// output. Clearing and merging a private copy costs time for each of its elements.
const TUPLES_A_COPY: usize = 2;

/// Minimum size of all private copies together, in bytes, for which all workers merge the copies.
/// One worker merges smaller copies.
const MERGED_BYTES: usize = 512 * 1024;

/// A scatter into a contiguous output with a list of single elements.
pub(super) struct LongList<'a> {
    operation: &'a Operation,
    kernel: Elements,
    flat: &'a Flat,
    /// Bytes of the output.
    bytes: usize,
    buffers: Buffers,
    tuples: Tuples<'a>,
    /// Whether all updates are one value.
    is_one_value: bool,
    /// Whether the output may be written before all indices are checked.
    is_disposable: bool,
    /// Instruction set of the functions that check indices.
    set: InstructionSet,
    /// Whether indices are prefetched after a block whose elements are far apart.
    prefetches: bool,
    /// Variants of the machine.
    variants: Variants,
}

impl<'a> LongList<'a> {
    /// Returns the call, if there is a kernel for its elements.
    pub(super) fn new(call: &'a FlatCall<'_>, execution: &Execution<'_>) -> Option<Self> {
        let (operands, flat) = (call.operands, call.flat);
        let operation = operands.operation;
        let kernel = operation.kernels.apply_elements?;
        let machine = execution.machine_in_use();
        let bytes = flat.elements.saturating_mul(operation.kernels.size);
        let is_far = bytes as u64 > machine.caches()[0];
        Some(Self {
            operation,
            kernel,
            flat,
            bytes,
            buffers: operands.buffers(),
            tuples: Tuples::of_slices(call.extents, call.indices, call.planning.rules),
            is_one_value: flat.step == 0,
            is_disposable: may_write_unchecked(
                operands.output.is_new(),
                operands.copied.is_some(),
                call.planning.rules.bounds,
            ),
            set: execution.instructions(),
            prefetches: machine.variants.index_prefetch != 0 && is_far,
            variants: machine.variants,
        })
    }

    /// Runs the call. Returns `false` if there was no memory for the copies of the output, or if
    /// other code changed an invalid index during the call. Nothing is written then.
    ///
    /// Checking indices is most of the cost of this call. The fastest method is to check a block
    /// of indices just before its updates are applied.
    ///
    /// # Safety
    ///
    /// `flat` was made from the tensors of the buffers. These tensors are contiguous, except for
    /// updates that are one value.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        let call = execution.begin();
        let workers = call.workers();
        // SAFETY: the caller guarantees what all functions require.
        unsafe {
            if let Some(copies) = self.private_copies(workers) {
                return self.run_in_copies(copies, workers);
            }
            match self.ranges(workers) {
                Some(ranges) => self.run_in_ranges(&ranges, workers),
                None if self.is_disposable => {
                    let output = self.buffers.output.cast();
                    self.apply_to(output, 0..self.flat.tuples).map(|()| true)
                }
                None => self.run_in_copy(),
            }
        }
    }

    /// Returns how the private copies of several workers are merged, and the number of private
    /// copies. `None` if a single copy is as fast.
    fn private_copies(&self, workers: &Workers<'_>) -> Option<(Private, usize)> {
        let tuples = self.flat.tuples;
        let private = (self.operation.private()).filter(|_| tuples >= PRIVATE_COPY_TUPLES)?;
        let max_parts = tuples / TUPLES_A_COPY / self.flat.elements.max(1);
        let parts = workers.parts().min(max_parts);
        (parts > 1).then_some((private, parts))
    }

    /// Checks and applies the tuples in one copy. Writes the copy to the output if all indices are
    /// valid. Returns `false` if there is no memory for the copy.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(never)]
    unsafe fn run_in_copy(&self) -> Result<bool, ScatterError> {
        let bytes = self.bytes;
        let Ok(mut memory) = <u64 as Scratch>::take(bytes.div_ceil(size_of::<u64>())) else {
            return Ok(false);
        };
        let output: *mut u8 = self.buffers.output.cast();
        let copy: *mut u8 = memory.as_mut_ptr().cast();
        let source = self.buffers.data.unwrap_or(output);
        // SAFETY: the source tensor and the copy both have `bytes` bytes.
        unsafe { source.copy_to_nonoverlapping(copy, bytes) };
        // SAFETY: the caller guarantees the updates. The copy has the elements of the output.
        let result = unsafe { self.apply_to(copy, 0..self.flat.tuples) };
        if result.is_ok() {
            // SAFETY: the copy and the output both have `bytes` bytes.
            unsafe { copy.copy_to_nonoverlapping(output, bytes) };
        }
        Scratch::put_back(memory);
        result.map(|()| true)
    }

    /// Checks and applies the tuples on several workers. Each worker has consecutive tuples and a
    /// copy that begins with the neutral value of the reduction. If all indices are valid, the
    /// copies are merged with the output, in order.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(never)]
    unsafe fn run_in_copies(
        &self,
        (private, parts): (Private, usize),
        workers: &Workers<'_>,
    ) -> Result<bool, ScatterError> {
        let count = self.flat.elements;
        let Ok(mut copies) = Copies::take(private, self.operation.kernels, (count, 1), parts)
        else {
            return Ok(false);
        };
        let first_wrong = AtomicUsize::new(usize::MAX);
        let done = copies.fill(workers, &|index, copy| {
            let tuples = part(self.flat.tuples, parts, index);
            let first = tuples.start;
            // SAFETY: `copy` has all elements, and only this task uses it. The caller guarantees
            // the updates.
            let applied = unsafe { self.apply_to(copy, tuples) };
            if applied.is_err() {
                first_wrong.fetch_min(first, Ordering::Relaxed);
            }
        });
        let first_wrong = first_wrong.into_inner();
        let result = done.and_then(|()| self.check_from(first_wrong));
        if result.is_ok() && first_wrong != usize::MAX {
            // Other code has changed the invalid index meanwhile. Nothing is written yet, and
            // another route checks all indices again.
            copies.put_back();
            return Ok(false);
        }
        let result = result.and_then(|()| {
            let tasks = match parts * self.bytes {
                MERGED_BYTES.. => parts,
                _ => 1,
            };
            workers.run(tasks, &|index| {
                // SAFETY: each copy has `count` elements, like the output, and tasks have
                // different ranges of them. The caller guarantees the output and the data.
                unsafe { self.merge(&copies, part(count, tasks, index)) };
            })
        });
        copies.put_back();
        result.map(|()| true)
    }

    /// Returns the error of the first invalid tuple from `first` on. If a part has an invalid
    /// index, its worker reports only the first tuple of the part.
    fn check_from(&self, first: usize) -> Result<(), ScatterError> {
        self.each_block(first.min(self.flat.tuples)..self.flat.tuples, |_, _| ())
    }

    /// Merges a range of elements of all copies with the output.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]. Nothing else uses these elements of the output meanwhile.
    unsafe fn merge(&self, copies: &Copies<'_>, range: Range<usize>) {
        let output: *mut u8 = self.buffers.output.cast();
        let size = self.operation.kernels.size;
        if let Some(data) = self.buffers.data {
            let (first, bytes) = (range.start * size, range.len() * size);
            // SAFETY: data and the output have these elements and share no byte, by the caller.
            unsafe {
                let data = data.add(first);
                data.copy_to_nonoverlapping(output.add(first), bytes);
            }
        }
        let into = Merged { output, unit: 1 };
        // SAFETY: these elements are initialised now, and only the caller uses them.
        unsafe { copies.merge(into, range.start as u64..range.end as u64) };
    }

    /// Applies a range of tuples to `copy`, up to the first invalid index.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], with an initialised `copy` in place of the output.
    unsafe fn apply_to(&self, copy: *mut u8, range: Range<usize>) -> Result<(), ScatterError> {
        if self.is_one_value && !range.is_empty() {
            // SAFETY: the caller guarantees the copy and the updates. The range is not empty.
            return unsafe { self.apply_one_value(copy, range) };
        }
        let (updates, size) = (self.buffers.source, self.operation.kernels.size);
        self.each_block(range, |first, block| {
            let next = updates.wrapping_add(first * size);
            let spread = Spread::NEIGHBOURS;
            // SAFETY: `resolve_block` returns numbers of elements of the copy. There is one update
            // for each tuple. The caller guarantees the rest.
            unsafe {
                match block {
                    Block::Narrow(numbers) => (self.kernel.u32)(copy, next, numbers, spread),
                    Block::Wide(numbers) => (self.kernel.u64)(copy, next, numbers, spread),
                    Block::Skipping(numbers) => self.apply_others(copy, first, numbers),
                }
            }
        })
    }

    /// Applies a range of tuples whose updates are one value. A separate function, because copies
    /// of the value are stored on the stack.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_to`]. The range is not empty.
    #[inline(never)]
    unsafe fn apply_one_value(
        &self,
        copy: *mut u8,
        range: Range<usize>,
    ) -> Result<(), ScatterError> {
        let (updates, size) = (self.buffers.source, self.operation.kernels.size);
        // SAFETY: the range is not empty, so there is an update. Elements with a kernel for single
        // elements are plain bytes.
        let one = unsafe { OneValue::new(updates, size, range.len().min(CHECKED_TUPLES)) };
        self.each_block(range, |_, block| {
            let spread = Spread::NEIGHBOURS;
            // SAFETY: `resolve_block` returns numbers of elements of the copy. The caller
            // guarantees the rest.
            unsafe {
                match block {
                    Block::Narrow(numbers) => one.apply(self.kernel.u32, copy, numbers, spread),
                    Block::Wide(numbers) => one.apply(self.kernel.u64, copy, numbers, spread),
                    Block::Skipping(numbers) => {
                        self.apply_one_value_to_others(&one, copy, numbers);
                    }
                }
            }
        })
    }

    /// Computes the element numbers of a range of tuples in blocks, up to the first invalid index.
    /// Calls `apply` with the first tuple and the element numbers of each block.
    #[inline(always)]
    fn each_block(
        &self,
        range: Range<usize>,
        mut apply: impl FnMut(usize, Block<'_>),
    ) -> Result<(), ScatterError> {
        let mut numbers = [0_u64; CHECKED_TUPLES];
        let mut is_far = false;
        let mut first = range.start;
        while first < range.end {
            let block_len = if is_far {
                FAR_CHECKED_TUPLES
            } else {
                CHECKED_TUPLES
            };
            let tuples = block_len.min(range.end - first);
            if is_far {
                let later = first + AHEAD;
                self.tuples.prefetch(later..later + tuples);
            }
            let numbers = &mut numbers[..tuples];
            let block = (self.tuples).resolve_block(self.set, first, numbers)?;
            let size = self.operation.kernels.size as u64;
            is_far = self.prefetches && block.span().saturating_mul(size) > NEAR_BYTES;
            apply(first, block);
            first += tuples;
        }
        Ok(())
    }
}
