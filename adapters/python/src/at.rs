//! The Python functions `add_at`, `subtract_at`, `multiply_at`, `minimum_at` and `maximum_at`, with
//! the rules of `np.ufunc.at`.
//!
//! This module runs a call by a kernel under two conditions. The first condition: `b` is an array
//! of the dtype of `a`, or one value with which a computation in this dtype gives numpy's result.
//! The second condition: [`index`] supports the indices. This module passes all other calls to
//! `_at.py` of this package.

mod index;

use std::convert::Infallible;

use ndscatter::{AnyView, DType, Operator, Reduction, ScatterError, TensorView};
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};

use crate::array::{Array, Dims, Number, Source, elements_of, is_exactly, refuse_masked};
use crate::docs::docs;
use crate::failure::{Failure, optional_integer};
use crate::options::Meaning;
use crate::threads::{execution, run};
use crate::value::Value;
use index::{Index, Listed};

/// One of the five functions `add_at`, `subtract_at`, `multiply_at`, `minimum_at` and `maximum_at`.
#[derive(Clone, Copy, Debug)]
struct Function {
    /// Name of the corresponding ufunc of numpy.
    name: &'static str,
    reduction: Reduction,
}

impl Function {
    const ALL: [Self; 5] = [
        Self::new("add", Reduction::Add),
        Self::new("subtract", Reduction::Sub),
        Self::new("multiply", Reduction::Mul),
        Self::new("minimum", Reduction::Min),
        Self::new("maximum", Reduction::Max),
    ];

    const fn new(name: &'static str, reduction: Reduction) -> Self {
        Self { name, reduction }
    }

    /// Checks whether a kernel for `dtype` exists and gives the same result as numpy's loop.
    fn is_defined(self, dtype: DType) -> bool {
        match dtype {
            DType::Bool => self.reduction != Reduction::Sub,
            DType::Complex64 | DType::Complex128 => {
                !matches!(self.reduction, Reduction::Min | Reduction::Max)
            }
            dtype => !dtype.is_opaque(),
        }
    }
}

/// The argument `b` after its conversion: an array of updates, or one value for all indices.
enum Values<'py> {
    Array(Array<'py>),
    One(Value),
}

/// The converted arguments of a call that a kernel can run.
struct Call<'py> {
    function: Function,
    a: Array<'py>,
    operator: Operator,
    /// The indexed axis of `a`.
    axis: usize,
    indices: Index<'py>,
    threads: Option<isize>,
}

fn at<'py>(
    function: Function,
    a: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    b: Second<'py>,
    threads: Option<isize>,
) -> PyResult<()> {
    let Second(Some(b)) = b else {
        // The type and the text of this exception are those of numpy.
        return Err(PyValueError::new_err("second operand needed for ufunc"));
    };
    for argument in [a, indices, &b] {
        refuse_masked(argument)?;
    }
    if let Ok(parts) = indices.cast::<PyTuple>() {
        parts
            .iter_borrowed()
            .try_for_each(|part| refuse_masked(&part))?;
    }
    if plain(function, a, indices, &b, threads)?.is_some() {
        return Ok(());
    }
    let py = a.py();
    if Array::of_numpy(a).is_some() && [a, indices, &b].into_iter().all(is_short) {
        static BY_NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let by_numpy = BY_NUMPY.import(py, "ndscatter._at", "by_numpy")?;
        by_numpy.call1((function.name, a, indices, b))?;
        return Ok(());
    }
    static GENERAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let general = GENERAL.import(py, "ndscatter._at", "general")?;
    general.call1((function.name, a, indices, b, threads))?;
    Ok(())
}

/// The argument `b`. `Second(None)` is a missing argument. An argument with Python's value None is
/// `Second(Some(..))`.
struct Second<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Second<'py> {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// Smallest number of elements of a long argument. [`at`] uses this limit in calls that [`plain`]
/// does not support.
///
/// If all arguments have fewer elements, [`at`] runs numpy's loop. For so few elements, numpy's
/// loop takes less time than a conversion of the arguments for a kernel. If an argument is long,
/// [`at`] calls `general` in `_at.py`, which converts the arguments for a kernel if possible. A
/// tuple of indices is long if one of its parts is long.
const SHORT: usize = 2000;

