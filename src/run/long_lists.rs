//! Long lists of single elements for an output that stays in cache.

#![expect(unsafe_code, reason = "hands the memory of one call to its kernels")]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::small_call::FlatCall;
use crate::error::ScatterError;
use crate::exec::one_value::OneValue;
use crate::exec::scratch::Scratch;
use crate::exec::tasks::Workers;
use crate::exec::{Buffers, Copies, Merged, part};
use crate::execution::Execution;
use crate::kernel::identity::Private;
use crate::kernel::{Elements, InstructionSet, Operation, Spread};
use crate::plan::{Block, Flat, Tuples};

/// Tuples that are checked together, and the same where indices are prefetched.
const CHECKED_TUPLES: usize = 512;
const FAR_CHECKED_TUPLES: usize = 256;

/// How many tuples before their turn indices are prefetched.
const AHEAD: usize = 512;

/// Blocks whose first and last element are no further apart are taken to be in order,
/// and to prefetch nothing: sorted lists took longer with it.
const NEAR_BYTES: u64 = 4096;

/// From as many tuples on, several workers get a copy each, where copies can be
/// combined.
const PRIVATE_COPY_TUPLES: usize = 256 * 1024;

/// Each of several copies is cleared and merged beside so many tuples an element at
/// least.
const TUPLES_A_COPY: usize = 2;

/// Copies of so many bytes in all are merged by all workers.
const MERGED_BYTES: usize = 512 * 1024;

/// A call of contiguous tensors whose indices list all coordinates of single elements.
pub(super) struct LongList<'a> {
    operation: &'a Operation,
    kernel: Elements,
    flat: &'a Flat,
    /// Bytes of all elements of the output.
    bytes: usize,
    buffers: Buffers,
    tuples: Tuples<'a>,
    /// Whether one update stands for all.
    is_one_value: bool,
    /// Whether the output holds the data, and may be written before all indices have been
    /// read.
    is_disposable: bool,
    /// Indices are checked with these.
    set: InstructionSet,
    /// Whether indices are prefetched, where the elements of a block are far apart.
    prefetches: bool,
}

