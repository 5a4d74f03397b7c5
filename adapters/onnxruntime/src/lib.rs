//! A library of custom operators for ONNX Runtime. By default, the library replaces the standard
//! operators ScatterND, ScatterElements, Scatter and TensorScatter.
//!
//! `docs/onnxruntime.md` describes the library. The *host* is onnxruntime. The host calls
//! [`RegisterCustomOps`] when a session registers the library. The library does not link
//! onnxruntime, because the host passes a table of its functions to `RegisterCustomOps`.
//!
//! | module | knows |
//! |---|---|
//! | `registration` | domains, and the host version of each operator and type |
//! | `config` | config entries |
//! | `definition` | names and inputs of the operators |
//! | `element` | the host's element types |
//! | `variant` | an operator for one element type and one index type |
//! | `custom_op` | the host's table of callbacks |
//! | `attributes` | a node's attributes, and their scatter |
//! | `kernel` | a node of a session, and its runs |
//! | `tensor`, `packed`, `text` | tensors of a run: as views, with 4-bit elements, with strings |
//! | `plans` | kept plans for constant indices |
//! | `threads` | the host's threads, as a pool |
//! | `shapes` | shape inference |
//! | `api`, `failure` | the host's functions and statuses |
//! | `counters` | counts of runs |

#![allow(
    unsafe_code,
    reason = "the host's contracts of pointers, which its C interface documents"
)]

mod api;
mod attributes;
mod config;
mod counters;
mod custom_op;
mod definition;
mod element;
mod failure;
mod kernel;
mod packed;
mod plans;
mod registration;
mod shapes;
mod tensor;
mod text;
mod threads;
mod variant;

pub use counters::{
    ndscatter_onnxruntime_in_place, ndscatter_onnxruntime_planned, ndscatter_onnxruntime_runs, runs,
};
pub use registration::RegisterCustomOps;
