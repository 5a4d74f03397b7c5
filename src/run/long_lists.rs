//! Scatters long lists of single elements into an output that fits a cache, without a plan. Each
//! index is checked just before its update is applied.
//!
//! One worker or several workers apply the list. Several workers apply the list in one of two ways.
//! In the first way, each worker updates a private copy of the output, and the copies are merged.
//! In the second way, all workers update the same memory, and each worker updates its own range of
//! elements (module `ranges`).
//!
//! Usually the updates are applied to a copy of the output, so that an error leaves the output
//! unchanged. The updates are applied directly to the output if two conditions hold. First, the
//! output already holds the data. Second, the output is new memory, or indices out of bounds are
//! skipped or clamped. Private copies may be used whether or not an error must leave the output
//! unchanged.

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

/// Number of tuples per block. All indices of a block are checked before its updates are applied.
const CHECKED_TUPLES: usize = 512;

/// Number of tuples per block while indices are prefetched.
const FAR_CHECKED_TUPLES: usize = 256;

/// Prefetch distance of indices, in tuples from the start of the block.
const AHEAD: usize = 512;

/// Maximum distance in bytes between the first and the last element of a block that counts as
/// sorted. After such a block, no indices are prefetched during the next block, because prefetching
/// made sorted lists slower.
const NEAR_BYTES: u64 = 4096;

/// Minimum number of tuples of a list for which workers update private copies of the output. The
/// reduction must allow private copies to be merged.
const PRIVATE_COPY_TUPLES: usize = 256 * 1024;

/// Minimum ratio of the tuples of a worker to the elements of its private copy. Clearing and
/// merging a private copy costs time for each of its elements.
const TUPLES_A_COPY: usize = 2;

/// Minimum size of all private copies together, in bytes, for which several workers merge the
/// copies. One worker merges smaller copies. Also the minimum size of a single copy that all
/// workers update (module `ranges`), for which several workers write the copy to the output.
const MERGED_BYTES: usize = 512 * 1024;

/// A scatter of single elements into a contiguous output, with a list of indices.
pub(super) struct LongList<'a> {
    operation: &'a Operation,
    kernel: Elements,
    flat: &'a Flat,
    /// Bytes of the output.
    bytes: usize,
    buffers: Buffers,
    tuples: Tuples<'a>,
    /// Whether all updates are the same value in memory (stride 0).
    is_one_value: bool,
    /// Whether the output may be written before all indices are checked.
    is_disposable: bool,
    /// Instruction set of the code that checks indices.
    set: InstructionSet,
    /// Whether indices are prefetched during the block that follows a block whose elements span
    /// more than [`NEAR_BYTES`] bytes.
    prefetches: bool,
    /// Thresholds and switches of the machine.
    variants: Variants,
}

impl<'a> LongList<'a> {
    /// Makes the scatter of `call`. Returns `None` if there is no kernel for the element type.
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
    /// other code made an invalid index valid during the call. A call that returns `false` has
    /// written nothing.
    ///
    /// Checking indices is most of the cost of a scatter of single elements. The fastest method is
    /// to check a block of indices (at most [`CHECKED_TUPLES`]) just before the updates of this
    /// block are applied.
    ///
    /// # Safety
    ///
    /// `flat` was made from the tensors of the buffers, which are valid during the call. These
    /// tensors are contiguous, except for updates that are one value with stride 0.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        let call = execution.begin();
        let workers = call.workers();
        // SAFETY: the caller guarantees that the tensors of the buffers are valid and fit `flat`,
        // as the Safety section of this function states. The called functions require no more.
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

    /// Returns the identity of the reduction with the kernels that merge private copies, and the
    /// number of private copies. Each worker updates its own private copy of the output. The result
    /// is `None` if the reduction has no private copies, if the list has too few tuples, or if
    /// there would be only one copy.
    fn private_copies(&self, workers: &Workers<'_>) -> Option<(Private, usize)> {
        let tuples = self.flat.tuples;
        let private = (self.operation.private()).filter(|_| tuples >= PRIVATE_COPY_TUPLES)?;
        let max_parts = tuples / TUPLES_A_COPY / self.flat.elements.max(1);
        let parts = workers.parts().min(max_parts);
        (parts > 1).then_some((private, parts))
    }

