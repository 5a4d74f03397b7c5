//! The Python classes `ScatterPlan` and `GatherPlan`, and the functions that make them. A plan
//! reads and checks indices once, for several calls with these indices.

use ndscatter::{GatherPlan, Operator, Reduction, ScatterPlan};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use smallvec::smallvec;

use crate::array::{Array, Dims, Source, elements_of};
use crate::docs::docs;
use crate::explanation::PyExplanation;
use crate::failure::{Failure, integer, optional_integer};
use crate::operands::{self, Operands, no_array};
use crate::options::{Meaning, choose};
use crate::scatter::{broadcasting, check_updates, is_flat, positions, refuse_one_number};
use crate::threads::{execution, run};
use crate::writes::{PyWrite, write_planned};

/// The argument `data` of a function that makes a plan, which describes the shape and the strides
/// of the indexed array. If the argument is an array, its elements are not read.
enum Model<'py> {
    /// The shape of the indexed array, which is contiguous.
    Shape(Dims<usize>),
    Array(Array<'py>),
}

impl<'py> Model<'py> {
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(shape) = object.cast::<PyTuple>() {
            let sizes = shape.iter().map(|size| integer(&size));
            return Ok(Self::Shape(sizes.collect::<PyResult<_>>()?));
        }
        if object.is_instance_of::<PyInt>() {
            return Ok(Self::Shape(smallvec![integer(object)?]));
        }
        let source = Source::of_array(object)?.ok_or_else(|| {
            PyTypeError::new_err(
                "`data` of a plan is neither an array nor a shape, which is a tuple or an integer",
            )
        })?;
        let array = source.read()?;
        let is_moved = array.plain().is_none() && array.unit() == array.size();
        match array.dtype() {
            Some(_) => Ok(Self::Array(array)),
            // Elements without arithmetic, such as 8-bit floats.
            None if is_moved => Ok(Self::Array(operands::as_bytes(array)?)),
            None => Err(PyTypeError::new_err(format!(
                "`data` of a plan has elements of {}; pass its shape as a tuple instead",
                array.type_name()
            ))),
        }
    }

    fn layout(&self) -> PyResult<ndscatter::Layout<'_>> {
        match self {
            Self::Shape(shape) => Ok(ndscatter::Layout::contiguous(shape)),
            Self::Array(array) => array.layout(),
        }
    }
}

/// A scatter whose indices have been read and checked. `plan_scatter_nd` and the similar functions
/// return it.
///
/// Call the plan as ``plan(data, updates, out=None, threads=None)``, with `data` and `updates` of any
/// element type that has the reduction of the plan. Without a reduction, an element must have 1, 2,
/// 4, 8 or 16 bytes, and the strides in bytes must be multiples of this size. Several threads may
/// call the plan at the same time. A copy of a plan is the plan itself. A plan cannot be pickled.
///
/// Args:
///     data: array of the shape of the plan.
///     updates: array of the element type of `data`, of shape `updates_shape` or a shape that
///         broadcasts to it.
///     out: array to write the result to, of the shape and strides of the plan. ``out=data`` updates
///         `data` in place. `out` is required if the plan was made for an array that is not
///         contiguous.
#[doc = docs!("threads")]
///
#[doc = docs!("returns")]
///
/// Raises:
///     TypeError: the element types of `data`, `updates` and `out` differ, the element type does
///         not have the reduction of the plan, or the plan refuses the size of the elements.
///     ValueError: a shape or the strides of `out` are wrong, `out` is read-only or may be
///         read-only, or `out` shares memory with an argument in another way than ``out=data``.
///     MemoryError: an allocation failed.
///
/// After each of the errors listed under "Raises", `out` is unchanged.
///
/// >>> import numpy as np, ndscatter
/// >>> plan = ndscatter.plan_scatter_update((3, 2), [2, 2], reduction="add")
/// >>> plan(np.zeros((3, 2)), [[1, 2], [3, 4]])
/// array([[0., 0.],
///        [0., 0.],
///        [4., 6.]])
#[pyclass(frozen, module = "ndscatter", name = "ScatterPlan")]
pub(crate) struct PyScatterPlan {
    plan: ScatterPlan,
    is_moved: bool,
    is_flat: bool,
}