impl<'a> LongList<'a> {
    /// The call, if there is a kernel for its elements.
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
            is_disposable: operands.output.is_new() && operands.copied.is_none(),
            set: execution.instructions(),
            prefetches: machine.variants.index_prefetch != 0 && is_far,
        })
    }

    /// Runs the call, and says whether there was memory for it. The work on indices is most
    /// of such a call, and nothing beats doing it block by block, each just before it is
    /// applied.
    ///
    /// # Safety
    ///
    /// `flat` says how the tensors lie that the buffers were lent for: side by
    /// side, without gaps; updates may be one value.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        let call = execution.begin();
        // SAFETY: the caller vouches for what all of them ask.
        unsafe {
            match self.private_copies(call.workers()) {
                Some(copies) => self.run_in_copies(copies, call.workers()),
                // The output holds the data, and may hold anything after an error.
                None if self.is_disposable => {
                    let output = self.buffers.output.cast();
                    self.apply_to(output, 0..self.flat.tuples).map(|()| true)
                }
                None => self.run_in_copy(),
            }
        }
    }

    /// How many workers get a copy each, and what that takes; `None` where one
    /// copy is as good.
    fn private_copies(&self, workers: &Workers<'_>) -> Option<(Private, usize)> {
        let tuples = self.flat.tuples;
        let private = (self.operation.private()).filter(|_| tuples >= PRIVATE_COPY_TUPLES)?;
        let most = tuples / TUPLES_A_COPY / self.flat.elements.max(1);
        let parts = workers.parts().min(most);
        (parts > 1).then_some((private, parts))
    }

    /// Checks and applies tuples block by block, in a copy that becomes the
    /// output when the last index has been found to be right. `false` without
    /// memory for it.
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
        // SAFETY: the tensors have so many bytes, and so has the copy.
        unsafe { source.copy_to_nonoverlapping(copy, bytes) };
        // SAFETY: the caller vouches for updates; the copy is like the output.
        let result = unsafe { self.apply_to(copy, 0..self.flat.tuples) };
        if result.is_ok() {
            // SAFETY: as above, the other way.
            unsafe { copy.copy_to_nonoverlapping(output, bytes) };
        }
        Scratch::put_back(memory);
        result.map(|()| true)
    }

    /// The same on several workers, each with consecutive tuples and a copy
    /// that begins with what changes nothing: the copies are combined with the
    /// output, in order, when no worker has found a wrong index.
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
            // SAFETY: a copy of all elements, which no one else has; the caller
            // vouches for updates.
            let applied = unsafe { self.apply_to(copy, tuples) };
            if applied.is_err() {
                first_wrong.fetch_min(first, Ordering::Relaxed);
            }
        });
        let result = done.and_then(|()| self.check_from(first_wrong.into_inner()));
        let result = result.and_then(|()| {
            let tasks = match parts * self.bytes {
                MERGED_BYTES.. => parts,
                _ => 1,
            };
            workers.run(tasks, &|index| {
                // SAFETY: as many elements in every copy as in the output, of which
                // each task has a part; the caller vouches for output and data.
                unsafe { self.merge(&copies, part(count, tasks, index)) };
            })
        });
        copies.put_back();
        result.map(|()| true)
    }

    /// The error of the first wrong tuple from `first` on: workers only say
    /// whose tuples it is among.
    fn check_from(&self, first: usize) -> Result<(), ScatterError> {
        self.each_block(first.min(self.flat.tuples)..self.flat.tuples, |_, _| ())
    }

    /// Merges a range of elements of all copies with the output.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]; no one else has these elements of the output meanwhile.
    unsafe fn merge(&self, copies: &Copies<'_>, range: Range<usize>) {
        let output: *mut u8 = self.buffers.output.cast();
        let size = self.operation.kernels.size;
        if let Some(data) = self.buffers.data {
            let (first, bytes) = (range.start * size, range.len() * size);
            // SAFETY: both have these elements, by the caller, and share no byte.
            unsafe {
                let data = data.add(first);
                data.copy_to_nonoverlapping(output.add(first), bytes);
            }
        }
        let into = Merged { output, unit: 1 };
        // SAFETY: these elements are initialised by now, and the caller's alone.
        unsafe { copies.merge(into, range.start as u64..range.end as u64) };
    }

    /// Applies a range of tuples to `copy`, up to the first that is wrong.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], with an initialised `copy` in place of the output.
    unsafe fn apply_to(&self, copy: *mut u8, range: Range<usize>) -> Result<(), ScatterError> {
        if self.is_one_value && !range.is_empty() {
            // SAFETY: handed on as it is.
            return unsafe { self.apply_one_value(copy, range) };
        }
        let (updates, size) = (self.buffers.source, self.operation.kernels.size);
        self.each_block(range, |first, block| {
            let next = updates.wrapping_add(first * size);
            let spread = Spread::NEIGHBOURS;
            // SAFETY: they are numbers of elements of the copy, and there is
            // one update for each; the caller vouches for the rest.
            unsafe {
                match block {
                    Block::Narrow(numbers) => (self.kernel.u32)(copy, next, numbers, spread),
                    Block::Wide(numbers) => (self.kernel.u64)(copy, next, numbers, spread),
                }
            }
        })
    }

    /// The same with one update for all. Apart, as the copies of that lie on the
    /// stack.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_to`], with tuples in the range.
    #[inline(never)]
    unsafe fn apply_one_value(
        &self,
        copy: *mut u8,
        range: Range<usize>,
    ) -> Result<(), ScatterError> {
        let (updates, size) = (self.buffers.source, self.operation.kernels.size);
        // SAFETY: there is an update, of plain bytes, as there are kernels for
        // single elements.
        let one = unsafe { OneValue::new(updates, size, range.len().min(CHECKED_TUPLES)) };
        self.each_block(range, |_, block| {
            let spread = Spread::NEIGHBOURS;
            // SAFETY: as in `apply_to`.
            unsafe {
                match block {
                    Block::Narrow(numbers) => one.apply(self.kernel.u32, copy, numbers, spread),
                    Block::Wide(numbers) => one.apply(self.kernel.u64, copy, numbers, spread),
                }
            }
        })
    }

    /// Numbers a range of tuples block by block, up to the first that is wrong.
    #[inline(always)]
    fn each_block(
        &self,
        range: Range<usize>,
        apply: impl Fn(usize, Block<'_>),
    ) -> Result<(), ScatterError> {
        let mut numbers = [0_u64; CHECKED_TUPLES];
        let mut is_far = false;
        let mut first = range.start;
        while first < range.end {
            let most = if is_far {
                FAR_CHECKED_TUPLES
            } else {
                CHECKED_TUPLES
            };
            let tuples = most.min(range.end - first);
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
