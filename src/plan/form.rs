//! The common form that all operators are lowered to.
//!
//! This module knows the role of each axis and the shapes that follow from these roles. This module
//! does not know the values of indices.

use std::ops::Range;

use crate::error::ScatterError;
use crate::memory::{copied, joined};
use crate::operand::Dims;
use crate::reduction::CacheMode;

/// The common form that all operators are lowered to.
///
/// A form describes two tensors. The first tensor is the output of a scatter or the data of a
/// gather: tuples address its slices. This module calls the first tensor "output". The axes of the
/// output have three parts:
///
/// - The first `batch_rank` axes are the axes of the repetitions.
/// - The next `tuple_len` axes are the axes that tuples address.
/// - The remaining axes are the axes of the window.
///
/// The second tensor is the updates of a scatter or the result of a gather. This module calls the
/// second tensor "updates". The shape of the updates consists of the batch dims, then the dims of
/// the list of tuples, then the window dims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Number of leading axes of the output that are repetitions.
    pub(crate) batch_rank: usize,
    /// Number of axes of the output that tuples address.
    pub(crate) tuple_len: usize,
    /// Range of the dims of `indices` that form the list of tuples: the first of these dims, and
    /// one past the last of these dims.
    pub(crate) list: (usize, usize),
    /// Source of the coordinates of tuples.
    pub(crate) coordinates: Coordinates,
}

/// Source of the coordinates of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coordinates {
    /// The first `implied` coordinates of a tuple are its positions along the first `implied` dims
    /// of the list. All other coordinates are read from `indices`. If the last dim of `indices` is
    /// not a part of the list, the coordinates to read are stored along this last dim. If the last
    /// dim is a part of the list, at most one coordinate per tuple is read.
    Explicit { implied: usize },
    /// Slots: each index is the row-major number of a position on the two tuple axes (in a paged
    /// cache, the blocks and the rows of a block). Batch axes do not exist.
    Slots,
    /// The coordinate of tuple axis `axis` is read from `indices`. The coordinate of any other
    /// tuple axis is the position of the tuple along the same dim of the list. `indices` has one
    /// dim for each axis of the output. The dims of `indices` for batch axes and window axes give
    /// the number of repetitions and the size of a window.
    Placed { axis: usize },
    /// Sequences of `len` consecutive rows along `axis` of a cache. The axis `axis` is the last
    /// axis that tuples address. The tensor `indices` holds the position on `axis` of the first row
    /// of each sequence. There is one sequence for each position on axis 0. The coordinates on all
    /// axes before `axis` are the positions of the tuple along the dims of the list. The field
    /// `list` of the form is not used.
    Sequences {
        axis: usize,
        len: usize,
        mode: CacheMode,
    },
}

impl Form {
    /// Returns the shape of the list of tuples.
    pub(crate) fn tuple_shape(
        &self,
        output: &[usize],
        indices: &[usize],
    ) -> Result<Dims<usize>, ScatterError> {
        match self.coordinates {
            Coordinates::Sequences { axis, len, .. } => {
                let sizes = output[..axis].iter().copied();
                Dims::collect(axis + 1, sizes.chain([len]))
            }
            _ => Dims::copied(&indices[self.list.0..self.list.1]),
        }
    }

