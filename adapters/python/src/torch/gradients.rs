//! The scatters and gathers of the crate on PyTorch tensors, and their gradients. The package
//! `ndscatter.torch` offers these operators in addition to PyTorch's operators.
//!
//! This module knows the crate's operators. It does not know PyTorch's operators or autograd.

use ndscatter::{
    Execution, Forward, Gather, Gradients, Operator, Reduction, Scatter, ScatterError,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::connection::run_detached;
use super::tensor::Tensor;
use crate::failure::Failure;
use crate::options::{Meaning, choose};

/// An operator of the crate and its options.
#[pyclass(frozen, module = "ndscatter._native.torch")]
#[derive(Debug)]
struct Options {
    operator: Operator,
    meaning: Meaning,
}

#[pymethods]
impl Options {
    /// For the operator "nd", the argument `axis` is the number of batch dimensions. For the other
    /// operators, `axis` is the indexed axis.
    #[new]
    fn new(
        operator: &str,
        axis: isize,
        reduction: &str,
        include_self: bool,
        accumulate: &str,
        bounds: &str,
        negative_indices: bool,
    ) -> PyResult<Self> {
        let operator = match operator {
            "nd" => Operator::Nd {
                batch_dims: usize::try_from(axis).map_err(|_| {
                    PyValueError::new_err(format!("`batch_dims` is {axis}; pass 0 or more"))
                })?,
            },
            "along" => Operator::Along { axis },
            "elements" => Operator::Elements { axis },
            other => return Err(PyValueError::new_err(format!("unknown operator {other:?}"))),
        };
        Ok(Self {
            operator,
            meaning: Meaning::parse(
                reduction,
                include_self,
                accumulate,
                bounds,
                "allow",
                negative_indices,
            )?,
        })
    }

    /// Returns the shape that the updates of a scatter must have, from the shapes of `data` and
    /// `indices`.
    fn updates_shape(&self, data: Vec<usize>, indices: Vec<usize>) -> PyResult<Vec<usize>> {
        let shape = self.operator.updates_shape(&data, &indices);
        Ok(shape.map_err(Failure)?)
    }

    /// Returns the shape of the result of a gather, from the shapes of `data` and `indices`.
    fn output_shape(&self, data: Vec<usize>, indices: Vec<usize>) -> PyResult<Vec<usize>> {
        let shape = self.operator.output_shape(&data, &indices);
        Ok(shape.map_err(Failure)?)
    }

    /// Writes the result of a scatter into `output`.
    fn scatter(
        &self,
        py: Python<'_>,
        output: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        updates: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let objects = [data, updates];
        let [output, data] = [tensor("output", output)?, tensor("data", data)?];
        let [indices, updates] = [tensor("indices", indices)?, tensor("updates", updates)?];
        same_types(["data", "updates"], [&data, &updates], objects)?;
        self.run_scatter(py, |scatter| {
            let (data, at, updates) = (data.view()?, indices.view()?, updates.view()?);
            scatter.write_into(data, at, updates, output.view_written(false)?)
        })
    }

    /// Computes the gradients of a scatter: the gradient for `data` into `grad_data`, and the
    /// gradient for `updates` into `grad_updates`. If `grad_data` or `grad_updates` is `None`, this
    /// gradient is not computed.
    #[pyo3(signature = (gradient, indices, data, updates, grad_data, grad_updates))]
    #[expect(clippy::too_many_arguments, reason = "tensors of a gradient")]
    fn scatter_backward(
        &self,
        py: Python<'_>,
        gradient: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: Option<&Bound<'_, PyAny>>,
        updates: Option<&Bound<'_, PyAny>>,
        grad_data: Option<&Bound<'_, PyAny>>,
        grad_updates: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let gradient_object = gradient;
        let [gradient, indices] = [tensor("gradient", gradient)?, tensor("indices", indices)?];
        let optional = |name, object: Option<&Bound<'_, PyAny>>| {
            let Some(object) = object else {
                return Ok(None);
            };
            let other = tensor(name, object)?;
            let objects = [gradient_object, object];
            same_types(["gradient", name], [&gradient, &other], objects)?;
            Ok::<_, PyErr>(Some(other))
        };
        let [data, updates] = [optional("data", data)?, optional("updates", updates)?];
        let grad_data = optional("gradient for data", grad_data)?;
        let grad_updates = optional("gradient for updates", grad_updates)?;
        self.run_scatter(py, |scatter| {
            let forward = Forward {
                data: data.as_ref().map(Tensor::view).transpose()?,
                updates: updates.as_ref().map(Tensor::view).transpose()?,
            };
            let wanted = Gradients {
                data: grad_data
                    .as_ref()
                    .map(|to| to.view_written(false))
                    .transpose()?,
                updates: grad_updates
                    .as_ref()
                    .map(|to| to.view_written(false))
                    .transpose()?,
            };
            scatter.backward_into(gradient.view()?, forward, indices.view()?, 1.0, wanted)
        })
    }

    /// Writes the result of a gather into `output`.
    fn gather(
        &self,
        py: Python<'_>,
        output: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let [output, data] = [tensor("output", output)?, tensor("data", data)?];
        let indices = tensor("indices", indices)?;
        self.run_gather(py, |gather| {
            gather.write_into(data.view()?, indices.view()?, output.view_written(false)?)
        })
    }

    /// Computes the gradient of a gather for its argument `data`, and writes this gradient into
    /// `grad_data`.
    fn gather_backward(
        &self,
        py: Python<'_>,
        gradient: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        grad_data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let [gradient, indices] = [tensor("gradient", gradient)?, tensor("indices", indices)?];
        let grad_data = tensor("gradient for data", grad_data)?;
        self.run_gather(py, |gather| {
            let (gradient, at) = (gradient.view()?, indices.view()?);
            gather.backward_into(gradient, at, 1.0, grad_data.view_written(false)?)
        })
    }
}

