//! Plans: indices that are read, checked and worked out once.

use ndscatter::{GatherPlan, Operator, Reduction, ScatterPlan};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::{Array, Dims, Source, elements_of};
use crate::failure::Failure;
use crate::operands::{self, Operands};
use crate::options::{Meaning, choose};
use crate::scatter::{broadcasting, positions};
use crate::threads::{execution, run};

/// What a plan is made for: the layout of an output. Nothing of its memory is read.
enum Model<'py> {
    /// Contiguous.
    Shape(Dims<usize>),
    Array(Array<'py>),
}

impl<'py> Model<'py> {
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(shape) = object.cast::<PyTuple>() {
            let sizes = shape.iter().map(|size| size.extract());
            return Ok(Self::Shape(sizes.collect::<PyResult<_>>()?));
        }
        let source = Source::of_array(object)?.ok_or_else(|| {
            PyTypeError::new_err("a plan is made for a shape, as a tuple, or for an array")
        })?;
        let array = source.look()?;
        match array.dtype() {
            Some(_) => Ok(Self::Array(array)),
            None => Err(PyTypeError::new_err(format!(
                "a plan cannot be made for {}; make it for the shape, as a tuple",
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

/// A scatter whose indices have been read, checked and worked out.
///
/// Call it with data and updates, of any element type. Threads may share it: it never
/// changes.
#[pyclass(frozen, module = "ndscatter", name = "ScatterPlan")]
pub(crate) struct PyScatterPlan {
    plan: ScatterPlan,
    is_moved: bool,
}

#[pymethods]
impl PyScatterPlan {
    /// Apply updates to `data`, or to a copy of it.
    ///
    /// Args:
    ///     data: array of the shape that was planned for.
    ///     updates: of the type of `data` and of `updates_shape`, or what broadcasts to that.
    ///     out: array to write to, of the shape and strides that were planned for;
    ///         ``out=data`` changes `data` itself.
    ///     threads: at most so many; 1 is the calling thread; None is all.
    ///
    /// Returns:
    ///     `out`, or a new array of the type that `data` came as.
    ///
    /// Raises:
    ///     TypeError: types differ, or have no such reduction.
    ///     ValueError: shapes, or memory that is shared or read-only.
    ///     BufferError: `out` does not say that it may be written.
    #[pyo3(signature = (data, updates, out=None, threads=None))]
    fn __call__<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        updates: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<isize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, execution) = (data.py(), execution(threads)?);
        let (data, updates) = (Source::of(data)?, Source::of(updates)?);
        let output = out.map(Source::of_output).transpose()?;
        let data = data.look()?;
        let updates = operands::updates(updates, &data)?;
        let output = output.map(operands::output).transpose()?;
        let mut operands = Operands::new(data, Some(updates), output, self.is_moved)?;
        refuse_units(&operands)?;
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

    /// Shape of the outputs that it was made for.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.shape())
    }

    /// The shape of updates.
    #[getter]
    fn updates_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.updates_shape())
    }

    /// Number of tuples of `indices` that are applied.
    #[getter]
    fn tuples(&self) -> usize {
        self.plan.tuples()
    }

    /// Number of tuples that ``bounds="skip"`` has left out.
    #[getter]
    fn skipped(&self) -> usize {
        self.plan.skipped()
    }

    /// Whether two tuples name one place. Worked out when it is asked for first.
    fn has_duplicates(&self, py: Python<'_>) -> PyResult<bool> {
        let found = run(py, self.plan.tuples(), || self.plan.has_duplicates())?;
        Ok(found.map_err(Failure)?)
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

/// A gather whose indices have been read and checked.
///
/// Call it with data of any element type. Threads may share it: it never changes.
#[pyclass(frozen, module = "ndscatter", name = "GatherPlan")]
pub(crate) struct PyGatherPlan {
    plan: GatherPlan,
}

#[pymethods]
impl PyGatherPlan {
    /// Gather from `data`.
    ///
    /// Args:
    ///     data: array of the shape and strides that were planned for.
    ///     out: array to write to, of `output_shape`.
    ///     threads: at most so many; 1 is the calling thread; None is all.
    ///
    /// Returns:
    ///     `out`, or a new array of the type that `data` came as.
    ///
    /// Raises:
    ///     TypeError: types differ.
    ///     ValueError: shapes, or memory that is shared or read-only.
    ///     BufferError: `out` does not say that it may be written.
    #[pyo3(signature = (data, out=None, threads=None))]
    fn __call__<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<isize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, execution) = (data.py(), execution(threads)?);
        let data = Source::of(data)?;
        let output = out.map(Source::of_output).transpose()?;
        let output = output.map(operands::output).transpose()?;
        let operands = Operands::new(data.look()?, None, output, true)?;
        refuse_units(&operands)?;
        let result = operands.new_result(py, self.plan.output_shape())?;
        let size = elements_of(self.plan.output_shape());
        let output = operands.target(result.as_ref())?;
        let (gather, data) = (self.plan.run().execution(execution), operands.data.view()?);
        run(py, size, || gather.write_into(data, output))?.map_err(Failure)?;
        operands.finish(result)
    }

    /// Shape of the data that it was made for.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.shape())
    }

