//! Tables whose rows are divided among several processes: `Sharding`, `ShardedPlan` and
//! `plan_sharded`.
//!
//! This module knows the arguments of these classes. It does not know the transport between
//! processes.

use ndscatter::{Operator, Packing, Reduction, ShardedPlan, Sharding};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::array::{Dims, Source};
use crate::docs::docs;
use crate::failure::{Failure, collect, foreign, integer, optional_integer};
use crate::operands;
use crate::options::{Meaning, choose};
use crate::threads::{execution, run};

/// Division of the rows of a table among parts, for example the processes of a cluster. The class
/// methods `blocks`, `modulo` and `starts` make one.
///
/// >>> import ndscatter
/// >>> sharding = ndscatter.Sharding.blocks(2)
/// >>> [sharding.rows_of(part, 7) for part in range(2)]
/// [4, 3]
/// >>> sharding.owner(5, 7), sharding.row(1, 1, 7)
/// ((1, 1), 5)
#[pyclass(frozen, eq, module = "ndscatter", name = "Sharding")]
#[derive(PartialEq)]
pub(crate) struct PySharding {
    sharding: Sharding,
    constructor: Constructor,
}

/// The class method that made a `Sharding`, and its argument.
#[derive(PartialEq)]
enum Constructor {
    Blocks,
    Modulo,
    Starts(Vec<usize>),
}

#[pymethods]
impl PySharding {
    /// Divide the rows into `parts` blocks of consecutive rows. Every block has
    /// ``ceil(rows / parts)`` rows. The last blocks may have fewer rows, or none. This is the
    /// division of ``torch.chunk``, and of a ``DTensor`` with the placement ``Shard(0)``.
    ///
    /// Args:
    ///     parts: number of parts, at least 1.
    ///
    /// Raises:
    ///     ValueError: `parts` is 0 or too large.
    #[classmethod]
    fn blocks(
        _class: &Bound<'_, PyType>,
        #[pyo3(from_py_with = integer)] parts: usize,
    ) -> PyResult<Self> {
        Self::new(Sharding::blocks(parts), Constructor::Blocks)
    }

    /// Give row ``r`` to part ``r % parts``. Row ``r`` is row ``r // parts`` of this part.
    ///
    /// Args:
    ///     parts: number of parts, at least 1.
    ///
    /// Raises:
    ///     ValueError: `parts` is 0 or too large.
    #[classmethod]
    fn modulo(
        _class: &Bound<'_, PyType>,
        #[pyo3(from_py_with = integer)] parts: usize,
    ) -> PyResult<Self> {
        Self::new(Sharding::modulo(parts), Constructor::Modulo)
    }

    /// Give the rows from ``starts[p]`` to ``starts[p + 1] - 1`` to part ``p``. The last part has all
    /// rows from its start to the end of the table.
    ///
    /// Args:
    ///     starts: the first row of each part: 0, and then integers in ascending order.
    ///
    /// Raises:
    ///     ValueError: `starts` is empty, does not begin with 0, or does not ascend.
    #[classmethod]
    fn starts(_class: &Bound<'_, PyType>, starts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = starts.py();
        let items = starts.try_iter().map_err(|error| foreign(py, error))?;
        let starts =
            collect(items.map(|item| integer(&item.map_err(|error| foreign(py, error))?)))?;
        Self::new(Sharding::starts(&starts), Constructor::Starts(starts))
    }

    /// Number of parts.
    #[getter]
    fn parts(&self) -> usize {
        self.sharding.parts()
    }

    /// Return the number of rows that part `part` has of a table of `rows` rows.
    fn rows_of(
        &self,
        #[pyo3(from_py_with = integer)] part: usize,
        #[pyo3(from_py_with = integer)] rows: usize,
    ) -> usize {
        self.sharding.rows_of(part, rows)
    }

    /// Return the part that has row `row` of a table of `rows` rows, and the position of the row in
    /// this part. Return None if the table has no such row.
    fn owner(
        &self,
        #[pyo3(from_py_with = integer)] row: usize,
        #[pyo3(from_py_with = integer)] rows: usize,
    ) -> Option<(usize, usize)> {
        self.sharding.owner(row, rows)
    }

