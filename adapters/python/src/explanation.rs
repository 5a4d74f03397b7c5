//! The class `Explanation`: a report of how a call would run.
//!
//! This module knows the facts of a report. It does not know calls.

use ndscatter::{DType, Explanation};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::types::numpy_name;

/// A report of how a call would run.
///
/// `explain` and the method `explain` of plans return this report. ``str(explanation)`` is a text
/// for people, which may change between versions. ``explanation.to_dict()`` has the facts by name.
///
/// >>> import numpy as np, ndscatter
/// >>> explanation = ndscatter.explain("gather", np.zeros((4, 8), np.float32), [3, 1])
/// >>> print(explanation)  # doctest: +ELLIPSIS
/// gather from float32 [4, 8]
///   tuples     2, in each of 1 repetition(s)
///   ...
#[pyclass(frozen, module = "ndscatter", name = "Explanation")]
pub(crate) struct PyExplanation {
    explanation: Explanation,
    dtype: DType,
}

#[pymethods]
impl PyExplanation {
    /// Return the facts of the report.
    ///
    /// The keys are:
    ///
    /// - ``dtype``: numpy's name of the element type. Elements without arithmetic are moved as
    ///   parts of 1, 2, 4, 8 or 16 bytes, such as ``bytes4``.
    /// - ``route``: ``"nothing"`` (nothing is written), ``"small"`` (the calling thread moves rows),
    ///   ``"stream"`` (each element is moved when its index is checked) or ``"planned"`` (a
    ///   schedule moves the elements).
    /// - ``schedule``: how the work is divided if the route is ``"planned"``, such as ``"serial"``.
    /// - ``tasks``: number of tasks of the schedule, if the route is ``"planned"``. A single task
    ///   runs on the calling thread.
    /// - ``bytes_written``: bytes of all updates, or of all slices of a gather, plus the bytes of
    ///   `data` that the call copies. The call writes fewer bytes if its schedule omits overwritten
    ///   updates, or combines updates before it writes the results.
    /// - ``scratch_bytes``: largest number of bytes of memory that the schedule needs in addition to
    ///   the arrays, if the route is ``"planned"``.
    /// - ``machine``: text that describes the machine for which the schedule was chosen.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let explanation = &self.explanation;
        let facts = PyDict::new(py);
        facts.set_item("dtype", numpy_name(self.dtype))?;
        facts.set_item("route", explanation.route().to_string())?;
        facts.set_item("schedule", explanation.schedule().as_str())?;
        facts.set_item("tasks", explanation.tasks())?;
        facts.set_item("bytes_written", explanation.bytes_written())?;
        facts.set_item("scratch_bytes", explanation.scratch_bytes())?;
        facts.set_item("machine", explanation.machine().to_string())?;
        Ok(facts)
    }

    /// The text of the crate, with numpy's name of the element type.
    fn __repr__(&self) -> String {
        let text = self.explanation.to_string();
        // The first line of the text is the first text with the name of the element type.
        text.replacen(self.dtype.as_str(), &numpy_name(self.dtype), 1)
    }
}

impl PyExplanation {
    pub(crate) fn new(explanation: Explanation, dtype: DType) -> Self {
        Self { explanation, dtype }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExplanation>()
}
