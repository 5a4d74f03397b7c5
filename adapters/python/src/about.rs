//! Version, instruction set, number of threads and description of the machine; release of scratch
//! memory.

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
/// The environment variable ``RAYON_NUM_THREADS`` sets this number if it is set before the first
/// call.
#[pyfunction]
fn threads() -> usize {
    workers()
}

/// Return a description of the machine that schedules are chosen for.
///
/// The text states the sizes of the caches. It also states whether the rates of the cost model
/// are typical rates of the CPU's vendor or rates from a machine file.
#[pyfunction]
fn machine() -> String {
    Machine::current().to_string()
}

/// Free the scratch memory that is cached between calls.
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