    /// Return the row of the table that is row `local` of part `part`. `rows` is the number of rows
    /// of the table. Return None if the part has no such row.
    fn row(
        &self,
        #[pyo3(from_py_with = integer)] part: usize,
        #[pyo3(from_py_with = integer)] local: usize,
        #[pyo3(from_py_with = integer)] rows: usize,
    ) -> Option<usize> {
        self.sharding.row(part, local, rows)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, sharding) = (slf.py(), slf.get());
        let parts = sharding.sharding.parts();
        let (name, argument) = match &sharding.constructor {
            Constructor::Blocks => ("blocks", parts.into_pyobject(py)?.into_any()),
            Constructor::Modulo => ("modulo", parts.into_pyobject(py)?.into_any()),
            Constructor::Starts(starts) => ("starts", PyTuple::new(py, starts)?.into_any()),
        };
        let constructor = slf.get_type().getattr(name)?;
        Ok((constructor, PyTuple::new(py, [argument])?))
    }

    fn __repr__(&self) -> String {
        let parts = self.sharding.parts();
        match &self.constructor {
            Constructor::Blocks => format!("ndscatter.Sharding.blocks({parts})"),
            Constructor::Modulo => format!("ndscatter.Sharding.modulo({parts})"),
            Constructor::Starts(starts) => format!("ndscatter.Sharding.starts({starts:?})"),
        }
    }
}

impl PySharding {
    fn new(
        sharding: Result<Sharding, ndscatter::ScatterError>,
        constructor: Constructor,
    ) -> PyResult<Self> {
        Ok(Self {
            sharding: sharding.map_err(Failure)?,
            constructor,
        })
    }
}

/// The tuples of one sender, split by the parts of a table that have their destinations.
/// `plan_sharded` returns it.
///
/// The plan has a list of entries in the order of the parts. The owner of a part applies the entries
/// of sender 0, then those of sender 1, and so on. The result then has the bits of one loop over the
/// tuples of all senders in this order.
///
/// Do not change the arrays of a plan.
#[pyclass(frozen, module = "ndscatter", name = "ShardedPlan")]
pub(crate) struct PyShardedPlan {
    counts: Vec<usize>,
    destinations: Py<PyArray1<i64>>,
    order: Option<Py<PyArray1<i64>>>,
    slots: Option<Py<PyArray1<i64>>>,
    reduction: Reduction,
    tuples: usize,
    skipped: usize,
}

#[pymethods]
impl PyShardedPlan {
    /// Number of entries of each part.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.counts)
    }

    /// Array of int64: the number of each entry's destination among the slices of its part. A slice
    /// is a row, or for tuples of several coordinates a part of a row.
    #[getter]
    fn destinations(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.destinations.clone_ref(py)
    }

    /// Array of int64: the tuple of each entry. The packed updates are
    /// ``gather(updates, order)``, and the results of a gather are scattered to these positions.
    /// None if `slots` is not None.
    #[getter]
    fn order(&self, py: Python<'_>) -> Option<Py<PyArray1<i64>>> {
        self.order.as_ref().map(|order| order.clone_ref(py))
    }

    /// Array of int64: the entry of each tuple, or -1 for a skipped tuple. The updates of an entry
    /// are combined with `packing_reduction`. In a gather, several tuples use one answer. None if
    /// each entry has one tuple: without `combine`, and in a scatter without a reduction, which sends
    /// the last update of a destination.
    #[getter]
    fn slots(&self, py: Python<'_>) -> Option<Py<PyArray1<i64>>> {
        self.slots.as_ref().map(|slots| slots.clone_ref(py))
    }

    /// Name of the reduction that combines the updates of an entry.
    #[getter]
    fn packing_reduction(&self) -> &'static str {
        self.reduction.as_str()
    }

    /// Number of all tuples. The number includes skipped tuples.
    #[getter]
    fn tuples(&self) -> usize {
        self.tuples
    }

    /// Number of tuples that ``bounds="skip"`` dropped.
    #[getter]
    fn skipped(&self) -> usize {
        self.skipped
    }

    fn __repr__(&self) -> String {
        format!(
            "<ndscatter.ShardedPlan for {} parts, {} tuples>",
            self.counts.len(),
            self.tuples
        )
    }
}

impl PyShardedPlan {
    fn new(py: Python<'_>, plan: ShardedPlan) -> Self {
        let array = |list: Vec<i64>| PyArray1::from_vec(py, list).unbind();
        let (counts, tuples, skipped) = (plan.counts().to_vec(), plan.tuples(), plan.skipped());
        let (destinations, packing) = plan.into_lists();
        let (order, slots, reduction) = match packing {
            Packing::Gather { order } => (Some(array(order)), None, Reduction::None),
            Packing::Scatter { slots, reduction } => (None, Some(array(slots)), reduction),
        };
        Self {
            counts,
            destinations: array(destinations),
            order,
            slots,
            reduction,
            tuples,
            skipped,
        }
    }
}

