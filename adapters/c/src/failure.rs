//! The failure of a C function: its status, its message and its position (the struct `Facts`).
//!
//! `Facts` has the numbers that say where a failure occurred: the number of the tuple, the axis,
//! the size of the axis, the index, and for a duplicate the number of the earlier tuple. This file
//! converts each error of the crate `ndscatter` to a status and a `Facts`. This file does not
//! depend on C structs or on the functions that report a failure to C.

use std::fmt;

use ndscatter::ScatterError;

use crate::last_error;
use crate::status::{Facts, nds_status};

/// The failure of a C function.
///
/// Each constructor also stores the message and the [`Facts`] for `nds_last_error` on the calling
/// thread, without an allocation. Therefore, the last `Failure` that a C function makes must be the
/// failure that this C function returns.
#[derive(Debug)]
pub(crate) struct Failure(nds_status);

impl Failure {
    #[cold]
    fn new(status: nds_status, facts: Facts, message: fmt::Arguments<'_>) -> Self {
        last_error::store(status, facts, message);
        Self(status)
    }

    pub(crate) fn status(&self) -> nds_status {
        self.0
    }

    /// Returns the failure for an error that the tensor argument `name` caused.
    #[cold]
    pub(crate) fn of_tensor(name: &'static str, error: &ScatterError) -> Self {
        Self::of(error, format_args!("`{name}`: {error}"))
    }

    #[cold]
    fn of(error: &ScatterError, message: fmt::Arguments<'_>) -> Self {
        Self::new(status_of(error), facts_of(error), message)
    }

    #[cold]
    pub(crate) fn out_of_memory(bytes: usize) -> Self {
        ScatterError::OutOfMemory { bytes }.into()
    }

    #[cold]
    pub(crate) fn invalid(message: fmt::Arguments<'_>) -> Self {
        Self::new(nds_status::NDS_INVALID_ARGUMENT, Facts::UNKNOWN, message)
    }

    #[cold]
    pub(crate) fn unsupported(message: fmt::Arguments<'_>) -> Self {
        Self::new(nds_status::NDS_UNSUPPORTED, Facts::UNKNOWN, message)
    }

    #[cold]
    pub(crate) fn internal(message: fmt::Arguments<'_>) -> Self {
        Self::new(nds_status::NDS_INTERNAL, Facts::UNKNOWN, message)
    }
}

impl From<ScatterError> for Failure {
    #[cold]
    fn from(error: ScatterError) -> Self {
        Self::of(&error, format_args!("{error}"))
    }
}

fn status_of(error: &ScatterError) -> nds_status {
    match error {
        ScatterError::IndexOutOfBounds { .. }
        | ScatterError::WriteIndex { .. }
        | ScatterError::RowOutOfBounds { .. } => nds_status::NDS_INDEX_OUT_OF_BOUNDS,
        ScatterError::DuplicateIndex { .. } => nds_status::NDS_DUPLICATE_INDEX,
        ScatterError::Misaligned { .. }
        | ScatterError::OverlapUndecided { .. }
        | ScatterError::SelfOverlapUndecided { .. }
        | ScatterError::UnsupportedOption { .. }
        | ScatterError::UnsupportedReduction { .. }
        | ScatterError::NoGradient { .. } => nds_status::NDS_UNSUPPORTED,
        ScatterError::OutOfMemory { .. } => nds_status::NDS_OUT_OF_MEMORY,
        ScatterError::PoolFailed { .. } => nds_status::NDS_INTERNAL,
        _ => nds_status::NDS_INVALID_ARGUMENT,
    }
}

fn facts_of(error: &ScatterError) -> Facts {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    match *error {
        ScatterError::IndexOutOfBounds {
            tuple,
            axis,
            index,
            size,
        } => Facts {
            tuple: count(tuple),
            axis: count(axis),
            axis_size: count(size),
            index: clamped(index),
            ..Facts::UNKNOWN
        },
        ScatterError::WriteIndex {
            batch,
            index,
            cache_len,
            ..
        } => Facts {
            tuple: count(batch),
            axis_size: count(cache_len),
            index: clamped(index),
            ..Facts::UNKNOWN
        },
        ScatterError::RowOutOfBounds {
            position,
            row,
            rows,
            ..
        } => Facts {
            tuple: count(position),
            axis_size: count(rows),
            index: clamped(row),
            ..Facts::UNKNOWN
        },
        ScatterError::DuplicateIndex { tuple, earlier } => Facts {
            tuple: count(tuple),
            other_tuple: count(earlier),
            ..Facts::UNKNOWN
        },
        ScatterError::IndicesTooLong {
            axis, data_size, ..
        } => Facts {
            axis: count(axis),
            axis_size: count(data_size),
            ..Facts::UNKNOWN
        },
        ScatterError::UpdateTooLong {
            axis, cache_len, ..
        } => Facts {
            axis: count(axis),
            axis_size: count(cache_len),
            ..Facts::UNKNOWN
        },
        _ => Facts::UNKNOWN,
    }
}

fn clamped(index: i128) -> i64 {
    i64::try_from(index).unwrap_or(if index < 0 { i64::MIN } else { i64::MAX })
}
