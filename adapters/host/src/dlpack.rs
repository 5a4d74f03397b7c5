//! DLPack 1.x: its structs, its codes for devices and element types.
//!
//! Knows what each struct is made of. Knows nothing of who hands one over, or of what it is
//! used for.

use std::ffi::c_void;
use std::fmt;

use ndscatter::DType;

/// Where memory is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLDevice {
    /// The kind of device.
    pub device_type: i32,
    /// Which of them.
    pub device_id: i32,
}

impl DLDevice {
    /// The memory of the CPU.
    pub const CPU: Self = Self {
        device_type: 1,
        device_id: 0,
    };

    /// Whether the CPU reads and writes the memory of a kind of device: kDLCPU, kDLCUDAHost,
    /// kDLROCMHost.
    #[inline]
    pub const fn is_host(device_type: i32) -> bool {
        matches!(device_type, 1 | 3 | 11)
    }
}

/// The type of elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The kind of number.
    pub code: u8,
    /// Bits of one.
    pub bits: u8,
    /// Numbers of one element.
    pub lanes: u16,
}

/// In the words of messages.
impl fmt::Display for DLDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, bits, lanes } = self;
        write!(f, "type code {code} with {bits} bits and lanes {lanes}")
    }
}

impl DLDataType {
    /// kDLComplex.
    pub const COMPLEX: u8 = 5;

    /// The first code of types that the crate only moves: 8-bit floats and their kin.
    const MOVED: u8 = 7;

    /// Whether the crate only moves such elements. The crate then has one type for all types
    /// of a size: only this struct tells them apart.
    #[inline]
    pub const fn is_moved(self) -> bool {
        self.code >= Self::MOVED
    }

    /// The element type of the crate.
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

    /// Whether ml_dtypes, the package with numpy's 8-bit floats, gives the type this name. It
    /// has names for single floats.
    pub fn is_called(self, name: &str) -> bool {
        let number = self.code.checked_sub(Self::MOVED).map(usize::from);
        let known = number.and_then(|number| MOVED_NAMES.get(number));
        known == Some(&name) && (self.bits, self.lanes) == (8, 1)
    }
}

/// The names of the 8-bit floats, by their codes from [`DLDataType::MOVED`] on.
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

/// A tensor: memory that somebody else owns, its type, shape and strides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: DLDataType,
    /// Size of each dimension.
    pub shape: *mut i64,
    /// Distance, in elements, between neighbours of each dimension; null for
    /// row-major.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

impl DLTensor {
    /// The address of the first element; null where `data` is null.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        let offset = usize::try_from(self.byte_offset).unwrap_or(usize::MAX);
        match self.data.cast::<u8>() {
            null if null.is_null() => null,
            data => data.wrapping_add(offset),
        }
    }
}

/// A tensor and what keeps it alive, as it was handed out before DLPack had versions.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Gives the tensor back.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// A tensor and what keeps it alive.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of all that follows the deleter.
    pub version: DLPackVersion,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Gives the tensor back.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// Bits: [`READ_ONLY`](Self::READ_ONLY), [`IS_COPIED`](Self::IS_COPIED).
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

impl DLManagedTensorVersioned {
    /// The memory must not be written.
    pub const READ_ONLY: u64 = 1;
    /// The memory is a copy, which nobody else sees.
    pub const IS_COPIED: u64 = 2;
}

/// A version of DLPack.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLPackVersion {
    /// Another major version keeps the place of the deleter alone.
    pub major: u32,
    /// A later minor version adds flags and fields.
    pub minor: u32,
}

const _: () = assert!(
    size_of::<DLDevice>() == 8 && size_of::<DLDataType>() == 4,
    "as in C"
);

#[cfg(test)]
mod tests {
    use ndscatter::DType;

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
    fn types_that_are_moved_count_lanes_and_others_have_one() {
        assert_eq!(dtype(2, 32, 1), Some(DType::F32));
        assert_eq!(dtype(2, 32, 2), None, "two floats");
        assert_eq!(dtype(17, 4, 2), Some(DType::Bytes1), "two floats of 4 bits");
        assert_eq!(dtype(17, 4, 1), None, "half a byte");
        assert_eq!(dtype(10, 8, 0), None, "nothing");
        assert_eq!(dtype(3, 64, 1), None, "a pointer");
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
