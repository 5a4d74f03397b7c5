//! The machine that schedules are chosen by, from a file.

use std::ffi::{CStr, OsStr, c_char};

use ndscatter::{Machine, MachineError};

use crate::border;
use crate::failure::Failure;
use crate::status::nds_status;

/// From now on schedules are chosen as for the machine in a file, for all calls
/// of the process; null is this machine as the library finds it. No result
/// depends on it. The file must be a regular file of at most 64 KiB. A file that
/// cannot be used is an NDS_INVALID_ARGUMENT, and changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_set_machine_file(path: *const c_char) -> nds_status {
    border::cross(|| {
        if path.is_null() {
            Machine::detected().clone().set_current();
            return Ok(());
        }
        // SAFETY: the caller vouches for a string that ends in a NUL.
        let path = unsafe { CStr::from_ptr(path) };
        let machine = Machine::read(named(path)?)?;
        machine.set_current();
        Ok(())
    })
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn named(path: &CStr) -> Result<&OsStr, Failure> {
    Ok(std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes()))
}

#[cfg(not(unix))]
fn named(path: &CStr) -> Result<&OsStr, Failure> {
    let invalid = |_| Failure::invalid(format_args!("`path` is no UTF-8"));
    path.to_str().map(OsStr::new).map_err(invalid)
}

impl From<MachineError> for Failure {
    #[cold]
    fn from(error: MachineError) -> Self {
        Self::invalid(format_args!("{error}"))
    }
}
