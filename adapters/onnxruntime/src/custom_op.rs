//! The table of callbacks that the host calls for one variant of an operator.
//!
//! This module knows the host's struct `OrtCustomOp`. It knows nothing of the computation, which
//! the module `kernel` does.

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
use crate::shapes;
use crate::variant::Variant;

/// One variant of an operator, in the form that the host requires. This struct begins with the
/// host's struct `OrtCustomOp`. A callback receives a pointer to the `OrtCustomOp` and reads
/// `variant`, which follows the `OrtCustomOp` in memory.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CustomOp {
    base: OrtCustomOp,
    variant: Variant,
}

impl CustomOp {
    pub(crate) fn new(variant: Variant) -> Self {
        Self {
            base: callbacks(),
            variant,
        }
    }

    /// Returns the operator that `op` points to. `op` is the argument of a callback.
    ///
    /// # Safety
    ///
    /// `op` comes from [`Self::as_ptr`]. The host fulfils this contract: it passes the pointer to
    /// each callback that has an argument for the operator.
    unsafe fn of<'a>(op: *const OrtCustomOp) -> &'a Self {
        // SAFETY: `op` points to a `CustomOp` (contract of this function), and operators are never
        // freed.
        unsafe { &*op.cast::<Self>() }
    }

    /// Returns the pointer to this operator that the library passes to the host.
    pub(crate) fn as_ptr(&'static self) -> *const OrtCustomOp {
        std::ptr::from_ref(self).cast()
    }

    fn type_of(&self, role: Role) -> i32 {
        match role {
            Role::Moved => self.variant.element.code,
            Role::Indices | Role::OptionalIndices => code_of(self.variant.index_type),
        }
    }
}

/// Runs `call`, the body of a callback, and returns its result as a status of the host. Converts a
/// panic to a failure, so that no panic unwinds into the host.
fn run_callback(api: Api, call: impl FnOnce() -> Result<(), Failure>) -> OrtStatusPtr {
    api.status(cross(call).unwrap_or_else(|_| Err(panicked())))
}

pub(crate) fn panicked() -> Failure {
    Failure::internal("the library panicked; this is a bug in the library")
}

/// A callback that returns an element type as an integer.
///
/// The host's enumeration of element types has more values than the enumeration in `ort_sys`. The
/// integer can hold all values of the host's enumeration.
type TypeOf = unsafe extern "system" fn(*const OrtCustomOp, usize) -> i32;

fn type_callback(
    callback: TypeOf,
) -> unsafe extern "system" fn(*const OrtCustomOp, usize) -> ONNXTensorElementDataType {
    // SAFETY: the enumeration is `repr(i32)`, so both function types return their result in the
    // same way. Only the host calls the function, and the host reads the returned value as a C
    // integer.
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
    // SAFETY: the host passes the pointer of the operator to which this callback belongs.
    unsafe { CustomOp::of(op) }.variant.definition.name.as_ptr()
}

/// Returns null as the name of the execution provider. Null means the execution provider of the
/// CPU.
unsafe extern "system" fn provider(_: *const OrtCustomOp) -> *const c_char {
    null()
}

unsafe extern "system" fn input_type(op: *const OrtCustomOp, index: usize) -> i32 {
    // SAFETY: as in `name`.
    let op = unsafe { CustomOp::of(op) };
    let role = op.variant.definition.inputs.get(index);
    role.map_or(0, |&role| op.type_of(role))
}

unsafe extern "system" fn input_count(op: *const OrtCustomOp) -> usize {
    // SAFETY: as in `name`.
    unsafe { CustomOp::of(op) }.variant.definition.inputs.len()
}

unsafe extern "system" fn output_type(op: *const OrtCustomOp, _: usize) -> i32 {
    // SAFETY: as in `name`.
    unsafe { CustomOp::of(op) }.variant.element.code
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
        .variant
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

/// Returns the first version of the operator. This version is 1 in both domains. It does not
/// depend on the version of the ONNX standard that introduced the operator.
///
/// The host also searches its own kernels for the operator and this version, for example to fold
/// constants. If one of its kernels had this version, the host would require names of type
/// constraints, which the operators of this library do not have.
unsafe extern "system" fn start_version(_: *const OrtCustomOp) -> c_int {
    1
}

/// Returns the last version of the operator. The returned number is larger than every version, so
/// the operator serves all versions.
///
/// `c_int::MAX` itself has another meaning for the host: the operator serves only its first
/// version. Such an operator would not run models in the host's own format (`.ort`), which specify
/// a later version.
unsafe extern "system" fn end_version(_: *const OrtCustomOp) -> c_int {
    c_int::MAX - 1
}

/// Reports that output 0 may share the memory of input 0, the data. The host lets them share memory
/// only if nothing else needs the data.
unsafe extern "system" fn may_inplace(inputs: *mut *mut c_int, outputs: *mut *mut c_int) -> usize {
    // The host receives this list as a mutable pointer, but only reads it.
    static FIRST: [c_int; 1] = [0];
    let first = FIRST.as_ptr().cast_mut();
    // SAFETY: the host passes valid pointers `inputs` and `outputs`.
    unsafe {
        inputs.write(first);
        outputs.write(first);
    }
    FIRST.len()
}

/// Frees nothing, because the lists that `may_inplace` returns are static.
unsafe extern "system" fn release_may_inplace(_: *mut c_int, _: *mut c_int) {}

unsafe extern "system" fn infer(
    op: *const OrtCustomOp,
    context: *mut OrtShapeInferContext,
) -> OrtStatusPtr {
    // SAFETY: the host passes the pointer of the operator (as in `name`) and a valid `context`.
    unsafe {
        let api = CustomOp::of(op).variant.api;
        run_callback(api, || shapes::infer(api, context))
    }
}

unsafe extern "system" fn create(
    op: *const OrtCustomOp,
    _: *const OrtApi,
    info: *const OrtKernelInfo,
    kernel: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: the host passes the pointer of the operator (as in `name`) and a valid `info`. The
    // host passes a `kernel` that is valid for a write.
    unsafe {
        let variant = CustomOp::of(op).variant;
        kernel.write(null_mut());
        run_callback(variant.api, || {
            let made = Box::new(Kernel::new(variant, info)?);
            kernel.write(Box::into_raw(made).cast());
            Ok(())
        })
    }
}

unsafe extern "system" fn compute(
    kernel: *mut c_void,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: `kernel` comes from `create`. The host frees neither the kernel nor the context
    // during the run. Concurrent runs may share the kernel, because it is `Sync`.
    unsafe {
        let kernel = &*kernel.cast_const().cast::<Kernel>();
        run_callback(kernel.api(), || kernel.run(context))
    }
}

unsafe extern "system" fn destroy(kernel: *mut c_void) {
    if !kernel.is_null() {
        // SAFETY: `kernel` comes from `create`, and the host calls `destroy` once per kernel.
        let _ = cross(|| drop(unsafe { Box::from_raw(kernel.cast::<Kernel>()) }));
    }
}
