//! The host's table of callbacks for one operator, one element type and one index type.
//!
//! Knows the host's struct. What an operator does is the kernel's.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use ndscatter_host::cross;
use ort_sys::{
    ONNXTensorElementDataType, OrtApi, OrtCustomOp, OrtCustomOpInputOutputCharacteristic,
    OrtKernelContext, OrtKernelInfo, OrtMemType, OrtShapeInferContext, OrtStatusPtr,
};

use crate::api::{Api, VERSION};
use crate::definition::Role;
use crate::element::code_of;
use crate::failure::Failure;
use crate::kernel::Kernel;
use crate::offer::Offer;
use crate::shapes;

/// An operator as the host has it. It begins with the host's struct, so that callbacks
/// find the rest behind it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CustomOp {
    base: OrtCustomOp,
    offer: Offer,
}

impl CustomOp {
    pub(crate) fn new(offer: Offer) -> Self {
        Self {
            base: callbacks(),
            offer,
        }
    }

    /// # Safety
    ///
    /// `op` is what [`Self::as_ptr`] gave, as it is in every callback.
    unsafe fn of<'a>(op: *const OrtCustomOp) -> &'a Self {
        // SAFETY: the caller vouches for it; operators are never freed.
        unsafe { &*op.cast::<Self>() }
    }

    /// For the host.
    pub(crate) fn as_ptr(&'static self) -> *const OrtCustomOp {
        std::ptr::from_ref(self).cast()
    }

    fn type_of(&self, role: Role) -> i32 {
        match role {
            Role::Moved => self.offer.element.code,
            Role::Indices | Role::OptionalIndices => code_of(self.offer.index_type),
        }
    }
}

/// Runs a callback that may fail. Nothing unwinds into the host.
fn answer(api: Api, call: impl FnOnce() -> Result<(), Failure>) -> OrtStatusPtr {
    api.told(cross(call).unwrap_or_else(|_| Err(panicked())))
}

pub(crate) fn panicked() -> Failure {
    Failure::internal("the library panicked; this is a bug in it")
}

/// A callback that gives an element type. The host takes any number of its enumeration,
/// which goes on after the one of `ort_sys`, so that callbacks of this library have a plain
/// one.
type TypeOf = unsafe extern "system" fn(*const OrtCustomOp, usize) -> i32;

fn type_callback(
    callback: TypeOf,
) -> unsafe extern "system" fn(*const OrtCustomOp, usize) -> ONNXTensorElementDataType {
    // SAFETY: `repr(i32)`, so that both are called alike; the host alone calls it, to which
    // it is a number of C.
    unsafe { std::mem::transmute(callback) }
}

fn callbacks() -> OrtCustomOp {
    OrtCustomOp {
        version: VERSION,
        CreateKernel: None,
        GetName: Some(name),
        GetExecutionProviderType: Some(provider),
        GetInputType: Some(type_callback(input_type)),
        GetInputTypeCount: Some(input_count),
        GetOutputType: Some(type_callback(output_type)),
        GetOutputTypeCount: Some(output_count),
        KernelCompute: None,
        KernelDestroy: Some(destroy),
        GetInputCharacteristic: Some(input_characteristic),
        GetOutputCharacteristic: Some(output_characteristic),
        GetInputMemoryType: Some(memory_type),
        GetVariadicInputMinArity: None,
        GetVariadicInputHomogeneity: None,
        GetVariadicOutputMinArity: None,
        GetVariadicOutputHomogeneity: None,
        CreateKernelV2: Some(create),
        KernelComputeV2: Some(compute),
        InferOutputShapeFn: Some(infer),
        GetStartVersion: Some(start_version),
        GetEndVersion: Some(end_version),
        GetMayInplace: Some(may_inplace),
        ReleaseMayInplace: Some(release_may_inplace),
        GetAliasMap: None,
        ReleaseAliasMap: None,
    }
}

unsafe extern "system" fn name(op: *const OrtCustomOp) -> *const c_char {
    // SAFETY: the host hands callbacks the operator that they belong to; so below.
    unsafe { CustomOp::of(op) }.offer.definition.name.as_ptr()
}

/// The default: CPU.
unsafe extern "system" fn provider(_: *const OrtCustomOp) -> *const c_char {
    null()
}