#[pymethods]
impl PyScatterPlan {
    /// Apply the updates. The docstring of the class describes the arguments, because Python does
    /// not show a docstring of `__call__`.
    #[pyo3(signature = (data, updates, out=None, threads=None))]
    fn __call__<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        updates: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, execution) = (data.py(), execution(threads)?);
        let mut operands = self.prepare(data, updates, out)?;
        let result = operands.new_result(py, &operands.shape())?;
        let scatter = self.plan.run().execution(execution);
        broadcasting(&mut operands, |operands, updates| {
            let output = operands.target(result.as_ref())?;
            let size = operands.data.len() + updates.len();
            let (data, updates) = (operands.data.view()?, updates.view()?);
            run(py, size, || scatter.write_into(data, updates, output))
        })?;
        operands.finish(result)
    }

    /// Report how a call of the plan would run. The arrays are not changed.
    ///
    /// Args:
    ///     data: the argument of the call.
    ///     updates: the argument of the call.
    ///     out: the argument of the call.
    ///     threads: the argument of the call.
    ///
    /// Returns:
    ///     An `Explanation`. It depends on the element type of `data` and on whether `out` is
    ///     `data`. It does not depend on the values of `data` and `updates`.
    ///
    /// Raises:
    ///     TypeError: as the call.
    ///     ValueError: as the call, except that the strides and shared memory are not checked.
    ///     MemoryError: an allocation failed.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_update((4, 8), [1, 3], reduction="add")
    /// >>> plan.explain(np.zeros((4, 8)), 1.0).to_dict()["schedule"]
    /// 'serial'
    #[pyo3(signature = (data, updates, out=None, threads=None))]
    fn explain<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        updates: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
    ) -> PyResult<PyExplanation> {
        let (py, execution) = (data.py(), execution(threads)?);
        let mut operands = self.prepare(data, updates, out)?;
        let shape = self.plan.shape();
        check_shape("data", &operands.data, shape)?;
        if let Some(output) = &operands.output {
            check_shape("out", output, shape)?;
        }
        let updates = operands.updates.take().ok_or_else(no_array)?;
        check_updates(updates, self.plan.updates_shape(), None)?;
        let (dtype, is_in_place) = (operands.data.known()?, operands.is_in_place());
        let scatter = self.plan.run().execution(execution);
        let size = self.plan.tuples();
        let explained = run(py, size, || scatter.explain(dtype, is_in_place))?;
        Ok(PyExplanation::new(explained.map_err(Failure)?, dtype))
    }

    /// Run several writes with the indices of the plan, each in place and with its own arrays.
    ///
    /// Args:
    ///     writes: a sequence of `Write`. The `data` of each has the shape and strides of the plan.
    #[doc = docs!("threads")]
    ///
    #[doc = docs!("planned write errors")]
    #[pyo3(signature = (writes, *, threads=None))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 converts the sequence")]
    fn write_all<'py>(
        &self,
        py: Python<'py>,
        writes: Vec<Bound<'py, PyWrite>>,
        #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
    ) -> PyResult<()> {
        write_planned(py, &self.plan, &writes, threads)
    }

    /// Shape of `data` and of the result in a call of the plan.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.shape())
    }

    /// Shape of `updates` in a call of the plan. A call also accepts `updates` of a shape that
    /// broadcasts to this shape.
    #[getter]
    fn updates_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.updates_shape())
    }

    /// Number of tuples of `indices` that a call of the plan applies, which are all tuples that
    /// ``bounds="skip"`` did not drop. In `tensor_scatter`, and in `scatter_elements` if one index
    /// stands for a whole row, the row counts as one tuple.
    #[getter]
    fn tuples(&self) -> usize {
        self.plan.tuples()
    }

    /// Number of tuples that ``bounds="skip"`` dropped.
    #[getter]
    fn skipped(&self) -> usize {
        self.plan.skipped()
    }

    /// Return whether two or more tuples of the plan have the same destination. The plan stores the
    /// answer, so that later calls of this method do not compute it again.
    fn has_duplicates(&self, py: Python<'_>) -> PyResult<bool> {
        let found = run(py, self.plan.tuples(), || self.plan.has_duplicates())?;
        Ok(found.map_err(Failure)?)
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        let _ = memo;
        slf
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("ScatterPlan", "plan_scatter_nd"))
    }

    fn __repr__(&self) -> String {
        let plan = &self.plan;
        format!(
            "<ndscatter.ScatterPlan for shape {:?}, {} tuples>",
            plan.shape(),
            plan.tuples()
        )
    }
}

