//! The C functions of kept plans: make, run, explain, free.
//!
//! A kept plan of C also keeps the element type of data. Knows nothing of how the crate plans.

use std::alloc::{Layout, alloc};
use std::ffi::c_char;
use std::fmt::{self, Write};

use ndscatter::{AnyView, Explanation, GatherPlan, Operator, ScatterPlan};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack::{self, Description, ElementType};
use crate::failure::Failure;
use crate::operators::Request::{self, Along, Elements, Nd};
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// A kept plan: everything that depends only on indices, for data of one element type, shape and
/// strides. Several threads may run a plan at the same time.
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

/// Moves a plan to the heap. Fails if memory is exhausted, where `Box::new` would end the process.
fn boxed(plan: nds_plan) -> Result<Box<nds_plan>, Failure> {
    const LAYOUT: Layout = Layout::new::<nds_plan>();
    // SAFETY: the size of a plan is not 0.
    let place = unsafe { alloc(LAYOUT) }.cast::<nds_plan>();
    if place.is_null() {
        return Err(Failure::out_of_memory(LAYOUT.size()));
    }
    // SAFETY: `place` is a fresh allocation with the layout of a plan. It comes from the allocator
    // that `Box` frees it with.
    unsafe {
        place.write(plan);
        Ok(Box::from_raw(place))
    }
}

/// Makes a plan with `make_kind` and writes it to `plan`. Writes null if that fails.
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

/// Makes a plan of nds_scatter_nd. The values of data are not read. The shape and strides of data
/// must be those of the output of each run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
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

/// Makes a plan of nds_scatter_update. The rules of nds_plan_scatter_nd hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_update(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { make(scatter, Along { axis }, [data, indices], options, plan) }
}

/// Makes a plan of nds_scatter_elements. The rules of nds_plan_scatter_nd hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { make(scatter, Elements { axis }, [data, indices], options, plan) }
}

/// Makes a plan of nds_gather_nd. The values of data are not read. The shape and strides of data
/// must be those of data in each run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { make(gather, Nd { batch_dims }, [data, indices], options, plan) }
}

/// Makes a plan of nds_gather. The rules of nds_plan_gather_nd hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { make(gather, Along { axis }, [data, indices], options, plan) }
}

/// Makes a plan of nds_gather_elements. The rules of nds_plan_gather_nd hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { make(gather, Elements { axis }, [data, indices], options, plan) }
}

/// Runs a plan. updates is null for a plan of a gather. The run follows only the options
/// max_threads, pool and goal. For all other options the plan keeps the values that it was made
/// with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_run(
    plan: *const nds_plan,
    data: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: the caller satisfies the contract of the pointers and of the tensors' memory
        // (docs/c.md).
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

/// Writes a text to buffer that describes a run of the plan out of place on the library's pool.
/// Before the call, *length is the capacity of buffer in bytes. The call sets *length to the length
/// of the text, including its NUL. If this length exceeds the capacity, nothing is written to
/// buffer and the status is NDS_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_explain(
    plan: *const nds_plan,
    buffer: *mut c_char,
    length: *mut usize,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: the caller satisfies the contract of the pointers, and `buffer` has `*length`
        // bytes (docs/c.md). The text is written only if its length is at most `*length`.
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
            // The text is formatted twice: an explanation does not change.
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

/// A writer that counts the bytes of a text.
struct Counted(usize);

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// A writer to a buffer of C. The buffer has `room` bytes at `next`, plus one byte for the NUL.
struct Written {
    next: *mut u8,
    room: usize,
}

impl fmt::Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.room = self.room.checked_sub(text.len()).ok_or(fmt::Error)?;
        // SAFETY: the buffer had at least `text.len()` more bytes, as the subtraction has checked.
        unsafe {
            self.next
                .copy_from_nonoverlapping(text.as_ptr(), text.len());
            self.next = self.next.add(text.len());
        }
        Ok(())
    }
}

impl nds_plan {
    fn explanation(&self) -> Result<Explanation, Failure> {
        // SAFETY: null stands for the default options.
        let options = unsafe { Options::new(std::ptr::null())? };
        let (execution, dtype) = (options.execution(), self.element.dtype);
        Ok(match &self.kind {
            Kind::Scatter(plan) => plan.run().execution(execution).explain(dtype, false)?,
            Kind::Gather(plan) => plan.run().execution(execution).explain(dtype, false)?,
        })
    }
}

/// Frees a plan. No run of the plan may be active. A null plan has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_free(plan: *mut nds_plan) {
    let _ = boundary::cross(|| {
        if !plan.is_null() {
            // SAFETY: `make` made the plan with `Box::into_raw`, and the caller returns it once
            // (docs/c.md).
            drop(unsafe { Box::from_raw(plan) });
        }
        Ok(())
    });
}
