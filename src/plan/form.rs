//! The one form that operators are lowered to.
//!
//! Knows which axis plays which part, and the shapes that follow from it.
//! Knows nothing of the values of indices.

use std::ops::Range;

use crate::error::ScatterError;
use crate::memory::{copied, joined};
use crate::operand::Dims;
use crate::reduction::CacheMode;

/// The one form that operators are lowered to.
///
/// The indexed tensor ("output" here; where it is only read, the data) has its
/// axes in three parts: the first `batch_rank` are repetitions, the next
/// `tuple_len` are addressed by the tuples, the rest is the window. The dims
/// `list` of `indices` make the list of tuples. The other side ("updates"; where
/// it is written, the result) has the batch dims, then the dims of the list,
/// then the window dims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) batch_rank: usize,
    pub(crate) tuple_len: usize,
    /// First dim of the list of tuples in `indices`, and the one after its last.
    pub(crate) list: (usize, usize),
    pub(crate) coordinates: Coordinates,
}

/// Where the coordinates of a tuple come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coordinates {
    /// The first `implied` are the tuple's position along the first dims of
    /// the list; the last dim of `indices`, if there is one beyond the list,
    /// holds the others.
    Explicit { implied: usize },
    /// `indices` has the coordinate of tuple axis `axis` alone; the others are
    /// the tuple's position in the list. `indices` has a dim for every axis of
    /// the output, and batch and window reach as far as its dims do.
    Placed { axis: usize },
    /// Rows that follow one another along `axis`, the last that tuples address,
    /// from a start that `indices` has for each position on axis 0; between the
    /// two, tuples are implied. `list` says nothing here.
    Sequences {
        axis: usize,
        len: usize,
        mode: CacheMode,
    },
}

impl Form {
    /// The shape of the list of tuples.
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

    /// The shape of the other side, of updates and of what a gather writes, in
    /// parts one behind the other.
    #[inline(always)] // As all that is on the way of the smallest calls.
    fn updates_parts<'a>(&'a self, output: &'a [usize], indices: &'a [usize]) -> [&'a [usize]; 3] {
        match &self.coordinates {
            Coordinates::Placed { .. } => [indices, &[], &[]],
            Coordinates::Sequences { axis, len, .. } => {
                let rest = &output[axis + 1..];
                [&output[..*axis], std::slice::from_ref(len), rest]
            }
            Coordinates::Explicit { .. } => {
                let (batch, rest) = output.split_at(self.batch_rank);
                let list = &indices[self.list.0..self.list.1];
                [batch, list, &rest[self.tuple_len..]]
            }
        }
    }

    /// The shape of the other side.
    pub(crate) fn updates_shape(
        &self,
        output: &[usize],
        indices: &[usize],
    ) -> Result<Dims<usize>, ScatterError> {
        let parts = self.updates_parts(output, indices);
        let rank = parts.iter().map(|part| part.len()).sum();
        Dims::collect(rank, parts.into_iter().flatten().copied())
    }

    /// Whether the other side has this shape.
    #[inline]
    pub(crate) fn is_updates_shape(
        &self,
        output: &[usize],
        indices: &[usize],
        actual: &[usize],
    ) -> bool {
        is_joined(self.updates_parts(output, indices), actual)
    }

    /// How far repetitions and window reach along each axis of the output.
    pub(crate) fn reach<'a>(&self, output: &'a [usize], indices: &'a [usize]) -> &'a [usize] {
        match self.coordinates {
            Coordinates::Placed { .. } => indices,
            _ => output,
        }
    }

    /// Whether repetitions or windows have no elements, so that any number of
    /// tuples moves nothing.
    pub(crate) fn moves_nothing(&self, output: &[usize], indices: &[usize]) -> bool {
        if matches!(self.coordinates, Coordinates::Sequences { .. }) {
            return output.contains(&0);
        }
        let reach = self.reach(output, indices);
        let window = &reach[self.batch_rank + self.tuple_len..];
        reach[..self.batch_rank].contains(&0) || window.contains(&0)
    }

    /// Number of positions in `indices` that one tuple stands for: a tuple is
    /// named by the first of them.
    pub(crate) fn indices_each(&self, indices: &[usize]) -> usize {
        match self.coordinates {
            Coordinates::Placed { .. } => indices[self.list.1..].iter().product(),
            _ => 1,
        }
    }

    /// The form that has the dims of the list after the one that is read in
    /// its window, where there are any: right if the indices repeat there.
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

    /// The tuple axes whose coordinates are read, one behind the other.
    pub(crate) fn read(&self) -> Range<usize> {
        match self.coordinates {
            Coordinates::Explicit { implied } => implied..self.tuple_len,
            Coordinates::Placed { axis } => axis..axis + 1,
            Coordinates::Sequences { .. } => 0..0,
        }
    }

    /// Whether the position along a dim of the list is the coordinate of the same
    /// tuple axis.
    pub(crate) fn is_implied(&self, dim: usize) -> bool {
        match self.coordinates {
            Coordinates::Explicit { implied } => dim < implied,
            _ => !self.read().contains(&dim),
        }
    }

    /// The axes of the output that tuples address.
    #[inline(always)]
    pub(crate) fn indexed(&self) -> Range<usize> {
        self.batch_rank..self.batch_rank + self.tuple_len
    }

    /// How many tuples are one to the caller, who gives a position for all that
    /// lies between a sequence and the axis of its positions.
    pub(crate) fn tuples_each(&self, output: &[usize]) -> usize {
        match self.coordinates {
            Coordinates::Sequences { axis, .. } => output[1..axis].iter().product(),
            _ => 1,
        }
    }

    /// Dims of the list whose position is a coordinate before any that is
    /// read: tuples that differ there have different destinations.
    pub(crate) fn leading(&self) -> usize {
        match self.coordinates {
            Coordinates::Explicit { implied } => implied,
            Coordinates::Placed { axis } => axis,
            Coordinates::Sequences { axis, .. } => axis + 1,
        }
    }

    /// The coordinates of a list that holds them all.
    pub(crate) const ALL_EXPLICIT: Coordinates = Coordinates::Explicit { implied: 0 };

    /// Refuses updates of another shape than data and indices ask for.
    #[inline(always)]
    pub(crate) fn check_updates(
        &self,
        output: &[usize],
        indices: &[usize],
        updates: &[usize],
    ) -> Result<(), ScatterError> {
        check_shape(self.updates_parts(output, indices), updates)
    }
}

