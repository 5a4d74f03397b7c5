//! Sets and restores the floating-point mode of the calling thread: rounding, flush-to-zero and
//! traps.
//!
//! Kernels compute in the default mode, so the mode of the thread that calls the library does not
//! change the results. The default mode rounds to nearest, keeps subnormal numbers and has no
//! traps. This module sets the mode on x86-64 and aarch64. On other architectures it does nothing.
//! It does nothing under Miri, which runs no assembly.

/// A guard that keeps the calling thread in the default floating-point mode. When the guard is
/// dropped, it restores the mode that the thread had before the guard was created.
#[derive(Debug)]
pub struct DefaultMode {
    /// Value of the thread's floating-point control register before the guard was created. `None`:
    /// the thread was already in the default mode, so there is nothing to restore.
    changed: Option<Register>,
}

impl DefaultMode {
    /// Sets the calling thread to the default floating-point mode, until the guard is dropped.
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

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    use std::arch::asm;

    /// The MXCSR register.
    pub(super) type Register = u32;
    /// Bits of MXCSR that select the mode: denormals-are-zero, exception masks, rounding and
    /// flush-to-zero. The other bits are the exception status flags and reserved bits.
    pub(super) const CONTROL: Register = 0xffc0;
    /// Value of the `CONTROL` bits in the default mode: all exceptions masked, rounding to nearest,
    /// subnormal numbers kept.
    pub(super) const DEFAULT: Register = 0x1f80;

    pub(super) fn read() -> Register {
        let mut value: Register = 0;
        // SAFETY: every x86-64 processor has the MXCSR register. The instruction stores the
        // register in the local variable `value`, which has the same size of 4 bytes.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
        }
        value
    }

    pub(super) fn write(value: Register) {
        // SAFETY: `value` is a result of `read`, either unchanged or with its `CONTROL` bits
        // replaced by `DEFAULT`. Therefore no reserved bit of `value` is set.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags));
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    use std::arch::asm;

    /// The FPCR register.
    pub(super) type Register = u64;
    /// Bits of FPCR that select the mode: rounding, both flush-to-zero bits, default NaN,
    /// alternative half precision, and traps.
    pub(super) const CONTROL: Register = 0x07c8_9f00;
    pub(super) const DEFAULT: Register = 0;

    pub(super) fn read() -> Register {
        let value;
        // SAFETY: every aarch64 processor has the FPCR register. The instruction only reads it.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub(super) fn write(value: Register) {
        // SAFETY: `value` is a result of `read`, either unchanged or with all `CONTROL` bits
        // cleared. Therefore every bit of `value` is valid for FPCR.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod register {
    /// Placeholder type, because this module does not know the control register of this
    /// architecture. It assumes that each thread is already in the default mode, and changes
    /// nothing.
    pub(super) type Register = u32;
    pub(super) const CONTROL: Register = 0;
    pub(super) const DEFAULT: Register = 0;

    pub(super) fn read() -> Register {
        0
    }

    pub(super) fn write(_: Register) {}
}

use register::{CONTROL, DEFAULT, Register, read, write};

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod tests {
    use super::{CONTROL, DEFAULT, DefaultMode, Register, read, write};

    /// Flush-to-zero, denormals-are-zero and rounding towards zero.
    #[cfg(target_arch = "x86_64")]
    const ODD: Register = 0xe040;
    /// Flush-to-zero and rounding towards zero.
    #[cfg(target_arch = "aarch64")]
    const ODD: Register = 0x01c0_0000;

    #[test]
    fn the_guard_sets_the_default_mode_and_restores_the_previous_mode() {
        let before = read();
        let odd = before | ODD;
        write(odd);
        let mode = DefaultMode::enter();
        let inside = read();
        drop(mode);
        let after = read();
        write(before);
        assert_eq!(inside & CONTROL, DEFAULT, "inside");
        assert_eq!(after & CONTROL, odd & CONTROL, "after");
    }

    /// The guard sets the mode of computations, and not only the register.
    #[test]
    fn subnormal_products_are_kept_inside_the_guard() {
        let least = std::hint::black_box(f32::MIN_POSITIVE);
        let half_of_it = || std::hint::black_box(least * std::hint::black_box(0.5));
        let before = read();
        write(before | ODD);
        let flushed = half_of_it();
        let mode = DefaultMode::enter();
        let kept = half_of_it();
        drop(mode);
        write(before);
        assert_eq!(flushed, 0.0, "in the mode of the caller");
        assert_eq!(kept, f32::MIN_POSITIVE / 2.0, "inside");
    }
}
