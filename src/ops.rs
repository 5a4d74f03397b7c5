//! The operators: what their shapes mean, their options, and their verbs.
//!
//! Knows ONNX, OpenVINO and their kin. Knows nothing of threads or vectors:
//! an operator says what its shapes mean ([`Form`](crate::plan::Form)) and
//! leaves the rest.

mod functions;
mod gather;
mod operator;
pub mod profile;
mod scatter;

pub use functions::{scatter_elements, scatter_nd, scatter_update, tensor_scatter};
pub use gather::Gather;
pub use operator::Operator;
pub use scatter::Scatter;
