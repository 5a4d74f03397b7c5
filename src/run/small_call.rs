//! Runs small calls. In a small call, setting up loops and choosing a schedule would cost more than
//! moving the elements. A call with a plan uses the destination numbers of the plan. A call without
//! a plan has at most 512 tuples, and its destination numbers are computed on the stack.
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
    Coordinates, Destinations, Extents, Flat, IndexPlan, Number, SHORT_LIST, SlotAxis, Tuples,
    known_distinct, resolve_sequences,
};
use crate::reduction::Duplicates;

/// Runs a small call with its plan. Returns whether the call ran. The call runs only if the
/// destination numbers of the plan count slices, and if these numbers and the stored positions of
/// tuples have 32 bits.
///
/// # Safety
///
/// The operands have the layout and the shapes of the plan, and `flat` was made from them. If data
/// is copied, the data and the output are contiguous. [`can_run`](small_transfer::can_run) allows
/// the transfer.
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
    // SAFETY: the caller guarantees four facts. The operands have the layout and the shapes of the
    // plan. `flat` was made from the operands. Copied data and the output are contiguous. `can_run`
    // allows the transfer. The destination numbers of the plan are numbers of slices, as `flat`
    // requires. They were checked when the plan was made.
    unsafe { transfer.run(operands.direction, operands.buffers()) };
    true
}

/// A call whose windows are rows at a constant stride, with the indices of the call.
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
    /// The call does not run if it has more than [`STACK_TUPLES`] tuples, or if it must reject
    /// duplicates and a fast check does not show that all destinations are distinct.
    ///
    /// # Safety
    ///
    /// The operands have the shapes of `extents`, and `flat` was made from `extents` and the
    /// layouts of the operands. If data is copied, the data and the output are contiguous.
    /// [`can_run`](small_transfer::can_run) allows the transfer.
    #[inline(always)] // On the path of the smallest calls.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        // SAFETY: the caller guarantees the conditions of `run_numbered` and `run_longer`, which
        // are the conditions of this function.
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

    /// Runs a call of at most [`STACK_TUPLES`] tuples. The function is not inlined, so that the
    /// smallest calls do not reserve its stack frame.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    #[inline(never)]
    unsafe fn run_longer(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        // SAFETY: the conditions of `run_numbered` are the conditions of this function.
        unsafe { self.run_numbered::<STACK_TUPLES>(execution) }
    }

    /// Computes the destination numbers of the tuples in an array with room for `CAPACITY` numbers,
    /// and runs the call.
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
        // guarantees that `flat` was made from the layouts of the operands, that copied data and
        // the output are contiguous, and that `can_run` allows the transfer.
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
    /// As for [`Self::run`]. Every element of `numbers` is the number of a slice, or marks a
    /// skipped tuple.
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
        // SAFETY: `tuples` has no skipped tuple, so the caller guarantees that every number is the
        // number of a slice. The caller also guarantees what `Self::run` requires.
        unsafe { self.run_tuples(tuples) }
    }

    /// Runs the tuples, and returns `true`. If duplicates must be rejected and a fast check does
    /// not show that all numbers are distinct, runs nothing and returns `false`.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`]. Every number is below `flat.slices`, and every position is below
    /// `flat.tuples`.
    #[inline(always)]
    unsafe fn run_tuples(&self, tuples: TupleNumbers<'_>) -> bool {
        if self.planning.duplicates == Duplicates::Reject && !known_distinct(tuples.numbers) {
            // The caller then makes a plan, which detects whether there are duplicates, and which
            // tuples they are.
            return false;
        }
        let transfer = SmallTransfer {
            operation: self.operands.operation,
            flat: self.flat,
            tuples,
        };
        // SAFETY: the caller guarantees that every number is below `flat.slices`, that every
        // position is below `flat.tuples`, and what `Self::run` requires of the operands and
        // `flat`.
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

    /// Computes the destination numbers of tuples that have several coordinates, of tuples whose
    /// indices are not contiguous, of slots, and of the rows of sequences. The function is not
    /// inlined, so that the smallest calls do not reserve its stack frame.
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
        let set = execution.instructions();
        if let Some(slots) = SlotAxis::new(self.extents.shape, form)? {
            let tuples = slots.tuples(*self.indices, rules);
            let resolved = match tuples.are_neighbours() {
                true => tuples.resolve_neighbours(numbers),
                false => tuples.resolve_all(set, numbers),
            };
            return resolved.map_err(|error| slots.rename(error));
        }
        let tuples = Tuples::of_slices(self.extents, self.indices, rules);
        tuples.resolve_all(set, numbers)
    }
}
