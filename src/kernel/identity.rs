//! Identities of reductions, and how partial results are merged.
//!
//! A partial result is the reduction of consecutive updates. This module has only reductions whose
//! merged partial results have the bits of the sequential reduction: wrapping integers, and minima
//! and maxima of floats. This module excludes `bool`: a destination without updates must keep its
//! byte, and a merge would write 0 or 1.

use super::{Kernels, Operation};
use crate::element::DType;
use crate::reduction::Reduction;

/// Identity and merge kernels of a reduction. Each worker reduces its updates into its own private
/// copy of the output, and the copies are merged afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Private {
    /// The identity, in the first bytes. Every private copy is filled with the identity. A
    /// reduction of the identity with an update gives the update.
    pub(crate) identity: [u8; 16],
    /// Kernels that combine the partial results of two private copies. The first partial result has
    /// the earlier updates.
    pub(crate) merge: &'static Kernels,
}

impl Operation {
    /// Returns the identity with which workers fill their private copies, and the kernels that
    /// merge private copies. Returns `None` if a reduction in private copies could change the bits
    /// of the result.
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

/// Returns `value`, followed by zeros.
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
        /// Returns the identity of a reduction. `None`: merged partial results of the reduction
        /// could have other bits than the sequential reduction.
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