fn is_short(object: &Bound<'_, PyAny>) -> bool {
    match object.cast::<PyTuple>() {
        Ok(parts) => parts.iter_borrowed().all(|part| is_short_part(&part)),
        Err(_) => is_short_part(object),
    }
}

fn is_short_part(object: &Bound<'_, PyAny>) -> bool {
    if let Some(array) = Array::of_numpy(object) {
        return array.len() < SHORT;
    }
    // An object that is neither a numpy array nor a list counts as short, because long objects of
    // other types are rare.
    (object.cast::<PyList>()).map_or(true, |list| list.len() < SHORT)
}

/// Runs the call by a kernel. Returns `None`, and writes nothing, if no kernel can run the call. A
/// kernel can run a call under these conditions:
///
/// - `a` (the argument `object`) is a numpy array, and two elements of `a` do not share memory,
/// - a kernel for the dtype of `a` gives the same result as numpy ([`Function::is_defined`]),
/// - [`values`] can read `b`,
/// - [`index`] supports the indices.
fn plain<'py>(
    function: Function,
    object: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    threads: Option<isize>,
) -> PyResult<Option<()>> {
    let Some(mut a) = Array::of_numpy(object) else {
        return Ok(None);
    };
    a.check_writable()?;
    let Some(dtype) = a.dtype().filter(|&dtype| function.is_defined(dtype)) else {
        return Ok(None);
    };
    let Some(values) = values(function, dtype, b) else {
        return Ok(None);
    };
    let Some(listed) = Listed::read(indices, &a)? else {
        return Ok(None);
    };
    // The conversion of `b` and of the indices may have run Python code, and this code may have
    // changed `a`.
    if !a.is_unchanged() {
        let now = Array::of_numpy(object).filter(|now| now.dtype() == Some(dtype));
        a = match now {
            Some(now) => now,
            None => return Ok(None),
        };
    }
    if a.may_overlap_itself()? {
        return Ok(None);
    }
    let Some((axis, indices)) = listed.place(&mut a, threads)? else {
        return Ok(None);
    };
    let call = Call {
        function,
        a,
        operator: Operator::Along {
            axis: axis.cast_signed(),
        },
        axis,
        indices,
        threads,
    };
    match values {
        Values::Array(b) => call.apply(b).map(Some),
        Values::One(value) => call.apply_one(dtype, &value).map(Some),
    }
}

/// Reads `b` as an array of the dtype `dtype` of `a`, or as one value that converts to `dtype`
/// without a change of the result ([`Number::value`]). Returns `None` for any other `b`.
fn values<'py>(function: Function, dtype: DType, b: &Bound<'py, PyAny>) -> Option<Values<'py>> {
    let array = match Array::of_numpy(b) {
        Some(array) => array,
        None => match number(b) {
            Some(number) => return number.value(function, dtype).map(Values::One),
            // `b` may be a list, a scalar of numpy or a tensor of another library.
            None => Source::of(b).and_then(Source::read).ok()?,
        },
    };
    if array.dtype()? == dtype {
        return Some(Values::Array(array));
    }
    // `b` is one value of another dtype. numpy's loop treats this value like a Python number.
    let number = array.number()?;
    number.value(function, dtype).map(Values::One)
}

/// Returns the value of a Python float, bool or int. Returns `None` for an integer that does not
/// fit in 64 bits, for an object of a subclass, and for any other object.
fn number(object: &Bound<'_, PyAny>) -> Option<Number> {
    if is_exactly::<PyFloat>(object) {
        return object.extract().ok().map(Number::Float);
    }
    if is_exactly::<PyBool>(object) {
        return object.is_truthy().ok().map(Number::Bool);
    }
    if is_exactly::<PyInt>(object) {
        return object.extract().ok().map(Number::Integer);
    }
    None
}

