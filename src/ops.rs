//! The operators: their shape rules, their options, and the methods that run them.
//!
//! This module knows the rules of ONNX, OpenVINO and other runtimes. It converts the shapes of a
//! call to a [`Form`](crate::plan::Form). The module `run` executes the call with this form. The
//! module `ops` does not know threads or kernels.

mod functions;
mod gather;
mod operator;
pub mod profile;
mod scatter;

pub use functions::{scatter_elements, scatter_nd, scatter_update, tensor_scatter};
pub use gather::Gather;
pub use operator::Operator;
pub(crate) use operator::resolve_axis;
pub use scatter::Scatter;
