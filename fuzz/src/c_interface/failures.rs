//! What the library reports about failures, and the functions without tensors.

use std::ffi::{CStr, CString};
use std::fmt::Debug;

use arbitrary::Unstructured;
use ndscatter_c::{nds_error_info, nds_last_error, nds_last_error_info};
use ndscatter_c::{nds_set_machine_file, nds_status};

/// Bytes of `nds_error_info`.
const WHOLE: usize = size_of::<nds_error_info>();

/// Checks the message and the facts of a call that has returned `status`.
pub(crate) fn check(status: nds_status, may_be_internal: bool) {
    if status == nds_status::NDS_OK {
        return;
    }
    assert!(
        status != nds_status::NDS_INTERNAL || may_be_internal,
        "{}",
        message()
    );
    assert!(!message().is_empty(), "a message");
    let size = u32::try_from(WHOLE).expect("a small size");
    let mut info = nds_error_info {
        size,
        status: -1,
        tuple: -2,
        other_tuple: -2,
        axis: -2,
        axis_size: -2,
        index: 0,
    };
    // SAFETY: the struct has the size that it declares.
    let got = unsafe { nds_last_error_info(&raw mut info) };
    assert_eq!((got, info.size), (nds_status::NDS_OK, size));
    assert_eq!(info.status, status as i32, "{}", message());
    for fact in [info.tuple, info.other_tuple, info.axis, info.axis_size] {
        assert!(fact >= -1, "{info:?}");
    }
}

/// Checks the failure of a call, and that the call succeeded exactly if it is valid. `None`: it is not
/// known whether the call is valid. Returns whether the call's pool did its work: otherwise, the
/// tensors may have any values.
pub(crate) fn check_call(
    status: nds_status,
    has_failing_pool: bool,
    is_valid: Option<bool>,
    case: &dyn Debug,
) -> bool {
    check(status, has_failing_pool);
    if has_failing_pool && status == nds_status::NDS_INTERNAL {
        return false;
    }
    let is_ok = status == nds_status::NDS_OK;
    let agrees = is_valid.is_none_or(|is_valid| is_ok == is_valid);
    assert!(agrees, "{status:?}, {}: {case:?}", message());
    true
}

/// Returns the message of the last failure.
pub(crate) fn message() -> String {
    // SAFETY: the library returns a string that is valid until the next failure of this thread.
    let text = unsafe { CStr::from_ptr(nds_last_error()) };
    assert!(text.count_bytes() <= 1023, "the documented limit");
    text.to_str().expect("valid UTF-8").to_owned()
}

/// Reads the facts into structs of any size.
pub(crate) fn facts(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let size = u.int_in_range(0..=80_u32)?;
    let declared = size as usize;
    let mut bytes = vec![0xa5; declared.max(4)];
    bytes[..4].copy_from_slice(&size.to_ne_bytes());
    let before = bytes.clone();
    // SAFETY: the memory has the size that the struct declares, and at least four bytes.
    let status = unsafe { nds_last_error_info(bytes.as_mut_ptr().cast()) };
    check(status, false);
    let is_valid = [8, 16, 24, 32, 40].contains(&declared) || declared >= WHOLE;
    assert_eq!(status == nds_status::NDS_OK, is_valid, "size {size}");
    match is_valid {
        true => {
            assert_eq!(bytes[..4], before[..4], "the size");
            let beyond = bytes.get(WHOLE..).unwrap_or_default();
            assert!(
                beyond.iter().all(|&byte| byte == 0),
                "zeros beyond the fields"
            );
        }
        false => assert_eq!(bytes, before, "unchanged"),
    }
    // SAFETY: a null pointer is allowed, and refused.
    let status = unsafe { nds_last_error_info(std::ptr::null_mut()) };
    assert_eq!(status, nds_status::NDS_INVALID_ARGUMENT);
    check(status, false);
    Ok(())
}

/// Sets the machine to files that cannot be read, and then to the detected machine. The target
/// `machine_file` reads files.
pub(crate) fn machine_files(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let name: Vec<u8> = u.arbitrary()?;
    let path = [&b"/dev/null/"[..], &name].concat();
    if let Ok(path) = CString::new(path) {
        // SAFETY: the path ends in a NUL.
        let status = unsafe { nds_set_machine_file(path.as_ptr()) };
        assert_eq!(status, nds_status::NDS_INVALID_ARGUMENT);
        check(status, false);
    }
    // SAFETY: a null path is allowed.
    let status = unsafe { nds_set_machine_file(std::ptr::null()) };
    assert_eq!(status, nds_status::NDS_OK);
    Ok(())
}
