//! The C functions that make, run, explain and free kept plans.
//!
//! In addition to a kept plan of the crate `ndscatter`, the plan of C stores the element type of
//! data. This file does not depend on how the crate makes plans.

use std::ffi::c_char;
use std::fmt::{self, Write};

use ndscatter::{AnyView, Explanation, GatherPlan, Operator, ScatterPlan};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack::{self, Description, ElementType};
use crate::failure::Failure;
use crate::memory::boxed;
use crate::operators::Request::{self, Along, Elements, Nd, Paged};
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// A kept plan: the part of a scatter or gather that depends only on indices, computed once for
/// several runs. A plan is made for one element type, shape and strides of data. Several threads
/// may run one plan at the same time.
#[derive(Debug)]
pub struct nds_plan {
    element: ElementType,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Scatter(ScatterPlan),
    Gather(GatherPlan),
}

/// Makes a plan with `make_kind` and writes a pointer to the plan to `*plan`. Writes null to
/// `*plan` if the plan cannot be made.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn make(
    make_kind: fn(&Options, Operator, &Description<'_>, AnyView<'_>) -> Result<Kind, Failure>,
    request: Request,
    [data, indices]: [*const DLTensor; 2],
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of `indices` is valid during the
        // call (contract of this function).
        unsafe {
            boundary::write_result("plan", plan, std::ptr::null_mut())?;
            let options = Options::new(options)?;
            let data = dlpack::description("data", data)?;
            let indices = dlpack::view("indices", indices)?;
            let kind = make_kind(&options, request.operator()?, &data, indices);
            options.threads.check()?;
            let made = boxed(nds_plan {
                element: data.element,
                kind: kind?,
            })?;
            boundary::write_result("plan", plan, Box::into_raw(made))
        }
    })
}

fn scatter(
    options: &Options,
    operator: Operator,
    data: &Description<'_>,
    indices: AnyView<'_>,
) -> Result<Kind, Failure> {
    let made = options.scatter(operator)?.plan(data.layout, indices)?;
    made.run().check_dtype(data.element.dtype)?;
    Ok(Kind::Scatter(made))
}

fn gather(
    options: &Options,
    operator: Operator,
    data: &Description<'_>,
    indices: AnyView<'_>,
) -> Result<Kind, Failure> {
    let made = options.gather(operator)?.plan(data.layout, indices)?;
    Ok(Kind::Gather(made))
}

/// Makes a plan that runs nds_scatter_nd. The call reads the shape, strides and element type of
/// data, but not its elements. The output of each run must have the same shape and strides as data
/// has here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe {
        make(
            scatter,
            Nd { batch_dims: 0 },
            [data, indices],
            options,
            plan,
        )
    }
}

/// Makes a plan that runs nds_scatter_update. The description of nds_plan_scatter_nd also applies
/// to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_update(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(scatter, Along { axis }, [data, indices], options, plan) }
}

/// Makes a plan that runs nds_scatter_elements. The description of nds_plan_scatter_nd also applies
/// to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(scatter, Elements { axis }, [data, indices], options, plan) }
}

/// Makes a plan that runs nds_scatter_paged. The description of nds_plan_scatter_nd also applies to
/// this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_paged(
    data: *const DLTensor,
    indices: *const DLTensor,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(scatter, Paged, [data, indices], options, plan) }
}

/// Makes a plan that runs nds_gather_nd. The call reads the shape, strides and element type of
/// data, but not its elements. The tensor data of each run must have the same shape and strides as
/// data has here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, Nd { batch_dims }, [data, indices], options, plan) }
}

/// Makes a plan that runs nds_gather. The description of nds_plan_gather_nd also applies to this
/// function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, Along { axis }, [data, indices], options, plan) }
}

/// Makes a plan that runs nds_gather_elements. The description of nds_plan_gather_nd also applies
/// to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, Elements { axis }, [data, indices], options, plan) }
}

/// Makes a plan that runs nds_gather_paged. The description of nds_plan_gather_nd also applies to
/// this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_paged(
    data: *const DLTensor,
    indices: *const DLTensor,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, Paged, [data, indices], options, plan) }
}

