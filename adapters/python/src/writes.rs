//! Writes of slots and of rows, in place: `write_paged`, `write_all` and `Write`. A write may
//! convert its updates to the element type of `data`.
//!
//! This module knows the arguments of a write, the order in which the arguments are converted, and
//! when a write converts. It does not know how an array is read, or how a write runs.

use ndscatter::{
    Conversion, DType, Format, Operator, Rounding, Scaling, ScatterError, ScatterPlan, Write,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::array::{Array, Dims, Source, note_written};
use crate::docs::docs;
use crate::failure::{Failure, collect, optional_integer};
use crate::operands;
use crate::options::{Meaning, choose};
use crate::threads::{execution, run};
use crate::types::format_name;

/// How a write converts. `format` is `None` if the caller has set no format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rules {
    format: Option<Format>,
    rounding: Rounding,
    scaling: Scaling,
}

impl Rules {
    fn parse(format: Option<&str>, rounding: &str, scaling: &str) -> PyResult<Self> {
        Ok(Self {
            format: format.map(|name| choose("format", name)).transpose()?,
            rounding: choose("rounding", rounding)?,
            scaling: choose("scaling", scaling)?,
        })
    }

    /// Returns the rules with the format of the elements of `data`. Returns an error if the element
    /// type of `data` names another format or no format, and if uint8 data has no format. Engines
    /// store several formats as uint8.
    fn for_data(self, data: &Array<'_>) -> PyResult<Self> {
        match (data.plain(), data.float8()) {
            (Some(DType::U8), _) if self.format.is_none() => Err(PyValueError::new_err(
                "`data` of uint8 may have several formats; pass `format`, such as \"uint8\" or \
                 \"float8_e4m3fn\"",
            )),
            (Some(_), _) => Ok(self),
            (None, Some(named)) if self.format.is_none_or(|format| format == named) => Ok(Self {
                format: Some(named),
                ..self
            }),
            _ => Err(PyTypeError::new_err(format!(
                "a write does not convert to {} in `data` of {}",
                self.format
                    .map_or_else(|| "the elements".to_owned(), format_name),
                data.type_name()
            ))),
        }
    }
}

/// The arguments of one write.
pub(crate) struct Request<'a, 'py> {
    data: &'a Bound<'py, PyAny>,
    updates: &'a Bound<'py, PyAny>,
    scale: Option<&'a Bound<'py, PyAny>>,
    zero_point: Option<&'a Bound<'py, PyAny>>,
    rules: Rules,
}

/// The converted arguments of one write, before any array is read.
struct Sources<'py> {
    data: Source<'py>,
    updates: Source<'py>,
    scale: Option<Source<'py>>,
    zero_point: Option<Source<'py>>,
    rules: Rules,
}

/// The arrays of one write. `rules` is `None` if the updates are copied without a conversion.
struct Arrays<'py> {
    data: Array<'py>,
    updates: Array<'py>,
    scale: Option<Array<'py>>,
    zero_point: Option<Array<'py>>,
    rules: Option<Rules>,
}

impl<'py> Request<'_, 'py> {
    fn sources(&self) -> PyResult<Sources<'py>> {
        Ok(Sources {
            data: Source::of_written("data", self.data)?,
            updates: Source::of(self.updates)?,
            scale: self.scale.map(Source::of).transpose()?,
            zero_point: self.zero_point.map(Source::of).transpose()?,
            rules: self.rules,
        })
    }
}

impl<'py> Sources<'py> {
    fn read(self) -> PyResult<Arrays<'py>> {
        let (data, updates) = (self.data.read()?, self.updates.read()?);
        data.check_writable()?;
        let plain = Rules {
            format: None,
            rounding: Rounding::default(),
            scaling: self.rules.scaling,
        };
        let is_plain = self.rules == plain && self.scale.is_none() && self.zero_point.is_none();
        // A list or a number has no element type. It gets the type of `data` if `data` has
        // arithmetic.
        let is_same = match updates.is_converted() {
            true => data.plain().is_some(),
            false => updates.has_type_of(&data) || differs_in_order(&updates, &data),
        };
        let rules = match is_plain && is_same {
            true => None,
            false => Some(self.rules.for_data(&data)?),
        };
        let updates = match (updates.is_converted(), rules) {
            (true, None) => updates.cast_like(&data, "same_kind")?,
            (true, Some(_)) => updates.cast_to("float32", "same_kind")?,
            (false, _) => updates,
        };
        // Elements of `data` in another byte order are moved as bytes, with updates of this order.
        let updates = match data.dtype() {
            None if rules.is_none() && updates.has_type_of(&data) => operands::as_bytes(updates)?,
            _ => operands::aligned(updates)?,
        };
        Ok(Arrays {
            data: operands::in_place(data)?,
            updates,
            scale: numbers(self.scale, "float32")?,
            zero_point: numbers(self.zero_point, "int32")?,
            rules,
        })
    }
}

