//! Who made the processor, where that decides what is fast.
//!
//! Knows names of vendors. Knows nothing of instruction sets, nor of what is fast on
//! whose machines.

#![allow(unsafe_code, reason = "asks the processor for its name")]

/// Whether Intel made it.
pub(super) fn is_intel() -> bool {
    is_intel_by(name())
}

/// The registers of `cpuid` that hold the name, in the order of its letters.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn name() -> [u32; 3] {
    // Safe or not by the version of the compiler.
    #[allow(unused_unsafe, reason = "a safe function of later compilers")]
    // SAFETY: every x86-64 processor has the instruction and leaf 0.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
    [leaf.ebx, leaf.edx, leaf.ecx]
}

/// Other processors, and the interpreter, have no such instruction.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn name() -> [u32; 3] {
    [0; 3]
}

fn is_intel_by(name: [u32; 3]) -> bool {
    let mut letters = [0; 12];
    for (letters, register) in letters.chunks_exact_mut(4).zip(name) {
        letters.copy_from_slice(&register.to_le_bytes());
    }
    letters == *b"GenuineIntel"
}

#[cfg(test)]
mod tests {
    use super::is_intel_by;

    #[test]
    fn vendors_are_told_apart() {
        // As the registers have them.
        let intel = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
        let amd = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
        assert!(is_intel_by(intel), "GenuineIntel");
        assert!(!is_intel_by(amd), "AuthenticAMD");
        assert!(!is_intel_by([0; 3]), "without a name");
    }
}
