//! `add_at` and its kin: the rules of `np.ufunc.at`.
//!
//! Knows arrays of integers and tuples of them, which a kernel takes as they are. Whatever
//! else numpy takes as an index, and types that it promotes, are left to the package's
//! `_at.py`.

mod index;

use ndscatter::{AnyView, DType, Layout, Reduction, ScatterError, TensorView};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

use crate::array::{Array, Dims, is_exactly};
use crate::failure::Failure;
use crate::options::{Meaning, Operator, Rules};
use crate::threads::{execution, run};
use crate::value::Value;
use index::Index;

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
    b: &Bound<'py, PyAny>,
    threads: Option<isize>,
) -> PyResult<()> {
    if plain(function, a, indices, b, threads)?.is_some() {
        return Ok(());
    }
    let py = a.py();
    if Array::of_numpy(a).is_some() && [a, indices, b].into_iter().all(is_short) {
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

/// Calls on fewer elements than so many whose arguments are not plain are numpy's: to look
/// into them takes longer.
const SHORT: usize = 2000;

fn is_short(object: &Bound<'_, PyAny>) -> bool {
    if let Some(array) = Array::of_numpy(object) {
        return array.len() < SHORT;
    }
    if let Ok(parts) = object.cast::<PyTuple>() {
        return parts.iter_borrowed().all(|part| is_short(&part));
    }
    // Anything else that is long is a list, or rare.
    (object.cast::<PyList>()).map_or(true, |list| list.len() < SHORT)
}

/// Makes the call, if its arguments are plain.
fn plain<'py>(
    function: Function,
    a: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    threads: Option<isize>,
) -> PyResult<Option<()>> {
    let Some(mut a) = Array::of_numpy(a) else {
        return Ok(None);
    };
    a.check_writable()?;
    if a.dtype().is_some() && a.may_overlap_itself()? {
        return Ok(None);
    }
    let Some(dtype) = a.dtype().filter(|&dtype| function.is_defined(dtype)) else {
        return Ok(None);
    };
    let Some(values) = values(function, dtype, b) else {
        return Ok(None);
    };
    let Some((axis, indices)) = index::index(indices, &mut a, threads)? else {
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
    if let Some(array) = Array::of_numpy(b) {
        return other_array(function, dtype, array);
    }
    if is_exactly::<PyFloat>(b) {
        return Value::of_float(dtype, b.extract().ok()?).map(Values::One);
    }
    if is_exactly::<PyBool>(b) && dtype == DType::Bool {
        return Some(Values::One(Value::of_bool(b.is_truthy().ok()?)));
    }
    if is_exactly::<PyInt>(b) {
        let wraps = !matches!(function.reduction, Reduction::Min | Reduction::Max);
        return Value::of_integer(dtype, b.extract().ok()?, wraps).map(Values::One);
    }
    // Lists, numpy's scalars, tensors of other libraries.
    other_array(function, dtype, Array::of(b).ok()?)
}

/// An array of the type of `a`, or one value of a type whose values numpy's loop takes as
/// Python's.
fn other_array<'py>(function: Function, dtype: DType, array: Array<'py>) -> Option<Values<'py>> {
    let found = array.dtype()?;
    if found == dtype {
        return Some(Values::Array(array));
    }
    let is_float = matches!(found, DType::F16 | DType::F32 | DType::F64);
    let is_taken = is_float || (found.is_index() && found != DType::U64);
    if array.rank() > 0 || !is_taken {
        return None;
    }
    let object = array.object()?;
    let value = object.call_method0(intern!(object.py(), "item")).ok()?;
    values(function, dtype, &value)
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
        let strides: Dims<isize> = SmallVec::from_elem(0, shape.len());
        let layout = Layout::strided(&shape, &strides).map_err(Failure)?;
        loop {
            let view = AnyView::from_bytes(&value.0, dtype, layout).map_err(Failure)?;
            match self.scatter(view, shape.iter().product())? {
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
            ..Meaning::REPLACE
        };
        let scatter = self.operator.scatter(meaning, Rules::NUMPY);
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
    let (a, b) = (Array::of(a)?, Array::of(b)?);
    let indices = Array::of(indices)?;
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
        #[pyo3(signature = (a, indices, b, *, threads=None))]
        pub(crate) fn $name(
            a: &Bound<'_, PyAny>,
            indices: &Bound<'_, PyAny>,
            b: &Bound<'_, PyAny>,
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
