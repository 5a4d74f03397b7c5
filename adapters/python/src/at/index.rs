//! Indices of `np.ufunc.at` that a kernel supports.
//!
//! Kernels support integers, arrays of integers, tuples of such arrays, masks, and one array next
//! to full slices (`a[:, i]`). This module detects all other indices, and `_at.py` handles them.

use ndscatter::DType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySlice, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{Array, Dims, Source, array_type, is_exactly};
use crate::operands;
use crate::threads::pool;
use crate::tuples::{self, Lines, Tuples};

/// Indices of a kernel.
pub(super) enum Index<'py> {
    Array(Array<'py>),
    /// Positions along the first axis, and the shape of the indices.
    Positions(SmallVec<[i64; 16]>, Dims<usize>),
}

/// Indices that were read. The indexed array may still change before the indices are used.
pub(super) enum Listed<'py> {
    /// The number of an axis, and an array of positions along this axis.
    Along(usize, Array<'py>),
    /// One position along the first axis.
    One(i64),
    /// Coordinates along the first axes, in arrays of one shape.
    Tuples(Vec<Array<'py>>),
}

impl<'py> Listed<'py> {
    /// Reads the indices of the array `a`. Returns `None` if the kernels do not support these
    /// indices. May run Python code, which may change `a`.
    pub(super) fn read(indices: &Bound<'py, PyAny>, a: &Array<'py>) -> PyResult<Option<Self>> {
        if a.rank() == 0 {
            return Ok(None);
        }
        if let Some(array) = integers(indices) {
            return Ok(Some(Self::Along(0, array)));
        }
        if is_exactly::<PyInt>(indices) {
            return Ok(indices.extract().ok().map(Self::One));
        }
        if is_exactly::<PyList>(indices) {
            // A list may be ragged or contain other objects. Only numpy can convert it.
            let array = Source::of(indices).and_then(operands::indices).ok();
            return Ok(array.filter(is_index).map(|array| Self::Along(0, array)));
        }
        if let Some(places) = places_of_mask(indices, a)? {
            return Ok(tuples(&places));
        }
        match indices.cast::<PyTuple>() {
            Ok(parts) => Ok(tuples(parts).or_else(|| beside_slices(parts, a.rank()))),
            // A tensor of another library.
            Err(_) => {
                let array = lent(indices)?.filter(is_index);
                Ok(array.map(|array| Self::Along(0, array)))
            }
        }
    }

    /// Returns the number of the indexed axis, and the positions along this axis for a kernel. If
    /// the indices are tuples of coordinates, merges the indexed axes of `a` into one. Returns
    /// `None` if a kernel cannot run the call. Runs no Python code of the caller.
    pub(super) fn place(
        self,
        a: &mut Array<'py>,
        threads: Option<isize>,
    ) -> PyResult<Option<(usize, Index<'py>)>> {
        let (axis, index) = match self {
            Self::Along(axis, array) => (axis, Some(Index::Array(array))),
            Self::One(index) => (0, Some(Index::Positions(smallvec![index], Dims::new()))),
            Self::Tuples(arrays) => (0, positions(&arrays, a, threads)?),
        };
        Ok(index.filter(|_| axis < a.rank()).map(|index| (axis, index)))
    }
}

/// Reads a tuple of integer arrays of one shape: one array per axis, from the first axis on.
fn tuples<'py>(parts: &Bound<'py, PyTuple>) -> Option<Listed<'py>> {
    let mut arrays = Vec::new();
    for part in parts.iter_borrowed() {
        let array = integers(&part)?;
        let first = arrays.first();
        if first.is_some_and(|first: &Array<'_>| first.shape() != array.shape()) {
            return None;
        }
        arrays.push(array);
    }
    match arrays.len() {
        0 => None,
        1 => arrays.pop().map(|array| Listed::Along(0, array)),
        _ => Some(Listed::Tuples(arrays)),
    }
}

