//! Fuzz targets as functions of bytes. `README.md` describes them.
//!
//! The targets are in a library, so that their code and the reference are compiled once. Each file of
//! `fuzz_targets` is a program that gives the bytes of libFuzzer to one function.

pub mod c_interface;
pub mod conversions;
pub mod gather;
pub mod gradients;
pub mod machine_file;
#[cfg(feature = "npy")]
pub mod npy;
pub mod plans;
pub mod scatter;
pub mod views;

#[cfg(feature = "npy")]
#[path = "../../cli/src/array.rs"]
#[allow(dead_code, reason = "the command-line tool uses more of this module")]
mod array;
#[path = "../../tests/common/mod.rs"]
mod common;
#[cfg(feature = "npy")]
#[path = "../../cli/src/compare.rs"]
mod compare;
mod draw;
mod geometry;
