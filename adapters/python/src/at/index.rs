//! Indices of `np.ufunc.at` that a kernel takes as they are.
//!
//! Knows arrays of integers, tuples of them, and slices that change nothing. Whatever else
//! numpy takes as an index is told apart here and read elsewhere.

use ndscatter::DType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySlice, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{Array, Dims, is_exactly};
use crate::operands;
use crate::threads::pool;
use crate::tuples::{self, Lines, Tuples};

/// Indices as a kernel takes them.
pub(super) enum Index<'py> {
    Array(Array<'py>),
    /// Positions along the first axis, and their shape.
    Positions(SmallVec<[i64; 16]>, Dims<usize>),
}

/// An array of integers, alone or beside full slices, or a tuple of arrays of one shape, and
/// the axis of `a` that it is for. Tuples merge the first axes of `a`.
pub(super) fn index<'py>(
    indices: &Bound<'py, PyAny>,
    a: &mut Array<'py>,
    threads: Option<isize>,
) -> PyResult<Option<(usize, Index<'py>)>> {
    if a.rank() == 0 {
        return Ok(None);
    }
    if let Some(array) = integers(indices) {
        return Ok(Some((0, Index::Array(array))));
    }
    if is_exactly::<PyInt>(indices) {
        let index = indices.extract::<i64>().ok();
        return Ok(index.map(|index| (0, Index::Positions(smallvec![index], Dims::new()))));
    }
    if is_exactly::<PyList>(indices) {
        // Nested ones may be uneven, and lists may have anything in them: numpy's to say.
        let array = operands::indices(indices).ok();
        let array = array.filter(|array| array.dtype().is_some_and(DType::is_index));
        return Ok(array.map(|array| (0, Index::Array(array))));
    }
    if let Some(places) = places_of_mask(indices, a)? {
        return index(&places, a, threads);
    }
    let Ok(parts) = indices.cast::<PyTuple>() else {
        // A tensor of another library.
        let array = lent(indices)?.filter(is_index);
        return Ok(array.map(|array| (0, Index::Array(array))));
    };
    let mut arrays: SmallVec<[Array<'py>; 4]> = SmallVec::new();
    for part in parts.iter_borrowed() {
        match integers(&part) {
            Some(array) if arrays.first().is_none_or(|a| a.shape() == array.shape()) => {
                arrays.push(array);
            }
            _ => return beside_slices(parts, a.rank()),
        }
    }
    Ok(match arrays.len() {
        1 => arrays.pop().map(|array| (0, Index::Array(array))),
        _ => positions(&arrays, a, threads)?.map(|found| (0, found)),
    })
}

/// The places where a mask over the first axes of `a` is true, as a tuple of arrays.
fn places_of_mask<'py>(
    indices: &Bound<'py, PyAny>,
    a: &Array<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mask = Array::of_numpy(indices).filter(|mask| mask.dtype() == Some(DType::Bool));
    let fits = mask.is_some_and(|mask| mask.rank() > 0 && a.shape().starts_with(mask.shape()));
    match fits {
        true => (indices.call_method0(intern!(indices.py(), "nonzero"))).map(Some),
        false => Ok(None),
    }
}

/// The one array of a tuple whose other parts are full slices, and its axis.
fn beside_slices<'py>(
    parts: &Bound<'py, PyTuple>,
    rank: usize,
) -> PyResult<Option<(usize, Index<'py>)>> {
    let mut found = None;
    let mut axis = 0;
    for part in parts.iter_borrowed() {
        if part.is(parts.py().Ellipsis()) {
            // It stands for the axes that the others leave.
            let Some(left) = (rank + 1).checked_sub(parts.len()) else {
                return Ok(None);
            };
            axis += left;
        } else if is_full(&part) {
            axis += 1;
        } else if let Some(array) = integers(&part).filter(|_| found.is_none()) {
            found = Some((axis, array));
            axis += 1;
        } else {
            return Ok(None);
        }
    }
    let found = found.filter(|_| axis <= rank);
    Ok(found.map(|(axis, array)| (axis, Index::Array(array))))
}

/// Whether a part of an index is `:`.
fn is_full(part: &Bound<'_, PyAny>) -> bool {
    let py = part.py();
    let is_none = |name| part.getattr(name).is_ok_and(|bound| bound.is_none());
    part.is_instance_of::<PySlice>()
        && is_none(intern!(py, "start"))
        && is_none(intern!(py, "stop"))
        && is_none(intern!(py, "step"))
}

/// Tuples as positions along the first axes of `a`, taken as one. Where that is not to be
/// had (as `a` is not contiguous, or an index is out of bounds) numpy says what is to be
/// done.
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

/// An array of integers that lie as a kernel needs them.
fn integers<'py>(object: &Bound<'py, PyAny>) -> Option<Array<'py>> {
    Array::of_numpy(object).filter(is_index)
}

fn is_index(array: &Array<'_>) -> bool {
    array.dtype().is_some_and(DType::is_index)
}

/// A tensor of another library.
fn lent<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Array<'py>>> {
    let is_none = object.is_none() || object.is_instance_of::<PySlice>();
    if is_none || object.is(object.py().Ellipsis()) {
        return Ok(None);
    }
    Array::of_array(object)
}
