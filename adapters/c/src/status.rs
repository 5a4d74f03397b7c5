//! The status that C receives, and the facts of a failure (its tuple, axis and index).
//!
//! Defines plain numbers. Knows nothing of the causes of failures.

/// Outcome of a call. Treat an unknown status as a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_status {
    /// The call succeeded.
    NDS_OK = 0,
    /// A pointer, shape, size or option is invalid, or arguments do not fit together.
    NDS_INVALID_ARGUMENT = 1,
    /// An index is outside its axis.
    NDS_INDEX_OUT_OF_BOUNDS = 2,
    /// Two tuples have the same destination, and reject_duplicates is set.
    NDS_DUPLICATE_INDEX = 3,
    /// The request is valid but not supported: a type, a device, or an option that the function
    /// does not have.
    NDS_UNSUPPORTED = 4,
    /// An allocation failed.
    NDS_OUT_OF_MEMORY = 5,
    /// A pool failed, or the library has a bug. Only this failure may leave the output changed.
    NDS_INTERNAL = 6,
}

/// Facts of a failure: the tuple, the axis and the index that caused it. An unknown fact is -1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) tuple: i64,
    pub(crate) other_tuple: i64,
    pub(crate) axis: i64,
    pub(crate) axis_size: i64,
    pub(crate) index: i64,
}

impl Facts {
    pub(crate) const UNKNOWN: Self = Self {
        tuple: -1,
        other_tuple: -1,
        axis: -1,
        axis_size: -1,
        index: -1,
    };
}
