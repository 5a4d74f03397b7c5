//! The C function nds_set_machine_file, which reads a machine description from a file.
//!
//! A machine description (`Machine` of the crate) has the cache sizes of a machine and the measured
//! costs that the crate uses to choose schedules. This module converts the path that C passes. The
//! crate reads and checks the file.

use std::ffi::{CStr, OsStr, c_char};

use ndscatter::{Machine, MachineError};

use crate::boundary;
use crate::failure::Failure;
use crate::status::nds_status;

/// Sets the machine description that chooses schedules, for all later calls of the process. The
/// path names a regular file of at most 64 KiB. A null path restores the machine that the library
/// detects. An unusable file is an NDS_INVALID_ARGUMENT and changes nothing. No result depends on
/// the machine description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_set_machine_file(path: *const c_char) -> nds_status {
    boundary::cross(|| {
        if path.is_null() {
            Machine::detected().clone().set_current();
            return Ok(());
        }
        // SAFETY: the path is not null, so it is a string that ends in a NUL (docs/c.md).
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