/// Split the tuples of `indices` by the parts of a table that have their destinations. The table
/// itself is not needed, and may be larger than memory. Tuples with the same destination keep their
/// order.
///
/// Args:
///     shape: shape of the whole table: a tuple, or an integer for one axis. The rows are on axis 0.
///     indices: integers of any integer type, which address the whole table.
///     sharding: the division of the rows.
///     operator: ``"rows"`` reads indices as rows, like `scatter_update` and `gather`. ``"tuples"``
///         reads the last axis of `indices` as tuples of coordinates, like `scatter_nd` and
///         `gather_nd`. ``"slots"`` reads slots of a paged cache, like `write_paged` and
///         `gather_paged`.
///     reads: whether the plan is for a gather.
///     combine: whether the plan has one entry for each destination instead of one for each tuple.
///         In a scatter, the updates of a destination are combined before they are sent. For floats
///         with ``"add"``, ``"sub"`` or ``"mul"``, this changes the rounding errors. A combined
///         ``"sub"`` of booleans has another result than the loop.
///     reduction: the reduction of the scatter. It has an effect only if `combine` is true.
///     bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError, ``"skip"``
///         drops the tuple, ``"skip negative"`` drops the tuples of negative indices, and
///         ``"clamp"`` replaces the index by the nearest valid index.
#[doc = docs!("negative")]
#[doc = docs!("threads")]
///
/// Raises:
///     IndexError: an index is out of bounds.
///     TypeError: indices are not integers.
///     ValueError: a shape or an option is wrong, or `combine` is true for ``"mean"``.
///     MemoryError: an allocation failed.
///
/// >>> import ndscatter
/// >>> sharding = ndscatter.Sharding.blocks(2)
/// >>> plan = ndscatter.plan_sharded((5, 64), [4, 0, 4], sharding)
/// >>> plan.counts, plan.destinations, plan.order
/// ((1, 2), array([0, 1, 1]), array([1, 0, 2]))
#[pyfunction]
#[pyo3(signature = (
    shape, indices, sharding, *, operator="rows", reads=false, combine=false, reduction="none",
    bounds="error", negative_indices=true, threads=None,
))]
#[expect(
    clippy::too_many_arguments,
    reason = "the options of Python are keyword arguments"
)]
pub(crate) fn plan_sharded<'py>(
    shape: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    sharding: &Bound<'py, PySharding>,
    operator: &str,
    reads: bool,
    combine: bool,
    reduction: &str,
    bounds: &str,
    negative_indices: bool,
    #[pyo3(from_py_with = optional_integer)] threads: Option<isize>,
) -> PyResult<PyShardedPlan> {
    let (py, execution) = (shape.py(), execution(threads)?);
    let operator = operator_named(operator)?;
    let meaning = Meaning {
        reduction: choose("reduction", reduction)?,
        ..Meaning::of_indices(bounds, negative_indices)?
    };
    let sizes: Dims<usize> = match shape.cast::<PyTuple>() {
        Ok(shape) => (shape.iter().map(|size| integer(&size))).collect::<PyResult<_>>()?,
        Err(_) => smallvec::smallvec![integer(shape)?],
    };
    let array = operands::indices(Source::of(indices)?)?;
    let (elements, view) = (array.len(), array.view()?);
    let sharding = &sharding.get().sharding;
    let planned = match reads {
        true => {
            let gather = meaning.gather(operator)?.execution(execution);
            run(py, elements, || match combine {
                true => gather.shard_combined(&sizes, view, sharding),
                false => gather.shard(&sizes, view, sharding),
            })?
        }
        false => {
            let scatter = meaning.scatter(operator)?.execution(execution);
            run(py, elements, || match combine {
                true => scatter.shard_combined(&sizes, view, sharding),
                false => scatter.shard(&sizes, view, sharding),
            })?
        }
    };
    Ok(PyShardedPlan::new(py, planned.map_err(Failure)?))
}

fn operator_named(name: &str) -> PyResult<Operator> {
    match name {
        "rows" => Ok(Operator::Along { axis: 0 }),
        "tuples" => Ok(Operator::Nd { batch_dims: 0 }),
        "slots" => Ok(Operator::Paged),
        _ => Err(PyValueError::new_err(format!(
            "`operator`: {name:?} is not one of \"rows\", \"tuples\" and \"slots\""
        ))),
    }
}

/// Returns the name that the library has for a reduction. `name` may be a name of another library.
#[pyfunction]
fn _reduction_name(name: &str) -> PyResult<&'static str> {
    Ok(choose::<Reduction>("reduction", name)?.as_str())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySharding>()?;
    module.add_class::<PyShardedPlan>()?;
    module.add_function(wrap_pyfunction!(plan_sharded, module)?)?;
    module.add_function(wrap_pyfunction!(_reduction_name, module)?)
}