/// Whether two arrays of numpy have one element type in different byte orders.
fn differs_in_order(updates: &Array<'_>, data: &Array<'_>) -> bool {
    updates.is_numpy() && updates.plain().is_some() && updates.plain() == data.plain()
}

/// Reads a scale or a zero point. A list or a number is converted to numpy's type `name`.
fn numbers<'py>(source: Option<Source<'py>>, name: &str) -> PyResult<Option<Array<'py>>> {
    let read = |source: Source<'py>| {
        let array = source.read()?;
        match array.is_converted() {
            true => array.cast_to(name, "same_kind"),
            false => operands::aligned(array),
        }
    };
    source.map(read).transpose()
}

impl Arrays<'_> {
    /// Broadcasts the updates to the shape `expected`, which counts elements of `data`. If the rules
    /// of numpy do not allow this, the call returns the error of the crate.
    fn fit_updates(&mut self, expected: &[usize]) {
        let mut expected = Dims::from_slice(expected);
        let format = self.rules.and_then(|rules| rules.format);
        if format.is_some_and(Format::is_packed)
            && let Some(last) = expected.last_mut()
        {
            *last = last.saturating_mul(2);
        }
        if self.updates.shape() != &expected[..] {
            self.updates.broadcast(&expected);
        }
    }

    fn view(&self) -> PyResult<Write<'_>> {
        let write = Write::new(self.data.view_mut()?, self.updates.view()?);
        let Some(rules) = self.rules else {
            return Ok(write);
        };
        let mut conversion = Conversion::new()
            .rounding(rules.rounding)
            .scaling(rules.scaling);
        if let Some(format) = rules.format {
            conversion = conversion.format(format);
        }
        if let Some(scale) = &self.scale {
            conversion = conversion.scale(scale.view()?);
        }
        if let Some(zero_point) = &self.zero_point {
            conversion = conversion.zero_point(zero_point.view()?);
        }
        Ok(write.convert(conversion))
    }
}

