//! Preparation of the arrays of one call for the crate. The crate does not accept every alignment
//! and byte order of arrays. This module copies arrays that are not accepted, or divides their
//! elements into units. A unit is a part of 1, 2, 4, 8 or 16 bytes. The crate copies units without
//! knowledge of the element type. The indices keep their own integer type.
//!
//! This module knows which arrays may be copied, and which elements may be moved as bytes. This
//! module does not know what a call computes.

use ndscatter::{AnyViewMut, Layout};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::array::{Array, Dims, Source, note_written};
use crate::failure::other_type;

/// Reads the indices of a call. Copies the indices if they are not aligned or not in the machine's
/// byte order.
#[inline]
pub(crate) fn indices(source: Source<'_>) -> PyResult<Array<'_>> {
    let array = source.read()?;
    match array.dtype() {
        Some(_) if !array.is_converted() => Ok(array),
        _ => regular_indices(array),
    }
}

#[cold]
fn regular_indices(array: Array<'_>) -> PyResult<Array<'_>> {
    if array.is_converted() && array.len() == 0 {
        // numpy converts an empty list to an array of floats. An index must be an integer.
        return array.cast_like(&Array::zeros(array_py(&array)?, false, 0)?, "unsafe");
    }
    match (array.dtype(), array.plain()) {
        (None, Some(_)) => array.regular_copy(),
        _ => Ok(array),
    }
}

/// Copies an array that is only read if its elements are not aligned or not in the machine's byte
/// order. Elements without arithmetic stay in place: the crate moves them as bytes.
pub(crate) fn aligned(array: Array<'_>) -> PyResult<Array<'_>> {
    match (array.dtype(), array.plain()) {
        (Some(_), _) => Ok(array),
        (None, Some(_)) => array.regular_copy(),
        (None, None) => as_bytes(array),
    }
}

/// Prepares an array that a call changes in place. If the array has no dtype, the crate moves its
/// elements as bytes.
pub(crate) fn in_place(array: Array<'_>) -> PyResult<Array<'_>> {
    match array.dtype() {
        Some(_) => Ok(array),
        None => as_bytes(array),
    }
}

/// Returns an array whose elements are opaque. Returns an error if an element does not have 1, 2, 4,
/// 8 or 16 bytes, or if a stride is not a multiple of this size.
pub(crate) fn as_bytes(mut array: Array<'_>) -> PyResult<Array<'_>> {
    array.check_movable()?;
    let size = array.size();
    if array.unit() != size {
        return Err(PyTypeError::new_err(format!(
            "elements of {} with these strides are not changed in place; copy the array",
            array.type_name()
        )));
    }
    array.take_as_units(size)?;
    Ok(array)
}

fn array_py<'py>(array: &Array<'py>) -> PyResult<Python<'py>> {
    let object = array
        .object()
        .ok_or_else(|| PyTypeError::new_err("the array has no object"))?;
    Ok(object.py())
}

/// Reads the updates of a call. If the updates are not an array (for example, a list or a number),
/// numpy converts them to an array. This array is then cast to the element type of `data`.
#[inline]
pub(crate) fn updates<'py>(source: Source<'py>, data: &Array<'py>) -> PyResult<Array<'py>> {
    let array = source.read()?;
    match (array.is_converted(), array.len()) {
        // numpy converts an empty list to an array of floats, whatever the element type of `data`.
        (true, 0) => array.cast_like(data, "unsafe"),
        // The crate has no arithmetic for the type of `data`, such as strings or times. All of
        // numpy's casts to this type are allowed.
        (true, _) if data.plain().is_none() => array.cast_like(data, "unsafe"),
        (true, _) => {
            let cast = array.cast_like(data, "same_kind");
            cast.map_err(|error| not_converted(&array, data, error))
        }
        (false, _) => Ok(array),
    }
}

/// Returns the exception for updates that numpy made from a list or a number, and does not cast to
/// the element type of `data`. `error` is numpy's exception.
#[cold]
fn not_converted(updates: &Array<'_>, data: &Array<'_>, error: PyErr) -> PyErr {
    let Some(py) = updates.object().map(Bound::py) else {
        return error;
    };
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let raised = PyTypeError::new_err(format!(
        "`updates` of {} are not converted to {}, the element type of `data`; convert one of them \
         to another type",
        updates.type_name(),
        data.type_name()
    ));
    raised.set_cause(py, Some(error));
    raised
}

/// Reads the argument `out`. Returns an error if `out` is read-only.
pub(crate) fn output(source: Source<'_>) -> PyResult<Array<'_>> {
    let array = source.read()?;
    array.check_writable()?;
    Ok(array)
}

/// The arrays of a call, except for the indices. `updates` is `None` for a gather. `output` is the
/// argument `out`, if the caller passed it.
pub(crate) struct Operands<'py> {
    pub(crate) data: Array<'py>,
    pub(crate) updates: Option<Array<'py>>,
    pub(crate) output: Option<Array<'py>>,
    /// The caller's array `out`, if the call writes to a copy of this array instead. The copy, in
    /// the field `output`, has the byte order and the alignment that the call requires. At the end
    /// of the call, `finish` copies the copy back to the caller's array.
    pub(crate) staged: Option<Array<'py>>,
    /// Number of units per element, and number of bytes per unit. A unit is a part of an element,
    /// which the crate copies without knowledge of the element type. `None` if the call does not
    /// divide elements into several units.
    pub(crate) units: Option<(usize, usize)>,
}

impl<'py> Operands<'py> {
    /// Prepares the arrays of a call. If the crate knows the dtypes of all arrays, and all elements
    /// are aligned and in the machine's byte order, the arrays stay as they are. The argument
    /// `is_moved` is true for a call without a reduction, which copies elements and does not
    /// compute with them.
    #[inline]
    pub(crate) fn new(
        data: Array<'py>,
        updates: Option<Array<'py>>,
        output: Option<Array<'py>>,
        is_moved: bool,
    ) -> PyResult<Self> {
        let operands = Self {
            data,
            updates,
            output,
            staged: None,
            units: None,
        };
        let is_known = |array: &Array<'_>| array.dtype().is_some_and(|dtype| !dtype.is_opaque());
        let are_known = operands.all().all(is_known);
        match are_known {
            true => operands.of_one_type(),
            false if is_moved => operands.moved(),
            false => operands.reduced(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Array<'py>> {
        std::iter::once(&self.data)
            .chain(&self.updates)
            .chain(&self.output)
    }

    /// Returns an error if the updates or `out` do not have the dtype of `data`.
    #[inline]
    fn of_one_type(self) -> PyResult<Self> {
        let others = [("updates", &self.updates), ("out", &self.output)];
        for (name, array) in others {
            if let Some(array) = array
                && array.dtype() != self.data.dtype()
            {
                return Err(wrong_type(array, &self.data, name));
            }
        }
        Ok(self)
    }

    /// Prepares the arrays of a call that computes with elements. Copies each array whose elements
    /// are not aligned or not in the machine's byte order. Returns an error if the crate has no
    /// arithmetic for an element type.
    #[cold]
    fn reduced(mut self) -> PyResult<Self> {
        self.data = computable(self.data)?;
        self.updates = self.updates.map(computable).transpose()?;
        if let Some(output) = self.output.take() {
            self.output = Some(match (output.dtype(), output.plain()) {
                (None, Some(_)) => {
                    let copy = output.regular_copy()?;
                    self.staged = Some(output);
                    copy
                }
                _ => computable(output)?,
            });
        }
        Ok(self)
    }

    /// Prepares the arrays of a call without a reduction. Divides the elements of all arrays into
    /// units of 1, 2, 4, 8 or 16 bytes, which the crate copies without knowledge of the element
    /// type.
    #[cold]
    fn moved(mut self) -> PyResult<Self> {
        if self.data.plain().is_some() && !self.all().all(Array::is_numpy) {
            // Tensors of libraries other than numpy are always in the machine's byte order. The
            // function `reduced` copies each numpy array that is in another byte order to a new
            // array in the machine's byte order. All arrays then have one byte order.
            return self.reduced();
        }
        self.data.check_movable()?;
        if let Some(updates) = self.updates.take() {
            self.updates = Some(same_type(updates, &self.data, "updates")?);
        }
        if let Some(output) = self.output.take() {
            self.output = Some(match output.has_type_of(&self.data) {
                true => output,
                // If only the byte order of `out` is not that of `data`, the call writes to a copy
                // of `out`. Another element type is an error.
                false => {
                    let copy = same_type_copy(&output, &self.data, "out")?;
                    self.staged = Some(output);
                    copy
                }
            });
        }
        let (size, unit) = (self.data.size(), self.all().map(Array::unit).min());
        let unit = unit.unwrap_or(1);
        if size == 0 {
            return Err(PyTypeError::new_err(
                "elements without bytes are not supported",
            ));
        }
        self.data.take_as_units(unit)?;
        for array in self.updates.iter_mut().chain(&mut self.output) {
            array.take_as_units(unit)?;
        }
        self.units = (size != unit).then_some((size / unit, unit));
        Ok(self)
    }

    /// Returns the shape of the caller's array `data`.
    pub(crate) fn shape(&self) -> Dims<usize> {
        self.caller_shape(&self.data).into()
    }

    /// Returns the shape that `array`, which is one of the arrays, has for the caller.
    /// [`Self::new`] may have divided each element into several units (parts of 1 to 16 bytes). All
    /// arrays then have an additional last axis, with one position per unit of an element. The
    /// returned shape does not contain this axis.
    pub(crate) fn caller_shape<'a>(&self, array: &'a Array<'_>) -> &'a [usize] {
        let shape = array.shape();
        &shape[..shape.len() - usize::from(self.units.is_some())]
    }

    /// Allocates a result of shape `shape` if the call has no `out`. Otherwise returns `None`.
    #[inline]
    pub(crate) fn new_result(
        &self,
        py: Python<'py>,
        shape: &[usize],
    ) -> PyResult<Option<Array<'py>>> {
        if self.output.is_some() {
            return Ok(None);
        }
        let mut result = self.data.new_like(py, shape)?;
        if self.data.dtype() != result.dtype() {
            let unit = self.units.map_or(result.size(), |(_, unit)| unit);
            result.take_as_units(unit)?;
        }
        Ok(Some(result))
    }

    /// Returns the view that the call writes to. If there is a new result, the function returns a
    /// view of `result`. If there is no new result, the function returns a view of `out` or of the
    /// copy of `out`.
    #[inline]
    pub(crate) fn target<'a>(&'a self, result: Option<&'a Array<'py>>) -> PyResult<AnyViewMut<'a>> {
        match (result, &self.output) {
            (Some(result), _) => result.view_new(),
            (None, Some(output)) => output.view_mut(),
            (None, None) => Err(no_array()),
        }
    }

    /// Returns the layout of the array that the call writes to.
    pub(crate) fn output_layout(&self) -> PyResult<Layout<'_>> {
        match &self.output {
            Some(output) => output.layout(),
            None => Ok(Layout::contiguous(self.data.shape())),
        }
    }

    /// Checks whether the call writes to `data` itself.
    pub(crate) fn is_in_place(&self) -> bool {
        let output = self.output.as_ref();
        output.is_some_and(|output| output.is_same(&self.data))
    }

    /// Ends a call: returns the Python object for the caller, which is the new result, or `out`. If
    /// the call wrote to a copy of `out`, copies this copy back to `out` first.
    pub(crate) fn finish(self, result: Option<Array<'py>>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(result) = result {
            return result.into_object(&self.data);
        }
        let written = self.output.ok_or_else(no_array)?;
        let output = match self.staged {
            Some(staged) => {
                staged.assign(&written)?;
                staged
            }
            None => written,
        };
        note_written(&output)?;
        output.object().cloned().ok_or_else(no_array)
    }
}

