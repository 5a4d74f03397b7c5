//! What the library says of itself and of the machine.

use ndscatter::{InstructionSet, Machine};
use pyo3::prelude::*;

use crate::threads::workers;

/// The instruction set that kernels use on this machine.
#[pyfunction]
fn instruction_set() -> &'static str {
    InstructionSet::best().as_str()
}

/// The number of threads that a call may have.
#[pyfunction]
fn threads() -> usize {
    workers()
}

/// What schedules are chosen by: the caches of this machine, and where its rates are from.
#[pyfunction]
fn machine() -> String {
    Machine::current().to_string()
}

/// Frees the scratch memory that calls have left for later ones.
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