impl Number {
    /// Converts the number to `dtype`. Returns `None` if the result of the call with the converted
    /// number could differ from numpy's result with the original number.
    fn value(self, function: Function, dtype: DType) -> Option<Value> {
        match self {
            Self::Float(value) => Value::of_float(dtype, value),
            Self::Bool(value) => (dtype == DType::Bool).then(|| Value::of_bool(value)),
            Self::Integer(value) => {
                let wraps = !matches!(function.reduction, Reduction::Min | Reduction::Max);
                Value::of_integer(dtype, value, wraps)
            }
        }
    }
}

impl<'py> Call<'py> {
    /// Returns the shape of the elements that the indices select: the shape of `a[indices]`.
    fn shape(&self) -> Dims<usize> {
        let list = match &self.indices {
            Index::Array(array) => array.shape(),
            Index::Positions(_, shape) => shape,
        };
        let (before, window) = self.a.shape().split_at(self.axis);
        let window = window.get(1..).unwrap_or(&[]);
        before.iter().chain(list).chain(window).copied().collect()
    }

    fn apply(mut self, mut b: Array<'py>) -> PyResult<()> {
        let shape = self.shape();
        if b.shape() != &shape[..] && !b.broadcast(&shape) {
            return Err(PyValueError::new_err(format!(
                "array is not broadcastable to correct shape: `b` has shape {:?}, and \
                 `a[indices]` has shape {:?}",
                b.shape(),
                &shape[..]
            )));
        }
        loop {
            let done = self.try_apply(&b)?;
            match done {
                Err(
                    ScatterError::InputOverlap { tensor: "updates" }
                    | ScatterError::OverlapUndecided { tensor: "updates" },
                ) => {
                    b = b.dense_copy(self.a.object())?;
                }
                Err(ScatterError::InputOverlap { .. } | ScatterError::OverlapUndecided { .. }) => {
                    self.copy_indices()?;
                }
                done => return Ok(done.map_err(Failure)?),
            }
        }
    }

    fn copy_indices(&mut self) -> PyResult<()> {
        if let Index::Array(array) = &self.indices {
            self.indices = Index::Array(array.dense_copy(self.a.object())?);
        }
        Ok(())
    }

    fn try_apply(&self, b: &Array<'py>) -> PyResult<Result<(), ScatterError>> {
        self.scatter(b.view()?, b.len())
    }

    /// Combines every element of `a` that the indices select with one value, in place.
    fn apply_one(mut self, dtype: DType, value: &Value) -> PyResult<()> {
        let shape = self.shape();
        loop {
            let view = AnyView::splat(&value.0, dtype, &shape).map_err(Failure)?;
            match self.scatter(view, elements_of(&shape))? {
                Err(ScatterError::InputOverlap { .. } | ScatterError::OverlapUndecided { .. }) => {
                    self.copy_indices()?;
                }
                done => return Ok(done.map_err(Failure)?),
            }
        }
    }

    fn scatter(&self, updates: AnyView<'_>, size: usize) -> PyResult<Result<(), ScatterError>> {
        let Some(py) = self.a.object().map(Bound::py) else {
            return Ok(Ok(()));
        };
        let meaning = Meaning {
            reduction: self.function.reduction,
            ..Meaning::DEFAULT
        };
        let scatter = meaning.scatter(self.operator)?;
        let scatter = scatter.execution(execution(self.threads)?);
        let data = self.a.view_mut()?;
        match &self.indices {
            Index::Array(array) => {
                let indices = array.view()?;
                run(py, size, || scatter.in_place(data, indices, updates))
            }
            Index::Positions(positions, shape) => {
                let indices = TensorView::contiguous(positions, shape);
                let indices = indices.map_err(Failure)?;
                run(py, size, || scatter.in_place(data, indices, updates))
            }
        }
    }
}

