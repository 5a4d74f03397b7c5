//! The C function nds_set_machine_file, which reads a machine description from a file.
//!
//! A machine description (`Machine` of the crate `ndscatter`) contains the cache sizes of a machine
//! and the measured costs with which the crate chooses schedules. The code here converts the path,
//! a C string, to a path of Rust (`OsStr`). The crate `ndscatter` then reads and checks the machine
//! description.

use std::ffi::{CStr, OsStr, c_char};

use ndscatter::{Machine, MachineError};

use crate::boundary;
use crate::failure::Failure;
use crate::status::nds_status;

/// Sets the machine description with which all later calls of the process choose their schedules.
/// The path names a regular file of at most 64 KiB that contains the description. A null path
/// restores the description that the library itself detects. If the library cannot use the file,
/// the status is NDS_INVALID_ARGUMENT and the description does not change. No result of a scatter
/// or gather depends on the machine description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_set_machine_file(path: *const c_char) -> nds_status {
    boundary::cross(|| {
        if path.is_null() {
            Machine::detected().clone().set_current();
            return Ok(());
        }
        // SAFETY: the path is not null, so it points to a string that ends in a NUL (docs/c.md).
        let path = unsafe { CStr::from_ptr(path) };
        let machine = Machine::read(path_of(path)?)?;
        machine.set_current();
        Ok(())
    })
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "fails on other systems")]
fn path_of(path: &CStr) -> Result<&OsStr, Failure> {
    Ok(std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes()))
}

#[cfg(not(unix))]
fn path_of(path: &CStr) -> Result<&OsStr, Failure> {
    let invalid = |_| Failure::invalid(format_args!("`path` is not UTF-8; pass a UTF-8 path"));
    path.to_str().map(OsStr::new).map_err(invalid)
}

impl From<MachineError> for Failure {
    #[cold]
    fn from(error: MachineError) -> Self {
        Self::invalid(format_args!("{error}"))
    }
}
