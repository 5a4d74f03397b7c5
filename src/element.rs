//! Element types: known at run time ([`DType`]) and as Rust types ([`Element`]).
//!
//! This module knows names, sizes and alignments. It does not know what a call does with elements.

use std::fmt;

use crate::names::named;

/// An element type known at run time.
///
/// [`as_str`](Self::as_str) returns the name of the Rust type, such as `f32`. Types without a Rust
/// name are called `complex64`, `complex128` and `bytes1` to `bytes16`. `from_str` reads these
/// names. It also reads the names of numpy and torch (`float32`, `half`) and of ONNX (`FLOAT16`).
/// `from_str` ignores the case of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// IEEE binary16
    F16,
    /// bfloat16
    BF16,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// An element is one byte: 0 is false and every other value is true. Every reduction writes 0
    /// or 1. Views of Rust's `bool` contain only 0 and 1.
    Bool,
    /// Complex number of two `f32`
    Complex64,
    /// Complex number of two `f64`
    Complex128,
    /// 1 byte of a type that the crate does not know, such as an 8-bit float. Elements of all
    /// `Bytes` types can be copied but not reduced. Their alignment is 1 byte.
    Bytes1,
    /// 2 bytes of an unknown type
    Bytes2,
    /// 4 bytes of an unknown type
    Bytes4,
    /// 8 bytes of an unknown type
    Bytes8,
    /// 16 bytes of an unknown type
    Bytes16,
}

impl DType {
    /// Size of one element, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool | Self::Bytes1 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 | Self::Bytes2 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Bytes4 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Complex64 | Self::Bytes8 => 8,
            Self::Complex128 | Self::Bytes16 => 16,
        }
    }

    /// Required alignment of the address of an element, in bytes.
    pub const fn alignment(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::Bytes1 | Self::Bytes2 | Self::Bytes4 | Self::Bytes8 | Self::Bytes16 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Complex64 => 4,
            Self::I64 | Self::U64 => align_of::<u64>(),
            Self::F64 | Self::Complex128 => align_of::<f64>(),
        }
    }

    /// Whether `indices` can have this type. The index types are the signed and unsigned integers
    /// of 8 to 64 bits.
    pub const fn is_index(self) -> bool {
        IndexType::of(self).is_some()
    }

    /// Whether the crate knows only the size of the elements. Such elements can be copied but not
    /// reduced.
    pub const fn is_opaque(self) -> bool {
        matches!(
            self,
            Self::Bytes1 | Self::Bytes2 | Self::Bytes4 | Self::Bytes8 | Self::Bytes16
        )
    }

    /// Returns the [opaque](Self::is_opaque) type with elements of `size` bytes, or `None` if
    /// `size` is not 1, 2, 4, 8 or 16.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::DType;
    ///
    /// assert_eq!(DType::opaque(2), Some(DType::Bytes2));
    /// assert_eq!(DType::opaque(3), None);
    /// ```
    pub const fn opaque(size: usize) -> Option<Self> {
        Some(match size {
            1 => Self::Bytes1,
            2 => Self::Bytes2,
            4 => Self::Bytes4,
            8 => Self::Bytes8,
            16 => Self::Bytes16,
            _ => return None,
        })
    }

    /// Returns the real type in which gradients of these elements are computed: `f32` or `f64`. For
    /// complex numbers, it is the type of a component. `None` for elements without a gradient.
    pub(crate) const fn computed(self) -> Option<Self> {
        match self {
            Self::F16 | Self::BF16 | Self::F32 | Self::Complex64 => Some(Self::F32),
            Self::F64 | Self::Complex128 => Some(Self::F64),
            _ => None,
        }
    }
}

/// Integer types in which indices are read. Integers of 8 and 16 bits are widened to 32 bits, so
/// that the loops over indices are compiled for four types and not for eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexType {
    I32,
    I64,
    U32,
    U64,
}

