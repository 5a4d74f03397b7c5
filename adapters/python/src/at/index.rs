//! Conversion of the argument `indices` of `np.ufunc.at` for a kernel.
//!
//! Kernels support an integer, an array of integers, a tuple of integer arrays of the same shape, a
//! mask, and one integer array next to full slices (`a[:, i]`). For all other indices, this module
//! returns `None`, and the Python file `_at.py` runs the call.

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
    /// Positions along the first axis of `a`, and the shape of the array of these positions.
    Positions(SmallVec<[i64; 16]>, Dims<usize>),
}

/// Indices that were read from a Python object. Python code of the caller may still change the
/// indexed array before [`Listed::place`] uses the indices.
pub(super) enum Listed<'py> {
    /// The number of the indexed axis, and an array of positions along this axis.
    Along(usize, Array<'py>),
    /// One position along the first axis.
    One(i64),
    /// One array of coordinates per axis, for two or more axes from the first axis on. All arrays
    /// have the same shape.
    Tuples(Vec<Array<'py>>),
}

impl<'py> Listed<'py> {
    /// Reads the argument `indices`, which indexes the array `a`. Returns `None` if the kernels do
    /// not support these indices. This function may run Python code of the caller, which may change
    /// `a`.
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
            // A list may be ragged, or may contain objects that are not integers. numpy's own
            // conversion decides whether the list is an array of integers.
            let array = Source::of(indices).and_then(operands::indices).ok();
            return Ok(array.filter(is_index).map(|array| Self::Along(0, array)));
        }
        if let Some(places) = places_of_mask(indices, a)? {
            return Ok(tuples(&places));
        }
        match indices.cast::<PyTuple>() {
            Ok(parts) => Ok(tuples(parts).or_else(|| beside_slices(parts, a.rank()))),
            // The object may be a tensor of a library other than numpy.
            Err(_) => {
                let array = lent(indices)?.filter(is_index);
                Ok(array.map(|array| Self::Along(0, array)))
            }
        }
    }

    /// Returns the number of the indexed axis of `a`, and the positions along this axis for a
    /// kernel. If the indices are tuples of coordinates, this function merges the indexed axes of
    /// `a` into one axis, and returns positions along the merged axis. Returns `None` if a kernel
    /// cannot run the call. This function runs no Python code of the caller.
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

/// Reads a tuple of integer arrays: one array per axis, from the first axis on. Returns `None` if
/// the tuple is empty, if a part is not an integer array, or if the shapes of the arrays differ.
fn tuples<'py>(parts: &Bound<'py, PyTuple>) -> Option<Listed<'py>> {
    let mut arrays = Vec::new();
    for part in parts.iter_borrowed() {
        let array = integers(&part)?;
        let first = arrays.first();
        if first.is_some_and(|first: &Array<'_>| first.shape() != array.shape()) {
            return None;
        }
        // Without memory for the list, numpy's own loop runs the call.
        arrays.try_reserve(1).ok()?;
        arrays.push(array);
    }
    match arrays.len() {
        0 => None,
        1 => arrays.pop().map(|array| Listed::Along(0, array)),
        _ => Some(Listed::Tuples(arrays)),
    }
}

/// Returns the coordinates at which a mask is true, as a tuple with one array per axis of the mask.
/// Returns `None` if `indices` is not an array of booleans whose shape is that of the first axes of
/// `a`.
///
/// A subclass of numpy's array type may replace the method `nonzero`. This function calls `nonzero`
/// of numpy's own array type.
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

/// Reads a tuple that contains one integer array. All other parts of the tuple are full slices
/// (`:`), or one ellipsis (`...`). Returns `None` for any other tuple.
fn beside_slices<'py>(parts: &Bound<'py, PyTuple>, rank: usize) -> Option<Listed<'py>> {
    let (mut found, mut has_ellipsis, mut axis) = (None, false, 0);
    for part in parts.iter_borrowed() {
        if part.is(parts.py().Ellipsis()) {
            // An ellipsis stands for all axes that have no part in the tuple. A second ellipsis is
            // an error, which numpy raises.
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

/// Checks whether a part of an index tuple is the full slice `:`.
fn is_full(part: &Bound<'_, PyAny>) -> bool {
    let py = part.py();
    let is_none = |name| part.getattr(name).is_ok_and(|bound| bound.is_none());
    part.is_instance_of::<PySlice>()
        && is_none(intern!(py, "start"))
        && is_none(intern!(py, "stop"))
        && is_none(intern!(py, "step"))
}

/// Converts tuples of coordinates to positions along one axis, into which the first axes of `a` are
/// merged. `arrays` contains one array of coordinates per merged axis.
///
/// Returns `None` in these cases, in which `_at.py` runs the call:
///
/// - There are more arrays of coordinates than axes of `a`.
/// - `a` is not contiguous.
/// - An array of coordinates has more than one axis and is not contiguous.
/// - A coordinate is out of bounds.
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
        are_inside = tuples::positions(tuples, sizes, &pool(threads), to);
        Ok(())
    })?;
    let fits = are_inside && a.merge_first(arrays.len());
    Ok(fits.then(|| Index::Array(found.in_shape(first.shape()))))
}

/// Reads a numpy array of integers. Returns `None` for any other object, and if the elements are
/// not aligned or not in the machine's byte order.
fn integers<'py>(object: &Bound<'py, PyAny>) -> Option<Array<'py>> {
    Array::of_numpy(object).filter(is_index)
}

fn is_index(array: &Array<'_>) -> bool {
    array.dtype().is_some_and(DType::is_index)
}

/// Reads a tensor of a library other than numpy. Returns `None` for None, a slice, an ellipsis, and
/// any object that is not an array.
fn lent<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Array<'py>>> {
    let is_none = object.is_none() || object.is_instance_of::<PySlice>();
    if is_none || object.is(object.py().Ellipsis()) {
        return Ok(None);
    }
    Source::of_array(object)?.map(Source::read).transpose()
}
