//! DLPack: tensors that other libraries lend, and results that they take over.
//!
//! Knows DLPack's capsules and C functions. Does not know numpy, or what the tensors are used for.

mod exchange;
mod exported;
mod lent;
pub(super) mod libraries;

use std::ffi::CStr;

use ndscatter::DType;
use ndscatter_host::dlpack::DLDataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

pub(super) use exchange::described_address;
pub(crate) use exchange::{Describe, describe_of, described};
pub(super) use exported::{Exported, export};
pub(super) use lent::Lent;

/// Name of a capsule with an unversioned tensor.
const OLD: &CStr = c"dltensor";
/// Name of a capsule with a versioned tensor.
const VERSIONED: &CStr = c"dltensor_versioned";
/// Names of capsules whose tensor was taken over.
const OLD_USED: &CStr = c"used_dltensor";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// Returns the crate's dtype of a DLPack type.
pub(super) fn dtype_of(code: DLDataType) -> PyResult<DType> {
    code.dtype()
        .ok_or_else(|| PyTypeError::new_err(format!("DLPack elements of {code} are not supported")))
}