impl IndexType {
    /// Returns the type in which indices of the type `dtype` are read. `None`: elements of this
    /// type are no indices.
    pub(crate) const fn of(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::I8 | DType::I16 | DType::I32 => Self::I32,
            DType::I64 => Self::I64,
            DType::U8 | DType::U16 | DType::U32 => Self::U32,
            DType::U64 => Self::U64,
            _ => return None,
        })
    }
}

named! { DType, "element type":
    // The first name is the name of the Rust type. The names of numpy, torch and ONNX follow.
    I8 => "i8" | "int8",
    I16 => "i16" | "int16" | "short",
    I32 => "i32" | "int32" | "int",
    I64 => "i64" | "int64" | "long",
    U8 => "u8" | "uint8",
    U16 => "u16" | "uint16",
    U32 => "u32" | "uint32",
    U64 => "u64" | "uint64",
    F16 => "f16" | "float16" | "half",
    BF16 => "bf16" | "bfloat16",
    F32 => "f32" | "float32" | "float",
    F64 => "f64" | "float64" | "double",
    Bool => "bool" | "boolean",
    Complex64 => "complex64",
    Complex128 => "complex128",
    Bytes1 => "bytes1",
    Bytes2 => "bytes2",
    Bytes4 => "bytes4",
    Bytes8 => "bytes8",
    Bytes16 => "bytes16",
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that the elements of a tensor can have.
///
/// The types are `i8` to `i64`, `u8` to `u64`, `isize`, `usize`, `f32`, `f64`, `bool`, and byte
/// arrays of 1, 2, 4, 8 or 16 bytes. The feature `half` adds `f16` and `bf16`. The feature
/// `complex` adds `Complex<f32>` and `Complex<f64>`. Reductions of some types need a feature:
/// [`Reduction`](crate::Reduction) lists these types.
///
/// The trait is sealed, so other crates cannot implement it. Every implementing type has the size
/// and the alignment of [`Element::DTYPE`]. The executor relies on this.
pub trait Element: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The [`DType`] of this Rust type.
    const DTYPE: DType;
}

macro_rules! impl_element {
    ($($(#[$feature:meta])? $type:ty => $variant:ident,)*) => {$(
        $(#[$feature])?
        impl sealed::Sealed for $type {}

        $(#[$feature])?
        impl Element for $type {
            const DTYPE: DType = DType::$variant;
        }

        $(#[$feature])?
        const _: () = {
            assert!(size_of::<$type>() == DType::$variant.size(), "size");
            assert!(align_of::<$type>() == DType::$variant.alignment(), "alignment");
        };
    )*};
}

impl_element! {
    i8 => I8,
    i16 => I16,
    i32 => I32,
    i64 => I64,
    u8 => U8,
    u16 => U16,
    u32 => U32,
    u64 => U64,
    f32 => F32,
    f64 => F64,
    #[cfg(target_pointer_width = "32")] isize => I32,
    #[cfg(target_pointer_width = "32")] usize => U32,
    #[cfg(target_pointer_width = "64")] isize => I64,
    #[cfg(target_pointer_width = "64")] usize => U64,
    bool => Bool,
    [u8; 1] => Bytes1,
    [u8; 2] => Bytes2,
    [u8; 4] => Bytes4,
    [u8; 8] => Bytes8,
    [u8; 16] => Bytes16,
    #[cfg(feature = "half")] half::f16 => F16,
    #[cfg(feature = "half")] half::bf16 => BF16,
    #[cfg(feature = "complex")] num_complex::Complex<f32> => Complex64,
    #[cfg(feature = "complex")] num_complex::Complex<f64> => Complex128,
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn the_spellings_of_others_are_understood() {
        let cases = [
            ("float32", DType::F32),
            ("FLOAT16", DType::F16),
            ("double", DType::F64),
            ("bfloat16", DType::BF16),
            ("int64", DType::I64),
            ("uint8", DType::U8),
        ];
        for (name, expected) in cases {
            assert_eq!(name.parse(), Ok(expected), "{name}");
        }
        assert!("f8".parse::<DType>().is_err(), "not an element type");
        assert!("".parse::<DType>().is_err(), "an empty name");
    }
}
