//! The circumstances of a transfer: what its plan and its output are, and the variants of
//! kernels that it uses.
//!
//! Knows the machine's variants. Knows nothing of what a transfer moves.

use crate::machine::{Machine, Variants};

/// The circumstances of a transfer. They change no bit of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Whether the plan will be run again. A run leaves what it works out about indices in
    /// such a plan.
    pub(crate) is_kept: bool,
    /// Whether the output is new memory.
    pub(crate) is_new: bool,
    /// The variants of kernels that the transfer uses.
    pub(super) variants: Variants,
}

impl Context {
    /// With typical variants of kernels: small calls have no time to ask for the machine's.
    pub(crate) fn new(is_kept: bool, is_new: bool) -> Self {
        Self {
            is_kept,
            is_new,
            variants: Variants::TYPICAL,
        }
    }

    /// The same circumstances with the variants of a machine.
    pub(crate) fn on(self, machine: &Machine) -> Self {
        let variants = match self.is_new {
            true => machine.variants.of_new_memory(),
            false => machine.variants,
        };
        Self { variants, ..self }
    }
}
