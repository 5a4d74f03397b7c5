//! Calls that are over sooner than loops are set up and a schedule is chosen: of
//! a plan, or of indices that become numbers on the stack, without one.
//!
//! Knows how their tuples are numbered. Knows nothing of what they do with elements.

#![expect(unsafe_code, reason = "hands numbers that were checked to a transfer")]

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

/// Runs a small call by its plan, and says whether the plan has the numbers for it.
///
/// # Safety
///
/// Layout and shapes of the operands are the plan's, and `flat` is how they lie. Data that
/// is copied and the output are contiguous. [`can_run`](small_transfer::can_run) allows the
/// transfer.
#[inline(always)] // As all that is on the way of the smallest calls.
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
    // SAFETY: the caller vouches for layout and shapes, and the plan has numbered
    // slices as `flat` does.
    unsafe { transfer.run(operands.direction, operands.buffers()) };
    true
}

/// A call of rows at even distances, and its indices.
pub(super) struct FlatCall<'a> {
    pub(super) extents: &'a Extents<'a>,
    pub(super) flat: &'a Flat,
    pub(super) operands: &'a Operands<'a>,
    pub(super) indices: &'a Integers<'a>,
    pub(super) planning: Planning,
}

impl FlatCall<'_> {
    /// Runs a small call, and says whether it could. All indices are checked before
    /// anything is written.
    ///
    /// # Safety
    ///
    /// The shapes of the operands are those of `extents`, and `flat` was made of
    /// that and of their layouts. Data that is copied and the output are contiguous.
    /// [`can_run`](small_transfer::can_run) allows the transfer.
    #[inline(always)] // As all that is on the way of the smallest calls.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        // SAFETY: handed on as it is.
        unsafe {
            if self.flat.tuples <= SHORT_LIST {
                self.run_numbered::<SHORT_LIST>(execution)
            } else if self.flat.tuples <= STACK_TUPLES {
                self.run_some(execution)
            } else {
                Ok(false)
            }
        }
    }

    /// Apart, so that the smallest calls do not pay for its stack.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(never)]
    unsafe fn run_some(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        // SAFETY: handed on as it is.
        unsafe { self.run_numbered::<STACK_TUPLES>(execution) }
    }

    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(always)]
    unsafe fn run_numbered<const MOST: usize>(
        &self,
        execution: &Execution<'_>,
    ) -> Result<bool, ScatterError> {
        let mut numbers = [0; MOST];
        let numbers = &mut numbers[..self.flat.tuples];
        let skipped = self.resolve(execution, numbers)?;
        // SAFETY: they have just been numbered; the caller vouches for the rest.
        Ok(unsafe {
            if skipped > 0 {
                self.run_applied::<MOST>(numbers)
            } else {
                self.run_tuples(TupleNumbers {
                    numbers,
                    positions: None,
                })
            }
        })
    }

    /// Runs the tuples whose numbers are not marked as skipped.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]; the others are numbers of slices.
    #[inline(never)]
    unsafe fn run_applied<const MOST: usize>(&self, numbers: &mut [u32]) -> bool {
        let mut positions = [0_u32; MOST];
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
        // SAFETY: handed on as it is.
        unsafe { self.run_tuples(tuples) }
    }

    /// # Safety
    ///
    /// As for [`Self::run`]; numbers and positions are those of `flat`.
    #[inline(always)]
    unsafe fn run_tuples(&self, tuples: TupleNumbers<'_>) -> bool {
        if self.planning.duplicates == Duplicates::Reject && !known_distinct(tuples.numbers) {
            // Whether there are duplicates, and which, a plan will say.
            return false;
        }
        let transfer = SmallTransfer {
            operation: self.operands.operation,
            flat: self.flat,
            tuples,
        };
        // SAFETY: handed on as it is.
        unsafe { transfer.run(self.operands.direction, self.operands.buffers()) };
        true
    }

    /// Numbers all tuples, and says how many are skipped.
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
