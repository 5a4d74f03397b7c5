//! Instruction sets, and which of them this machine has.
//!
//! Knows names and detection. Knows nothing of what is done with them.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::names::named;

/// A set of machine instructions that kernels are compiled for.
///
/// Every set gives the same bits; only the speed differs. The sets are
/// ordered: a machine that has one has all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// What every machine of the target has.
    Portable,
    /// AVX2 and F16C, on x86-64.
    Avx2,
}

impl InstructionSet {
    /// The last of them, which a machine may lack.
    pub(crate) const LAST: Self = Self::ALL[Self::ALL.len() - 1];

    /// The instruction sets that this machine has, best last.
    ///
    /// The machine is asked once; later calls read one byte.
    pub fn available() -> &'static [Self] {
        &Self::ALL[..=Self::best() as usize]
    }

    /// The last of the [available](Self::available) instruction sets.
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
}

/// Position of the best instruction set in [`InstructionSet::ALL`]. A position that is too large
/// means that the machine has not been asked yet.
static BEST: AtomicU8 = AtomicU8::new(u8::MAX);

#[cold]
fn detect() -> InstructionSet {
    #[cfg(target_arch = "x86_64")]
    let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    let has_avx2 = false;
    let best = InstructionSet::ALL[usize::from(has_avx2)];
    // Relaxed: nothing but this byte is published, and every caller that
    // finds it missing stores the same one.
    BEST.store(best as u8, Ordering::Relaxed);
    best
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