    /// Returns up to three parts of the shape of updates. The shape is the concatenation of the
    /// parts.
    #[inline(always)] // On the path of the smallest calls.
    fn updates_parts<'a>(&'a self, output: &'a [usize], indices: &'a [usize]) -> [&'a [usize]; 3] {
        match &self.coordinates {
            Coordinates::Placed { .. } => [indices, &[], &[]],
            Coordinates::Sequences { axis, len, .. } => {
                let rest = &output[axis + 1..];
                [&output[..*axis], std::slice::from_ref(len), rest]
            }
            Coordinates::Explicit { .. } | Coordinates::Slots => {
                let (batch, rest) = output.split_at(self.batch_rank);
                let list = &indices[self.list.0..self.list.1];
                [batch, list, &rest[self.tuple_len..]]
            }
        }
    }

    /// Returns the shape of updates.
    pub(crate) fn updates_shape(
        &self,
        output: &[usize],
        indices: &[usize],
    ) -> Result<Dims<usize>, ScatterError> {
        let parts = self.updates_parts(output, indices);
        let rank = parts.iter().map(|part| part.len()).sum();
        Dims::collect(rank, parts.into_iter().flatten().copied())
    }

    /// Whether `actual` is the shape of updates.
    #[inline]
    pub(crate) fn is_updates_shape(
        &self,
        output: &[usize],
        indices: &[usize],
        actual: &[usize],
    ) -> bool {
        is_joined(self.updates_parts(output, indices), actual)
    }

    /// Returns one size for each axis of the output. Along a batch axis, the size is the number of
    /// repetitions. Along a window axis, the size is the length of a window. The result is the
    /// shape `output`, except for [`Coordinates::Placed`]. For [`Coordinates::Placed`], the result
    /// is the shape of the indices, which can be smaller.
    pub(crate) fn reach<'a>(&self, output: &'a [usize], indices: &'a [usize]) -> &'a [usize] {
        match self.coordinates {
            Coordinates::Placed { .. } => indices,
            _ => output,
        }
    }

    /// Whether the number of repetitions or the size of a window is 0, so that no tuple moves an
    /// element. For [`Coordinates::Sequences`]: whether the output has no elements.
    pub(crate) fn moves_nothing(&self, output: &[usize], indices: &[usize]) -> bool {
        if matches!(self.coordinates, Coordinates::Sequences { .. }) {
            return output.contains(&0);
        }
        let reach = self.reach(output, indices);
        let window = &reach[self.batch_rank + self.tuple_len..];
        reach[..self.batch_rank].contains(&0) || window.contains(&0)
    }

    /// Returns the number of consecutive positions in `indices` that one tuple represents. An error
    /// message names a tuple by the first of these positions.
    pub(crate) fn indices_each(&self, indices: &[usize]) -> usize {
        match self.coordinates {
            Coordinates::Placed { .. } => indices[self.list.1..].iter().product(),
            _ => 1,
        }
    }

    /// Returns a form for indices whose values do not vary along the last dims of the list. These
    /// dims are the dims after the dim of the coordinate that is read. The new form makes them a
    /// part of the window. Returns `None` if the list has no such dims, or if the coordinates are
    /// not [`Coordinates::Placed`].
    pub(crate) fn in_rows(&self) -> Option<Self> {
        let Coordinates::Placed { axis } = self.coordinates else {
            return None;
        };
        let end = self.list.0 + axis + 1;
        (end < self.list.1).then_some(Self {
            tuple_len: axis + 1,
            list: (self.list.0, end),
            ..*self
        })
    }

    /// Returns the range of tuple axes whose coordinates are read from `indices`. For
    /// [`Coordinates::Sequences`] and [`Coordinates::Slots`] the range is empty.
    pub(crate) fn read(&self) -> Range<usize> {
        match self.coordinates {
            Coordinates::Explicit { implied } => implied..self.tuple_len,
            Coordinates::Placed { axis } => axis..axis + 1,
            Coordinates::Sequences { .. } | Coordinates::Slots => 0..0,
        }
    }

    /// Whether the position along dim `dim` of the list is the coordinate of tuple axis `dim`. The
    /// result has no meaning for [`Coordinates::Sequences`] and [`Coordinates::Slots`].
    pub(crate) fn is_implied(&self, dim: usize) -> bool {
        match self.coordinates {
            Coordinates::Explicit { implied } => dim < implied,
            _ => !self.read().contains(&dim),
        }
    }

    /// Returns the axes of the output that tuples address.
    #[inline(always)]
    pub(crate) fn indexed(&self) -> Range<usize> {
        self.batch_rank..self.batch_rank + self.tuple_len
    }

    /// Whether windows have the last axis of an output of `rank` axes, whatever the values of the
    /// indices.
    pub(crate) fn has_last_axis_in_window(&self, rank: usize) -> bool {
        let is_placed = matches!(self.coordinates, Coordinates::Placed { .. });
        self.indexed().end < rank && !is_placed
    }

    /// Returns the number of tuples that counts of tuples report as one tuple. The number is 1,
    /// except for [`Coordinates::Sequences`]. In a cache, one start position serves all positions
    /// on the axes between axis 0 and the axis of the rows, so the tuples at these positions count
    /// as one.
    pub(crate) fn tuples_each(&self, output: &[usize]) -> usize {
        match self.coordinates {
            Coordinates::Sequences { axis, .. } => output[1..axis].iter().product(),
            _ => 1,
        }
    }

    /// Returns the number of leading dims of the list that separate destinations: tuples with
    /// different positions along these dims have different destinations, whatever the indices.
    pub(crate) fn leading(&self) -> usize {
        match self.coordinates {
            Coordinates::Explicit { implied } => implied,
            Coordinates::Placed { axis } => axis,
            Coordinates::Sequences { axis, .. } => axis + 1,
            Coordinates::Slots => 0,
        }
    }

    /// Coordinates that are all read from `indices`.
    pub(crate) const ALL_EXPLICIT: Coordinates = Coordinates::Explicit { implied: 0 };

    /// Checks that updates have the shape that data and indices require.
    #[inline(always)]
    pub(crate) fn check_updates(
        &self,
        output: &[usize],
        indices: &[usize],
        updates: &[usize],
    ) -> Result<(), ScatterError> {
        let expected = self.updates_parts(output, indices);
        if fits(expected, updates) {
            return Ok(());
        }
        Err(other_updates(expected, updates, self.one_tuple(indices)))
    }

    /// Returns the number of coordinates of the only tuple if `indices` has rank 1 and its dim holds
    /// the coordinates of this tuple. Returns `None` for all other indices and operators.
    pub(crate) fn one_tuple(&self, indices: &[usize]) -> Option<usize> {
        let is_explicit = matches!(self.coordinates, Coordinates::Explicit { .. });
        let is_one_tuple = is_explicit && indices.len() == 1 && self.list == (0, 0);
        is_one_tuple.then_some(self.tuple_len)
    }
}

