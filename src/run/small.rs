//! Calls that are over sooner than loops are set up and a schedule is chosen: of
//! a plan, or of indices that become numbers on the stack, without one.
//!
//! Knows which calls these are. Knows nothing of what they do with elements.

#![expect(unsafe_code, reason = "hands numbers that were checked to a transfer")]

use super::making::Planning;
use super::operands::Transferred;
use crate::error::ScatterError;
use crate::exec::direct::{self, Direct, Few};
use crate::execution::Execution;
use crate::operand::Layout;
use crate::operand::indices::Integers;
use crate::plan::{
    Coordinates, Destinations, Extents, Flat, IndexPlan, Number, SHORT_LIST, Tuples,
    are_seen_distinct, resolve_sequences,
};
use crate::reduction::Duplicates;

/// Most tuples whose numbers lie on the stack; [`SHORT_LIST`] is for calls of which
/// clearing the larger array would be a good part.
const SOME: usize = 512;

/// Runs a plan, and says whether it is a small call.
///
/// # Safety
///
/// Layout and shapes of the operands are the plan's.
#[inline(always)] // As all that is on the way of the smallest calls.
pub(super) unsafe fn run_planned(plan: &IndexPlan, operands: &impl Transferred) -> bool {
    let narrow = Destinations::narrow;
    let Some(numbers) = narrow(plan.destinations()).filter(|_| plan.scale().numbers_slices) else {
        return false;
    };
    let positions = plan.positions().map(narrow);
    let computed;
    let flat = if operands.listed().is_contiguous() {
        plan.flat()
    } else {
        computed = Flat::new(&plan.extents(), operands.numbered(), operands.listed());
        computed.as_ref()
    };
    let Some(flat) = flat.filter(|flat| positions != Some(None) && suits(flat, operands)) else {
        return false;
    };
    let direct = Direct {
        operation: operands.operation(),
        flat,
        few: Few {
            numbers,
            positions: positions.flatten(),
        },
    };
    // SAFETY: the caller vouches for layout and shapes, and the plan has numbered
    // slices as `flat` does.
    unsafe { operands.run_direct(&direct) };
    true
}

/// Whether a call is small enough; data is copied as one run.
#[inline(always)]
fn suits(flat: &Flat, operands: &impl Transferred) -> bool {
    let data = operands.copied();
    let is_run = |data: &Layout<'_>| operands.numbered().is_contiguous() && data.is_contiguous();
    data.is_none_or(is_run) && direct::suits(flat, operands.operation(), data.is_some())
}

/// The indices of a call, and what they mean.
pub(super) struct Small<'a, O> {
    pub(super) extents: &'a Extents<'a>,
    pub(super) flat: &'a Flat,
    pub(super) operands: &'a O,
    pub(super) indices: &'a Integers<'a>,
    pub(super) planning: Planning,
}

impl<O: Transferred> Small<'_, O> {
    /// Runs the call if it is small, and says whether it was. All indices are
    /// checked before anything is written.
    ///
    /// # Safety
    ///
    /// The shapes of the operands are those of `extents`, and `flat` was made of
    /// that and of their layouts.
    #[inline(always)] // As all that is on the way of the smallest calls.
    pub(super) unsafe fn run(&self, execution: &Execution<'_>) -> Result<bool, ScatterError> {
        if self.flat.tuples > SOME || !suits(self.flat, self.operands) {
            return Ok(false);
        }
        // SAFETY: handed on as it is.
        unsafe {
            if self.flat.tuples > SHORT_LIST {
                self.run_some(execution)
            } else {
                self.run_numbered::<SHORT_LIST>(execution)
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
        unsafe { self.run_numbered::<SOME>(execution) }
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
                self.run_few(Few {
                    numbers,
                    positions: None,
                })
            }
        })
    }

    /// The tuples of which the numbers are not marked as skipped.
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
        let few = Few {
            numbers: &numbers[..applied],
            positions: Some(&positions[..applied]),
        };
        // SAFETY: handed on as it is.
        unsafe { self.run_few(few) }
    }

    /// # Safety
    ///
    /// As for [`Self::run`]; numbers and positions are those of `flat`.
    #[inline(always)]
    unsafe fn run_few(&self, few: Few<'_>) -> bool {
        if self.planning.duplicates == Duplicates::Reject && !are_seen_distinct(few.numbers) {
            // Whether there are duplicates, and which, a plan will say.
            return false;
        }
        let direct = Direct {
            operation: self.operands.operation(),
            flat: self.flat,
            few,
        };
        // SAFETY: handed on as it is.
        unsafe { self.operands.run_direct(&direct) };
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