/// Returns the coordinates at which a mask of the first axes of `a` is true, as a tuple of arrays.
///
/// Calls `nonzero` of numpy's own array type, as a subclass may replace the method.
fn places_of_mask<'py>(
    indices: &Bound<'py, PyAny>,
    a: &Array<'py>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let mask = Array::of_numpy(indices).filter(|mask| mask.dtype() == Some(DType::Bool));
    let fits = mask.is_some_and(|mask| mask.rank() > 0 && a.shape().starts_with(mask.shape()));
    if !fits {
        return Ok(None);
    }
    let py = indices.py();
    let places = array_type(py).call_method1(intern!(py, "nonzero"), (indices,))?;
    Ok(Some(places.cast_into()?))
}

/// Reads a tuple of one integer array and full slices.
fn beside_slices<'py>(parts: &Bound<'py, PyTuple>, rank: usize) -> Option<Listed<'py>> {
    let (mut found, mut has_ellipsis, mut axis) = (None, false, 0);
    for part in parts.iter_borrowed() {
        if part.is(parts.py().Ellipsis()) {
            // An ellipsis stands for all axes without a part. numpy raises the error for a second
            // one.
            if std::mem::replace(&mut has_ellipsis, true) {
                return None;
            }
            axis += (rank + 1).checked_sub(parts.len())?;
        } else if is_full(&part) {
            axis += 1;
        } else {
            let array = integers(&part).filter(|_| found.is_none())?;
            found = Some((axis, array));
            axis += 1;
        }
    }
    let found = found.filter(|_| axis <= rank);
    found.map(|(axis, array)| Listed::Along(axis, array))
}

/// Checks whether a part of an index is `:`.
fn is_full(part: &Bound<'_, PyAny>) -> bool {
    let py = part.py();
    let is_none = |name| part.getattr(name).is_ok_and(|bound| bound.is_none());
    part.is_instance_of::<PySlice>()
        && is_none(intern!(py, "start"))
        && is_none(intern!(py, "stop"))
        && is_none(intern!(py, "step"))
}

/// Converts tuples to positions along the merged first axes of `a`.
///
/// Returns `None` if `a` is not contiguous, or if an index is out of bounds. `_at.py` handles these
/// calls.
fn positions<'py>(
    arrays: &[Array<'py>],
    a: &mut Array<'py>,
    threads: Option<isize>,
) -> PyResult<Option<Index<'py>>> {
    let Some(sizes) = a
        .shape()
        .get(..arrays.len())
        .filter(|sizes| !sizes.is_empty())
    else {
        return Ok(None);
    };
    if !a.is_contiguous() {
        return Ok(None);
    }
    let lines: Option<Lines> = arrays.iter().map(Array::line).collect();
    let Some((lines, first)) = lines.zip(arrays.first()) else {
        return Ok(None);
    };
    let tuples = Tuples {
        width: first.len(),
        row: &|_| lines.clone(),
    };
    let Some(py) = a.object().map(Bound::py) else {
        return Ok(None);
    };
    let mut are_inside = true;
    let found = Array::filled(py, first.len(), |to| {
        are_inside = tuples::positions(tuples, sizes, pool(threads), to);
        Ok(())
    })?;
    let fits = are_inside && a.merge_first(arrays.len());
    Ok(fits.then(|| Index::Array(found.in_shape(first.shape()))))
}

/// Reads an array of integers, aligned and in the machine's byte order.
fn integers<'py>(object: &Bound<'py, PyAny>) -> Option<Array<'py>> {
    Array::of_numpy(object).filter(is_index)
}

fn is_index(array: &Array<'_>) -> bool {
    array.dtype().is_some_and(DType::is_index)
}

/// Reads a tensor of another library.
fn lent<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Array<'py>>> {
    let is_none = object.is_none() || object.is_instance_of::<PySlice>();
    if is_none || object.is(object.py().Ellipsis()) {
        return Ok(None);
    }
    Source::of_array(object)?.map(Source::read).transpose()
}
