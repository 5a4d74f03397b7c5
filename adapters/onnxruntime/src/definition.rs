//! The operators that the library registers: their names and inputs.
//!
//! This module knows the operators of the ONNX standard. It knows nothing of the host's structs.

use std::ffi::CStr;
use std::sync::atomic::AtomicU64;

use ndscatter::{CacheMode, DType, Operator};

/// The ONNX operator domain to which an operator belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// The domain of the ONNX standard. An operator that the library registers in this domain
    /// replaces the host's own kernels of the operator.
    Standard,
    /// The domain of this library, `ndscatter`. The operators of this domain have more attributes
    /// than the operators of the ONNX standard.
    Own,
}

/// The role of an input of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The tensor of data or the tensor of updates.
    Moved,
    /// The tensor of scatter indices.
    Indices,
    /// The tensor of scatter indices, for an operator whose nodes may omit this input.
    OptionalIndices,
}

/// An ONNX operator, in all its versions. One definition serves all versions, because a later
/// version of an operator only adds element types and reductions. The existing element types and
/// reductions keep their meaning.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: &'static CStr,
    /// The operator of the crate `ndscatter` that corresponds to a node with default attributes.
    pub(crate) operator: Operator,
    /// Minor version x of the oldest supported host, onnxruntime 1.x, for which the library
    /// registers the operator.
    pub(crate) host: u32,
    pub(crate) inputs: [Role; 3],
    pub(crate) index_types: &'static [DType],
    /// Number of successful runs of the operator since the process began.
    pub(crate) runs: AtomicU64,
}

/// The inputs of all operators except TensorScatter, in order: data, indices, updates.
const SCATTER: [Role; 3] = [Role::Moved, Role::Indices, Role::Moved];

pub(crate) static DEFINITIONS: [Definition; 4] = [
    Definition {
        name: c"ScatterND",
        operator: Operator::Nd { batch_dims: 0 },
        host: 18,
        inputs: SCATTER,
        index_types: &[DType::I64],
        runs: AtomicU64::new(0),
    },
    Definition {
        name: c"ScatterElements",
        operator: Operator::Elements { axis: 0 },
        host: 18,
        inputs: SCATTER,
        index_types: &[DType::I64, DType::I32],
        runs: AtomicU64::new(0),
    },
    Definition {
        name: c"Scatter",
        operator: Operator::Elements { axis: 0 },
        host: 18,
        inputs: SCATTER,
        index_types: &[DType::I64, DType::I32],
        runs: AtomicU64::new(0),
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
        runs: AtomicU64::new(0),
    },
];

impl Definition {
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }

    /// Returns the input numbers of data, updates and indices, in this order.
    pub(crate) fn positions(&self) -> [usize; 3] {
        match self.operator {
            Operator::Cache { .. } => [0, 1, 2],
            _ => [0, 2, 1],
        }
    }
}
