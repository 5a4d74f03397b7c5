//! Conversion of `data`, the updates and `out` of one call to one element type, in a layout that
//! the crate accepts. The indices keep their own integer type.
//!
//! Knows which arrays may be copied, and which elements may be moved as bytes. Does not know what a
//! call computes.

use ndscatter::AnyViewMut;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::array::{Array, Dims, Source, note_written};

/// Reads the indices of a call. Copies them if their byte order or alignment requires it.
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
        // numpy converts an empty list to floats.
        return array.cast_like(&Array::zeros(array_py(&array)?, false, 0)?, "unsafe");
    }
    match (array.dtype(), array.plain()) {
        (None, Some(_)) => array.regular_copy(),
        _ => Ok(array),
    }
}

fn array_py<'py>(array: &Array<'py>) -> PyResult<Python<'py>> {
    let object = array
        .object()
        .ok_or_else(|| PyTypeError::new_err("the array has no object"))?;
    Ok(object.py())
}

/// Reads the updates of a call. Objects that numpy converted are cast to the type of `data`.
#[inline]
pub(crate) fn updates<'py>(source: Source<'py>, data: &Array<'py>) -> PyResult<Array<'py>> {
    let array = source.read()?;
    match (array.is_converted(), array.len()) {
        // numpy converts an empty list to floats.
        (true, 0) => array.cast_like(data, "unsafe"),
        // Strings and times: numpy's own conversion.
        (true, _) if data.plain().is_none() => array.cast_like(data, "unsafe"),
        (true, _) => array.cast_like(data, "same_kind"),
        (false, _) => Ok(array),
    }
}

/// Reads the argument `out`, which must be writable.
pub(crate) fn output(source: Source<'_>) -> PyResult<Array<'_>> {
    let array = source.read()?;
    array.check_writable()?;
    Ok(array)
}

/// The arrays of a call: `data`, the updates of a scatter, and the argument `out`.
pub(crate) struct Operands<'py> {
    pub(crate) data: Array<'py>,
    pub(crate) updates: Option<Array<'py>>,
    pub(crate) output: Option<Array<'py>>,
    /// The caller's output, if the call writes to a copy (`output`) of another byte order or
    /// alignment. The copy is copied back at the end.
    pub(crate) staged: Option<Array<'py>>,
    /// Units per element, and bytes per unit, if an element is moved as several units.
    pub(crate) units: Option<(usize, usize)>,
}

impl<'py> Operands<'py> {
    /// Converts the three arrays to one element type. `is_moved`: whether the call has no
    /// reduction.
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
            true => Ok(operands),
            false if is_moved => operands.moved(),
            false => operands.reduced(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Array<'py>> {
        std::iter::once(&self.data)
            .chain(&self.updates)
            .chain(&self.output)
    }

    /// Converts arrays of a call with a reduction: arrays of another byte order or alignment are
    /// copied.
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

    /// Converts arrays of a call without a reduction: elements are divided into units of bytes.
    #[cold]
    fn moved(mut self) -> PyResult<Self> {
        if self.data.plain().is_some() && !self.all().all(Array::is_numpy) {
            // Tensors of other libraries are in the machine's byte order.
            return self.reduced();
        }
        self.data.check_movable()?;
        if let Some(updates) = self.updates.take() {
            self.updates = Some(same_type(updates, &self.data, "updates")?);
        }
        if let Some(output) = self.output.take() {
            self.output = Some(match output.has_type_of(&self.data) {
                true => output,
                // Another byte order is copied; another type is refused.
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

    /// Returns the shape of `data` without an axis of units.
    pub(crate) fn shape(&self) -> Dims<usize> {
        let shape = self.data.shape();
        shape[..shape.len() - usize::from(self.units.is_some())].into()
    }

    /// Allocates a result of `shape`, if the call has no `out`.
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

    /// Returns the view that the call writes to: the new result, or `out`.
    #[inline]
    pub(crate) fn target<'a>(&'a self, result: Option<&'a Array<'py>>) -> PyResult<AnyViewMut<'a>> {
        match (result, &self.output) {
            (Some(result), _) => result.view_new(),
            (None, Some(output)) => output.view_mut(),
            (None, None) => Err(no_output()),
        }
    }

    /// Returns the object for the caller after the call: the new result, or `out`.
    pub(crate) fn finish(self, result: Option<Array<'py>>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(result) = result {
            return result.into_object(&self.data);
        }
        let written = self.output.ok_or_else(no_output)?;
        let output = match self.staged {
            Some(staged) => {
                staged.assign(&written)?;
                staged
            }
            None => written,
        };
        note_written(&output)?;
        output.object().cloned().ok_or_else(no_output)
    }
}

#[cold]
fn no_output() -> PyErr {
    PyRuntimeError::new_err("internal error: the call has no output")
}

fn computable(array: Array<'_>) -> PyResult<Array<'_>> {
    match (array.dtype(), array.plain()) {
        (Some(_), Some(_)) => Ok(array),
        (None, Some(_)) => array.regular_copy(),
        _ => Err(PyTypeError::new_err(format!(
            "a reduction is not defined for elements of {}; use reduction=\"none\"",
            array.type_name()
        ))),
    }
}

/// Returns `array` in the type and byte order of `data`. Refuses another type.
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
    Err(PyTypeError::new_err(format!(
        "`{name}` has elements of {}, but `data` has elements of {}; pass one type",
        array.type_name(),
        data.type_name()
    )))
}
