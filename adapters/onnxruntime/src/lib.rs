//! ndscatter's scatters inside ONNX Runtime: a library of custom operators that takes
//! over the standard ScatterND, ScatterElements, Scatter and TensorScatter.
//!
//! `docs/onnxruntime.md` describes it. [`RegisterCustomOps`] is what a host calls when a
//! session is given the library; nothing of onnxruntime is linked, its functions come
//! from the host.
//!
//! | module | knows |
//! |---|---|
//! | `registration` | config entries, domains, which host has what |
//! | `definition` | the operators: names, inputs |
//! | `element` | the host's element types |
//! | `offer` | an operator for one element type and one index type |
//! | `custom_op` | the host's table of callbacks |
//! | `attributes` | a node's attributes, and the scatter that they mean |
//! | `kernel` | one node of a session, and its runs |
//! | `tensor`, `packed`, `text` | tensors of a run: as views, of 4-bit elements, of strings |
//! | `plans` | plans for indices that never change |
//! | `threads` | the host's threads |
//! | `shapes` | shape inference |
//! | `api`, `failure` | calls of the host's functions, and its statuses |
//! | `counters` | what has run, for tests |

#![allow(
    unsafe_code,
    reason = "the host's rules for pointers, which docs of its C interface state"
)]

mod api;
mod attributes;
mod counters;
mod custom_op;
mod definition;
mod element;
mod failure;
mod kernel;
mod offer;
mod packed;
mod plans;
mod registration;
mod shapes;
mod tensor;
mod text;
mod threads;

pub use counters::{
    ndscatter_onnxruntime_in_place, ndscatter_onnxruntime_planned, ndscatter_onnxruntime_runs,
};
pub use registration::RegisterCustomOps;
