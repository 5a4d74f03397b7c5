//! Runs small calls, for which setting up loops and choosing a schedule would cost more than the
//! moves. A call with a plan uses the destination numbers of the plan. A call without a plan has at
//! most 512 tuples, and its destination numbers are computed on the stack.
//!
//! This module knows how destination numbers are computed. It does not know the operation on the
//! elements.

#![expect(unsafe_code, reason = "passes checked numbers to a transfer")]

use super::operands::Operands;
use super::plan_builder::Planning;
use super::route::STACK_TUPLES;
use crate::error::ScatterError;
#[cfg(doc)]
use crate::exec::small_transfer;
use crate::exec::small_transfer::{SmallTransfer, TupleNumbers};
use crate::execution::Execution;
use crate::operand::indices::Integers;
use crate::plan::{
    Coordinates, Destinations, Extents, Flat, IndexPlan, Number, SHORT_LIST, Tuples,
    known_distinct, resolve_sequences,
};
use crate::reduction::Duplicates;

/// Runs a small call with its plan. Returns whether the call ran. The call runs only if the
/// destination numbers of the plan count slices and have 32 bits.
///
/// # Safety
///
/// The operands have the layout and the shapes of the plan, and `flat` was made from them. Copied
/// data and the output are contiguous. [`can_run`](small_transfer::can_run) allows the transfer.
#[inline(always)] // On the path of the smallest calls.
pub(super) unsafe fn run_planned(plan: &IndexPlan, flat: &Flat, operands: &Operands<'_>) -> bool {
    let narrow = Destinations::narrow;
    let Some(numbers) = narrow(plan.destinations()).filter(|_| plan.scale().numbers_slices) else {
        return false;
    };
    let positions = plan.positions().map(narrow);
    if positions == Some(None) {
        return false;
    }
    let transfer = SmallTransfer {
        operation: operands.operation,
        flat,
        tuples: TupleNumbers {
            numbers,
            positions: positions.flatten(),
        },
    };
    // SAFETY: the caller guarantees the layout and the shapes. The destination numbers of the plan
    // count slices, as `flat` requires, and were checked when the plan was made.
    unsafe { transfer.run(operands.direction, operands.buffers()) };
    true
}

/// A call with rows at a constant stride, and its indices.
pub(super) struct FlatCall<'a> {
    pub(super) extents: &'a Extents<'a>,
    pub(super) flat: &'a Flat,
    pub(super) operands: &'a Operands<'a>,
    pub(super) indices: &'a Integers<'a>,
    pub(super) planning: Planning,
}

impl FlatCall<'_> {
    /// Runs a small call. Returns whether the call ran. All indices are checked before the first
    /// write.
    ///
    /// # Safety
    ///
    /// The operands have the shapes of `extents`, and `flat` was made from `extents` and the
    /// layouts of the operands. Copied data and the output are contiguous.
    /// [`can_run`](small_transfer::can_run) allows the transfer.
    #[inline(always)] // On the path of the smallest calls.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        // SAFETY: the caller guarantees what both functions require.
        unsafe {
            if self.flat.tuples <= SHORT_LIST {
                self.run_numbered::<SHORT_LIST>(execution)
            } else if self.flat.tuples <= STACK_TUPLES {
                self.run_longer(execution)
            } else {
                Ok(false)
            }
        }
    }

    /// Runs a call of at most [`STACK_TUPLES`] tuples. A separate function, so that the smallest
    /// calls do not reserve its stack frame.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(never)]
    unsafe fn run_longer(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        // SAFETY: `run_numbered` has the contract of this function.
        unsafe { self.run_numbered::<STACK_TUPLES>(execution) }
    }

    /// Computes the destination numbers of the tuples in an array of `CAPACITY` elements, and runs
    /// the call.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(always)]
    unsafe fn run_numbered<const CAPACITY: usize>(
        &self,
        execution: &Execution<'_>,
    ) -> Result<bool, ScatterError> {
        let mut numbers = [0; CAPACITY];
        let numbers = &mut numbers[..self.flat.tuples];
        let skipped = self.resolve(execution, numbers)?;
        // SAFETY: `resolve` has computed the destination numbers of all tuples. The caller
        // guarantees the rest.
        Ok(unsafe {
            if skipped > 0 {
                self.run_applied::<CAPACITY>(numbers)
            } else {
                self.run_tuples(TupleNumbers {
                    numbers,
                    positions: None,
                })
            }
        })
    }

    /// Runs the tuples that are not skipped.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]. Every number is the number of a slice, or marks a skipped tuple.
    #[inline(never)]
    unsafe fn run_applied<const CAPACITY: usize>(&self, numbers: &mut [u32]) -> bool {
        let mut positions = [0_u32; CAPACITY];
        let mut applied = 0;
        for at in 0..numbers.len() {
            let number = numbers[at];
            numbers[applied] = number;
            positions[applied] = Number::new(at as u64);
            applied += usize::from(number != u32::SKIPPED);
        }
        let tuples = TupleNumbers {
            numbers: &numbers[..applied],
            positions: Some(&positions[..applied]),
        };
        // SAFETY: skipped tuples were removed. The caller guarantees the rest.
        unsafe { self.run_tuples(tuples) }
    }

    /// Runs the tuples, unless duplicates must be rejected and there may be some.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]. Every number is below `flat.slices`, and every position is below
    /// `flat.tuples`.
    #[inline(always)]
    unsafe fn run_tuples(&self, tuples: TupleNumbers<'_>) -> bool {
        if self.planning.duplicates == Duplicates::Reject && !known_distinct(tuples.numbers) {
            // The planned route then detects whether there are duplicates, and which tuples are
            // duplicates.
            return false;
        }
        let transfer = SmallTransfer {
            operation: self.operands.operation,
            flat: self.flat,
            tuples,
        };
        // SAFETY: the caller guarantees the numbers, the layouts and the memory.
        unsafe { transfer.run(self.operands.direction, self.operands.buffers()) };
        true
    }

    /// Computes the destination numbers of all tuples. Returns the number of skipped tuples.
    #[inline(always)]
    fn resolve(
        &self,
        execution: &Execution<'_>,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        let tuples = Tuples::of_slices(self.extents, self.indices, self.planning.rules);
        if tuples.are_neighbours() {
            return tuples.resolve_neighbours(numbers);
        }
        self.resolve_others(execution, numbers)
    }

    /// Computes the destination numbers of tuples that have several coordinates, or whose indices
    /// are not contiguous, and of the rows of sequences. A separate function, so that the smallest
    /// calls do not reserve its stack frame.
    #[inline(never)]
    fn resolve_others(
        &self,
        execution: &Execution<'_>,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        let (form, rules) = (self.extents.form, self.planning.rules);
        if matches!(form.coordinates, Coordinates::Sequences { .. }) {
            let layout = self.operands.numbered();
            return resolve_sequences(layout, form, *self.indices, rules, numbers);
        }
        let tuples = Tuples::of_slices(self.extents, self.indices, rules);
        tuples.resolve_all(execution.instructions(), numbers)
    }
}
