//! Operators that a caller chooses at run time, and the shape rule of each operator.
//!
//! This module knows shapes and axes. It knows nothing of tensors, element types, or how a call
//! runs.

use crate::error::ScatterError;
use crate::memory::copied;
use crate::plan::{Coordinates, Form, IndexRules};
use crate::reduction::{Bounds, CacheMode, Reducing, Reduction};

/// Operator of a scatter or of a gather, chosen at run time. The operator determines which axes of
/// `data` the indices address, and the shapes of the other tensors.
///
/// [`Scatter::new`](crate::Scatter::new) makes a scatter from an operator, and
/// [`Gather::new`](crate::Gather::new) makes a gather. The `updates` of the scatter and the output
/// of the gather have the same shape:
///
/// | operator | shape of `updates`, or of the output of a gather |
/// |---|---|
/// | `Nd` | `indices.shape[..-1] ++ data.shape[batch_dims + k..]`, with `k = indices.shape[-1]` |
/// | `Along` | `data.shape[..axis] ++ indices.shape ++ data.shape[axis + 1..]` |
/// | `Elements` | `indices.shape` |
/// | `Cache` | `data.shape` with size `update_len` along `axis` |
/// | `Paged` | `indices.shape ++ data.shape[2..]` |
///
/// `axis` is in `-rank..rank`, where `rank` is the rank of `data`. A negative axis counts from the
/// end. If the table gives a shape of rank 0, a scatter also accepts `updates` of any rank that
/// have exactly one element.
///
/// The rules are from these operators:
///
/// - `Nd`: ONNX ScatterND 18 and GatherND 13.
/// - `Along`: OpenVINO ScatterUpdate 3 for scatters, ONNX Gather 13 for gathers.
/// - `Elements`: ONNX ScatterElements 18 and GatherElements 13.
/// - `Cache`: ONNX TensorScatter 24.
/// - `Paged`: the slot mapping of vLLM (`reshape_and_cache`).
///
/// # Examples
///
/// ```
/// use ndscatter::{Gather, Operator, Scatter, TensorView};
///
/// // Reads a column of a matrix, and writes the column to another matrix.
/// let columns = Operator::Along { axis: -1 };
/// assert_eq!(columns.output_shape(&[2, 3], &[1])?, [2, 1]);
///
/// let (data, last) = ([1, 2, 3, 4, 5, 6], [2_i64]);
/// let data = TensorView::contiguous(&data, &[2, 3])?;
/// let taken = Gather::new(columns)?.allocate(data, TensorView::from(&last))?;
/// assert_eq!(taken, [3, 6]);
///
/// let zeros = TensorView::splat(&0, &[2, 3])?;
/// let written = Scatter::new(columns)?.allocate(zeros, TensorView::from(&last), taken.view())?;
/// assert_eq!(written, [0, 0, 3, 0, 0, 6]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operator {
    /// Tuples whose coordinates are stored along the last dim of `indices`:
    /// [`Scatter::nd`](crate::Scatter::nd), [`Gather::nd`](crate::Gather::nd).
    Nd {
        /// Number of batch dims: leading dims whose sizes must be equal in `data` and `indices`. A
        /// scatter requires the number 0.
        batch_dims: usize,
    },
    /// Indices along one axis. All positions along the axes before this axis use the same indices:
    /// [`Scatter::along`](crate::Scatter::along), [`Gather::along`](crate::Gather::along).
    Along {
        /// Axis of `data` that the indices address.
        axis: isize,
    },
    /// One index for each element of the updates, or of the output of a gather. The index replaces
    /// the position of the element along one axis: [`Scatter::elements`](crate::Scatter::elements),
    /// [`Gather::elements`](crate::Gather::elements).
    Elements {
        /// Axis of `data` that the indices address.
        axis: isize,
    },
    /// Consecutive rows along one axis, for each sequence on axis 0:
    /// [`Scatter::cache`](crate::Scatter::cache). This operator has no gather.
    Cache {
        /// Axis of the positions in a sequence.
        axis: isize,
        /// Rule for rows beyond the end of the axis.
        mode: CacheMode,
        /// Length of the updates along the axis. Only plans and
        /// [`updates_shape`](Self::updates_shape) use this value. One-shot calls use the length of
        /// their updates instead.
        update_len: usize,
    },
    /// Slots of a paged cache: an index is the row-major number of a position on axes 0 and 1 (the
    /// blocks, and the rows of a block): [`Scatter::paged`](crate::Scatter::paged),
    /// [`Gather::paged`](crate::Gather::paged).
    Paged,
}