/// A gather whose indices have been read and checked. `plan_gather` and the similar functions return
/// it.
///
/// Call the plan as ``plan(data, out=None, threads=None)``, with `data` of any element type whose
/// elements have 1, 2, 4, 8 or 16 bytes. The strides in bytes must be multiples of this size. Several
/// threads may call the plan at the same time. A copy of a plan is the plan itself. A plan cannot be
/// pickled.
///
/// Args:
///     data: array of the shape and strides of the plan.
///     out: array to write the result to, of shape `output_shape`.
#[doc = docs!("threads")]
///
#[doc = docs!("returns")]
///
/// Raises:
///     TypeError: `out` has another element type than `data`, or the plan refuses the size of the
///         elements.
///     ValueError: a shape or the strides of `data` are wrong, `out` is read-only or may be
///         read-only, or `out` shares memory with `data`.
///     MemoryError: an allocation failed.
///
/// After each of the errors listed under "Raises", `out` is unchanged.
///
/// >>> import numpy as np, ndscatter
/// >>> plan = ndscatter.plan_gather((3,), [2, 2, 0])
/// >>> plan(np.array([1.0, 2.0, 3.0]))
/// array([3., 3., 1.])
#[pyclass(frozen, module = "ndscatter", name = "GatherPlan")]
pub(crate) struct PyGatherPlan {
    plan: GatherPlan,
}

#[pymethods]
impl PyGatherPlan {
    /// Gather the slices. The docstring of the class describes the arguments, because Python does
    /// not show a docstring of `__call__`.
    #[pyo3(signature = (data, out=None, threads=None))]
    fn __call__<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, execution) = (data.py(), execution(threads)?);
        let operands = self.prepare(data, out)?;
        let result = operands.new_result(py, self.plan.output_shape())?;
        let size = elements_of(self.plan.output_shape());
        let output = operands.target(result.as_ref())?;
        let (gather, data) = (self.plan.run().execution(execution), operands.data.view()?);
        run(py, size, || gather.write_into(data, output))?.map_err(Failure)?;
        operands.finish(result)
    }

    /// Report how a call of the plan would run. The arrays are not changed.
    ///
    /// Args:
    ///     data: the argument of the call.
    ///     out: the argument of the call.
    ///     threads: the argument of the call.
    ///
    /// Returns:
    ///     An `Explanation`. It depends on the element type of `data`, and does not depend on the
    ///     values of `data`.
    ///
    /// Raises:
    ///     TypeError: as the call.
    ///     ValueError: as the call, except that the strides and shared memory are not checked.
    ///     MemoryError: an allocation failed.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_gather((4, 8), [1, 3])
    /// >>> plan.explain(np.zeros((4, 8))).to_dict()["schedule"]
    /// 'serial'
    #[pyo3(signature = (data, out=None, threads=None))]
    fn explain<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
    ) -> PyResult<PyExplanation> {
        let (py, execution) = (data.py(), execution(threads)?);
        let operands = self.prepare(data, out)?;
        check_shape("data", &operands.data, self.plan.shape())?;
        if let Some(output) = &operands.output {
            check_shape("out", output, self.plan.output_shape())?;
        }
        let (dtype, allocates) = (operands.data.known()?, operands.output.is_none());
        let gather = self.plan.run().execution(execution);
        let size = elements_of(self.plan.output_shape());
        let explained = run(py, size, || gather.explain(dtype, allocates))?;
        Ok(PyExplanation::new(explained.map_err(Failure)?, dtype))
    }

    /// Shape of `data` in a call of the plan.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.shape())
    }

    /// Shape of the result of a call of the plan.
    #[getter]
    fn output_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.output_shape())
    }

    /// Number of tuples that ``bounds="skip"`` dropped.
    #[getter]
    fn skipped(&self) -> usize {
        self.plan.skipped()
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        let _ = memo;
        slf
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("GatherPlan", "plan_gather"))
    }

    fn __repr__(&self) -> String {
        let plan = &self.plan;
        format!(
            "<ndscatter.GatherPlan for shape {:?}, result {:?}>",
            plan.shape(),
            plan.output_shape()
        )
    }
}