/// Whether updates may have the shape `actual` if their required shape is the concatenation of the
/// parts `expected`. If the required shape has rank 0, a tensor of any rank with one element is also
/// accepted, because some runtimes store scalars with the shape `[1]`.
#[inline(always)]
pub(super) fn fits(expected: [&[usize]; 3], actual: &[usize]) -> bool {
    let is_scalar = || expected.iter().all(|dims| dims.is_empty());
    is_joined(expected, actual) || (is_scalar() && actual.iter().all(|&size| size == 1))
}

/// Whether `shape` is the concatenation of these parts.
#[inline(always)]
fn is_joined(parts: [&[usize]; 3], shape: &[usize]) -> bool {
    let mut rest = Some(shape);
    for dims in parts {
        rest = rest.and_then(|rest| strip_prefix(rest, dims));
    }
    rest.is_some_and(<[usize]>::is_empty)
}

/// Whether two shapes are equal.
#[inline]
pub(super) fn is_same(shape: &[usize], other: &[usize]) -> bool {
    is_joined([shape, &[], &[]], other)
}

/// Returns the dims of `shape` after the prefix `dims`. Returns `None` if `shape` does not begin
/// with `dims`. A slice comparison would call `memcmp`. That call costs more than this loop,
/// because shapes are short.
#[inline(always)]
fn strip_prefix<'a>(shape: &'a [usize], dims: &[usize]) -> Option<&'a [usize]> {
    let (first, rest) = shape.split_at_checked(dims.len())?;
    let mut same = true;
    for (size, expected) in first.iter().zip(dims) {
        same &= size == expected;
    }
    same.then_some(rest)
}

/// Returns the error for updates of the shape `actual`. The argument `one_tuple` is the result of
/// [`Form::one_tuple`].
#[cold]
pub(super) fn other_updates(
    expected: [&[usize]; 3],
    actual: &[usize],
    one_tuple: Option<usize>,
) -> ScatterError {
    ScatterError::with_facts(|| {
        Ok(ScatterError::UpdatesShape {
            expected: joined(expected)?,
            actual: copied(actual)?,
            one_tuple,
        })
    })
}
