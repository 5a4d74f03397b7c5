//! Runs a model of OpenVINO on ndscatter: `cargo run -- LIBRARY EXTENSION MODEL`
//!
//! LIBRARY is OpenVINO's C library. MODEL is `model.xml` of the parent folder: it adds rows to a table at
//! the positions of an index.
//!
//! The crate `openvino` has no function for extensions, and its `Core` does not return its pointer. This
//! example therefore uses the functions of the crate `openvino-sys`.

use std::error::Error;
use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::{env, slice};

use openvino_sys as ov;

fn check(status: ov::ov_status_e) -> Result<(), Box<dyn Error>> {
    if status == ov::ov_status_e::OK {
        return Ok(());
    }
    // SAFETY: OpenVINO returns a string that is valid until the next error of this thread.
    let text = unsafe { CStr::from_ptr(ov::ov_get_last_err_msg()) };
    Err(text.to_string_lossy().into_owned().into())
}

/// Returns the elements of an input or output of the request.
///
/// # Safety
///
/// `T` must be the element type. The slice must be used only while the request is alive, and not during
/// an inference.
unsafe fn elements<'a, T>(
    request: *mut ov::ov_infer_request_t,
    name: &CStr,
) -> Result<&'a mut [T], Box<dyn Error>> {
    let (mut tensor, mut size, mut data) = (null_mut(), 0, null_mut());
    // SAFETY: all pointers are valid. The request keeps the memory of its tensors.
    unsafe {
        check(ov::ov_infer_request_get_tensor(
            request,
            name.as_ptr(),
            &mut tensor,
        ))?;
        check(ov::ov_tensor_get_size(tensor, &mut size))?;
        check(ov::ov_tensor_data(tensor, &mut data))?;
        ov::ov_tensor_free(tensor);
        Ok(slice::from_raw_parts_mut(data.cast(), size))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [library, extension, model] = &arguments[..] else {
        return Err("usage: LIBRARY EXTENSION MODEL".into());
    };
    ov::library::load_from(library)?;
    let (extension, path) = (CString::new(&extension[..])?, CString::new(&model[..])?);
    let (mut core, mut read, mut compiled, mut request) =
        (null_mut(), null_mut(), null_mut(), null_mut());
    // SAFETY: the functions are called as OpenVINO's C interface describes them.
    unsafe {
        check(ov::ov_core_create(&mut core))?;
        check(ov::ov_core_add_extension(core, extension.as_ptr()))?;
        let weights = std::ptr::null();
        check(ov::ov_core_read_model(
            core,
            path.as_ptr(),
            weights,
            &mut read,
        ))?;
        check(ov::ov_core_compile_model(
            core,
            read,
            c"CPU".as_ptr(),
            0,
            &mut compiled,
        ))?;
        check(ov::ov_compiled_model_create_infer_request(
            compiled,
            &mut request,
        ))?;

        elements::<f32>(request, c"data")?.fill(0.0);
        elements::<f32>(request, c"updates")?.fill(1.0);
        elements::<i32>(request, c"indices")?.copy_from_slice(&[5, 7, 5]);
        check(ov::ov_infer_request_infer(request))?;
        let result = elements::<f32>(request, c"result")?;
        println!(
            "rows 5, 6, 7: {} {} {}",
            result[5 * 64],
            result[6 * 64],
            result[7 * 64]
        );

        elements::<i32>(request, c"indices")?[1] = 4096;
        if let Err(error) = check(ov::ov_infer_request_infer(request)) {
            println!("{error}");
        }
        ov::ov_infer_request_free(request);
        ov::ov_compiled_model_free(compiled);
        ov::ov_model_free(read);
        ov::ov_core_free(core);
    }
    Ok(())
}
