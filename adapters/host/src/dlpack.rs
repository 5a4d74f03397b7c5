//! The structs of DLPack 1.x, and DLPack's codes of devices and element types.
//!
//! This module defines the layout of each struct. It contains no code that exchanges tensors with
//! hosts or uses tensors.

use std::ffi::c_void;
use std::fmt;

use ndscatter::{DType, Format};

/// The device on which memory is located.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLDevice {
    /// The code of the kind of device, for example 1 for CPU memory (kDLCPU).
    pub device_type: i32,
    /// The number of the device among the devices of this kind, counted from 0.
    pub device_id: i32,
}

impl DLDevice {
    /// The device of CPU memory.
    pub const CPU: Self = Self {
        device_type: 1,
        device_id: 0,
    };

    /// Whether the CPU can access the memory of this kind of device. Returns true for kDLCPU,
    /// kDLCUDAHost and kDLROCMHost.
    #[inline]
    pub const fn is_host(device_type: i32) -> bool {
        matches!(device_type, 1 | 3 | 11)
    }
}

/// The element type of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The code of the kind of number, for example 2 for floats (kDLFloat).
    pub code: u8,
    /// Bits of one number.
    pub bits: u8,
    /// Count of numbers in one element: 1 for a scalar, more for a vector.
    pub lanes: u16,
}

/// Formats the type for error messages.
impl fmt::Display for DLDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, bits, lanes } = self;
        write!(f, "type code {code} with {bits} bits and lanes {lanes}")
    }
}

impl DLDataType {
    /// Type code of complex numbers (kDLComplex).
    pub const COMPLEX: u8 = 5;

    /// Smallest type code of the types whose elements ndscatter copies but never computes with,
    /// such as 8-bit floats. All larger codes are also codes of such types.
    const MOVED: u8 = 7;

    /// Whether ndscatter only copies elements of this type and never computes with them.
    ///
    /// ndscatter has one opaque dtype for all such types of equal size, for example
    /// [`DType::Bytes1`] for every 8-bit float. The opaque dtype does not distinguish these
    /// types. The fields of this struct do.
    #[inline]
    pub const fn is_moved(self) -> bool {
        self.code >= Self::MOVED
    }

    /// Returns ndscatter's dtype for this type, or `None` if ndscatter does not support the type.
    #[inline]
    pub const fn dtype(self) -> Option<DType> {
        if self.is_moved() {
            let bits = self.bits as usize * self.lanes as usize;
            return match bits % 8 {
                0 => DType::opaque(bits / 8),
                _ => None,
            };
        }
        Some(match (self.code, self.bits, self.lanes) {
            (0, 8, 1) => DType::I8,
            (0, 16, 1) => DType::I16,
            (0, 32, 1) => DType::I32,
            (0, 64, 1) => DType::I64,
            (1, 8, 1) => DType::U8,
            (1, 16, 1) => DType::U16,
            (1, 32, 1) => DType::U32,
            (1, 64, 1) => DType::U64,
            (2, 16, 1) => DType::F16,
            (2, 32, 1) => DType::F32,
            (2, 64, 1) => DType::F64,
            (4, 16, 1) => DType::BF16,
            (Self::COMPLEX, 64, 1) => DType::Complex64,
            (Self::COMPLEX, 128, 1) => DType::Complex128,
            (6, 8, 1) => DType::Bool,
            _ => return None,
        })
    }

    /// Returns the float format that this type names, if converting writes have this format. Types
    /// of integers name no format, because hosts store several formats as bytes.
    #[inline]
    pub const fn format(self) -> Option<Format> {
        Some(match (self.code, self.bits, self.lanes) {
            (2, 32, 1) => Format::F32,
            (2, 16, 1) => Format::F16,
            (4, 16, 1) => Format::BF16,
            (10, 8, 1) => Format::F8E4M3Fn,
            (12, 8, 1) => Format::F8E5M2,
            _ => return None,
        })
    }

    /// Whether `name` is the name of this type in the Python package ml_dtypes. This package adds
    /// 8-bit floats to numpy.
    ///
    /// A type with more than one lane has no name, because ml_dtypes names only scalar types.
    pub fn is_called(self, name: &str) -> bool {
        let number = self.code.checked_sub(Self::MOVED).map(usize::from);
        let known = number.and_then(|number| MOVED_NAMES.get(number));
        known == Some(&name) && (self.bits, self.lanes) == (8, 1)
    }
}

/// Names of the 8-bit floats in ml_dtypes, in ascending order of their DLPack type codes. The codes
/// of these types are consecutive. The first type, `float8_e3m4`, has the code
/// [`DLDataType::MOVED`].
const MOVED_NAMES: [&str; 8] = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
];

