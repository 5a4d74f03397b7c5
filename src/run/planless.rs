//! Calls of contiguous tensors that are over sooner than a plan is made, and
//! long lists of single elements for an output that stays in cache.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::making::Planning;
use super::operands::Operands;
use crate::error::ScatterError;
use crate::exec::scratch::Scratch;
use crate::exec::tasks::Workers;
use crate::exec::{Buffers, Copies, Merged, direct, part};
use crate::execution::Execution;
use crate::kernel::{Elements, Operation, Private, Spread};
use crate::operand::indices::Integers;
use crate::plan::{Block, Contiguous, Flat, Form};

/// Tuples whose destinations lie on the stack. The smaller number is for calls
/// of which clearing the larger array would be a good part.
const FEW: usize = 16;
const SOME: usize = 512;

/// Largest output, in bytes, that a long list of single elements is applied to
/// in a copy: it stays in the first or second-level cache.
const COPIED_BYTES: usize = 256 * 1024;

/// From as many tuples on, several workers get a copy each, where copies can be
/// combined.
const DIVIDED_TUPLES: usize = 256 * 1024;

/// The copy, to and back, is little work beside so many tuples an element.
const COPIED_TUPLES: usize = 4;

/// A call of contiguous tensors.
pub(super) struct Planless<'a> {
    operation: &'a Operation,
    flat: Flat,
    buffers: Buffers,
    tuples: Contiguous<'a>,
}

impl<'a> Planless<'a> {
    /// `form` was made from the shapes of the operands.
    #[inline]
    pub(super) fn new(
        form: &Form,
        operands: &'a Operands<'_>,
        indices: &'a Integers<'a>,
        planning: Planning,
    ) -> Self {
        let shape = operands.shape();
        Self {
            operation: operands.operation,
            flat: Flat::new(form, shape, form.listed(indices.layout())),
            buffers: operands.buffers(),
            tuples: Contiguous {
                indices,
                first_axis: form.batch_rank,
                sizes: &shape[form.batch_rank..form.batch_rank + form.tuple_len],
                negatives_wrap: planning.rules.negatives_wrap,
            },
        }
    }

