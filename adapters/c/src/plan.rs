//! Plans that are kept and run many times.

use std::alloc::{Layout, alloc};
use std::ffi::c_char;
use std::fmt::{self, Write};

use ndscatter::{AnyView, Explanation, GatherPlan, Operator, ScatterPlan};
use ndscatter_host::dlpack::DLTensor;

use crate::border;
use crate::dlpack::{self, Described, ElementType};
use crate::failure::Failure;
use crate::operators::Asked::{self, Along, Elements, Nd};
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// All that depends on indices alone, for data of one element type, shape and
/// strides. It may be run from many threads at once.
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

/// A plan in memory of its own; `Box::new` ends the process where there is none.
fn boxed(plan: nds_plan) -> Result<Box<nds_plan>, Failure> {
    const LAYOUT: Layout = Layout::new::<nds_plan>();
    // SAFETY: a plan has a size.
    let place = unsafe { alloc(LAYOUT) }.cast::<nds_plan>();
    if place.is_null() {
        return Err(Failure::out_of_memory(LAYOUT.size()));
    }
    // SAFETY: memory of a plan's layout from the allocator that a box gives it
    // back to, and of nobody else.
    unsafe {
        place.write(plan);
        Ok(Box::from_raw(place))
    }
}

/// Makes a plan by `kind` and gives it to C; null in its place if that fails.
///
/// # Safety
///
/// As the interface asks: every pointer is null or points to what it should.
unsafe fn make(
    kind: fn(&Options, Operator, &Described<'_>, AnyView<'_>) -> Result<Kind, Failure>,
    asked: Asked,
    [data, indices]: [*const DLTensor; 2],
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    border::cross(|| {
        // SAFETY: the caller vouches for all pointers, and for the memory of
        // `indices` during the call.
        unsafe {
            border::give("plan", plan, std::ptr::null_mut())?;
            let options = Options::new(options)?;
            let data = dlpack::described("data", data)?;
            let indices = dlpack::view("indices", indices)?;
            let kind = kind(&options, asked.operator()?, &data, indices);
            options.threads.check()?;
            let made = boxed(nds_plan {
                element: data.element,
                kind: kind?,
            })?;
            border::give("plan", plan, Box::into_raw(made))
        }
    })
}

fn scatter(
    options: &Options,
    operator: Operator,
    data: &Described<'_>,
    indices: AnyView<'_>,
) -> Result<Kind, Failure> {
    let made = options.scatter(operator)?.plan(data.layout, indices)?;
    made.run().check_dtype(data.element.dtype)?;
    Ok(Kind::Scatter(made))
}

fn gather(
    options: &Options,
    operator: Operator,
    data: &Described<'_>,
    indices: AnyView<'_>,
) -> Result<Kind, Failure> {
    let made = options.gather(operator)?.plan(data.layout, indices)?;
    Ok(Kind::Gather(made))
}

/// A plan of nds_scatter_nd. The values of data are not read; its strides are
/// those that output will have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
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

/// A plan of nds_scatter_update.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_update(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { make(scatter, Along { axis }, [data, indices], options, plan) }
}

/// A plan of nds_scatter_elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_scatter_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { make(scatter, Elements { axis }, [data, indices], options, plan) }
}

/// A plan of nds_gather_nd. Its strides are those that data will have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { make(gather, Nd { batch_dims }, [data, indices], options, plan) }
}

/// A plan of nds_gather.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { make(gather, Along { axis }, [data, indices], options, plan) }
}

/// A plan of nds_gather_elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_gather_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    options: *const nds_options,
    plan: *mut *mut nds_plan,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { make(gather, Elements { axis }, [data, indices], options, plan) }
}

/// Runs a plan. updates is null for a gather. Of options only max_threads and
/// pool are followed; the others are those that the plan was made with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_run(
    plan: *const nds_plan,
    data: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    border::cross(|| {
        // SAFETY: the caller of this function vouches for its pointers, and
        // for the memory of the tensors during the call.
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
                    "the plan was made for {}, and elements of `data` have {element}",
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
                    return Err(Failure::invalid(format_args!("`updates` is null")));
                }
                (Kind::Gather(_), Some(_)) => {
                    return Err(Failure::invalid(format_args!(
                        "`updates` of a gather must be null"
                    )));
                }
            };
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// What a run of the plan does, in words: one out of place, on the library's
/// pool. *length is the capacity of buffer, and becomes the length of the text
/// with its NUL; if that is more, nothing is written and the status is
/// NDS_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_explain(
    plan: *const nds_plan,
    buffer: *mut c_char,
    length: *mut usize,
) -> nds_status {
    border::cross(|| {
        // SAFETY: the caller of this function vouches for its pointers, and
        // for `*length` bytes of `buffer`.
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
            // Nothing fails to be counted.
            let _ = write!(counted, "{text}");
            let needed = counted.0 + 1;
            length.write_unaligned(needed);
            if capacity < needed {
                return Err(Failure::invalid(format_args!(
                    "`buffer` has {capacity} bytes; {needed} are needed"
                )));
            }
            if buffer.is_null() {
                return Err(Failure::invalid(format_args!("`buffer` is null")));
            }
            // The same text again: what it says does not change.
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

/// The length of a text.
struct Counted(usize);

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// A buffer of C's, which has `room` bytes from `next` on, and one more.
struct Written {
    next: *mut u8,
    room: usize,
}

impl fmt::Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.room = self.room.checked_sub(text.len()).ok_or(fmt::Error)?;
        // SAFETY: there was room, as has just been counted.
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

/// Frees a plan that nobody runs any more. Null is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_free(plan: *mut nds_plan) {
    let _ = border::cross(|| {
        if !plan.is_null() {
            // SAFETY: `make` has given it away, and the caller gives it back.
            drop(unsafe { Box::from_raw(plan) });
        }
        Ok(())
    });
}
