//! Python functions that report the version, the instruction set, the number of threads and the
//! machine, and a function that frees scratch memory.

use ndscatter::{InstructionSet, Machine};
use pyo3::prelude::*;

use crate::threads::workers;

/// Return the name of the instruction set that the kernels use on this machine.
#[pyfunction]
fn instruction_set() -> &'static str {
    InstructionSet::best().as_str()
}

/// Return the largest number of threads that a call uses.
///
/// The environment variable ``RAYON_NUM_THREADS`` sets this number. The variable must be set before
/// the process calls this function or runs a kernel for the first time.
#[pyfunction]
fn threads() -> usize {
    workers()
}

/// Return a text that describes the machine for which the cost model chooses schedules.
///
/// The text states the sizes of the caches in KiB. The text also states whether the rates of the
/// cost model are the typical rates of the CPU's vendor or other rates, such as rates from a
/// machine file.
#[pyfunction]
fn machine() -> String {
    Machine::current().to_string()
}

/// Free the unused scratch memory that the process keeps for later calls.
#[pyfunction]
fn release_scratch() {
    ndscatter::release_scratch();
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(instruction_set, module)?)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(machine, module)?)?;
    module.add_function(wrap_pyfunction!(release_scratch, module)?)
}
