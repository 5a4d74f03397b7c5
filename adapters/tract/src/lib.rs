//! Runs the scatters and gathers of [tract](https://docs.rs/tract-onnx) models on ndscatter.
//!
//! [`register`] changes how ONNX models are loaded. [`rewrite`] changes a typed model, such as a
//! model from an NNEF file. [`restore`] undoes `rewrite`.
//!
//! The result of a node is that of a loop over its indices in row-major order, with the same bits at
//! every number of threads. A negative index counts from the end of its axis. An index out of bounds
//! is an error. The rules are those of ONNX, where ONNX has a rule. `docs/tract.md` has the details.
//!
//! A node writes in place if nothing else holds its data. Else it writes the result into new memory
//! in one pass. A node with constant indices makes a plan at its first run, and later runs with the
//! same shape of data use the plan. Large nodes run on the threads of rayon: on the pool in which
//! the model runs, or on rayon's global pool.

mod element;
mod gather;
mod huge_pages;
mod onnx;
mod plans;
mod rewrite;
mod scatter;
mod tensor;

pub use onnx::register;
pub use rewrite::{restore, rewrite};
