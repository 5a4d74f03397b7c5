//! The operators that are offered: what they are called, and what they read.
//!
//! Knows the standard's lists. Knows nothing of the host's structs.

use std::ffi::CStr;

use ndscatter::{CacheMode, DType, Operator};

/// Under which name operators are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// The standard's own, whose operators are taken over.
    Standard,
    /// That of this library, with options of its own.
    Own,
}

/// What an input is to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Elements that are moved: data or updates.
    Moved,
    Indices,
    /// Indices that may be left out.
    OptionalIndices,
}

/// One operator, in all its versions: a later one has more types and reductions, and means
/// the same by those of an earlier one.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: &'static CStr,
    /// What it does, by the defaults of its attributes.
    pub(crate) operator: Operator,
    /// The first host (1.x) that knows it, in its first version that is supported.
    pub(crate) host: u32,
    pub(crate) inputs: [Role; 3],
    pub(crate) index_types: &'static [DType],
}

/// Data, indices and updates, in the order of most of them.
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

    /// Positions of data, updates and indices among the inputs.
    pub(crate) fn positions(&self) -> [usize; 3] {
        match self.operator {
            Operator::Cache { .. } => [0, 1, 2],
            _ => [0, 2, 1],
        }
    }
}
