//! Sets and restores the floating-point mode of the calling thread: rounding, flush-to-zero and
//! traps.
//!
//! Kernels compute in the default mode, so the caller's mode does not change their results. The
//! default mode rounds to nearest, keeps subnormal numbers and has no traps. This module knows the
//! control registers of x86-64 and aarch64.

use std::arch::asm;

/// A guard that keeps the calling thread in the default floating-point mode. The drop of the guard
/// restores the thread's previous mode.
#[derive(Debug)]
pub struct DefaultMode {
    /// Previous value of the thread's floating-point control register, if its mode was not the
    /// default mode.
    changed: Option<Register>,
}

impl DefaultMode {
    /// Sets the default floating-point mode on the calling thread.
    #[must_use = "the drop of this guard restores the previous mode"]
    pub fn enter() -> Self {
        let found = read();
        if found & CONTROL == DEFAULT {
            return Self { changed: None };
        }
        write((found & !CONTROL) | DEFAULT);
        Self {
            changed: Some(found),
        }
    }
}

impl Drop for DefaultMode {
    fn drop(&mut self) {
        if let Some(found) = self.changed {
            write(found);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    use super::asm;

    /// The MXCSR register.
    pub(super) type Register = u32;
    /// All bits except the status flags of exceptions.
    pub(super) const CONTROL: Register = 0xffc0;
    /// All exceptions masked, rounding to nearest, subnormals kept.
    pub(super) const DEFAULT: Register = 0x1f80;

    pub(super) fn read() -> Register {
        let mut value: Register = 0;
        // SAFETY: every x86-64 processor has this register. The instruction stores it to a local
        // variable.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
        }
        value
    }

    pub(super) fn write(value: Register) {
        // SAFETY: `value` comes from `read`. Its control bits are unchanged or those of `DEFAULT`,
        // so no reserved bit is set.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use super::asm;

    /// The FPCR register.
    pub(super) type Register = u64;
    /// Rounding, both flush-to-zero bits, default NaN, alternative half precision, and traps.
    pub(super) const CONTROL: Register = 0x07c8_9f00;
    pub(super) const DEFAULT: Register = 0;

    pub(super) fn read() -> Register {
        let value;
        // SAFETY: every aarch64 processor has this register.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub(super) fn write(value: Register) {
        // SAFETY: `value` comes from `read`, unchanged or with cleared control bits.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    /// Placeholder: this architecture's register is unknown. The caller's mode is assumed to be the
    /// default mode.
    pub(super) type Register = u32;
    pub(super) const CONTROL: Register = 0;
    pub(super) const DEFAULT: Register = 0;

    pub(super) fn read() -> Register {
        0
    }

    pub(super) fn write(_: Register) {}
}

use register::{CONTROL, DEFAULT, Register, read, write};

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::{CONTROL, DEFAULT, DefaultMode, read, write};

    #[test]
    fn the_guard_sets_the_default_mode_and_restores_the_previous_mode() {
        let before = read();
        // Flush to zero, denormals are zero, rounding towards zero.
        let odd = before | 0xe040;
        write(odd);
        let mode = DefaultMode::enter();
        let inside = read();
        drop(mode);
        let after = read();
        write(before);
        assert_eq!(inside & CONTROL, DEFAULT, "inside");
        assert_eq!(after & CONTROL, odd & CONTROL, "after");
    }
}
