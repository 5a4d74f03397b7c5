//! The context of a transfer: whether its plan is kept, whether its output is new memory, which
//! variants of kernels it uses, and the instruction set of its filters. Filters are the loops that
//! select the tuples of a range of destinations.
//!
//! This module knows which variants of kernels suit the machine. This module does not know which
//! elements a transfer reads and writes.

use crate::kernel::InstructionSet;
use crate::machine::{Machine, Variants};

/// Properties of a transfer that affect its speed but no bit of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Whether the caller keeps the plan for further runs. If a run of a kept plan computes data
    /// from the indices, it stores the computed data in the plan.
    pub(crate) is_kept: bool,
    /// Whether the output is new memory: after an error, its elements may have any values.
    pub(crate) is_new: bool,
    /// The variants of kernels that the transfer uses.
    pub(super) variants: Variants,
    /// The instruction set of the filters, which are loops outside the kernel table.
    pub(super) set: InstructionSet,
}

impl Context {
    /// Returns a context with the kernel variants for a typical machine ([`Variants::TYPICAL`]).
    /// Small calls use these variants, because reading the variants of the present machine would
    /// cost too much time.
    pub(crate) fn new(is_kept: bool, is_new: bool) -> Self {
        Self {
            is_kept,
            is_new,
            variants: Variants::TYPICAL,
            set: InstructionSet::LAST,
        }
    }

    /// Returns the same context with the instruction set `set`.
    pub(crate) fn with_set(self, set: InstructionSet) -> Self {
        Self { set, ..self }
    }

    /// Returns the same context with the kernel variants of `machine`. If the output is new memory,
    /// these variants use streaming stores only if [`Variants::stream_new`] of `machine` is set.
    pub(crate) fn on(self, machine: &Machine) -> Self {
        let variants = match self.is_new {
            true => machine.variants.of_new_memory(),
            false => machine.variants,
        };
        Self { variants, ..self }
    }
}
