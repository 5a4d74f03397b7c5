//! `add_at`, `subtract_at`, `multiply_at`, `minimum_at` and `maximum_at`: the rules of
//! `np.ufunc.at`.
//!
//! Handles the common arguments: an `a` and a `b` of one dtype, and indices of [`index`]. All other
//! indices, and types that numpy promotes, are passed to the package's `_at.py`.

mod index;

use std::convert::Infallible;

use ndscatter::{AnyView, DType, Operator, Reduction, ScatterError, TensorView};
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};

use crate::array::{Array, Dims, Number, Source, elements_of, is_exactly};
use crate::failure::Failure;
use crate::options::Meaning;
use crate::threads::{execution, run};
use crate::value::Value;
use index::{Index, Listed};

/// One of the five functions.
#[derive(Clone, Copy, Debug)]
struct Function {
    /// Name of numpy's ufunc.
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

    /// Checks whether a kernel gives the result of numpy's loop.
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

/// The updates: an array, or one value for all indices.
enum Values<'py> {
    Array(Array<'py>),
    One(Value),
}

/// A call that a kernel can run.
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
        // numpy's exception type and text.
        return Err(PyValueError::new_err("second operand needed for ufunc"));
    };
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

/// The argument `b`. A missing argument differs from the value None.
struct Second<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Second<'py> {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// Minimum number of elements of an argument for which [`at`] converts the arguments that [`plain`]
/// does not support. If all arguments are shorter, numpy's loop runs, which costs less than the
/// conversion.
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
    // Other long objects than lists are rare.
    (object.cast::<PyList>()).map_or(true, |list| list.len() < SHORT)
}

/// Makes the call if the arguments are plain: `a` is a numpy array that does not overlap itself,
/// `b` needs no promotion by numpy, and [`index`] supports the indices. Otherwise returns `None`.
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
    // The conversion of values and indices may have run Python code that changed `a`.
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

/// Reads `b`. Returns `None` if numpy would promote `a` and `b` to another type.
fn values<'py>(function: Function, dtype: DType, b: &Bound<'py, PyAny>) -> Option<Values<'py>> {
    let array = match Array::of_numpy(b) {
        Some(array) => array,
        None => match number(b) {
            Some(number) => return number.value(function, dtype).map(Values::One),
            // Lists, numpy's scalars, tensors of other libraries.
            None => Source::of(b).and_then(Source::read).ok()?,
        },
    };
    if array.dtype()? == dtype {
        return Some(Values::Array(array));
    }
    // One value of another type. numpy's loop computes with it as with a Python number.
    let number = array.number()?;
    number.value(function, dtype).map(Values::One)
}

/// Returns the value of a Python float, bool or int. Other objects, and subclasses, give `None`.
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
    /// Converts the number to `dtype`, if numpy's loop gives the same result with it.
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
    /// Returns the shape of `a[indices]`.
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

    /// Applies one value to all indices.
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

/// Applies `b` to the elements of `a` that `indices` address: tuples of coordinates along the last
/// axis of `indices`. Used by `_at.py`.
///
/// Returns false, and writes nothing, if `a` overlaps itself.
#[pyfunction]
fn _scatter_at(
    name: &str,
    a: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    threads: Option<isize>,
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
            threads: Option<isize>,
        ) -> PyResult<()> {
            at(Function::ALL[$number], a, indices, b, threads)
        }
    )*};
}

functions! {
    /// Add `b` to ``a[indices]`` in place, once for each occurrence of an index: ``np.add.at``.
    ///
    /// Args:
    ///     a: writable numpy array of any shape.
    ///     indices: any index of numpy: integers, booleans, slices, arrays, None, and tuples
    ///         of these.
    ///     b: array, list or number that broadcasts to the shape of ``a[indices]``. It is
    ///         copied if it shares memory with `a`.
    ///     threads: largest number of threads; 1 is the calling thread, None is all threads.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds, or is not an index.
    ///     TypeError: `a` is not a numpy array, or the types have no sum. For a tensor of another
    ///         library, use ``scatter_update(a, indices, b, reduction="add", out=a)``.
    ///     ValueError: `b` does not broadcast, or `a` is read-only.
    ///
    /// After an error nothing has been written. Values for one element are applied in the
    /// row-major order of `indices`. The result has the bits of numpy's, at any number of
    /// threads. Floats that overflow give no warnings. numpy's own function runs if numpy
    /// promotes `a` and `b` to a type that differs from both, or if ndscatter has no
    /// arithmetic for their type.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([1, 2, 3, 4])
    /// >>> ndscatter.add_at(a, [0, 1, 1], 10)
    /// >>> a
    /// array([11, 22,  3,  4])
    add_at => 0;

    /// Subtract `b` from ``a[indices]`` in place, once for each occurrence of an index:
    /// ``np.subtract.at``. Arguments and errors are those of `add_at`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([10, 20, 30])
    /// >>> ndscatter.subtract_at(a, [0, 0, 2], [1, 2, 3])
    /// >>> a
    /// array([ 7, 20, 27])
    subtract_at => 1;

    /// Multiply ``a[indices]`` by `b` in place, once for each occurrence of an index:
    /// ``np.multiply.at``. Arguments and errors are those of `add_at`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([1.0, 2.0, 3.0])
    /// >>> ndscatter.multiply_at(a, [0, 2, 2], 10)
    /// >>> a
    /// array([ 10.,   2., 300.])
    multiply_at => 2;

    /// Replace ``a[indices]`` by the minimum of ``a[indices]`` and `b` in place:
    /// ``np.minimum.at``. Arguments and errors are those of `add_at`.
    ///
    /// The result is NaN if either value is NaN. If both are zeros that differ in sign, the
    /// existing value stays. In this case numpy's result depends on type and machine.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([5, 5, 5])
    /// >>> ndscatter.minimum_at(a, [0, 0, 2], [3, 4, 9])
    /// >>> a
    /// array([3, 5, 5])
    minimum_at => 3;

    /// Replace ``a[indices]`` by the maximum of ``a[indices]`` and `b` in place:
    /// ``np.maximum.at``. Arguments and errors are those of `add_at`.
    ///
    /// NaN and zeros are treated as by `minimum_at`.
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