fn run_all(
    py: Python<'_>,
    arrays: &[Arrays<'_>],
    call: impl FnOnce(&mut [Write<'_>]) -> Result<(), ScatterError> + Send,
) -> PyResult<()> {
    let mut writes = collect(arrays.iter().map(Arrays::view))?;
    let elements = arrays.iter().map(|arrays| arrays.updates.len());
    let elements = elements.fold(0, usize::saturating_add);
    run(py, elements, || call(&mut writes))?.map_err(Failure)?;
    arrays
        .iter()
        .try_for_each(|arrays| note_written(&arrays.data))
}

/// The indices of writes, and the options of these indices.
struct Places<'a, 'py> {
    indices: &'a Bound<'py, PyAny>,
    /// The indexed axis. `None` if the indices are slots of a paged cache.
    axis: Option<isize>,
    bounds: &'a str,
    duplicates: &'a str,
    threads: Option<isize>,
}

impl<'py> Places<'_, 'py> {
    fn write(&self, requests: &[Request<'_, 'py>]) -> PyResult<()> {
        let py = self.indices.py();
        let operator = match self.axis {
            Some(axis) => Operator::Along { axis },
            None => Operator::Paged,
        };
        let scatter = Meaning::of_rows(self.bounds, self.duplicates)?.scatter(operator)?;
        let scatter = scatter.execution(execution(self.threads)?);
        let indices = Source::of(self.indices)?;
        let sources = requests.iter().map(Request::sources);
        let sources = collect(sources)?;
        let indices = operands::indices(indices)?;
        let arrays = sources.into_iter().map(Sources::read);
        let mut arrays = collect(arrays)?;
        for arrays in &mut arrays {
            let expected = operator.updates_shape(arrays.data.shape(), indices.shape());
            arrays.fit_updates(&expected.map_err(Failure)?);
        }
        let at = indices.view()?;
        run_all(py, &arrays, |writes| scatter.write_all(at, writes))
    }
}

/// Runs writes with the indices of a plan.
pub(crate) fn write_planned<'py>(
    py: Python<'py>,
    plan: &ScatterPlan,
    writes: &[Bound<'py, PyWrite>],
    threads: Option<isize>,
) -> PyResult<()> {
    let execution = execution(threads)?;
    let sources = writes.iter().map(|write| write.get().request(py).sources());
    let sources = collect(sources)?;
    let arrays = sources.into_iter().map(Sources::read);
    let mut arrays = collect(arrays)?;
    for arrays in &mut arrays {
        arrays.fit_updates(plan.updates_shape());
    }
    let run = plan.run().execution(execution);
    run_all(py, &arrays, |writes| run.write_all(writes))
}

/// One write of a call of `write_all`: an array, its updates, and how the updates are converted.
///
/// A `Write` keeps its arrays, so it can be used again after their values have changed. The call of
/// `write_all` checks the arrays. Updates of the element type of `data` are copied, if no argument
/// asks for a conversion. Other updates are converted, and must be float32, float16 or bfloat16.
///
/// Args:
///     data: the array that the write changes.
///     updates: array of the shape that the indices and `data` require, or of a shape that broadcasts
///         to it. For slots of a paged cache, this shape is ``slots.shape + data.shape[2:]``.
#[doc = docs!("conversion")]
///
/// Raises:
///     ValueError: `format`, `rounding` or `scaling` has an unknown name.
///
/// >>> import numpy as np, ndscatter
/// >>> keys, step = np.zeros((2, 2, 1), np.int8), np.zeros((1, 1), np.float32)
/// >>> write = ndscatter.Write(keys, step, scale=0.5)
/// >>> for slot, value in ((3, 1.0), (0, 2.5)):
/// ...     step[:] = value
/// ...     ndscatter.write_all([slot], [write])
/// >>> keys[..., 0]
/// array([[5, 0],
///        [0, 2]], dtype=int8)
#[pyclass(frozen, module = "ndscatter", name = "Write")]
pub(crate) struct PyWrite {
    data: Py<PyAny>,
    updates: Py<PyAny>,
    scale: Option<Py<PyAny>>,
    zero_point: Option<Py<PyAny>>,
    rules: Rules,
}

#[pymethods]
impl PyWrite {
    #[new]
    #[pyo3(signature = (
        data, updates, *, format=None, rounding="nearest even", scaling="divide", scale=None,
        zero_point=None,
    ))]
    fn new(
        data: Py<PyAny>,
        updates: Py<PyAny>,
        format: Option<&str>,
        rounding: &str,
        scaling: &str,
        scale: Option<Py<PyAny>>,
        zero_point: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            data,
            updates,
            scale,
            zero_point,
            rules: Rules::parse(format, rounding, scaling)?,
        })
    }

    /// The array that the write changes.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyAny> {
        self.data.clone_ref(py)
    }

    /// The values that the write stores in `data`.
    #[getter]
    fn updates(&self, py: Python<'_>) -> Py<PyAny> {
        self.updates.clone_ref(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.data)?;
        visit.call(&self.updates)?;
        visit.call(&self.scale)?;
        visit.call(&self.zero_point)
    }
}

impl PyWrite {
    fn request<'a, 'py>(&'a self, py: Python<'py>) -> Request<'a, 'py> {
        Request {
            data: self.data.bind(py),
            updates: self.updates.bind(py),
            scale: self.scale.as_ref().map(|scale| scale.bind(py)),
            zero_point: self.zero_point.as_ref().map(|zero| zero.bind(py)),
            rules: self.rules,
        }
    }
}

