//! `add_at` and its kin: the rules of `np.ufunc.at`.
//!
//! Knows arrays of integers and tuples of them, which a kernel takes as they are. Whatever
//! else numpy takes as an index, and types that it promotes, are left to the package's
//! `_at.py`.

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

/// One of the functions.
#[derive(Clone, Copy, Debug)]
struct Function {
    /// The ufunc's name.
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

    /// Whether a kernel gives what numpy's loop does.
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

/// What an update is: an array, or one value for all.
enum Values<'py> {
    Array(Array<'py>),
    One(Value),
}

/// A call whose arguments are such that a kernel takes them.
struct Call<'py> {
    function: Function,
    a: Array<'py>,
    operator: Operator,
    /// That of `a` which is indexed.
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
        // numpy's own type of error, and its text.
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

/// The argument `b`, which may be missing; None is a value.
struct Second<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Second<'py> {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// Calls on fewer elements than so many whose arguments are not plain are numpy's: to look
/// into them takes longer.
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
    // Anything else that is long is a list, or rare.
    (object.cast::<PyList>()).map_or(true, |list| list.len() < SHORT)
}

/// Makes the call, if its arguments are plain.
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
    // Values and indices were converted, by Python code perhaps, which may have changed `a`.
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

/// What `b` is, if it needs no conversion that numpy has rules for.
fn values<'py>(function: Function, dtype: DType, b: &Bound<'py, PyAny>) -> Option<Values<'py>> {
    let array = match Array::of_numpy(b) {
        Some(array) => array,
        None => match number(b) {
            Some(number) => return number.value(function, dtype).map(Values::One),
            // Lists, numpy's scalars, tensors of other libraries.
            None => Source::of(b).and_then(Source::look).ok()?,
        },
    };
    if array.dtype()? == dtype {
        return Some(Values::Array(array));
    }
    // One value, of a type whose values numpy's loop takes as Python's.
    let number = array.number()?;
    number.value(function, dtype).map(Values::One)
}

/// The number that an object of Python's own types is.
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
    /// The number in a type, if numpy's loop computes the same with it.
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
    /// The shape of `a[indices]`.
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
                "array is not broadcastable to correct shape: `b` has {:?}, and the places \
                 {:?}",
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

    /// One value for all places.
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

/// Applies `b` to the places of `a` that `indices`, coordinates along its last axis, name:
/// for `_at.py`. Returns whether that was done: not where `a` overlaps itself.
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
    let function = found.ok_or_else(|| PyValueError::new_err("no such function"))?;
    let [a, indices, b] = [Source::of(a)?, Source::of(indices)?, Source::of(b)?];
    let (a, indices, b) = (a.look()?, indices.look()?, b.look()?);
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
    /// Add `b` to ``a[indices]``, once for each time that a place is named: ``np.add.at``.
    ///
    /// Args:
    ///     a: array of numpy's that can be written; it is changed.
    ///     indices: whatever numpy takes as an index: integers, booleans, slices, arrays, and
    ///         tuples of those.
    ///     b: what broadcasts to the shape of ``a[indices]``; a copy is made of it if it
    ///         shares memory with `a`.
    ///     threads: at most so many; 1 is the calling thread; None is all.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds, or no index.
    ///     TypeError: types that have no sum.
    ///     ValueError: `b` does not fit, or `a` is read-only.
    ///
    /// Nothing has been written then. The result has the bits of numpy's, at any number of
    /// threads; no warnings are given for floats that overflow. Where numpy promotes `a` and
    /// `b` to a type that is neither's, or has types that ndscatter does not compute with,
    /// numpy's own function runs.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([1, 2, 3, 4])
    /// >>> ndscatter.add_at(a, [0, 1, 1], 10)
    /// >>> a
    /// array([11, 22,  3,  4])
    add_at => 0;

    /// Subtract `b` from ``a[indices]``, once for each time that a place is named:
    /// ``np.subtract.at``. See `add_at`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([10, 20, 30])
    /// >>> ndscatter.subtract_at(a, [0, 0, 2], [1, 2, 3])
    /// >>> a
    /// array([ 7, 20, 27])
    subtract_at => 1;

    /// Multiply ``a[indices]`` by `b`, once for each time that a place is named:
    /// ``np.multiply.at``. See `add_at`.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([1.0, 2.0, 3.0])
    /// >>> ndscatter.multiply_at(a, [0, 2, 2], 10)
    /// >>> a
    /// array([ 10.,   2., 300.])
    multiply_at => 2;

    /// The smaller of ``a[indices]`` and `b`, or NaN if either is: ``np.minimum.at``. See
    /// `add_at`.
    ///
    /// Of zeros that differ in sign the one that is there stays; numpy's result depends on
    /// type and machine.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> a = np.array([5, 5, 5])
    /// >>> ndscatter.minimum_at(a, [0, 0, 2], [3, 4, 9])
    /// >>> a
    /// array([3, 5, 5])
    minimum_at => 3;

    /// The larger of ``a[indices]`` and `b`, or NaN if either is: ``np.maximum.at``. See
    /// `add_at` and, for zeros, `minimum_at`.
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
