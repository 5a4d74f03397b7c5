//! The vendor of the processor. The typical rates and the kernel variants depend on the vendor.
//!
//! The module knows the names of vendors. The module knows neither instruction sets nor which
//! variants are fast on a vendor's machines.

#![allow(unsafe_code, reason = "reads the vendor with the cpuid instruction")]

/// A vendor of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Intel,
    Amd,
    Other,
}

impl Vendor {
    pub(crate) const ALL: [Self; 3] = [Self::Intel, Self::Amd, Self::Other];

    /// Returns the vendor of this machine's processor.
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

    /// Returns the name that machine files use for the vendor.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Intel => "intel",
            Self::Amd => "amd",
            Self::Other => "other",
        }
    }

    /// Returns the vendor for which machine files use `name`. `None`: no vendor has this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }
}

/// Returns the registers `ebx`, `edx` and `ecx` after the `cpuid` instruction with leaf 0. In this
/// order, their 12 bytes are the name of the processor's vendor.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn registers() -> [u32; 3] {
    #[allow(unused_unsafe, reason = "the function is safe in later compilers")]
    // SAFETY: every x86-64 processor has the `cpuid` instruction with leaf 0.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
    [leaf.ebx, leaf.edx, leaf.ecx]
}

/// Returns zeros, which are not the name of a vendor. This version is for processors other than
/// x86-64, and for Miri, which does not run the `cpuid` instruction.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn registers() -> [u32; 3] {
    [0; 3]
}

#[cfg(test)]
mod tests {
    use super::Vendor;

    #[test]
    fn vendors_are_distinguished() {
        // The values of `ebx`, `edx` and `ecx` that hold the vendor names of Intel and AMD.
        let intel = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
        let amd = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
        assert_eq!(Vendor::of_registers(intel), Vendor::Intel);
        assert_eq!(Vendor::of_registers(amd), Vendor::Amd);
        for unknown in [[0; 3], [1; 3], [amd[0], amd[1], intel[2]]] {
            assert_eq!(Vendor::of_registers(unknown), Vendor::Other);
        }
    }

    #[test]
    fn names_are_unique() {
        for vendor in Vendor::ALL {
            assert_eq!(Vendor::named(vendor.name()), Some(vendor));
        }
        assert_eq!(Vendor::named("AMD"), None);
    }
}
