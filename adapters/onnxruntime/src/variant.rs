//! A registered variant of an operator: the operator for one element type and one index type.
//!
//! A variant of an operator holds only data that is known when the library registers its operators
//! with the host (ONNX Runtime), before the host creates a node.

use crate::api::Api;
use ndscatter::DType;

use crate::definition::{Definition, Domain};
use crate::element::ElementType;

/// An operator with one element type and one index type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) api: Api,
    pub(crate) domain: Domain,
    pub(crate) definition: &'static Definition,
    pub(crate) element: &'static ElementType,
    pub(crate) index_type: DType,
    /// Number of threads that the session's config entry `ndscatter.threads` states, limited to the
    /// number of processors. `None` without this entry.
    pub(crate) threads: Option<usize>,
}
