//! Who made the processor, where that decides what is fast.
//!
//! Knows names of vendors and what was measured on their machines. Knows
//! nothing of instruction sets, and changes no bit of a result.

#![allow(unsafe_code, reason = "asks the processor for its name")]

use std::sync::atomic::{AtomicU8, Ordering};

/// Codes of [`LOSES`]; zero means that the machine has not been asked yet.
const YES: u8 = 1;
const NO: u8 = 2;

static LOSES: AtomicU8 = AtomicU8::new(0);

/// Whether a streaming copy is slower where it prefetches its source, past the
/// caches as well. On Intel's Xeons it takes 1.4 to 1.6 times as long so, on
/// AMD's Zen 4 0.94 to 1.03 times; others were not measured, and prefetch.
///
/// The machine is asked once; later calls read one byte.
#[inline]
pub(super) fn loses_by_prefetching() -> bool {
    match LOSES.load(Ordering::Relaxed) {
        YES => true,
        NO => false,
        _ => detect_and_remember(),
    }
}

#[cold]
fn detect_and_remember() -> bool {
    let loses = is_intel(name());
    // Relaxed: nothing but this byte is published, and every caller that finds
    // it missing stores the same one.
    LOSES.store(if loses { YES } else { NO }, Ordering::Relaxed);
    loses
}

/// The registers of `cpuid` that hold the name, in the order of its letters.
#[cfg(not(miri))]
fn name() -> [u32; 3] {
    // Safe or not by the version of the compiler.
    #[allow(unused_unsafe, reason = "a safe function of later compilers")]
    // SAFETY: every x86-64 processor has the instruction and leaf 0.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
    [leaf.ebx, leaf.edx, leaf.ecx]
}

/// The interpreter has no such instruction.
#[cfg(miri)]
fn name() -> [u32; 3] {
    [0; 3]
}

fn is_intel(name: [u32; 3]) -> bool {
    let mut letters = [0; 12];
    for (letters, register) in letters.chunks_exact_mut(4).zip(name) {
        letters.copy_from_slice(&register.to_le_bytes());
    }
    letters == *b"GenuineIntel"
}

#[cfg(test)]
mod tests {
    use super::{is_intel, loses_by_prefetching, name};

    #[test]
    fn vendors_are_told_apart() {
        // As the registers have them.
        let intel = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
        let amd = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
        assert!(is_intel(intel), "GenuineIntel");
        assert!(!is_intel(amd), "AuthenticAMD");
        assert!(!is_intel([0; 3]), "without a name");
    }

    #[test]
    fn the_answer_stays() {
        let first = loses_by_prefetching();
        assert_eq!(first, is_intel(name()), "as detected");
        assert_eq!(first, loses_by_prefetching(), "as remembered");
    }
}
