//! Instruction sets, and the detection of the instruction sets that this machine has.
//!
//! The module knows the names of the instruction sets and detects them. The module does not know
//! the kernels.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::names::named;

/// A set of machine instructions that kernels are compiled for.
///
/// Results have the same bits with every instruction set. Only the speed differs. The sets are
/// ordered: a machine that has a set also has all sets before it in this enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// The instructions that every machine of the compilation target has.
    Portable,
    /// AVX2 and F16C, on x86-64.
    Avx2,
    /// The instructions of [`Avx2`](Self::Avx2), AVX-512 F, BW, DQ and VL, and POPCNT, on x86-64.
    ///
    /// Only two kinds of loops use AVX-512: filters, which select the destination numbers in a range,
    /// and conversions of elements. All other loops use the code for [`Avx2`](Self::Avx2).
    Avx512,
}

impl InstructionSet {
    /// The last instruction set of the enum. The machine may lack this instruction set.
    pub(crate) const LAST: Self = Self::ALL[Self::ALL.len() - 1];

    /// Returns the instruction sets that this machine has, in ascending order.
    ///
    /// The first call detects the instruction sets of the machine. Later calls read one byte.
    pub fn available() -> &'static [Self] {
        &Self::ALL[..=Self::best() as usize]
    }

    /// Returns the best instruction set of this machine: the last of the
    /// [available](Self::available) instruction sets.
    #[inline]
    pub fn best() -> Self {
        let position = usize::from(BEST.load(Ordering::Relaxed));
        let known = Self::ALL.get(position).copied();
        known.unwrap_or_else(detect)
    }
}

named! { InstructionSet, "instruction set":
    Portable => "portable",
    Avx2 => "avx2",
    Avx512 => "avx512",
}

/// Position of the machine's best instruction set in [`InstructionSet::ALL`]. A position outside
/// `ALL` means that the instruction sets of the machine were not detected yet.
static BEST: AtomicU8 = AtomicU8::new(u8::MAX);

/// Detects the best instruction set of the machine and stores its position in [`BEST`].
#[cold]
fn detect() -> InstructionSet {
    let best = match (has_avx2(), has_avx512()) {
        (true, true) => InstructionSet::Avx512,
        (true, false) => InstructionSet::Avx2,
        (false, _) => InstructionSet::Portable,
    };
    // Relaxed suffices: the byte publishes no other memory, and every thread stores the same value.
    BEST.store(best as u8, Ordering::Relaxed);
    best
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
}

/// Checks whether the machine has all instructions that [`InstructionSet::Avx512`] adds to
/// [`InstructionSet::Avx2`].
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::InstructionSet;

    #[test]
    fn the_best_is_the_last_available() {
        let available = InstructionSet::available();
        assert_eq!(available.first(), Some(&InstructionSet::Portable), "always");
        assert_eq!(available.last(), Some(&InstructionSet::best()), "best last");
        assert!(available.is_sorted(), "in the order of declaration");
    }

    #[test]
    fn declaration_and_list_agree() {
        for (position, isa) in InstructionSet::ALL.into_iter().enumerate() {
            assert_eq!(isa as usize, position, "{isa}");
        }
    }
}