    /// Checks the tuples and applies them to one copy of the output, on the calling thread. Writes
    /// the copy to the output if all indices are valid. Returns `false` if there is no memory for
    /// the copy.
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
        // SAFETY: `source` (the data or the output) and the copy both have `bytes` bytes.
        unsafe { source.copy_to_nonoverlapping(copy, bytes) };
        // SAFETY: the caller guarantees that the updates of all tuples can be read. The copy has
        // the elements of the output.
        let result = unsafe { self.apply_to(copy, 0..self.flat.tuples) };
        if result.is_ok() {
            // SAFETY: the copy and the output both have `bytes` bytes.
            unsafe { copy.copy_to_nonoverlapping(output, bytes) };
        }
        Scratch::put_back(memory);
        result.map(|()| true)
    }

    /// Checks and applies the tuples on several workers. Each worker applies consecutive tuples to
    /// its private copy. At first, every element of a private copy is the identity of the
    /// reduction. If all indices are valid, the copies are merged into the output, in the order of
    /// their tuples.
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
            // SAFETY: `copy` has all elements of the output, and only this task uses `copy`. The
            // caller guarantees that the updates of all tuples can be read.
            let applied = unsafe { self.apply_to(copy, tuples) };
            if applied.is_err() {
                first_wrong.fetch_min(first, Ordering::Relaxed);
            }
        });
        let first_wrong = first_wrong.into_inner();
        let result = done.and_then(|()| self.check_from(first_wrong));
        if result.is_ok() && first_wrong != usize::MAX {
            // A worker found an invalid index, but other code has made it valid meanwhile. The
            // output is not written yet, and another route checks all indices again.
            copies.put_back();
            return Ok(false);
        }
        let result = result.and_then(|()| {
            let tasks = match parts * self.bytes {
                MERGED_BYTES.. => parts,
                _ => 1,
            };
            workers.run(tasks, &|index| {
                // SAFETY: each copy has `count` elements, like the output. Tasks have disjoint
                // ranges of these elements. The caller guarantees that the output can be written
                // and that the data can be read.
                unsafe { self.merge(&copies, part(count, tasks, index)) };
            })
        });
        copies.put_back();
        result.map(|()| true)
    }

    /// Returns the error of the first invalid index in the tuples from `first` to the end of the
    /// list. The argument `first` is the position of the first tuple of the first part of the list
    /// in which a worker found an invalid index.
    fn check_from(&self, first: usize) -> Result<(), ScatterError> {
        self.each_block(first.min(self.flat.tuples)..self.flat.tuples, |_, _| ())
    }

    /// Merges a range of elements of all private copies into the output. Before that, copies this
    /// range of the data to the output, if the output does not hold the data yet.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]. No other code uses these elements of the output meanwhile.
    unsafe fn merge(&self, copies: &Copies<'_>, range: Range<usize>) {
        let output: *mut u8 = self.buffers.output.cast();
        let size = self.operation.kernels.size;
        if let Some(data) = self.buffers.data {
            let (first, bytes) = (range.start * size, range.len() * size);
            // SAFETY: the caller guarantees that the elements of `range` can be read in the data
            // and written in the output, and that the data and the output share no byte.
            unsafe {
                let data = data.add(first);
                data.copy_to_nonoverlapping(output.add(first), bytes);
            }
        }
        let into = Merged { output, unit: 1 };
        // SAFETY: the elements of `range` in the output are initialised now. The caller guarantees
        // that no other code uses these elements.
        unsafe { copies.merge(into, range.start as u64..range.end as u64) };
    }

    /// Applies a range of tuples to `copy`. Stops before the first block (at most
    /// [`CHECKED_TUPLES`] tuples) with an invalid index and returns the error for this index.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], with an initialised `copy` in place of the output.
    unsafe fn apply_to(&self, copy: *mut u8, range: Range<usize>) -> Result<(), ScatterError> {
        if self.is_one_value && !range.is_empty() {
            // SAFETY: the caller guarantees that `copy` is initialised and valid for writes, and
            // that the updates of the range can be read, as the Safety section of this function
            // states. The range is not empty.
            return unsafe { self.apply_one_value(copy, range) };
        }
        let (updates, size) = (self.buffers.source, self.operation.kernels.size);
        self.each_block(range, |first, block| {
            let next = updates.wrapping_add(first * size);
            let spread = Spread::NEIGHBOURS;
            // SAFETY: `resolve_block` returns only element numbers of the copy, or a mark of a
            // skipped tuple. There is one update for each tuple. The caller guarantees that `copy`
            // is valid for reads and writes and that the updates can be read, as the Safety section
            // of this function states.
            unsafe {
                match block {
                    Block::Narrow(numbers) => (self.kernel.u32)(copy, next, numbers, spread),
                    Block::Wide(numbers) => (self.kernel.u64)(copy, next, numbers, spread),
                    Block::Skipping(numbers) => self.apply_others(copy, first, numbers),
                }
            }
        })
    }

    /// Applies a range of tuples whose updates are all one value. The function is not inlined,
    /// because it stores copies of the value on the stack.
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
        // SAFETY: the range is not empty, so there is an update. Element types that have a kernel
        // for single elements are plain bytes.
        let one = unsafe { OneValue::new(updates, size, range.len().min(CHECKED_TUPLES)) };
        self.each_block(range, |_, block| {
            let spread = Spread::NEIGHBOURS;
            // SAFETY: `resolve_block` returns only element numbers of the copy, or a mark of a
            // skipped tuple. The caller guarantees that `copy` is valid for reads and writes, as
            // the Safety section of `apply_to` states.
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

    /// Computes the element numbers of a range of tuples, block by block. For each block, calls
    /// `apply` with the block's first tuple and element numbers. Stops before the first block with
    /// an invalid index and returns the error for this index.
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
