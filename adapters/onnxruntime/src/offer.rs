//! One operator as a session is offered it: for one element type and one index type.

use crate::api::Api;
use ndscatter::DType;

use crate::definition::{Definition, Domain};
use crate::element::ElementType;

/// What is known of an operator before there is a node of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) api: Api,
    pub(crate) domain: Domain,
    pub(crate) definition: &'static Definition,
    pub(crate) element: &'static ElementType,
    pub(crate) index_type: DType,
    /// How many threads the session has, if that was told.
    pub(crate) threads: Option<usize>,
}
