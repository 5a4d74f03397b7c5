//! The operators that the library registers: their names and inputs.
//!
//! This module knows the operators of the ONNX standard. It knows nothing of the host's structs.

use std::ffi::CStr;

use ndscatter::{CacheMode, DType, Operator};

/// The domain of an operator's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// The domain of the ONNX standard. For the scatters of this domain, the library replaces the
    /// kernels of the host.
    Standard,
    /// The domain of this library, `ndscatter`. Its operators have more options than the operators
    /// of the standard.
    Own,
}

/// The role of an input of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A tensor of elements to move: data or updates.
    Moved,
    /// The tensor of scatter indices.
    Indices,
    /// The tensor of scatter indices, as an input that a node may omit.
    OptionalIndices,
}

/// An ONNX operator, in all its versions. A later version of an operator adds element types and
/// reductions, and keeps the meaning of the earlier types and reductions.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: &'static CStr,
    /// The operator of the crate for a node with the default attributes.
    pub(crate) operator: Operator,
    /// Minor version of the first supported host (1.x) that has the operator.
    pub(crate) host: u32,
    pub(crate) inputs: [Role; 3],
    pub(crate) index_types: &'static [DType],
}

/// Data, indices and updates: the order of the inputs of most operators.
const SCATTER: [Role; 3] = [Role::Moved, Role::Indices, Role::Moved];

pub(crate) static DEFINITIONS: [Definition; 4] = [
    Definition {
        name: c"ScatterND",
        operator: Operator::Nd { batch_dims: 0 },
        host: 18,
        inputs: SCATTER,
        index_types: &[DType::I64],
    },
    Definition {
        name: c"ScatterElements",
        operator: Operator::Elements { axis: 0 },
        host: 18,
        inputs: SCATTER,
        index_types: &[DType::I64, DType::I32],
    },
    Definition {
        name: c"Scatter",
        operator: Operator::Elements { axis: 0 },
        host: 18,
        inputs: SCATTER,
        index_types: &[DType::I64, DType::I32],
    },
    Definition {
        name: c"TensorScatter",
        operator: Operator::Cache {
            axis: -2,
            mode: CacheMode::Linear,
            update_len: 1,
        },
        host: 24,
        inputs: [Role::Moved, Role::Moved, Role::OptionalIndices],
        index_types: &[DType::I64],
    },
];

impl Definition {
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }

    /// Returns the positions of data, updates and indices among the inputs.
    pub(crate) fn positions(&self) -> [usize; 3] {
        match self.operator {
            Operator::Cache { .. } => [0, 1, 2],
            _ => [0, 2, 1],
        }
    }
}
