//! Element types: as a value ([`DType`]) and as Rust types ([`Element`]).
//!
//! Knows names, sizes and alignments. Knows nothing of what is done to them.

use std::fmt;
use std::str::FromStr;

/// The type of a tensor's elements, as a value.
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
    /// A byte that is false when zero and true otherwise; reductions write 0 or 1.
    /// Views of Rust's `bool` hold 0 and 1 alone.
    Bool,
    /// Complex of two `f32`
    Complex64,
    /// Complex of two `f64`
    Complex128,
    /// 1 byte of a type that the crate does not know, such as the 8-bit floats:
    /// it is moved and never reduced. Its alignment is 1, as that of all `Bytes`
    /// types.
    Bytes1,
    /// 2 bytes of such a type
    Bytes2,
    /// 4 bytes of such a type
    Bytes4,
    /// 8 bytes of such a type
    Bytes8,
    /// 16 bytes of such a type
    Bytes16,
}

impl DType {
    /// Every element type, in the order of their declaration.
    pub const ALL: [Self; 20] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::Bool,
        Self::Complex64,
        Self::Complex128,
        Self::Bytes1,
        Self::Bytes2,
        Self::Bytes4,
        Self::Bytes8,
        Self::Bytes16,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool | Self::Bytes1 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 | Self::Bytes2 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Bytes4 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Complex64 | Self::Bytes8 => 8,
            Self::Complex128 | Self::Bytes16 => 16,
        }
    }

    /// The alignment that an address of such elements must have.
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

    /// Whether tensors of this type can serve as `indices`.
    pub const fn is_index(self) -> bool {
        matches!(
            self,
            Self::I8
                | Self::I16
                | Self::I32
                | Self::I64
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
        )
    }

    /// Whether the crate knows the size of elements and nothing else: they are
    /// moved and never reduced.
    pub const fn is_opaque(self) -> bool {
        matches!(
            self,
            Self::Bytes1 | Self::Bytes2 | Self::Bytes4 | Self::Bytes8 | Self::Bytes16
        )
    }

    /// The real type in which gradients of these elements are computed, or its
    /// components are; `None` for elements that have none.
    pub(crate) const fn computed(self) -> Option<Self> {
        match self {
            Self::F16 | Self::BF16 | Self::F32 | Self::Complex64 => Some(Self::F32),
            Self::F64 | Self::Complex128 => Some(Self::F64),
            _ => None,
        }
    }

    /// A short name: that of the Rust type where there is one (`f32`), else
    /// `complex64`, `complex128`, `bytes1` to `bytes16`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::Bytes1 => "bytes1",
            Self::Bytes2 => "bytes2",
            Self::Bytes4 => "bytes4",
            Self::Bytes8 => "bytes8",
            Self::Bytes16 => "bytes16",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text given to [`DType::from_str`] names no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no element type is called {0:?}; use i8 to i64, u8 to u64, f16, bf16, f32, f64, bool, complex64, complex128 or bytes1 to bytes16"
)]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    /// Reads a name in the spelling of Rust (`f32`), of numpy and torch
    /// (`float32`, `half`) or of ONNX (`FLOAT16`), in any case.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_ascii_lowercase();
        let named = |dtype: &Self| dtype.as_str() == lower;
        if let Some(dtype) = Self::ALL.into_iter().find(named) {
            return Ok(dtype);
        }
        Ok(match lower.as_str() {
            "int8" => Self::I8,
            "int16" | "short" => Self::I16,
            "int32" | "int" => Self::I32,
            "int64" | "long" => Self::I64,
            "uint8" => Self::U8,
            "uint16" => Self::U16,
            "uint32" => Self::U32,
            "uint64" => Self::U64,
            "float16" | "half" => Self::F16,
            "bfloat16" => Self::BF16,
            "float32" | "float" => Self::F32,
            "float64" | "double" => Self::F64,
            "boolean" => Self::Bool,
            _ => return Err(UnknownDType(name.to_owned())),
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors can be made of.
///
/// Sealed: its implementors have exactly the layout that [`Element::DTYPE`]
/// states, which the executor relies on.
pub trait Element: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The same type as a value.
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
    #[cfg(feature = "num-complex")] num_complex::Complex<f32> => Complex64,
    #[cfg(feature = "num-complex")] num_complex::Complex<f64> => Complex128,
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn names_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(dtype.as_str().parse(), Ok(dtype), "its own name");
            let upper = dtype.as_str().to_ascii_uppercase();
            assert_eq!(upper.parse(), Ok(dtype), "in upper case");
        }
    }

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
        assert!("f8".parse::<DType>().is_err(), "not a type");
        assert!("".parse::<DType>().is_err(), "nothing");
    }
}
