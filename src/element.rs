//! Element types: as a value ([`ElementType`]) and as Rust types ([`Element`]).
//!
//! Knows names, sizes and alignments. Knows nothing of what is done to them.

use std::fmt;

/// The type of a tensor's elements, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
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
}

impl ElementType {
    /// Every element type, in the order of their declaration.
    pub const ALL: [Self; 15] = [
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
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// The alignment that an address of such elements must have.
    pub const fn alignment(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
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

    /// The name of the Rust type.
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
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors can be made of.
///
/// Sealed: its implementors have exactly the layout that [`Element::TYPE`]
/// states, which the executor relies on.
pub trait Element: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The same type as a value.
    const TYPE: ElementType;
}

/// An element type that `indices` can have.
pub trait Index: Element {}

macro_rules! impl_element {
    ($($(#[$feature:meta])? $type:ty => $variant:ident,)*) => {$(
        $(#[$feature])?
        impl sealed::Sealed for $type {}

        $(#[$feature])?
        impl Element for $type {
            const TYPE: ElementType = ElementType::$variant;
        }

        $(#[$feature])?
        const _: () = {
            assert!(size_of::<$type>() == ElementType::$variant.size(), "size");
            assert!(align_of::<$type>() == ElementType::$variant.alignment(), "alignment");
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
    bool => Bool,
    #[cfg(feature = "half")] half::f16 => F16,
    #[cfg(feature = "half")] half::bf16 => BF16,
    #[cfg(feature = "num-complex")] num_complex::Complex<f32> => Complex64,
    #[cfg(feature = "num-complex")] num_complex::Complex<f64> => Complex128,
}

macro_rules! impl_index {
    ($($type:ty),*) => {$( impl Index for $type {} )*};
}

impl_index!(i8, i16, i32, i64, u8, u16, u32, u64);
