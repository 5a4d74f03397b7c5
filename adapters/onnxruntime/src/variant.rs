//! A registered variant of an operator, for one element type and one index type.
//!
//! Holds what is known before the host creates a node.

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
    /// Number of threads of the session, if its options contain it.
    pub(crate) threads: Option<usize>,
}
