//! Who made the processor, where that decides what is fast.
//!
//! Knows names of vendors. Knows nothing of instruction sets, nor of what is fast on
//! whose machines.

#![allow(unsafe_code, reason = "asks the processor for its name")]

/// A maker of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Intel,
    Amd,
    Other,
}

impl Vendor {
    pub(crate) const ALL: [Self; 3] = [Self::Intel, Self::Amd, Self::Other];

    /// Who made this one.
    pub(super) fn here() -> Self {
        Self::of_registers(registers())
    }

    fn of_registers(registers: [u32; 3]) -> Self {
        match registers.map(u32::to_le_bytes).as_flattened() {
            b"GenuineIntel" => Self::Intel,
            b"AuthenticAMD" => Self::Amd,
            _ => Self::Other,
        }
    }

    /// As a machine's file has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Intel => "intel",
            Self::Amd => "amd",
            Self::Other => "other",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }
}

/// The registers of `cpuid` that hold the name, in the order of its letters.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn registers() -> [u32; 3] {
    // Safe or not by the version of the compiler.
    #[allow(unused_unsafe, reason = "a safe function of later compilers")]
    // SAFETY: every x86-64 processor has the instruction and leaf 0.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
    [leaf.ebx, leaf.edx, leaf.ecx]
}

/// Other processors, and the interpreter, have no such instruction.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn registers() -> [u32; 3] {
    [0; 3]
}

#[cfg(test)]
mod tests {
    use super::Vendor;

    #[test]
    fn vendors_are_told_apart() {
        // As the registers have them.
        let intel = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
        let amd = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
        assert_eq!(Vendor::of_registers(intel), Vendor::Intel);
        assert_eq!(Vendor::of_registers(amd), Vendor::Amd);
        for unknown in [[0; 3], [1; 3], [amd[0], amd[1], intel[2]]] {
            assert_eq!(Vendor::of_registers(unknown), Vendor::Other);
        }
    }

    #[test]
    fn each_has_a_name_of_its_own() {
        for vendor in Vendor::ALL {
            assert_eq!(Vendor::named(vendor.name()), Some(vendor));
        }
        assert_eq!(Vendor::named("AMD"), None);
    }
}
