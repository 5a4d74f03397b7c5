//! Identities of reductions, and merges of partial results.
//!
//! A partial result is the reduction of consecutive updates of a destination. The module supports a
//! reduction only if the merged partial results have the same bits as the sequential reduction.
//! These reductions are sums, differences, products, minima and maxima of integers (integer
//! arithmetic wraps), and minima and maxima of floats. The module excludes `bool`. A merge writes 0
//! or 1 to every destination, but a destination without updates must keep its previous byte.

use super::{Kernels, Operation};
use crate::element::DType;
use crate::reduction::Reduction;

/// Identity of a reduction, and kernels that merge private copies. Each worker reduces its updates
/// into its own private copy of the output. The private copies are merged with the output
/// afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Private {
    /// The identity, in the first bytes of the array. Every element of a private copy has this
    /// value before its first update. A merge of the identity into a value leaves the value
    /// unchanged.
    pub(crate) identity: [u8; 16],
    /// Kernels that merge two partial results. The first operand (`dst`) has the earlier updates.
    /// For differences, these kernels add, because a private copy has the negated sum of its
    /// updates.
    pub(crate) merge: &'static Kernels,
}

impl Operation {
    /// Returns the identity of this reduction (a value) and the kernels that merge private copies
    /// of the output. A worker reduces its updates into its private copy. Returns `None` if merged
    /// private copies could have other bits than the sequential reduction.
    pub(crate) fn private(&self) -> Option<Private> {
        let (element, reduction, isa) = self.row?;
        let merge = match reduction {
            Reduction::Sub => Reduction::Add,
            other => other,
        };
        Some(Private {
            identity: identity(element, reduction)?,
            merge: Kernels::plain(element, merge, isa)?,
        })
    }
}

/// Returns the bytes of `value`, followed by zeros.
fn bytes<const N: usize>(value: [u8; N]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..N].copy_from_slice(&value);
    bytes
}

macro_rules! identities {
    (
        integers: $($integer:ident = $type:ty),*;
        floats: $($float:ident = $infinity:expr, $negative:expr),*
    ) => {
        /// Returns the identity of a reduction. Returns `None` if a merge of partial results could
        /// change the bits of the result.
        fn identity(element: DType, reduction: Reduction) -> Option<[u8; 16]> {
            match (element, reduction) {
                $((DType::$integer, _) => Some(bytes(match reduction {
                    Reduction::Add | Reduction::Sub => <$type>::default(),
                    Reduction::Mul => 1,
                    Reduction::Min => <$type>::MAX,
                    Reduction::Max => <$type>::MIN,
                    _ => return None,
                }.to_ne_bytes())),)*
                $((DType::$float, Reduction::Min) => Some(bytes($infinity.to_ne_bytes())),
                (DType::$float, Reduction::Max) => Some(bytes($negative.to_ne_bytes())),)*
                _ => None,
            }
        }
    };
}

identities! {
    integers: I8 = i8, I16 = i16, I32 = i32, I64 = i64, U8 = u8, U16 = u16, U32 = u32, U64 = u64;
    floats:
        F16 = 0x7c00_u16, 0xfc00_u16,
        BF16 = 0x7f80_u16, 0xff80_u16,
        F32 = f32::INFINITY, f32::NEG_INFINITY,
        F64 = f64::INFINITY, f64::NEG_INFINITY
}