/// Write new rows to slots of a paged cache, in place, and convert them to the cache's elements.
///
/// A paged cache has the shape ``(blocks, block_size, ...)``. Slot ``s`` is
/// ``data[s // block_size, s % block_size]``. A cache that stores another order of axes is passed as
/// a view: ``cache.transpose(0, 2, 1, 3)`` in numpy or ``cache.transpose(1, 2)`` in PyTorch for
/// ``(blocks, heads, block_size, dim)``. If several updates have the same slot, the last one stays.
///
/// Args:
///     data: the cache.
///     slots: integers of any integer type and any shape.
///     updates: array of shape ``slots.shape + data.shape[2:]`` or a shape that broadcasts to it.
///         Updates of the element type of `data` are copied, if no argument asks for a conversion.
///         Other updates are converted, and must be float32, float16 or bfloat16.
#[doc = docs!("conversion")]
#[doc = docs!("write slots")]
#[doc = docs!("duplicates")]
#[doc = docs!("threads")]
///
#[doc = docs!("slot errors")]
/// The rule for slots is that of vLLM's ``reshape_and_cache``.
///
/// >>> import numpy as np, ndscatter
/// >>> cache = np.zeros((2, 2, 2), np.int8)
/// >>> rows = np.array([[0.25, -1.0], [9.0, 9.0], [1.0, 70.0]], np.float32)
/// >>> ndscatter.write_paged(cache, [3, -1, 0], rows, scale=0.5)
/// >>> cache
/// array([[[  2, 127],
///         [  0,   0]],
/// <BLANKLINE>
///        [[  0,   0],
///         [  0,  -2]]], dtype=int8)
#[pyfunction]
#[pyo3(signature = (
    data, slots, updates, *, format=None, rounding="nearest even", scaling="divide", scale=None,
    zero_point=None, bounds="skip negative", duplicates="allow", threads=None,
))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn write_paged<'py>(
    data: &Bound<'py, PyAny>,
    slots: &Bound<'py, PyAny>,
    updates: &Bound<'py, PyAny>,
    format: Option<&str>,
    rounding: &str,
    scaling: &str,
    scale: Option<&Bound<'py, PyAny>>,
    zero_point: Option<&Bound<'py, PyAny>>,
    bounds: &str,
    duplicates: &str,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<()> {
    let places = Places {
        indices: slots,
        axis: None,
        bounds,
        duplicates,
        threads,
    };
    places.write(&[Request {
        data,
        updates,
        scale,
        zero_point,
        rules: Rules::parse(format, rounding, scaling)?,
    }])
}

/// Run several writes with the same indices, each in place and with its own arrays.
///
/// All writes are checked before the first element is written. The threads divide the work of all
/// writes, for example of the keys and values of all layers of a model.
///
/// Args:
///     indices: integers of any integer type and any shape.
///     writes: a sequence of `Write`. The arrays that they change must not share memory.
///     axis: the indexed axis, as in `scatter_update`. None: the indices are slots, as in
///         `write_paged`. For a cache of shape ``(slots, heads, dim)``, pass ``axis=0``.
#[doc = docs!("write slots")]
#[doc = docs!("duplicates")]
#[doc = docs!("threads")]
///
/// If several updates have the same destination, the last one stays.
///
#[doc = docs!("slot errors")]
///
/// >>> import numpy as np, ndscatter
/// >>> keys, values = np.zeros((4, 1), np.float16), np.zeros((4, 1), np.float32)
/// >>> step = np.array([[1.5], [2.5]], np.float32)
/// >>> writes = [ndscatter.Write(keys, step), ndscatter.Write(values, -step)]
/// >>> ndscatter.write_all([2, 0], writes, axis=0)
/// >>> keys[:, 0], values[:, 0]
/// (array([2.5, 0. , 1.5, 0. ], dtype=float16), array([-2.5,  0. , -1.5,  0. ], dtype=float32))
#[pyfunction]
#[pyo3(signature = (
    indices, writes, *, axis=None, bounds="skip negative", duplicates="allow", threads=None,
))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 converts the sequence")]
pub(crate) fn write_all<'py>(
    indices: &Bound<'py, PyAny>,
    writes: Vec<Bound<'py, PyWrite>>,
    #[pyo3(from_py_with = optional_integer)] axis: Option<isize>,
    bounds: &str,
    duplicates: &str,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<()> {
    let py = indices.py();
    let places = Places {
        indices,
        axis,
        bounds,
        duplicates,
        threads,
    };
    let requests = writes.iter().map(|write| write.get().request(py));
    places.write(&collect(requests.map(Ok))?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWrite>()?;
    module.add_function(wrap_pyfunction!(write_paged, module)?)?;
    module.add_function(wrap_pyfunction!(write_all, module)?)
}
