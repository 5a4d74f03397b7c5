//! The values that change nothing, and how partial results are combined.
//!
//! Only for reductions whose partial results, each of consecutive updates,
//! combine to the bits of the sequence: integers, which wrap, and the order of
//! floats. Not for `bool`, of which a destination without updates must keep
//! its byte.

use super::{Kernels, Operation};
use crate::element::DType;
use crate::reduction::Reduction;

/// A running value of its own for each worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Private {
    /// An element that an update replaces, in the first bytes.
    pub(crate) identity: [u8; 16],
    /// Combines a running value with that of the updates after it.
    pub(crate) merge: &'static Kernels,
}

impl Operation {
    /// What copies of the windows for each worker need; `None` where they
    /// would not keep the bits.
    pub(crate) fn private(&self) -> Option<Private> {
        let (element, reduction, isa) = self.serves?;
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