/// Public functions.
impl Operator {
    /// Returns the shape that `updates` of a scatter must have, for the shapes `data` and
    /// `indices`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] if the operator has batch dims, because no scatter has
    /// batch dims. Any other [`ScatterError`] about these shapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{CacheMode, Operator};
    ///
    /// let step = Operator::Cache { axis: -2, mode: CacheMode::Linear, update_len: 1 };
    /// assert_eq!(step.updates_shape(&[8, 2048, 64], &[8])?, [8, 1, 64]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn updates_shape(
        self,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Vec<usize>, ScatterError> {
        self.check_scatter()?;
        self.other_shape(data, indices)
    }

    /// Returns the shape of the output of a gather, for the shapes `data` and `indices`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for [`Cache`](Self::Cache), which has no gather. Any
    /// other [`ScatterError`] about these shapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::Operator;
    ///
    /// let rows = Operator::Nd { batch_dims: 1 };
    /// assert_eq!(rows.output_shape(&[4, 10, 64], &[4, 5, 1])?, [4, 5, 64]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn output_shape(
        self,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Vec<usize>, ScatterError> {
        self.check_gather()?;
        self.other_shape(data, indices)
    }

    /// Returns the operator with its axis counted from the front, for data of rank `rank`. If dims
    /// are later appended after the last dim of the data, the returned axis remains valid.
    ///
    /// # Errors
    ///
    /// [`ScatterError::AxisOutOfRange`] if the axis is not in `-rank..rank`.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::Operator;
    ///
    /// let last = Operator::Elements { axis: -1 };
    /// assert_eq!(last.for_rank(3)?, Operator::Elements { axis: 2 });
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn for_rank(mut self, rank: usize) -> Result<Self, ScatterError> {
        match &mut self {
            Self::Nd { .. } | Self::Paged => {}
            Self::Along { axis } | Self::Elements { axis } | Self::Cache { axis, .. } => {
                *axis = resolve_axis(*axis, rank)?.cast_signed();
            }
        }
        Ok(self)
    }

    /// Returns the operator for updates of shape `updates`. For a [`Cache`](Self::Cache),
    /// `update_len` becomes the length of these updates along the axis. Other operators do not
    /// change. If the updates do not have the axis, `update_len` becomes 0, and a call with these
    /// updates returns an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{CacheMode, Operator};
    ///
    /// let step = Operator::Cache { axis: -2, mode: CacheMode::Linear, update_len: 1 };
    /// let prompt = step.for_updates(&[8, 17, 64]);
    /// assert_eq!(prompt.updates_shape(&[8, 2048, 64], &[8])?, [8, 17, 64]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[must_use]
    pub fn for_updates(mut self, updates: &[usize]) -> Self {
        if let Self::Cache {
            axis, update_len, ..
        } = &mut self
        {
            *update_len = resolve_axis(*axis, updates.len()).map_or(0, |axis| updates[axis]);
        }
        self
    }
}

/// Functions that scatters and gathers use.
impl Operator {
    /// Returns the default rules for the values of indices. By default, an index out of bounds is
    /// an error, and a negative index counts from the end. A negative slot is skipped instead.
    #[inline]
    pub(super) fn default_rules(self) -> IndexRules {
        match self {
            Self::Paged => IndexRules::new(false, Bounds::SkipNegative),
            _ => IndexRules::new(true, Bounds::Error),
        }
    }

    /// Returns an error if the operator has no scatter: `Nd` with batch dims.
    #[inline]
    pub(super) fn check_scatter(self) -> Result<(), ScatterError> {
        match self {
            Self::Nd { batch_dims: 1.. } => Err(ScatterError::UnsupportedOption {
                option: "batch_dims",
            }),
            _ => Ok(()),
        }
    }

    /// Returns an error if the operator has no gather: `Cache`.
    #[inline]
    pub(super) fn check_gather(self) -> Result<(), ScatterError> {
        match self {
            Self::Cache { .. } => Err(ScatterError::UnsupportedOption { option: "mode" }),
            _ => Ok(()),
        }
    }