/// Runs a plan. The argument updates must be null for a plan of a gather, and must not be null for
/// a plan of a scatter. The run uses only the options max_threads, pool and goal of this call. The
/// other options are those with which the plan was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_run(
    plan: *const nds_plan,
    data: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers, and tensors
        // whose memory is valid during the call.
        unsafe {
            let plan = plan
                .as_ref()
                .ok_or_else(|| Failure::invalid(format_args!("`plan` is null")))?;
            let options = Options::new(options)?;
            let inputs = [("data", data), ("updates", updates)];
            let moved = [inputs[1], ("output", output.cast_const())];
            let from = dlpack::view("data", data)?;
            let element = ElementType {
                dtype: from.dtype(),
                given: (*data).dtype,
            };
            if element != plan.element {
                return Err(Failure::invalid(format_args!(
                    "the plan was made for {}, but elements of `data` have {element}; make a plan \
                     for this type",
                    plan.element
                )));
            }
            let updates = dlpack::view_if_any("updates", updates)?;
            let written = dlpack::view_mut("output", output)?;
            dlpack::check_types(element.given, moved)?;
            dlpack::check_descriptions(output, inputs)?;
            let execution = options.execution();
            let done = match (&plan.kind, updates) {
                (Kind::Scatter(plan), Some(updates)) => {
                    (plan.run().execution(execution)).write_into(from, updates, written)
                }
                (Kind::Gather(plan), None) => {
                    (plan.run().execution(execution)).write_into(from, written)
                }
                (Kind::Scatter(_), None) => {
                    return Err(Failure::invalid(format_args!(
                        "`updates` is null; the plan of a scatter requires it"
                    )));
                }
                (Kind::Gather(_), Some(_)) => {
                    return Err(Failure::invalid(format_args!(
                        "`updates` is not null; pass null for the plan of a gather"
                    )));
                }
            };
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// Writes a text to buffer that explains how the plan would run with the library's pool and an
/// output that is not data. Before the call, *length must be the size of buffer in bytes. The call
/// sets *length to the length of the text in bytes, including the NUL that ends the text. If the
/// size of buffer is less than this length, the call writes nothing to buffer and the status is
/// NDS_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_explain(
    plan: *const nds_plan,
    buffer: *mut c_char,
    length: *mut usize,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers and a `buffer`
        // of `*length` bytes. The text is written only if its length with the NUL is at most
        // `*length`.
        unsafe {
            let plan = plan
                .as_ref()
                .ok_or_else(|| Failure::invalid(format_args!("`plan` is null")))?;
            if length.is_null() {
                return Err(Failure::invalid(format_args!("`length` is null")));
            }
            let text = plan.explanation()?;
            let capacity = length.read_unaligned();
            let mut counted = Counted(0);
            // `Counted` never fails.
            let _ = write!(counted, "{text}");
            let needed = counted.0 + 1;
            length.write_unaligned(needed);
            if capacity < needed {
                return Err(Failure::invalid(format_args!(
                    "`buffer` has {capacity} bytes; the text needs {needed}"
                )));
            }
            if buffer.is_null() {
                return Err(Failure::invalid(format_args!("`buffer` is null")));
            }
            // The text is formatted a second time. It has the length that was counted, because an
            // explanation always formats to the same text.
            let mut written = Written {
                next: buffer.cast(),
                room: counted.0,
            };
            let _ = write!(written, "{text}");
            written.next.write(0);
            Ok(())
        }
    })
}

/// A writer that only counts the bytes of a text.
struct Counted(usize);

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// A writer to the buffer of the caller. At `next`, the buffer has `room` unused bytes for text,
/// followed by one byte for the NUL.
struct Written {
    next: *mut u8,
    room: usize,
}

impl fmt::Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.room = self.room.checked_sub(text.len()).ok_or(fmt::Error)?;
        // SAFETY: before the subtraction, the buffer had `room` unused bytes at `next`. The
        // subtraction has checked that `room` was at least `text.len()`.
        unsafe {
            self.next
                .copy_from_nonoverlapping(text.as_ptr(), text.len());
            self.next = self.next.add(text.len());
        }
        Ok(())
    }
}

impl nds_plan {
    /// Returns the plan at `plan`, which must be the plan of a scatter.
    ///
    /// # Safety
    ///
    /// `plan` is null or valid, as docs/c.md requires.
    pub(crate) unsafe fn of_scatter<'a>(plan: *const Self) -> Result<&'a ScatterPlan, Failure> {
        // SAFETY: the pointer is null or valid (contract of this function).
        match unsafe { plan.as_ref() }.map(|plan| &plan.kind) {
            Some(Kind::Scatter(plan)) => Ok(plan),
            Some(Kind::Gather(_)) => Err(Failure::invalid(format_args!(
                "`plan` is the plan of a gather; pass the plan of a scatter"
            ))),
            None => Err(Failure::invalid(format_args!("`plan` is null"))),
        }
    }

    fn explanation(&self) -> Result<Explanation, Failure> {
        // SAFETY: the pointer is null, which `Options::new` accepts.
        let options = unsafe { Options::new(std::ptr::null())? };
        let (execution, dtype) = (options.execution(), self.element.dtype);
        Ok(match &self.kind {
            Kind::Scatter(plan) => plan.run().execution(execution).explain(dtype, false)?,
            Kind::Gather(plan) => plan.run().execution(execution).explain(dtype, false)?,
        })
    }
}

/// Frees a plan. During and after this call, no thread may run the plan. If plan is null, the call
/// does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_free(plan: *mut nds_plan) {
    let _ = boundary::cross(|| {
        if !plan.is_null() {
            // SAFETY: `make` created the pointer with `Box::into_raw`. The caller frees each plan
            // at most once (docs/c.md).
            drop(unsafe { Box::from_raw(plan) });
        }
        Ok(())
    });
}