impl PyScatterPlan {
    /// Prepares the arrays of a call.
    fn prepare<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        updates: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Operands<'py>> {
        refuse_one_number(self.is_flat, updates)?;
        let (data, updates) = (Source::of(data)?, Source::of(updates)?);
        let output = out.map(Source::of_output).transpose()?;
        let data = data.read()?;
        let updates = operands::updates(updates, &data)?;
        let output = output.map(operands::output).transpose()?;
        let operands = Operands::new(data, Some(updates), output, self.is_moved)?;
        refuse_units(&operands)?;
        Ok(operands)
    }
}

impl PyGatherPlan {
    /// Prepares the arrays of a call.
    fn prepare<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Operands<'py>> {
        let data = Source::of(data)?;
        let output = out.map(Source::of_output).transpose()?;
        let output = output.map(operands::output).transpose()?;
        let operands = Operands::new(data.read()?, None, output, true)?;
        refuse_units(&operands)?;
        Ok(operands)
    }
}

/// Returns an error if the array `name` of a call does not have the shape that the plan requires.
fn check_shape(name: &str, array: &Array<'_>, expected: &[usize]) -> PyResult<()> {
    match array.shape() == expected {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "`{name}` has shape {:?}, but the plan requires {expected:?}",
            array.shape()
        ))),
    }
}

/// Returns the error for a plan that is pickled.
fn not_pickled(plan: &str, function: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {plan} cannot be pickled, because it has tables for the memory and the machine of this \
         process; pickle the indices, and make the plan again in the other process, for example \
         with `{function}`"
    ))
}

/// Returns an error if the call divides its elements into several units. Such a call needs an
/// additional last axis for the units of an element, and the layout of a plan does not have this
/// axis.
fn refuse_units(operands: &Operands<'_>) -> PyResult<()> {
    match operands.units {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err(format!(
            "a plan moves aligned elements of 1, 2, 4, 8 or 16 bytes, not elements of {}; call the \
             function without a plan",
            operands.data.type_name()
        ))),
    }
}

fn plan_scatter<'py>(
    output: &Bound<'py, PyAny>,
    indices: Source<'py>,
    operator: Operator,
    meaning: Meaning,
    threads: Option<isize>,
) -> PyResult<PyScatterPlan> {
    let model = Model::of(output)?;
    let indices = operands::indices(indices)?;
    let (layout, view) = (model.layout()?, indices.view()?);
    let scatter = meaning.scatter(operator)?.execution(execution(threads)?);
    let plan = run(output.py(), indices.len(), || scatter.plan(layout, view))?;
    Ok(PyScatterPlan {
        plan: plan.map_err(Failure)?,
        is_moved: meaning.reduction == Reduction::None,
        is_flat: is_flat(operator, &indices),
    })
}

