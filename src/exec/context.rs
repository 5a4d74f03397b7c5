//! The context of a transfer: whether its plan is kept, whether its output is new memory, which
//! variants of kernels it uses, and the instruction set of its filters.
//!
//! This module knows which variants of kernels suit the machine. It does not know which elements a
//! transfer moves.

use crate::kernel::InstructionSet;
use crate::machine::{Machine, Variants};

/// Facts about a transfer that change its speed but no bit of its result: whether its plan is
/// kept, whether its output is new memory, and the kernels' variants for the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Whether the plan will be run again. A run of a kept plan stores in the plan the data that
    /// it computes from the indices.
    pub(crate) is_kept: bool,
    /// Whether the output is new memory.
    pub(crate) is_new: bool,
    /// The variants of kernels that the transfer uses.
    pub(super) variants: Variants,
    /// The instruction set of loops that are not in the kernel table.
    pub(super) set: InstructionSet,
}

impl Context {
    /// Returns a context with the kernel variants for a machine of unknown properties
    /// ([`Variants::TYPICAL`]). Small calls use these variants, because reading the variants of
    /// this machine would cost too much time.
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

    /// Returns the same context with the kernel variants of `machine`.
    pub(crate) fn on(self, machine: &Machine) -> Self {
        let variants = match self.is_new {
            true => machine.variants.of_new_memory(),
            false => machine.variants,
        };
        Self { variants, ..self }
    }
}
