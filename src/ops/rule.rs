//! What tells one operator from another: which axes its tuples address, and the
//! shapes that follow.

use crate::error::ScatterError;
use crate::memory::copied;
use crate::plan::{Coordinates, Form, IndexRules};
use crate::reduction::{Bounds, CacheMode, Reducing, Reduction};

/// The shape rule of an operator. A scatter and its inverse, the gather, have
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Tuples of coordinates along the last dim of `indices`.
    Nd { batch_dims: usize },
    /// Indices along one axis, the same for every position before it.
    Along { axis: isize },
    /// An index for each element: its position along one axis.
    Elements { axis: isize },
    /// Rows that follow one another along an axis, for each position of axis 0.
    Cache {
        axis: isize,
        mode: CacheMode,
        /// Length of the updates along the axis, where they are not known.
        planned_len: usize,
    },
}

impl Rule {
    /// What the shapes mean, and the strides of indices, if they have any.
    /// `updates` is not known to a plan.
    #[inline(always)] // Into the smallest calls, which would wait for a copy of it.
    pub(super) fn form(
        self,
        data: &[usize],
        (indices, strides): (&[usize], Option<&[isize]>),
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        // Forms that functions return are built again from their fields: the smallest
        // calls would read theirs out of the memory that it shares with them, in pieces
        // that no store has written whole, and wait (5 ns of 85 on a Xeon, Skylake).
        match self {
            Self::Nd { batch_dims } => nd(batch_dims, data, indices),
            Self::Along { axis } => Ok(Form {
                batch_rank: resolve_axis(axis, data.len())?,
                tuple_len: 1,
                list: (0, indices.len()),
                coordinates: Form::ALL_EXPLICIT,
            }),
            Self::Elements { axis } => Ok(Form {
                ..elements(axis, data, indices, strides)?
            }),
            Self::Cache {
                axis,
                mode,
                planned_len,
            } => Ok(Form {
                ..cache((axis, mode, planned_len), data, indices, updates)?
            }),
        }
    }

    /// The shape of updates, or of what a gather writes, for shapes alone.
    pub(super) fn updates_shape(
        self,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Vec<usize>, ScatterError> {
        let form = self.form(data, (indices, None), None)?;
        copied(&form.updates_shape(data, indices)?)
    }

    /// Refuses options that the operator does not have.
    #[inline]
    pub(super) fn check_options(
        self,
        rules: IndexRules,
        reducing: Reducing,
    ) -> Result<(), ScatterError> {
        let unsupported = |option| Err(ScatterError::UnsupportedOption { option });
        match self {
            Self::Cache { .. } if reducing.reduction != Reduction::None => unsupported("reduction"),
            // A row that is moved to the nearest end would write over another.
            Self::Cache { .. } if rules.bounds == Bounds::Clamp => unsupported("bounds"),
            _ => Ok(()),
        }
    }
}

/// An axis in `-rank..rank`, counted from the front.
fn resolve_axis(axis: isize, rank: usize) -> Result<usize, ScatterError> {
    let from_front = if axis < 0 {
        axis.checked_add_unsigned(rank)
    } else {
        Some(axis)
    };
    (from_front.and_then(|axis| usize::try_from(axis).ok()))
        .filter(|&axis| axis < rank)
        .ok_or(ScatterError::AxisOutOfRange { axis, rank })
}

#[inline(always)]
fn nd(batch_dims: usize, data: &[usize], indices: &[usize]) -> Result<Form, ScatterError> {
    let (Some((&tuple_len, list)), rank) = (indices.split_last(), data.len()) else {
        return Err(ScatterError::IndicesRank);
    };
    if batch_dims > rank || batch_dims > list.len() {
        return Err(ScatterError::BatchDims {
            batch_dims,
            data_rank: rank,
            indices_rank: indices.len(),
        });
    }
    if batch_dims > 0 && data[..batch_dims] != list[..batch_dims] {
        return Err(ScatterError::BatchShape {
            data: copied(&data[..batch_dims])?,
            indices: copied(&list[..batch_dims])?,
        });
    }
    if tuple_len > rank - batch_dims {
        return Err(ScatterError::TupleLength {
            tuple_len,
            rank: rank - batch_dims,
        });
    }
    Ok(Form {
        batch_rank: 0,
        tuple_len: batch_dims + tuple_len,
        list: (0, list.len()),
        coordinates: Coordinates::Explicit {
            implied: batch_dims,
        },
    })
}

#[inline(never)]
fn elements(
    axis: isize,
    data: &[usize],
    shape: &[usize],
    strides: Option<&[isize]>,
) -> Result<Form, ScatterError> {
    let rank = data.len();
    if shape.len() != rank {
        return Err(ScatterError::IndicesRankMismatch {
            rank,
            indices: shape.len(),
        });
    }
    let axis = resolve_axis(axis, rank)?;
    let too_long = |&other: &usize| other != axis && shape[other] > data[other];
    if let Some(axis) = (0..rank).find(too_long) {
        return Err(ScatterError::IndicesTooLong {
            axis,
            size: shape[axis],
            data_size: data[axis],
        });
    }
    let (first, last) = varying(shape, strides, axis);
    let coordinates = if rank == 1 {
        // A list of whole tuples, like that of any other operator.
        Form::ALL_EXPLICIT
    } else {
        Coordinates::Placed { axis: axis - first }
    };
    Ok(Form {
        batch_rank: first,
        tuple_len: last - first,
        list: (first, last),
        coordinates,
    })
}

/// The dims around `axis` up to which indices have strides: outside of them
/// one index stands for all positions.
fn varying(shape: &[usize], strides: Option<&[isize]>, axis: usize) -> (usize, usize) {
    let rank = shape.len();
    let Some(strides) = strides.filter(|_| !shape.contains(&0)) else {
        return (0, rank);
    };
    let varies = |&dim: &usize| dim == axis || (strides[dim] != 0 && shape[dim] != 1);
    let first = (0..=axis).find(varies).unwrap_or(axis);
    let last = (axis..rank).rfind(varies).unwrap_or(axis);
    (first, last + 1)
}

/// The axis of positions of a cache, after that of the sequences.
fn cache_axis(axis: isize, rank: usize) -> Result<usize, ScatterError> {
    if rank < 2 {
        return Err(ScatterError::BatchAxis { rank });
    }
    match resolve_axis(axis, rank)? {
        0 => Err(ScatterError::BatchAxis { rank }),
        axis => Ok(axis),
    }
}

#[inline(never)]
fn cache(
    (axis, mode, planned_len): (isize, CacheMode, usize),
    data: &[usize],
    indices: &[usize],
    updates: Option<&[usize]>,
) -> Result<Form, ScatterError> {
    let axis = cache_axis(axis, data.len())?;
    let len = match updates {
        None => planned_len,
        Some(updates) if updates.len() == data.len() => updates[axis],
        Some(updates) => {
            return Err(ScatterError::CacheUpdatesShape {
                cache: copied(data)?,
                axis,
                actual: copied(updates)?,
            });
        }
    };
    if !indices.is_empty() && indices != [data[0]] {
        return Err(ScatterError::WriteIndicesShape {
            batch: data[0],
            actual: copied(indices)?,
        });
    }
    if len > data[axis] {
        return Err(ScatterError::UpdateTooLong {
            axis,
            update_len: len,
            cache_len: data[axis],
        });
    }
    Ok(Form {
        batch_rank: 0,
        tuple_len: axis + 1,
        list: (0, 0),
        coordinates: Coordinates::Sequences { axis, len, mode },
    })
}