fn make_gather_plan<'py>(
    data: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    operator: Operator,
    meaning: Meaning,
    threads: Option<isize>,
) -> PyResult<PyGatherPlan> {
    let indices = Source::of(indices)?;
    let (model, indices) = (Model::of(data)?, operands::indices(indices)?);
    let (layout, view) = (model.layout()?, indices.view()?);
    let gather = meaning.gather(operator)?.execution(execution(threads)?);
    let plan = run(data.py(), indices.len(), || gather.plan(layout, view))?;
    Ok(PyGatherPlan {
        plan: plan.map_err(Failure)?,
    })
}

macro_rules! scatter_plans {
    ($( $(#[$docs:meta])* $name:ident $([$axis:ident])? => $operator:expr; )*) => {$(
        $(#[$docs])*
        #[pyfunction]
        #[pyo3(signature = (
            data, indices, $($axis=0,)? *, reduction="none", include_self=true,
            accumulate="native", bounds="error", duplicates="allow", negative_indices=true,
            threads=None,
        ))]
        #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
        pub(crate) fn $name(
            data: &Bound<'_, PyAny>,
            indices: &Bound<'_, PyAny>,
            $(#[pyo3(from_py_with = integer)] $axis: isize,)?
            reduction: &str,
            include_self: bool,
            accumulate: &str,
            bounds: &str,
            duplicates: &str,
            negative_indices: bool,
            #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
        ) -> PyResult<PyScatterPlan> {
            let meaning = Meaning::parse(
                reduction, include_self, accumulate, bounds, duplicates, negative_indices,
            )?;
            plan_scatter(data, Source::of(indices)?, $operator, meaning, threads)
        }
    )*};
}

scatter_plans! {
    /// Return a plan of `scatter_nd` for several calls with the same indices.
    ///
    /// Args:
    #[doc = docs!("shape")]
    ///     indices: integers of any integer type, of shape ``(..., k)`` with ``k <= data.ndim``.
    #[doc = docs!("planned indices")]
    #[doc = docs!("end of scatter plan")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_nd((4,), [[3], [1], [3]], reduction="add")
    /// >>> plan(np.zeros(4, int), [1, 1, 1])
    /// array([0, 1, 0, 2])
    plan_scatter_nd => Operator::Nd { batch_dims: 0 };

    /// Return a plan of `scatter_update` for several calls with the same indices.
    ///
    /// Args:
    #[doc = docs!("shape")]
    ///     indices: integers of any integer type, and any shape.
    #[doc = docs!("planned indices")]
    #[doc = docs!("axis")]
    #[doc = docs!("end of scatter plan")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_update((2, 3), [2, 0], axis=1)
    /// >>> plan(np.zeros((2, 3), int), [[30, 10], [60, 40]])
    /// array([[10,  0, 30],
    ///        [40,  0, 60]])
    plan_scatter_update [axis] => Operator::Along { axis };

    /// Return a plan of `scatter_elements` for several calls with the same indices.
    ///
    /// Args:
    #[doc = docs!("shape")]
    ///     indices: integers of any integer type, of the rank of `data`. Along every axis except
    ///         `axis`, the size of `indices` is at most the size of `data`.
    #[doc = docs!("planned indices")]
    #[doc = docs!("axis")]
    #[doc = docs!("end of scatter plan")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_elements((3,), [1, 1, -1], reduction="max")
    /// >>> plan(np.array([1.0, 2.0, 3.0]), [9.0, 4.0, 1.0])
    /// array([1., 9., 3.])
    plan_scatter_elements [axis] => Operator::Elements { axis };
}