    /// Shape of the result.
    #[getter]
    fn output_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.output_shape())
    }

    /// Number of tuples that ``bounds="skip"`` has left out.
    #[getter]
    fn skipped(&self) -> usize {
        self.plan.skipped()
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

/// A plan knows no axis of units behind those of the data.
fn refuse_units(operands: &Operands<'_>) -> PyResult<()> {
    match operands.units {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err(format!(
            "plans move elements of 1, 2, 4, 8 or 16 aligned bytes, not {}; call the function \
             without a plan",
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
            $($axis: isize,)?
            reduction: &str,
            include_self: bool,
            accumulate: &str,
            bounds: &str,
            duplicates: &str,
            negative_indices: bool,
            threads: Option<isize>,
        ) -> PyResult<PyScatterPlan> {
            let meaning = Meaning::parse(
                reduction, include_self, accumulate, bounds, duplicates, negative_indices,
            )?;
            plan_scatter(data, Source::of(indices)?, $operator, meaning, threads)
        }
    )*};
}

scatter_plans! {
    /// Plan a `scatter_nd` whose indices come again.
    ///
    /// Args:
    ///     data: the shape of outputs, a tuple, if they are contiguous; else an array with
    ///         their shape and strides.
    ///     indices: as for `scatter_nd`. They are read, checked and worked out now.
    ///
    /// Other arguments mean what they mean there. Returns a `ScatterPlan`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_nd((4,), [[3], [1], [3]], reduction="add")
    /// >>> plan(np.zeros(4, int), [1, 1, 1])
    /// array([0, 1, 0, 2])
    plan_scatter_nd => Operator::Nd { batch_dims: 0 };

    /// Plan a `scatter_update` whose indices come again: see `plan_scatter_nd`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_update((2, 3), [2, 0], axis=1)
    /// >>> plan(np.zeros((2, 3), int), [[30, 10], [60, 40]])
    /// array([[10,  0, 30],
    ///        [40,  0, 60]])
    plan_scatter_update [axis] => Operator::Along { axis };

    /// Plan a `scatter_elements` whose indices come again: see `plan_scatter_nd`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_scatter_elements((3,), [1, 1, -1], reduction="max")
    /// >>> plan(np.array([1.0, 2.0, 3.0]), [9.0, 4.0, 1.0])
    /// array([1., 9., 3.])
    plan_scatter_elements [axis] => Operator::Elements { axis };
}

/// Plan a `tensor_scatter` whose positions come again: see `plan_scatter_nd`.
///
/// Args:
///     update_len: rows of the updates along `axis`.
///
/// Other arguments mean what they mean there.
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
    axis: isize,
    mode: &str,
    update_len: usize,
    bounds: &str,
    threads: Option<isize>,
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
            $option: $type,
            bounds: &str,
            negative_indices: bool,
            threads: Option<isize>,
        ) -> PyResult<PyGatherPlan> {
            let meaning = Meaning::of_indices(bounds, negative_indices)?;
            make_gather_plan(data, indices, $operator, meaning, threads)
        }
    )*};
}

gather_plans! {
    /// Plan a `gather_nd` whose indices come again.
    ///
    /// Args:
    ///     data: the shape of data, a tuple, if they are contiguous; else an array with their
    ///         shape and strides.
    ///     indices: as for `gather_nd`. They are read and checked now.
    ///
    /// Other arguments mean what they mean there. Returns a `GatherPlan`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> plan = ndscatter.plan_gather_nd((2, 2), [[1, 0], [0, 1]])
    /// >>> plan(np.array([[0, 1], [2, 3]]))
    /// array([2, 1])
    plan_gather_nd [*, batch_dims=0] batch_dims: usize => Operator::Nd { batch_dims };

    /// Plan a `gather` whose indices come again: see `plan_gather_nd`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> ndscatter.plan_gather((3,), [2, 2, 0])(np.array([1.0, 2.0, 3.0]))
    /// array([3., 3., 1.])
    plan_gather [axis=0, *] axis: isize => Operator::Along { axis };

    /// Plan a `gather_elements` whose indices come again: see `plan_gather_nd`.
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
    module.add_function(wrap_pyfunction!(plan_gather_elements, module)?)
}