/// Where a single element is expected without any dim, one of any rank will
/// do: runtimes write scalars as `[1]`.
#[inline(always)]
pub(super) fn check_shape(expected: [&[usize]; 3], actual: &[usize]) -> Result<(), ScatterError> {
    if is_joined(expected, actual) {
        return Ok(());
    }
    if expected.iter().all(|dims| dims.is_empty()) && actual.iter().all(|&size| size == 1) {
        return Ok(());
    }
    Err(other_updates(expected, actual))
}

/// Whether a shape is that of these parts, one behind the other.
#[inline(always)]
fn is_joined(parts: [&[usize]; 3], shape: &[usize]) -> bool {
    let mut rest = Some(shape);
    for dims in parts {
        rest = rest.and_then(|rest| strip_prefix(rest, dims));
    }
    rest.is_some_and(<[usize]>::is_empty)
}

/// Whether two shapes are the same.
#[inline]
pub(super) fn is_same(shape: &[usize], other: &[usize]) -> bool {
    is_joined([shape, &[], &[]], other)
}

/// What follows `dims` in `shape`. Shapes are so short that to call the C
/// library's comparison, as slices do, is most of the work.
#[inline(always)]
fn strip_prefix<'a>(shape: &'a [usize], dims: &[usize]) -> Option<&'a [usize]> {
    let (first, rest) = shape.split_at_checked(dims.len())?;
    let mut same = true;
    for (size, expected) in first.iter().zip(dims) {
        same &= size == expected;
    }
    same.then_some(rest)
}

#[cold]
fn other_updates(expected: [&[usize]; 3], actual: &[usize]) -> ScatterError {
    ScatterError::with_facts(|| {
        Ok(ScatterError::UpdatesShape {
            expected: joined(expected)?,
            actual: copied(actual)?,
        })
    })
}
