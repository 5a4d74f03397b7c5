//! The tests of the crate's contract, one module for each property. They are one binary, so that
//! the reference is compiled once.
//!
//! Tests that need their own allocator or process are separate binaries in `tests/`.

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "gradients")]
mod backward;
mod bounds;
mod compaction;
mod comparison;
mod concurrency;
mod contracts;
#[cfg(all(feature = "conversions", feature = "half"))]
mod converting;
mod determinism;
#[cfg(all(feature = "conversions", feature = "half"))]
mod engines;
mod errors;
#[cfg(all(feature = "half", feature = "complex", feature = "narrow-integers"))]
mod exhaustive;
mod foreign_indices;
mod gather_errors;
mod gathers;
#[cfg(feature = "gradients")]
mod gradients;
mod idle_slots;
mod interface;
mod late_errors;
mod long_lists;
mod machines;
#[cfg(feature = "ndarray")]
mod ndarray_views;
mod new_memory;
mod nothing;
mod onnx;
mod operator_errors;
mod operator_values;
mod options;
mod paged;
mod partial_records;
mod profiles;
mod properties;
mod ranges;
mod reductions;
#[cfg(debug_assertions)]
mod routes;
#[cfg(feature = "sharding")]
mod sharding;
mod skipped;
mod spec_examples;
#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
mod wide;
mod zero_sized;
