//! DLPack: tensors that other libraries lend to this package, and results of this package that
//! other libraries take over.
//!
//! This module and its submodules use DLPack's capsules and C functions. They do not depend on
//! numpy or on the use of the tensors.

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

/// Name of a capsule that owns an unversioned tensor (DLPack before 1.0).
const OLD: &CStr = c"dltensor";
/// Name of a capsule that owns a versioned tensor (DLPack 1.0 and later).
const VERSIONED: &CStr = c"dltensor_versioned";
/// Name of a capsule whose unversioned tensor was taken over.
const OLD_USED: &CStr = c"used_dltensor";
/// Name of a capsule whose versioned tensor was taken over.
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// Returns the crate's dtype for the DLPack type `code`, or an error if the crate has no such
/// dtype.
pub(super) fn dtype_of(code: DLDataType) -> PyResult<DType> {
    code.dtype()
        .ok_or_else(|| PyTypeError::new_err(format!("DLPack elements of {code} are not supported")))
}
