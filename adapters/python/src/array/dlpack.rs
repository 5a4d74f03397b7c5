//! DLPack: tensors of other libraries as they hand them out, and results for them.
//!
//! Knows capsules and functions that hold tensors. Knows nothing of numpy, nor of what tensors
//! are used for.

mod exchange;
mod handed;
mod lent;
pub(super) mod libraries;

use std::ffi::CStr;

use ndscatter::DType;
use ndscatter_host::dlpack::DLDataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

pub(super) use exchange::described_address;
pub(crate) use exchange::{Describe, describe_of, described};
pub(super) use handed::{Handed, hand_over};
pub(super) use lent::Lent;

const OLD: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
/// What a capsule is called once its tensor has an owner.
const OLD_USED: &CStr = c"used_dltensor";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The type that the crate knows elements by.
pub(super) fn dtype_of(code: DLDataType) -> PyResult<DType> {
    code.dtype()
        .ok_or_else(|| PyTypeError::new_err(format!("DLPack elements of {code} are not supported")))
}
