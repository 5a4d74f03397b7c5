//! The operators that are offered: what they are called, and what they read.
//!
//! Knows the standard's lists. Knows nothing of the host's structs.

use std::ffi::CStr;

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

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Nd,
    Elements,
    Cache,
}

/// A type of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexType {
    I32,
    I64,
}

/// One operator, in all its versions: a later one has more types and reductions, and means
/// the same by those of an earlier one.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: &'static CStr,
    pub(crate) meaning: Meaning,
    /// The first host (1.x) that knows it, in its first version that is supported.
    pub(crate) host: u32,
    pub(crate) inputs: [Role; 3],
    pub(crate) index_types: &'static [IndexType],
}

/// Data, indices and updates, in the order of most of them.
const SCATTER: [Role; 3] = [Role::Moved, Role::Indices, Role::Moved];

pub(crate) static DEFINITIONS: [Definition; 4] = [
    Definition {
        name: c"ScatterND",
        meaning: Meaning::Nd,
        host: 18,
        inputs: SCATTER,
        index_types: &[IndexType::I64],
    },
    Definition {
        name: c"ScatterElements",
        meaning: Meaning::Elements,
        host: 18,
        inputs: SCATTER,
        index_types: &[IndexType::I64, IndexType::I32],
    },
    Definition {
        name: c"Scatter",
        meaning: Meaning::Elements,
        host: 18,
        inputs: SCATTER,
        index_types: &[IndexType::I64, IndexType::I32],
    },
    Definition {
        name: c"TensorScatter",
        meaning: Meaning::Cache,
        host: 24,
        inputs: [Role::Moved, Role::Moved, Role::OptionalIndices],
        index_types: &[IndexType::I64],
    },
];

impl Definition {
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }

    /// Positions of data, updates and indices among the inputs.
    pub(crate) fn positions(&self) -> [usize; 3] {
        match self.meaning {
            Meaning::Nd | Meaning::Elements => [0, 2, 1],
            Meaning::Cache => [0, 1, 2],
        }
    }
}