/// Return a plan of `tensor_scatter` for several calls with the same positions.
///
/// Args:
#[doc = docs!("shape")]
///     indices: integers of shape ``(data.shape[0],)``: the position of the first new row of each
///         sequence. A single integer is the position for all sequences. None is position 0 for
///         all sequences.
///     axis: the axis of positions. Axis 0 is the axis of sequences, and is not allowed.
#[doc = docs!("mode")]
///     update_len: size of the updates along `axis`, which is the number of rows per sequence.
#[doc = docs!("cache bounds")]
#[doc = docs!("threads")]
///
/// Returns:
///     A `ScatterPlan`. Call it with `data`, `updates` and `out`.
///
#[doc = docs!("cache plan errors")]
///
/// >>> import numpy as np, ndscatter
/// >>> plan = ndscatter.plan_tensor_scatter((2, 4, 1), [0, 3])
/// >>> plan.updates_shape
/// (2, 1, 1)
#[pyfunction]
#[pyo3(signature = (
    data, indices=None, axis=-2, *, mode="linear", update_len=1, bounds="error", threads=None,
), text_signature = "(data, indices=None, axis=-2, *, mode='linear', update_len=1, \
        bounds='error', threads=None)")]
pub(crate) fn plan_tensor_scatter<'py>(
    data: &Bound<'py, PyAny>,
    indices: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = integer)] axis: isize,
    mode: &str,
    #[pyo3(from_py_with = integer)] update_len: usize,
    bounds: &str,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<PyScatterPlan> {
    let operator = Operator::Cache {
        axis,
        mode: choose("mode", mode)?,
        update_len,
    };
    let meaning = Meaning::of_indices(bounds, true)?;
    let indices = positions(data.py(), indices)?;
    plan_scatter(data, indices, operator, meaning, threads)
}

