//! The floating-point mode of the calling thread: rounding, flush-to-zero,
//! traps. Results are those of the default mode whatever the caller's.

use std::arch::asm;

/// The default mode for as long as this lives, then the mode that was.
#[derive(Debug)]
pub struct DefaultMode {
    /// What was there, if it was not the default.
    changed: Option<Register>,
}

impl DefaultMode {
    /// Enters it, on the calling thread.
    #[must_use = "the mode is left when this is dropped"]
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

    /// MXCSR.
    pub(super) type Register = u32;
    /// All but the flags of what has happened.
    pub(super) const CONTROL: Register = 0xffc0;
    /// All exceptions masked, to nearest, subnormals kept.
    pub(super) const DEFAULT: Register = 0x1f80;

    pub(super) fn read() -> Register {
        let mut value: Register = 0;
        // SAFETY: stores a register of every x86-64 to a local variable.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
        }
        value
    }

    pub(super) fn write(value: Register) {
        // SAFETY: `value` is what `read` gave, with the default in its control
        // bits or as it was; no reserved bit is set.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use super::asm;

    /// FPCR.
    pub(super) type Register = u64;
    /// Rounding, flush-to-zero (both), default NaN, alternative halves, traps.
    pub(super) const CONTROL: Register = 0x07c8_9f00;
    pub(super) const DEFAULT: Register = 0;

    pub(super) fn read() -> Register {
        let value;
        // SAFETY: reads a register of every aarch64.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub(super) fn write(value: Register) {
        // SAFETY: `value` is what `read` gave, but for control bits cleared.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    /// No register that is known here: the caller's mode is believed to be the
    /// default one.
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
    fn the_mode_is_the_default_inside_and_the_callers_again_after() {
        let before = read();
        // Flush to zero, denormals are zero, towards zero.
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
