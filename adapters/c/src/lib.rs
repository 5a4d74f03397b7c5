//! The C interface of ndscatter, for DLPack tensors.
//!
//! `include/ndscatter.h` declares the interface, and `docs/c.md` describes it. This crate converts
//! C structs to views and options, and errors to statuses. This crate passes the element type of
//! each tensor to the crate `ndscatter`, which selects the code for this type.
//!
//! Every C function runs inside `boundary::cross`, except the functions that return a version or
//! report the last failure. `boundary::cross` catches panics, so no panic unwinds into C. During
//! the call, `boundary::cross` sets the default floating-point mode. A call that fails stores its
//! message for the calling thread.

#![allow(
    unsafe_code,
    non_camel_case_types,
    clippy::missing_safety_doc,
    reason = "names of C, and C's contracts of pointers, which docs/c.md states once"
)]

mod boundary;
mod dlpack;
mod error_info;
mod failure;
mod gradients;
mod last_error;
mod machine;
mod memory;
mod moves;
mod operators;
mod options;
mod plan;
mod sharding;
mod status;
mod structs;
mod threads;
mod values;
mod writes;

pub use error_info::{nds_error_info, nds_last_error, nds_last_error_info};
pub use gradients::{
    nds_scatter_elements_backward, nds_scatter_nd_backward, nds_scatter_update_backward,
    nds_tensor_scatter_backward,
};
pub use machine::nds_set_machine_file;
pub use moves::{nds_move_rows, nds_move_slots};
pub use ndscatter_host::dlpack::{DLDataType, DLDevice, DLTensor};
pub use operators::{
    nds_gather, nds_gather_backward, nds_gather_elements, nds_gather_elements_backward,
    nds_gather_nd, nds_gather_nd_backward, nds_gather_paged, nds_scatter_elements, nds_scatter_nd,
    nds_scatter_paged, nds_scatter_update, nds_tensor_scatter,
};
pub use options::nds_options;
pub use plan::{
    nds_plan, nds_plan_explain, nds_plan_free, nds_plan_gather, nds_plan_gather_elements,
    nds_plan_gather_nd, nds_plan_gather_paged, nds_plan_run, nds_plan_scatter_elements,
    nds_plan_scatter_nd, nds_plan_scatter_paged, nds_plan_scatter_update,
};
pub use sharding::{
    nds_shard_gather, nds_shard_gather_nd, nds_shard_gather_paged, nds_shard_scatter_nd,
    nds_shard_scatter_paged, nds_shard_scatter_update, nds_sharded_lists, nds_sharded_plan,
    nds_sharded_plan_free, nds_sharded_plan_lists, nds_sharding, nds_sharding_owner,
    nds_sharding_row, nds_sharding_rows,
};
pub use status::nds_status;
pub use threads::nds_pool;
pub use values::{
    nds_accumulate, nds_bounds, nds_format, nds_goal, nds_none_gradient, nds_reduction,
    nds_rounding, nds_scaling, nds_sharding_rule,
};
pub use writes::{
    nds_conversion, nds_plan_write, nds_write, nds_write_nd, nds_write_paged, nds_write_update,
};

use std::ffi::{CStr, c_char};

/// Version of this package as a string that ends in a NUL.
const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("the version contains a NUL"),
    };

/// Returns the version of the library as a string, for example "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn nds_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Returns the version number of this C interface, which is 1.
#[unsafe(no_mangle)]
pub extern "C" fn nds_abi_version() -> u32 {
    1
}
