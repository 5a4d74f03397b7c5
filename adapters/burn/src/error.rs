//! The reasons why a scatter of burn's tensors was refused.

use burn_backend::DType;
use ndscatter::ScatterError;

/// The reason why a scatter was refused.
///
/// A call that returns an error has not changed a tensor that another owner can read. The text
/// starts in lower case and ends without a full stop.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shape, an option, a type or an index is wrong, or an allocation failed.
    #[error(transparent)]
    Scatter(#[from] ScatterError),

    /// A tensor is not a tensor of the backend Flex.
    #[error("`{tensor}` is not on a device of burn's Flex backend; move it with `to_device`")]
    Backend {
        /// `data`, `indices` or `updates`.
        tensor: &'static str,
    },

    /// The elements of a tensor have no kernel.
    #[error(
        "`{tensor}` has elements of type {dtype:?}; use floats, integers or booleans of 8 bits"
    )]
    DType {
        /// `data`, `indices` or `updates`.
        tensor: &'static str,
        /// The element type.
        dtype: DType,
    },

    /// Two tensors are on autodiff devices with different strategies for gradient checkpointing.
    #[error("the tensors have different strategies for gradient checkpointing; use one strategy")]
    Checkpointing,
}