#[cold]
pub(crate) fn no_array() -> PyErr {
    PyRuntimeError::new_err("internal error: an array of the call is missing")
}

fn computable(array: Array<'_>) -> PyResult<Array<'_>> {
    match (array.dtype(), array.plain()) {
        (Some(_), Some(_)) => Ok(array),
        (None, Some(_)) => array.regular_copy(),
        _ => Err(PyTypeError::new_err(format!(
            "a reduction is not defined for elements of {}; use reduction=\"none\", or convert the \
             arrays to another type",
            array.type_name()
        ))),
    }
}

/// Returns `array` with the element type and the byte order of `data`. If only the byte order
/// differs, and the crate has arithmetic for the element type, returns a copy of the numpy array
/// `array`. In all other cases returns an error.
fn same_type<'py>(array: Array<'py>, data: &Array<'py>, name: &str) -> PyResult<Array<'py>> {
    match array.has_type_of(data) {
        true => Ok(array),
        false => same_type_copy(&array, data, name),
    }
}

fn same_type_copy<'py>(array: &Array<'py>, data: &Array<'py>, name: &str) -> PyResult<Array<'py>> {
    if array.plain().is_some() && array.plain() == data.plain() && array.is_numpy() {
        return array.cast_like(data, "equiv");
    }
    Err(wrong_type(array, data, name))
}

#[cold]
fn wrong_type(array: &Array<'_>, data: &Array<'_>, name: &str) -> PyErr {
    let has_astype = array
        .object()
        .is_none_or(|object| object.hasattr("astype").unwrap_or(true));
    let message = other_type(name, array.type_name(), data.type_name(), has_astype);
    PyTypeError::new_err(message)
}
