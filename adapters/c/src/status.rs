//! What a call came to, as C sees it, and the facts of a failure.
//!
//! Knows numbers. Knows nothing of what failed.

/// What a call came to. Treat an unknown one as a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_status {
    /// Done.
    NDS_OK = 0,
    /// Pointers, shapes, sizes or options that do not fit together.
    NDS_INVALID_ARGUMENT = 1,
    /// An index lies outside its axis.
    NDS_INDEX_OUT_OF_BOUNDS = 2,
    /// Two tuples have one destination, and reject_duplicates is set.
    NDS_DUPLICATE_INDEX = 3,
    /// Legal, but not served: a type, a device, an option of another operator.
    NDS_UNSUPPORTED = 4,
    /// An allocation failed.
    NDS_OUT_OF_MEMORY = 5,
    /// A pool failed, or the library has a bug. The one status after which the
    /// output may have changed.
    NDS_INTERNAL = 6,
}

/// Facts of a failure, -1 where unknown.
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
