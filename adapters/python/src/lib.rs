//! ndscatter for Python.

use pyo3::prelude::*;

mod torch;

#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    torch::register(module)?;
    Ok(())
}
