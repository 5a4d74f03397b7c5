//! Moves of rows of arrays onto rows of the same arrays: `move_rows`.
//!
//! This module knows the arguments of a move, and the order in which the arguments are converted.
//! It does not know how an array is read, or how moves run.

use ndscatter::MoveRows;
use pyo3::intern;
use pyo3::prelude::*;

use crate::array::{Array, Source, note_written};
use crate::docs::docs;
use crate::failure::{Failure, collect, foreign, optional_integer};
use crate::operands;
use crate::options::choose;
use crate::threads::{execution, run};

/// Move rows of arrays onto rows of the same arrays, in place, as if all rows were read first.
///
/// Row ``dst[i]`` of every array gets the old row ``src[i]``. A row may be both a source and a
/// destination. If several moves have one destination, the last of them stays. One call moves the
/// same rows of several arrays, for example of the keys and values of all layers of a model.
///
/// Args:
///     tensors: an array, or a sequence of arrays of any element types, shapes and strides. All
///         have the same number of rows, and share no memory.
///     src: integers of any integer type and any shape: the numbers of the rows to read.
///     dst: integers of the shape of `src`: the numbers of the rows to write.
///     axis: the axis of the rows. A negative axis counts from the end. None: the rows are the slots
///         of paged caches, as in `write_paged`.
///     bounds: treatment of a row number that is out of bounds: ``"error"`` raises an IndexError, and
///         ``"skip"`` drops the move. ``"skip negative"`` drops the move of a negative row number,
///         and raises an IndexError for a row number that is too large.
///     duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two moves have the same
///         destination.
#[doc = docs!("threads")]
///
/// Raises:
///     IndexError: a row number is out of bounds.
///     TypeError: row numbers are not integers, the elements of an array are references, or an
///         argument is a masked array.
///     ValueError: a shape or an option is wrong, two arrays share memory, or an array is read-only
///         or may be read-only.
///     MemoryError: an allocation failed.
///
/// After each of these errors, the arrays are unchanged. The rule is that of torch's
/// ``cache[dst] = cache[src]`` and of the ``reorder_cache`` of transformers.
///
/// >>> import numpy as np, ndscatter
/// >>> beams = np.array([[1, 1], [2, 2], [3, 3]])
/// >>> ndscatter.move_rows(beams, [2, 0, 0], [0, 1, 2])
/// >>> beams
/// array([[3, 3],
///        [1, 1],
///        [1, 1]])
#[pyfunction]
#[pyo3(signature = (
    tensors, src, dst, *, axis=Some(0), bounds="error", duplicates="allow", threads=None,
), text_signature = "(tensors, src, dst, *, axis=0, bounds='error', duplicates='allow', \
        threads=None)")]
pub(crate) fn move_rows<'py>(
    tensors: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
    dst: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = optional_integer)] axis: Option<isize>,
    bounds: &str,
    duplicates: &str,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<()> {
    let py = tensors.py();
    let moves = axis.map_or_else(MoveRows::paged, MoveRows::along);
    let moves = moves
        .bounds(choose("bounds", bounds)?)
        .duplicates(choose("duplicates", duplicates)?)
        .execution(execution(threads)?);
    let sources = written(tensors)?;
    let (from, to) = (Source::of(src)?, Source::of(dst)?);
    let (from, to) = (operands::indices(from)?, operands::indices(to)?);
    let read = |source: Source<'py>| operands::in_place(source.read()?);
    let arrays = collect(sources.into_iter().map(read))?;
    let views = collect(arrays.iter().map(Array::view_mut))?;
    let elements = arrays.iter().map(Array::len);
    let elements = elements.fold(0, usize::saturating_add);
    let (from, to) = (from.view()?, to.view()?);
    run(py, elements, || moves.in_place(views, from, to))?.map_err(Failure)?;
    arrays.iter().try_for_each(note_written)
}

/// Converts the argument `tensors`, which is an array or a sequence of arrays.
fn written<'py>(tensors: &Bound<'py, PyAny>) -> PyResult<Vec<Source<'py>>> {
    let py = tensors.py();
    let is_array = tensors.hasattr(intern!(py, "__dlpack__"));
    if is_array.map_err(|error| foreign(py, error))? {
        return collect([Source::of_written("tensors", tensors)].into_iter());
    }
    let each = |item: PyResult<Bound<'py, PyAny>>| {
        let item = item.map_err(|error| foreign(py, error))?;
        Source::of_written("tensors", &item)
    };
    let items = tensors.try_iter().map_err(|error| foreign(py, error))?;
    collect(items.map(each))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(move_rows, module)?)
}
