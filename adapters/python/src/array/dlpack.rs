//! DLPack: tensors of other libraries as they hand them out, and results for them.
//!
//! Knows the structs of DLPack 1.x and its codes for types. Knows nothing of numpy, nor of
//! what tensors are used for.

mod exchange;
mod handed;
mod lent;
pub(super) mod libraries;

use std::ffi::{CStr, c_void};

use ndscatter::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

pub(super) use exchange::described_address;
pub(crate) use exchange::{Describe, describe_of, described};
pub(super) use handed::{Handed, hand_over};
pub(super) use lent::Lent;

/// The CPU, and its memory as a CUDA device may read it.
const HOST_DEVICES: [i32; 2] = [1, 3];
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
const OLD: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
/// What a capsule is called once its tensor has an owner.
const OLD_USED: &CStr = c"used_dltensor";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) kind: i32,
    number: i32,
}

/// Code, bits and lanes of an element type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeCode {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// A tensor; in memory of its own, or for a look at one.
#[repr(C)]
pub(crate) struct DlTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: Device,
    pub(crate) rank: i32,
    pub(crate) dtype: TypeCode,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

#[repr(C)]
pub(super) struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
pub(super) struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The code of complex numbers.
const COMPLEX: u8 = 5;

/// The first code of elements of one byte that the crate only moves: 8-bit floats and such.
const MOVED: u8 = 7;

/// The names of the 8-bit floats, by their codes from [`MOVED`] on.
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

impl TypeCode {
    /// Whether it is that of the type that numpy, or ml_dtypes, calls so.
    pub(super) fn is_called(self, name: &str) -> bool {
        let number = self.code.checked_sub(MOVED).map(usize::from);
        number.is_some_and(|number| MOVED_NAMES.get(number) == Some(&name))
    }

    /// The type that the crate knows such elements by.
    pub(crate) fn dtype(self) -> PyResult<DType> {
        let known = match (self.code, self.bits) {
            _ if self.lanes != 1 => None,
            (0, 8) => Some(DType::I8),
            (0, 16) => Some(DType::I16),
            (0, 32) => Some(DType::I32),
            (0, 64) => Some(DType::I64),
            (1, 8) => Some(DType::U8),
            (1, 16) => Some(DType::U16),
            (1, 32) => Some(DType::U32),
            (1, 64) => Some(DType::U64),
            (2, 16) => Some(DType::F16),
            (2, 32) => Some(DType::F32),
            (2, 64) => Some(DType::F64),
            (4, 16) => Some(DType::BF16),
            (COMPLEX, 64) => Some(DType::Complex64),
            (COMPLEX, 128) => Some(DType::Complex128),
            (6, 8) => Some(DType::Bool),
            (MOVED.., 8) => Some(DType::Bytes1),
            _ => None,
        };
        known.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "DLPack elements of code {}, {} bits and {} lanes are not supported",
                self.code, self.bits, self.lanes
            ))
        })
    }
}

const _: () = assert!(size_of::<Device>() == 8 && size_of::<TypeCode>() == 4);
