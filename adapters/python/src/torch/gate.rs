//! Dispatch of a call to one of two kernels, by the number of elements of its tensors.
//!
//! This module does not know operators. The dispatch is written in Rust instead of Python to reduce
//! its overhead, which matters most for small calls.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::call::Function;
use super::counts::count_declined;
use super::reason::Reason;
use super::tensor::elements;

/// A kernel that passes each call, with all arguments, to the kernel `small` or to the kernel
/// `large`.
#[pyclass(frozen, module = "ndscatter._native.torch")]
#[derive(Debug)]
pub(super) struct Gate {
    small: Py<PyAny>,
    large: Py<PyAny>,
    /// Minimum number of elements of a large tensor. A call runs on the kernel `large` if an
    /// argument at one of the positions `counted` is or contains a large tensor.
    least: usize,
    /// Positions of the arguments whose numbers of elements are compared with `least`. Each of
    /// these arguments is a tensor or a list of tensors. The number of elements of each tensor in a
    /// list is compared separately.
    counted: Vec<usize>,
    /// The function whose count has the calls that run on the kernel `small`.
    function: Function,
}

#[pymethods]
impl Gate {
    #[new]
    fn new(
        small: Py<PyAny>,
        large: Py<PyAny>,
        least: usize,
        counted: Vec<usize>,
        function: &str,
    ) -> PyResult<Self> {
        Ok(Self {
            small,
            large,
            least,
            counted,
            function: Function::named(function)?,
        })
    }

    #[pyo3(signature = (*arguments, **options))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_large = |&at: &usize| {
            let argument = arguments.get_borrowed_item(at);
            argument.is_ok_and(|argument| self.is_large(&argument))
        };
        let kernel = match self.counted.iter().any(is_large) {
            true => &self.large,
            false => {
                count_declined(self.function, Reason::Size);
                &self.small
            }
        };
        kernel.bind(arguments.py()).call(arguments, options)
    }
}

impl Gate {
    fn is_large(&self, argument: &Bound<'_, PyAny>) -> bool {
        if let Some(elements) = elements(argument) {
            return elements >= self.least;
        }
        let list = argument.cast::<PyList>();
        list.is_ok_and(|list| list.iter().any(|item| self.is_large(&item)))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Gate>()
}