/// Combines elements of `a` with the values in `b`, in place, by numpy's function `name` (`add`,
/// `subtract`, `multiply`, `minimum` or `maximum`). The last axis of `indices` contains the
/// coordinates of one element of `a`. `_at.py` calls this function.
///
/// Returns false, and writes nothing, if two elements of `a` may share memory.
#[pyfunction]
fn _scatter_at(
    name: &str,
    a: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<bool> {
    let found = Function::ALL
        .into_iter()
        .find(|function| function.name == name);
    let function =
        found.ok_or_else(|| PyValueError::new_err("`name` is not one of the five functions"))?;
    let [a, indices, b] = [Source::of(a)?, Source::of(indices)?, Source::of(b)?];
    let (a, indices, b) = (a.read()?, indices.read()?, b.read()?);
    if a.may_overlap_itself()? {
        return Ok(false);
    }
    let call = Call {
        function,
        a,
        operator: Operator::Nd { batch_dims: 0 },
        axis: 0,
        indices: Index::Array(indices),
        threads,
    };
    call.try_apply(&b)?.map_err(Failure)?;
    Ok(true)
}

macro_rules! functions {
    ($( $(#[$docs:meta])* $name:ident => $number:literal; )*) => {$(
        $(#[$docs])*
        #[pyfunction]
        #[pyo3(
            signature = (a, indices, b=Second(None), *, threads=None),
            text_signature = "(a, indices, b, *, threads=None)"
        )]
        fn $name<'py>(
            a: &Bound<'py, PyAny>,
            indices: &Bound<'py, PyAny>,
            b: Second<'py>,
            #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
        ) -> PyResult<()> {
            at(Function::ALL[$number], a, indices, b, threads)
        }
    )*};
}

functions! {
    /// Add `b` to ``a[indices]`` in place, once for each occurrence of an index: ``np.add.at``.
    ///
    #[doc = docs!("numpy function")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([1, 2, 3, 4])
    /// >>> ndscatter.add_at(a, [0, 1, 1], 10)
    /// >>> a
    /// array([11, 22,  3,  4])
    add_at => 0;

    /// Subtract `b` from ``a[indices]`` in place, once for each occurrence of an index:
    /// ``np.subtract.at``.
    ///
    #[doc = docs!("numpy function")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([10, 20, 30])
    /// >>> ndscatter.subtract_at(a, [0, 0, 2], [1, 2, 3])
    /// >>> a
    /// array([ 7, 20, 27])
    subtract_at => 1;

    /// Multiply ``a[indices]`` by `b` in place, once for each occurrence of an index:
    /// ``np.multiply.at``.
    ///
    #[doc = docs!("numpy function")]
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([1.0, 2.0, 3.0])
    /// >>> ndscatter.multiply_at(a, [0, 2, 2], 10)
    /// >>> a
    /// array([ 10.,   2., 300.])
    multiply_at => 2;

    /// Replace ``a[indices]`` by the minimum of ``a[indices]`` and `b` in place:
    /// ``np.minimum.at``.
    ///
    #[doc = docs!("numpy function")]
    ///
    /// If the element of `a` or the value of `b` is NaN, the result is NaN. If the element and the
    /// value are zeros of different signs, a kernel of ndscatter keeps the element. numpy's result
    /// for such zeros depends on the type and the machine.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([5, 5, 5])
    /// >>> ndscatter.minimum_at(a, [0, 0, 2], [3, 4, 9])
    /// >>> a
    /// array([3, 5, 5])
    minimum_at => 3;

    /// Replace ``a[indices]`` by the maximum of ``a[indices]`` and `b` in place:
    /// ``np.maximum.at``.
    ///
    #[doc = docs!("numpy function")]
    ///
    /// If the element of `a` or the value of `b` is NaN, the result is NaN. If the element and the
    /// value are zeros of different signs, a kernel of ndscatter keeps the element. numpy's result
    /// for such zeros depends on the type and the machine.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([5, 5, 5])
    /// >>> ndscatter.maximum_at(a, [0, 0, 2], [3, 7, 9])
    /// >>> a
    /// array([7, 5, 9])
    maximum_at => 4;
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_scatter_at, module)?)?;
    module.add_function(wrap_pyfunction!(add_at, module)?)?;
    module.add_function(wrap_pyfunction!(subtract_at, module)?)?;
    module.add_function(wrap_pyfunction!(multiply_at, module)?)?;
    module.add_function(wrap_pyfunction!(minimum_at, module)?)?;
    module.add_function(wrap_pyfunction!(maximum_at, module)?)
}