/// Return a plan of `write_paged` or `write_all` for several calls with the same slots.
///
/// Call ``plan.write_all(writes)`` to write in place, or the plan itself to copy `data`.
///
/// Args:
#[doc = docs!("shape")]
#[doc = docs!("planned slots")]
#[doc = docs!("write slots")]
#[doc = docs!("duplicates")]
#[doc = docs!("threads")]
///
/// Returns:
///     A `ScatterPlan`. If several updates have the same slot, the last one stays.
///
#[doc = docs!("scatter slot plan errors")]
///
/// >>> import numpy as np, ndscatter
/// >>> plan = ndscatter.plan_scatter_paged((2, 2, 1), [3, -1, 0])
/// >>> layers = [np.zeros((2, 2, 1), np.int8) for _ in range(2)]
/// >>> step = np.array([[1.0], [2.0], [3.0]], np.float32)
/// >>> plan.write_all([ndscatter.Write(layer, step) for layer in layers])
/// >>> plan.skipped, layers[1][..., 0]
/// (1, array([[3, 0],
///        [0, 1]], dtype=int8))
#[pyfunction]
#[pyo3(signature = (data, slots, *, bounds="skip negative", duplicates="allow", threads=None))]
pub(crate) fn plan_scatter_paged(
    data: &Bound<'_, PyAny>,
    slots: &Bound<'_, PyAny>,
    bounds: &str,
    duplicates: &str,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<PyScatterPlan> {
    let meaning = Meaning::of_rows(bounds, duplicates)?;
    plan_scatter(data, Source::of(slots)?, Operator::Paged, meaning, threads)
}

/// Return a plan of `gather_paged` for several calls with the same slots.
///
/// Args:
#[doc = docs!("shape")]
#[doc = docs!("planned slots")]
#[doc = docs!("read slots")]
#[doc = docs!("threads")]
///
#[doc = docs!("gather plan")]
///
#[doc = docs!("gather slot plan errors")]
///
/// >>> import numpy as np, ndscatter
/// >>> ndscatter.plan_gather_paged((2, 2), [3, -1, 0])(np.array([[1, 2], [3, 4]]))
/// array([4, 0, 1])
#[pyfunction]
#[pyo3(signature = (data, slots, *, bounds="skip negative", threads=None))]
pub(crate) fn plan_gather_paged(
    data: &Bound<'_, PyAny>,
    slots: &Bound<'_, PyAny>,
    bounds: &str,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<PyGatherPlan> {
    let meaning = Meaning::of_indices(bounds, false)?;
    make_gather_plan(data, slots, Operator::Paged, meaning, threads)
}

macro_rules! gather_plans {
    ($(
        $(#[$docs:meta])*
        $name:ident [$($argument:tt)*] $option:ident: $type:ty => $operator:expr;
    )*) => {$(
        $(#[$docs])*
        #[pyfunction]
        #[pyo3(signature = (
            data, indices, $($argument)*, bounds="error", negative_indices=true, threads=None,
        ))]
        pub(crate) fn $name(
            data: &Bound<'_, PyAny>,
            indices: &Bound<'_, PyAny>,
            #[pyo3(from_py_with = integer)] $option: $type,
            bounds: &str,
            negative_indices: bool,
            #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
        ) -> PyResult<PyGatherPlan> {
            let meaning = Meaning::of_indices(bounds, negative_indices)?;
            make_gather_plan(data, indices, $operator, meaning, threads)
        }
    )*};
}

gather_plans! {
    /// Return a plan of `gather_nd` for several calls with the same indices.
    ///
    /// Args:
    #[doc = docs!("shape")]
    ///     indices: integers of any integer type, of shape ``(..., k)``.
    #[doc = docs!("planned indices")]
    ///     batch_dims: number of leading dimensions that `data` and `indices` share.
    #[doc = docs!("end of gather plan")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_gather_nd((2, 2), [[1, 0], [0, 1]])
    /// >>> plan(np.array([[0, 1], [2, 3]]))
    /// array([2, 1])
    plan_gather_nd [*, batch_dims=0] batch_dims: usize => Operator::Nd { batch_dims };

    /// Return a plan of `gather` for several calls with the same indices.
    ///
    /// Args:
    #[doc = docs!("shape")]
    ///     indices: integers of any integer type, and any shape.
    #[doc = docs!("planned indices")]
    #[doc = docs!("axis")]
    #[doc = docs!("end of gather plan")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> ndscatter.plan_gather((3,), [2, 2, 0])(np.array([1.0, 2.0, 3.0]))
    /// array([3., 3., 1.])
    plan_gather [axis=0, *] axis: isize => Operator::Along { axis };

    /// Return a plan of `gather_elements` for several calls with the same indices.
    ///
    /// Args:
    #[doc = docs!("shape")]
    ///     indices: integers of any integer type, of the rank of `data`. Along every axis except
    ///         `axis`, the size of `indices` is at most the size of `data`.
    #[doc = docs!("planned indices")]
    #[doc = docs!("axis")]
    #[doc = docs!("end of gather plan")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> ndscatter.plan_gather_elements((3,), [2, 2, 0])(np.array([1.0, 2.0, 3.0]))
    /// array([3., 3., 1.])
    plan_gather_elements [axis=0, *] axis: isize => Operator::Elements { axis };
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyScatterPlan>()?;
    module.add_class::<PyGatherPlan>()?;
    module.add_function(wrap_pyfunction!(plan_scatter_nd, module)?)?;
    module.add_function(wrap_pyfunction!(plan_scatter_update, module)?)?;
    module.add_function(wrap_pyfunction!(plan_scatter_elements, module)?)?;
    module.add_function(wrap_pyfunction!(plan_tensor_scatter, module)?)?;
    module.add_function(wrap_pyfunction!(plan_gather_nd, module)?)?;
    module.add_function(wrap_pyfunction!(plan_gather, module)?)?;
    module.add_function(wrap_pyfunction!(plan_gather_elements, module)?)?;
    module.add_function(wrap_pyfunction!(plan_scatter_paged, module)?)?;
    module.add_function(wrap_pyfunction!(plan_gather_paged, module)?)
}