impl Options {
    fn run_scatter(
        &self,
        py: Python<'_>,
        call: impl FnOnce(Scatter<'_>) -> Result<(), ScatterError> + Send,
    ) -> PyResult<()> {
        let scatter = self.meaning.scatter(self.operator)?;
        run_detached(py, |pool| {
            call(scatter.execution(Execution::new().pool(pool)))
        })
    }

    fn run_gather(
        &self,
        py: Python<'_>,
        call: impl FnOnce(Gather<'_>) -> Result<(), ScatterError> + Send,
    ) -> PyResult<()> {
        let gather = self.meaning.gather(self.operator)?;
        run_detached(py, |pool| {
            call(gather.execution(Execution::new().pool(pool)))
        })
    }
}

fn tensor(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Tensor::of(object).map_err(|_| {
        PyTypeError::new_err(format!(
            "`{name}` is not a CPU tensor of a supported element type"
        ))
    })
}

/// Checks that two tensors have the same PyTorch element type. A comparison of the crate's dtypes
/// would not suffice: PyTorch has several types of 8-bit floats, and the crate's dtype is `Bytes1`
/// for each of these types.
fn same_types(
    names: [&str; 2],
    tensors: [&Tensor; 2],
    objects: [&Bound<'_, PyAny>; 2],
) -> PyResult<()> {
    if tensors[0].has_type_of(tensors[1]) {
        return Ok(());
    }
    let [first, second] = objects.map(|object| object.getattr("dtype"));
    let [first, second] = [first?, second?];
    Err(PyTypeError::new_err(format!(
        "`{}` has elements of {second}, but `{}` has elements of {first}; pass one type",
        names[1], names[0]
    )))
}

/// Returns the crate's name of the reduction that has `name` among its names.
#[pyfunction]
fn reduction_named(name: &str) -> PyResult<&'static str> {
    choose("reduction", name).map(Reduction::as_str)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Options>()?;
    module.add_function(wrap_pyfunction!(reduction_named, module)?)
}