    /// Runs the call if it is one of these, and says whether it was.
    ///
    /// # Safety
    ///
    /// As for [`super::execute`]; the tensors are contiguous, and their shapes
    /// fit those of the indices.
    #[inline]
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        let in_place = self.buffers.data.is_none();
        let suits = direct::suits(&self.flat, self.operation, in_place);
        // SAFETY: the caller vouches for what all of them ask.
        unsafe {
            match self.flat.tuples {
                0..=FEW if suits => self.run_few::<FEW>()?,
                0..=SOME if suits => self.run_few::<SOME>()?,
                _ => {
                    let Some(elements) = self.suits_a_copy() else {
                        return Ok(false);
                    };
                    return match self.private_copies(execution) {
                        Some((private, parts)) => {
                            self.run_in_copies(elements, private, parts, execution)
                        }
                        None => self.run_in_copy(elements, execution),
                    };
                }
            }
        }
        Ok(true)
    }

    /// At most `MOST` tuples, all checked before the first is applied.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline]
    unsafe fn run_few<const MOST: usize>(&self) -> Result<(), ScatterError> {
        let mut numbers = [0_u32; MOST];
        let numbers = &mut numbers[..self.flat.tuples];
        self.tuples.resolve(numbers)?;
        // SAFETY: shapes are those of `flat`; `numbers` have just been made for
        // it; the caller vouches for the rest.
        unsafe { direct::run(self.operation.kernels, &self.flat, self.buffers, numbers) };
        Ok(())
    }

    /// The loop over elements, where the work on indices is most of the call
    /// and nothing beats doing it block by block, each just before it is
    /// applied.
    #[inline(never)]
    fn suits_a_copy(&self) -> Option<Elements> {
        let flat = &self.flat;
        let elements = flat.elements();
        let suits = flat.outer == 1
            && flat.run == 1
            && !self.operation.needs_groups
            && elements.saturating_mul(self.operation.kernels.size) <= COPIED_BYTES
            && flat.tuples >= COPIED_TUPLES * elements;
        self.operation.kernels.apply_elements.filter(|_| suits)
    }

    /// How many workers get a copy each, and what that takes; `None` where one
    /// copy is as good. Work grows with the copies, which must be cleared and
    /// merged: the more tuples for each element, the more of them pay.
    fn private_copies(&self, execution: &Execution<'_>) -> Option<(Private, usize)> {
        let tuples = self.flat.tuples;
        let private = (self.operation.private()).filter(|_| tuples >= DIVIDED_TUPLES)?;
        let workers = Workers::new(execution.pool, execution.max_workers);
        let most = (tuples / self.flat.elements().max(1)).isqrt();
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
    unsafe fn run_in_copy(
        &self,
        elements: Elements,
        execution: &Execution<'_>,
    ) -> Result<bool, ScatterError> {
        let bytes = self.flat.elements() * self.operation.kernels.size;
        let Ok(mut memory) = <u64 as Scratch>::take(bytes.div_ceil(size_of::<u64>())) else {
            return Ok(false);
        };
        let output: *mut u8 = self.buffers.output.cast();
        let copy: *mut u8 = memory.as_mut_ptr().cast();
        let source = self.buffers.data.unwrap_or(output);
        // SAFETY: the tensors have so many bytes, and so has the copy.
        unsafe { source.copy_to_nonoverlapping(copy, bytes) };
        // SAFETY: the caller vouches for updates; the copy is like the output.
        let result = unsafe { self.apply_to(copy, elements, 0..self.flat.tuples, execution) };
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
        elements: Elements,
        private: Private,
        parts: usize,
        execution: &Execution<'_>,
    ) -> Result<bool, ScatterError> {
        let count = self.flat.elements();
        let Ok(mut copies) = Copies::take(private, self.operation.kernels, (count, 1), parts)
        else {
            return Ok(false);
        };
        let first_wrong = AtomicUsize::new(usize::MAX);
        let workers = Workers::new(execution.pool, execution.max_workers);
        let done = copies.fill(&workers, &|index, copy| {
            let tuples = part(self.flat.tuples, parts, index);
            let first = tuples.start;
            // SAFETY: a copy of all elements, which no one else has; the caller
            // vouches for updates.
            let applied = unsafe { self.apply_to(copy, elements, tuples, execution) };
            if applied.is_err() {
                first_wrong.fetch_min(first, Ordering::Relaxed);
            }
        });
        let result = done.and_then(|()| self.check_from(first_wrong.into_inner(), execution));
        if result.is_ok() {
            // SAFETY: as many elements in every copy as in the output; the
            // caller vouches for output and data.
            unsafe { self.merge(&copies) };
        }
        copies.put_back();
        result.map(|()| true)
    }

    /// The error of the first wrong tuple from `first` on: workers only say
    /// whose tuples it is among.
    fn check_from(&self, first: usize, execution: &Execution<'_>) -> Result<(), ScatterError> {
        let set = execution.instructions();
        let mut numbers = [0_u64; SOME];
        for first in (first..self.flat.tuples).step_by(SOME) {
            let tuples = SOME.min(self.flat.tuples - first);
            (self.tuples).resolve_block(set, first, &mut numbers[..tuples])?;
        }
        Ok(())
    }

    /// Merges copies of all elements with the output.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    unsafe fn merge(&self, copies: &Copies<'_>) {
        let output: *mut u8 = self.buffers.output.cast();
        let count = self.flat.elements();
        if let Some(data) = self.buffers.data {
            let bytes = count * self.operation.kernels.size;
            // SAFETY: the caller vouches for both, which share no byte.
            unsafe { data.copy_to_nonoverlapping(output, bytes) };
        }
        let into = Merged { output, unit: 1 };
        // SAFETY: the output is initialised by now, and this call's alone.
        unsafe { copies.merge(into, 0..count as u64) };
    }

    /// Applies a range of tuples to `copy`, up to the first that is wrong.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], with an initialised `copy` in place of the output.
    unsafe fn apply_to(
        &self,
        copy: *mut u8,
        elements: Elements,
        range: Range<usize>,
        execution: &Execution<'_>,
    ) -> Result<(), ScatterError> {
        let set = execution.instructions();
        let mut numbers = [0_u64; SOME];
        for first in range.clone().step_by(SOME) {
            let tuples = SOME.min(range.end - first);
            let block = (self.tuples).resolve_block(set, first, &mut numbers[..tuples])?;
            let updates = (self.buffers.updates).wrapping_add(first * self.operation.kernels.size);
            // SAFETY: they are numbers of elements of the copy, and there is
            // one update for each; the caller vouches for the rest.
            unsafe {
                match block {
                    Block::Narrow(numbers) => {
                        (elements.u32)(copy, updates, numbers, Spread::NEIGHBOURS)
                    }
                    Block::Wide(numbers) => {
                        (elements.u64)(copy, updates, numbers, Spread::NEIGHBOURS)
                    }
                }
            }
        }
        Ok(())
    }
}
