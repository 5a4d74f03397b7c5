//! The status code that a C function returns, and the numbers that describe a failure (such as the
//! tuple, the axis and the index).
//!
//! This file defines the status codes, and the struct for the numbers of a failure. The file
//! `failure.rs` converts the errors of the crate `ndscatter` to status codes and numbers.

/// Status code of a call of a C function. Callers must treat an unknown status as a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_status {
    /// The call succeeded.
    NDS_OK = 0,
    /// A pointer, shape, size or option is invalid, or two arguments do not fit together.
    NDS_INVALID_ARGUMENT = 1,
    /// An index is out of bounds for its axis.
    NDS_INDEX_OUT_OF_BOUNDS = 2,
    /// Two tuples have the same destination, and the option reject_duplicates is 1.
    NDS_DUPLICATE_INDEX = 3,
    /// The call is valid, but the library does not support it: for example an element type, a
    /// device, or an option that the function does not have.
    NDS_UNSUPPORTED = 4,
    /// An allocation failed.
    NDS_OUT_OF_MEMORY = 5,
    /// The pool of the host failed, or the library has a bug. After this status, the output may be
    /// changed. After every other failure, the output is unchanged.
    NDS_INTERNAL = 6,
}

/// Numbers that describe a failure: the tuple, the axis and the index that caused the failure, the
/// size of the axis, and for a duplicate the earlier tuple with the same destination. An unknown
/// number is -1.
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