/// A tensor: borrowed memory with an element type, a shape and strides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Start of the memory.
    pub data: *mut c_void,
    /// Device of the memory.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Size of each dimension.
    pub shape: *mut i64,
    /// Stride of each dimension in elements. A null pointer means that the tensor is row-major.
    pub strides: *mut i64,
    /// Distance from `data` to the first element, in bytes.
    pub byte_offset: u64,
}

impl DLTensor {
    /// Returns the address of the first element, or null if `data` is null.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        let offset = usize::try_from(self.byte_offset).unwrap_or(usize::MAX);
        match self.data.cast::<u8>() {
            null if null.is_null() => null,
            data => data.wrapping_add(offset),
        }
    }
}

/// A tensor with its owner. This struct is the form of DLPack before 1.0, without a version field.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Context of the owner.
    pub manager_ctx: *mut c_void,
    /// Releases the tensor.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// A tensor with its owner. This struct is the form of DLPack 1.0 and later, with a version field.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// DLPack version that defines the layout of this struct and the meaning of its fields.
    pub version: DLPackVersion,
    /// Context of the owner.
    pub manager_ctx: *mut c_void,
    /// Releases the tensor.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// Flag bits: [`READ_ONLY`](Self::READ_ONLY) and [`IS_COPIED`](Self::IS_COPIED).
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

impl DLManagedTensorVersioned {
    /// Flag bit: the receiver must not write to the memory.
    pub const READ_ONLY: u64 = 1;
    /// Flag bit: the memory is a copy made for the receiver, and only the receiver accesses it.
    pub const IS_COPIED: u64 = 2;
}

/// A version of DLPack.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLPackVersion {
    /// Major version. If the receiver does not know this major version, it may use only the version
    /// and the deleter, because the rest of the struct may have another layout.
    pub major: u32,
    /// Minor version. A later minor version adds codes, for example of devices, and does not change
    /// the layout of the struct.
    pub minor: u32,
}

const _: () = assert!(
    size_of::<DLDevice>() == 8 && size_of::<DLDataType>() == 4,
    "the same sizes as in C"
);

#[cfg(test)]
mod tests {
    use ndscatter::{DType, Format};

    use super::DLDataType;

    fn dtype(code: u8, bits: u8, lanes: u16) -> Option<DType> {
        DLDataType { code, bits, lanes }.dtype()
    }

    #[test]
    fn every_type_has_a_code() {
        let codes = (0..=17).flat_map(|code| [8, 16, 32, 64, 128].map(|bits| (code, bits)));
        let found: Vec<_> = codes
            .filter_map(|(code, bits)| dtype(code, bits, 1))
            .collect();
        for known in DType::ALL {
            assert!(found.contains(&known), "{known}");
        }
    }

    #[test]
    fn only_moved_types_have_several_lanes() {
        assert_eq!(dtype(2, 32, 1), Some(DType::F32));
        assert_eq!(dtype(2, 32, 2), None, "two floats");
        assert_eq!(dtype(17, 4, 2), Some(DType::Bytes1), "two floats of 4 bits");
        assert_eq!(dtype(17, 4, 1), None, "half a byte");
        assert_eq!(dtype(10, 8, 0), None, "nothing");
        assert_eq!(dtype(3, 64, 1), None, "a pointer");
    }

    #[test]
    fn formats_have_the_size_of_their_type() {
        let codes = (0..=17).flat_map(|code| [8, 16, 32, 64].map(|bits| (code, bits)));
        let named = codes.filter_map(|(code, bits)| {
            let kind = DLDataType {
                code,
                bits,
                lanes: 1,
            };
            Some((kind.format()?, kind.dtype()?.size()))
        });
        let expected = [
            (Format::F16, 2),
            (Format::F32, 4),
            (Format::BF16, 2),
            (Format::F8E4M3Fn, 1),
            (Format::F8E5M2, 1),
        ];
        assert_eq!(named.collect::<Vec<_>>(), expected);
        let pair = DLDataType {
            code: 10,
            bits: 8,
            lanes: 2,
        };
        assert_eq!(pair.format(), None, "two 8-bit floats");
    }

    #[test]
    fn one_float_of_8_bits_has_a_name_and_a_pair_has_none() {
        let one = DLDataType {
            code: 10,
            bits: 8,
            lanes: 1,
        };
        assert!(one.is_called("float8_e4m3fn"));
        assert!(!one.is_called("float8_e4m3"));
        let pair = DLDataType { lanes: 2, ..one };
        assert!(!pair.is_called("float8_e4m3fn"));
    }
}
