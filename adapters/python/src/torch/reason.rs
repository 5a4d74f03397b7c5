//! Why PyTorch's own kernel runs a call.
//!
//! This module knows the names of the reasons. It knows neither tensors nor counters.

use ndscatter::ScatterError;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

/// Why PyTorch's own kernel runs a call. The C++ kernels use the position in [`Reason::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The number of elements is outside of the limits of a kernel.
    Size,
    /// PyTorch's kernel was measured to be as fast for such a call.
    Slower,
    Dtype,
    /// An index tensor is a mask.
    Mask,
    /// Strides, alignment or memory of a tensor. Kernels for CPU tensors get no tensor of another device.
    Layout,
    Shape,
    /// The value of an argument that is not a tensor.
    Argument,
    /// Tensors of the call share memory.
    Overlap,
    /// The crate has refused the call, for example because of an index out of bounds.
    Error,
}

impl Reason {
    /// All reasons with their names in Python.
    pub(super) const ALL: [(&str, Self); 9] = [
        ("size", Self::Size),
        ("slower", Self::Slower),
        ("dtype", Self::Dtype),
        ("mask", Self::Mask),
        ("layout", Self::Layout),
        ("shape", Self::Shape),
        ("argument", Self::Argument),
        ("overlap", Self::Overlap),
        ("error", Self::Error),
    ];

    /// Returns the reason with a name in Python.
    pub(super) fn named(name: &str) -> PyResult<Self> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        let &(_, reason) = known.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(reason)
    }

    /// Returns the reason at a position in [`Reason::ALL`].
    pub(super) fn at(position: u32) -> Option<Self> {
        let (_, reason) = Self::ALL.get(usize::try_from(position).ok()?)?;
        Some(*reason)
    }
}

impl From<&ScatterError> for Reason {
    fn from(error: &ScatterError) -> Self {
        match error {
            ScatterError::SelfOverlap { .. }
            | ScatterError::SelfOverlapUndecided { .. }
            | ScatterError::OverlapUndecided { .. }
            | ScatterError::InputOverlap { .. } => Self::Overlap,
            ScatterError::Misaligned { .. } => Self::Layout,
            _ => Self::Error,
        }
    }
}