unsafe extern "system" fn input_type(op: *const OrtCustomOp, index: usize) -> i32 {
    // SAFETY: as in `name`.
    let op = unsafe { CustomOp::of(op) };
    let role = op.offer.definition.inputs.get(index);
    role.map_or(0, |&role| op.type_of(role))
}

unsafe extern "system" fn input_count(op: *const OrtCustomOp) -> usize {
    // SAFETY: as in `name`.
    unsafe { CustomOp::of(op) }.offer.definition.inputs.len()
}

unsafe extern "system" fn output_type(op: *const OrtCustomOp, _: usize) -> i32 {
    // SAFETY: as in `name`.
    unsafe { CustomOp::of(op) }.offer.element.code
}

unsafe extern "system" fn output_count(_: *const OrtCustomOp) -> usize {
    1
}

unsafe extern "system" fn input_characteristic(
    op: *const OrtCustomOp,
    index: usize,
) -> OrtCustomOpInputOutputCharacteristic {
    // SAFETY: as in `name`.
    match unsafe { CustomOp::of(op) }
        .offer
        .definition
        .inputs
        .get(index)
    {
        Some(Role::OptionalIndices) => OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_OPTIONAL,
        _ => OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_REQUIRED,
    }
}

unsafe extern "system" fn output_characteristic(
    _: *const OrtCustomOp,
    _: usize,
) -> OrtCustomOpInputOutputCharacteristic {
    OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_REQUIRED
}

unsafe extern "system" fn memory_type(_: *const OrtCustomOp, _: usize) -> OrtMemType {
    OrtMemType::OrtMemTypeDefault
}

/// The same in both domains, whatever the standard says: the host looks among its own kernels
/// too, as where it folds constants, and of one that has this version it asks for names of types
/// that are not there.
unsafe extern "system" fn start_version(_: *const OrtCustomOp) -> c_int {
    1
}

/// All later versions. The largest number of all would stand for the first version alone,
/// and models in the host's own format name a later one.
unsafe extern "system" fn end_version(_: *const OrtCustomOp) -> c_int {
    c_int::MAX - 1
}

/// Output 0 may lie where input 0 does: data is not needed afterwards.
unsafe extern "system" fn may_inplace(inputs: *mut *mut c_int, outputs: *mut *mut c_int) -> usize {
    // The host only reads them.
    static FIRST: [c_int; 1] = [0];
    let first = FIRST.as_ptr().cast_mut();
    // SAFETY: the host has a place for each list.
    unsafe {
        inputs.write(first);
        outputs.write(first);
    }
    FIRST.len()
}

/// Nothing was allocated.
unsafe extern "system" fn release_may_inplace(_: *mut c_int, _: *mut c_int) {}

unsafe extern "system" fn infer(
    op: *const OrtCustomOp,
    context: *mut OrtShapeInferContext,
) -> OrtStatusPtr {
    // SAFETY: as in `name`; the context is the host's.
    unsafe {
        let api = CustomOp::of(op).offer.api;
        answer(api, || shapes::infer(api, context))
    }
}

unsafe extern "system" fn create(
    op: *const OrtCustomOp,
    _: *const OrtApi,
    info: *const OrtKernelInfo,
    kernel: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: as in `name`; `info` is the host's, and there is a place for the kernel.
    unsafe {
        let offer = CustomOp::of(op).offer;
        kernel.write(null_mut());
        answer(offer.api, || {
            let made = Box::new(Kernel::new(offer, info)?);
            kernel.write(Box::into_raw(made).cast());
            Ok(())
        })
    }
}

unsafe extern "system" fn compute(
    kernel: *mut c_void,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: the host has the kernel from `create`, and keeps it and the context during
    // the run. Runs of one kernel may be made side by side.
    unsafe {
        let kernel = &*kernel.cast_const().cast::<Kernel>();
        answer(kernel.api(), || kernel.run(context))
    }
}

unsafe extern "system" fn destroy(kernel: *mut c_void) {
    if !kernel.is_null() {
        // SAFETY: it is from `create`, and the host gives it back once.
        let _ = cross(|| drop(unsafe { Box::from_raw(kernel.cast::<Kernel>()) }));
    }
}
