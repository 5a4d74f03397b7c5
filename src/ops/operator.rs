//! The operator: which axes its tuples address, and which shapes follow.
//!
//! Knows shapes and axes. Knows nothing of verbs, options of one call, or element types.

use crate::error::ScatterError;
use crate::memory::copied;
use crate::plan::{Coordinates, Form, IndexRules};
use crate::reduction::{Bounds, CacheMode, Reducing, Reduction};

/// An operator as a value: which axes of `data` the indices address, and which shapes follow.
///
/// [`Scatter::new`](crate::Scatter::new) and [`Gather::new`](crate::Gather::new) make the
/// scatter and the gather, as [`Scatter::nd`](crate::Scatter::nd) and the other named
/// constructors do. A scatter and its inverse, the gather, have one shape rule: it gives the
/// shape of `updates` of the scatter, and the shape of the output of the gather.
///
/// | operator | shape of `updates`, or of the output of a gather |
/// |---|---|
/// | `Nd` | `indices.shape[..-1] ++ data.shape[batch_dims + k..]`, with `k = indices.shape[-1]` |
/// | `Along` | `data.shape[..axis] ++ indices.shape ++ data.shape[axis + 1..]` |
/// | `Elements` | `indices.shape` |
/// | `Cache` | `data.shape`, but `update_len` along `axis` |
///
/// Axes lie in `-rank..rank`; negative ones count from the end. Where the shape of `updates`
/// is empty, a scatter takes a tensor of one element and any rank.
///
/// The rules are those of ONNX: ScatterND 18 and GatherND 13, Gather 13 (and OpenVINO
/// ScatterUpdate 3), ScatterElements 18 and GatherElements 13, TensorScatter 24.
///
/// # Examples
///
/// ```
/// use ndscatter::{Gather, Operator, Scatter, TensorView};
///
/// // Columns of a matrix: read, and written to another one.
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
    /// Tuples of coordinates along the last dim of `indices`: [`Scatter::nd`](crate::Scatter::nd),
    /// [`Gather::nd`](crate::Gather::nd).
    Nd {
        /// Number of leading dims that data and indices share. Scatters have 0.
        batch_dims: usize,
    },
    /// Indices along one axis, the same for every position before it:
    /// [`Scatter::along`](crate::Scatter::along), [`Gather::along`](crate::Gather::along).
    Along {
        /// The axis.
        axis: isize,
    },
    /// An index for each element, which replaces its position along one axis:
    /// [`Scatter::elements`](crate::Scatter::elements),
    /// [`Gather::elements`](crate::Gather::elements).
    Elements {
        /// The axis.
        axis: isize,
    },
    /// Rows that follow one another along an axis, for each position of axis 0:
    /// [`Scatter::cache`](crate::Scatter::cache). There is no gather.
    Cache {
        /// The axis of positions.
        axis: isize,
        /// How the end of the axis is written.
        mode: CacheMode,
        /// Length of the updates along the axis, for plans and for
        /// [`updates_shape`](Self::updates_shape). Verbs see it in the updates.
        update_len: usize,
    },
}

/// For callers.
impl Operator {
    /// The shape of the scatter's updates for data and indices of these shapes.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for batch dims, which no scatter has; any
    /// [`ScatterError`] about these shapes.
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

    /// The shape of the gather's output for data and indices of these shapes.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedOption`] for a cache, which has no gather; any
    /// [`ScatterError`] about these shapes.
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

    /// The same operator for data of this rank, with its axis counted from the front: the axis
    /// then means the same for data with more axes behind.
    ///
    /// # Errors
    ///
    /// [`ScatterError::AxisOutOfRange`].
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
            Self::Nd { .. } => {}
            Self::Along { axis } | Self::Elements { axis } | Self::Cache { axis, .. } => {
                *axis = resolve_axis(*axis, rank)?.cast_signed();
            }
        }
        Ok(self)
    }

    /// The same operator for updates of this shape: `update_len` of a [`Cache`](Self::Cache)
    /// becomes their length along the axis. Where updates have no such axis, it becomes 0, and
    /// the verbs refuse the updates.
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

/// For the verbs.
impl Operator {
    /// Refuses operators that have no scatter.
    #[inline]
    pub(super) fn check_scatter(self) -> Result<(), ScatterError> {
        match self {
            Self::Nd { batch_dims: 1.. } => Err(ScatterError::UnsupportedOption {
                option: "batch_dims",
            }),
            _ => Ok(()),
        }
    }

    /// Refuses operators that have no gather.
    #[inline]
    pub(super) fn check_gather(self) -> Result<(), ScatterError> {
        match self {
            Self::Cache { .. } => Err(ScatterError::UnsupportedOption { option: "mode" }),
            _ => Ok(()),
        }
    }

    /// What the shapes mean, and the strides of indices, if they have any.
    /// `updates` is not known to a plan.
    #[inline(always)] // Into the smallest calls, which would wait for a copy of it.
    pub(super) fn form(
        self,
        data: &[usize],
        (indices, strides): (&[usize], Option<&[isize]>),
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        // Forms that functions return are built again from their fields. A returned form
        // and the form of a small call share stack memory. The small call would load wider
        // pieces than were stored, and store forwarding would fail (5 ns of 85 on a Xeon,
        // Skylake).
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
        }
    }

    /// The shape of updates, or of what a gather writes, for shapes alone.
    fn other_shape(self, data: &[usize], indices: &[usize]) -> Result<Vec<usize>, ScatterError> {
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
    let origin = if axis < 0 { rank } else { 0 };
    let from_front = origin.checked_add_signed(axis);
    (from_front.filter(|&axis| axis < rank)).ok_or(ScatterError::AxisOutOfRange { axis, rank })
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