    /// Returns the form of a call. The arguments `data` and `updates` are shapes. The arguments
    /// `indices` and `strides` are the shape and the strides of the indices. The argument `updates`
    /// is `None` if the caller makes only a plan or computes a shape.
    #[inline(always)] // The smallest calls would wait for a copy of a returned form.
    pub(crate) fn form(
        self,
        data: &[usize],
        (indices, strides): (&[usize], Option<&[isize]>),
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        // `Form { ..form }` copies the result of `elements` and `cache` field by field. Without
        // this copy, a small call would read the returned form with loads that are wider than the
        // stores that wrote the form. Store forwarding would then fail, which costs 5 ns of a call
        // of 85 ns (on a Xeon, Skylake).
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
                update_len,
            } => Ok(Form {
                ..cache((axis, mode, update_len), data, indices, updates)?
            }),
            Self::Paged => paged(data, indices),
        }
    }

    /// Returns the shape of the updates of a scatter, or of the output of a gather.
    fn other_shape(self, data: &[usize], indices: &[usize]) -> Result<Vec<usize>, ScatterError> {
        let form = self.form(data, (indices, None), None)?;
        copied(&form.updates_shape(data, indices)?)
    }

    /// Returns an error if the operator does not support one of these options.
    #[inline]
    pub(super) fn check_options(
        self,
        rules: IndexRules,
        reducing: Reducing,
    ) -> Result<(), ScatterError> {
        let unsupported = |option| Err(ScatterError::UnsupportedOption { option });
        match self {
            Self::Cache { .. } if reducing.reduction != Reduction::None => unsupported("reduction"),
            // Clamping would move a row to the nearest end, where the row would overwrite another
            // row.
            Self::Cache { .. } if rules.bounds == Bounds::Clamp => unsupported("bounds"),
            _ => Ok(()),
        }
    }
}

/// Returns the axis counted from the front. Returns an error if `axis` is not in `-rank..rank`.
pub(crate) fn resolve_axis(axis: isize, rank: usize) -> Result<usize, ScatterError> {
    let for_rank = if axis < 0 {
        axis.checked_add_unsigned(rank)
    } else {
        Some(axis)
    };
    (for_rank.and_then(|axis| usize::try_from(axis).ok()))
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
            is_one_tuple: list.is_empty(),
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

fn paged(data: &[usize], indices: &[usize]) -> Result<Form, ScatterError> {
    if data.len() < 2 {
        return Err(ScatterError::PagedRank { rank: data.len() });
    }
    Ok(Form {
        batch_rank: 0,
        tuple_len: 2,
        list: (0, indices.len()),
        coordinates: Coordinates::Slots,
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
    // If all other dims of `data` and of the indices have size 1, each index is a complete tuple.
    let is_one_lane = |dim: usize| dim == axis || (shape[dim] == 1 && data[dim] == 1);
    let coordinates = if last - first == 1 && (0..rank).all(is_one_lane) {
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

/// Returns the smallest range of dims that contains `axis` and all dims along which the indices can
/// vary. Along a dim outside the range, the indices have stride 0 or size 1, so one index serves
/// all positions. Without strides, the indices are contiguous. If a size is 0, the range has all
/// dims.
fn varying(shape: &[usize], strides: Option<&[isize]>, axis: usize) -> (usize, usize) {
    let rank = shape.len();
    if shape.contains(&0) {
        return (0, rank);
    }
    let moves = |dim: usize| strides.is_none_or(|strides| strides[dim] != 0);
    let varies = |&dim: &usize| dim == axis || (shape[dim] != 1 && moves(dim));
    let first = (0..=axis).find(varies).unwrap_or(axis);
    let last = (axis..rank).rfind(varies).unwrap_or(axis);
    (first, last + 1)
}

#[inline(never)]
fn cache(
    (axis, mode, update_len): (isize, CacheMode, usize),
    data: &[usize],
    indices: &[usize],
    updates: Option<&[usize]>,
) -> Result<Form, ScatterError> {
    let rank = data.len();
    let axis = if rank < 2 {
        0
    } else {
        resolve_axis(axis, rank)?
    };
    if axis == 0 {
        return Err(ScatterError::BatchAxis { rank });
    }
    let len = match updates {
        None => update_len,
        Some(updates) if updates.len() == rank => updates[axis],
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
