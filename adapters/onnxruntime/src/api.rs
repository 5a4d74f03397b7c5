//! Safe results for calls of the host's functions: each status becomes a `Result`.
//!
//! Knows the host's table of functions. Knows nothing of scatters. Pointers of the host pass
//! through unchecked, so the callers of the unsafe functions guarantee their validity.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null, null_mut};

use ndscatter_host::HostTask;
use ort_sys::{
    OrtApi, OrtApiBase, OrtCustomOp, OrtCustomOpDomain, OrtKernelContext, OrtKernelInfo,
    OrtSessionOptions, OrtShapeInferContext, OrtStatusPtr, OrtTensorTypeAndShapeInfo, OrtValue,
};
use smallvec::SmallVec;

use crate::failure::Failure;

/// Version of the host's table of functions in the first supported host.
pub(crate) const VERSION: u32 = 18;

/// Sizes of a tensor's dims.
pub(crate) type Shape = SmallVec<[usize; 8]>;

/// Version of the first table that returns a shape without making an object (host 1.24).
const SHAPES: u32 = 24;

/// A host's table of functions.
///
/// The table of an older host is shorter than its Rust type. Only fields that the host has are
/// accessed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Api {
    table: *const OrtApi,
    /// Whether the table has at least the version [`SHAPES`].
    has_shapes: bool,
}

// SAFETY: the host's table is immutable and is never freed, so all threads may read it.
unsafe impl Send for Api {}
// SAFETY: the host's table is immutable and is never freed, so all threads may read it.
unsafe impl Sync for Api {}

/// Converts a status of the host to a result.
fn check(status: OrtStatusPtr) -> Result<(), Failure> {
    if status.0.is_null() {
        Ok(())
    } else {
        Err(Failure::Host(status.0))
    }
}

/// Converts the dims of an existing tensor to sizes. Fails for a negative dim, which means an
/// unknown size.
fn sizes_of(dims: &[i64]) -> Result<Shape, Failure> {
    let sizes: Result<Shape, _> = dims.iter().map(|&dim| usize::try_from(dim)).collect();
    sizes.map_err(|_| Failure::invalid("a tensor has a dim of unknown size"))
}

impl Api {
    /// Returns the table of host 1.`host`, or `None` if the host has no table of [`VERSION`].
    ///
    /// # Safety
    ///
    /// `base` is valid and comes from a host.
    pub(crate) unsafe fn new(base: *const OrtApiBase, host: u32) -> Option<Self> {
        // A host prints a message to the user if it does not have the requested version.
        let has_shapes = host >= SHAPES;
        let version = if has_shapes { SHAPES } else { VERSION };
        // SAFETY: `base` is valid (contract of this function).
        let table = unsafe { ((*base).GetApi)(version) };
        (!table.is_null()).then_some(Self { table, has_shapes })
    }

    /// Converts an outcome to a status of the host.
    pub(crate) fn status(self, outcome: Result<(), Failure>) -> OrtStatusPtr {
        match outcome {
            Ok(()) => OrtStatusPtr(null_mut()),
            Err(Failure::Host(status)) => OrtStatusPtr(status),
            Err(Failure::Own(code, message)) => {
                let message = CString::new(format!("ndscatter: {message}")).unwrap_or_default();
                // SAFETY: the message ends in a NUL, and the host copies it.
                unsafe { ((*self.table).CreateStatus)(code, message.as_ptr()) }
            }
        }
    }

    /// Frees a status of the host. Returns whether the call succeeded.
    fn succeeds(self, status: OrtStatusPtr) -> bool {
        let failed = !status.0.is_null();
        if failed {
            // SAFETY: the status comes from the host, and nothing else refers to it.
            unsafe { ((*self.table).ReleaseStatus)(status.0) };
        }
        !failed
    }

    /// Returns a text of the host. Calls `get` once for the length and once for the text.
    fn text(
        self,
        mut get: impl FnMut(*mut std::ffi::c_char, *mut usize) -> OrtStatusPtr,
    ) -> Option<String> {
        let mut size = 0;
        // Without a buffer, the host returns success, or a failure and the length of the text. The
        // failure has no other meaning.
        self.succeeds(get(null_mut(), &raw mut size));
        if size == 0 {
            return None;
        }
        let mut bytes = vec![0_u8; size];
        if !self.succeeds(get(bytes.as_mut_ptr().cast(), &raw mut size)) {
            return None;
        }
        let text = CStr::from_bytes_until_nul(&bytes).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// Returns the value of a config entry of a session, or `None` if it is not set.
    ///
    /// # Safety
    ///
    /// `options` are valid options of the host.
    pub(crate) unsafe fn config_entry(
        self,
        options: *const OrtSessionOptions,
        key: &CStr,
    ) -> Result<Option<String>, Failure> {
        let mut has: c_int = 0;
        // SAFETY: the options are valid (contract of this function).
        check(unsafe {
            ((*self.table).HasSessionConfigEntry)(options, key.as_ptr(), &raw mut has)
        })?;
        if has == 0 {
            return Ok(None);
        }
        // SAFETY: the options are valid, and the buffer has the length that the host receives.
        let get = |buffer, size| unsafe {
            ((*self.table).GetSessionConfigEntry)(options, key.as_ptr(), buffer, size)
        };
        Ok(Some(self.text(get).unwrap_or_default()))
    }

    /// Creates a domain with these operators.
    ///
    /// # Safety
    ///
    /// The operators outlive the domain.
    pub(crate) unsafe fn domain(
        self,
        name: &CStr,
        operators: impl Iterator<Item = *const OrtCustomOp>,
    ) -> Result<*mut OrtCustomOpDomain, Failure> {
        let mut domain = null_mut();
        // SAFETY: the host copies the name. The operators outlive the domain (contract of this
        // function).
        unsafe {
            check(((*self.table).CreateCustomOpDomain)(
                name.as_ptr(),
                &raw mut domain,
            ))?;
            for operator in operators {
                check(((*self.table).CustomOpDomain_Add)(domain, operator))?;
            }
        }
        Ok(domain)
    }

    /// Adds a domain to the options of a session.
    ///
    /// # Safety
    ///
    /// `options` are valid options of the host, and the domain outlives them.
    pub(crate) unsafe fn add_domain(
        self,
        options: *mut OrtSessionOptions,
        domain: *mut OrtCustomOpDomain,
    ) -> Result<(), Failure> {
        // SAFETY: the options and the domain are valid (contract of this function).
        check(unsafe { ((*self.table).AddCustomOpDomain)(options, domain) })
    }

    /// Returns an integer attribute of a node, or `None` if the node has none of this name and
    /// type.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    pub(crate) unsafe fn int_attribute(
        self,
        info: *const OrtKernelInfo,
        name: &CStr,
    ) -> Option<i64> {
        let mut value = 0;
        // SAFETY: `info` is valid (contract of this function).
        let status = unsafe {
            ((*self.table).KernelInfoGetAttribute_int64)(info, name.as_ptr(), &raw mut value)
        };
        self.succeeds(status).then_some(value)
    }

    /// Returns a string attribute of a node, or `None` if the node has none of this name and type.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds.
    pub(crate) unsafe fn text_attribute(
        self,
        info: *const OrtKernelInfo,
        name: &CStr,
    ) -> Option<String> {
        // SAFETY: `info` is valid, and the buffer has the length that the host receives.
        self.text(|buffer, size| unsafe {
            ((*self.table).KernelInfoGetAttribute_string)(info, name.as_ptr(), buffer, size)
        })
    }

    /// Whether the node has a float attribute, or a list of floats or integers, of this name.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds.
    pub(crate) unsafe fn has_float_or_list(self, info: *const OrtKernelInfo, name: &CStr) -> bool {
        let (mut value, mut len) = (0.0, 0);
        let name = name.as_ptr();
        // SAFETY: `info` is valid. Without a buffer, the host writes only the length of a list.
        unsafe {
            let is_float = ((*self.table).KernelInfoGetAttribute_float)(info, name, &raw mut value);
            let floats = (*self.table).KernelInfoGetAttributeArray_float;
            let ints = (*self.table).KernelInfoGetAttributeArray_int64;
            self.succeeds(is_float)
                || self.succeeds(floats(info, name, null_mut(), &raw mut len))
                || self.succeeds(ints(info, name, null_mut(), &raw mut len))
        }
    }

    /// Whether an input is constant.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds. The node has the input.
    pub(crate) unsafe fn is_constant(self, info: *const OrtKernelInfo, input: usize) -> bool {
        let (mut is_constant, mut value) = (0, null());
        // SAFETY: `info` is valid, and the node has the input (contract of this function).
        let status = unsafe {
            ((*self.table).KernelInfoGetConstantInput_tensor)(
                info,
                input,
                &raw mut is_constant,
                &raw mut value,
            )
        };
        self.succeeds(status) && is_constant != 0
    }

    /// Returns the number of inputs of a node.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds.
    pub(crate) unsafe fn input_count(self, info: *const OrtKernelInfo) -> Result<usize, Failure> {
        let mut count = 0;
        // SAFETY: `info` is valid (contract of this function).
        check(unsafe { ((*self.table).KernelInfo_GetInputCount)(info, &raw mut count) })?;
        Ok(count)
    }

    /// Returns an input of a run, or null if the node omits it.
    ///
    /// # Safety
    ///
    /// `context` belongs to a run that has not ended.
    pub(crate) unsafe fn input(
        self,
        context: *const OrtKernelContext,
        input: usize,
    ) -> Result<*const OrtValue, Failure> {
        let mut value = null();
        // SAFETY: `context` is valid (contract of this function).
        check(unsafe { ((*self.table).KernelContext_GetInput)(context, input, &raw mut value) })?;
        Ok(value)
    }

    /// Returns the output of a run, with this shape.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::input`] holds.
    pub(crate) unsafe fn output(
        self,
        context: *mut OrtKernelContext,
        shape: &[usize],
    ) -> Result<*mut OrtValue, Failure> {
        let dims: SmallVec<[i64; 8]> = shape
            .iter()
            .map(|&size| size.cast_signed() as i64)
            .collect();
        let mut value = null_mut();
        // SAFETY: `context` is valid (contract of this function). `dims` has the stated length.
        check(unsafe {
            ((*self.table).KernelContext_GetOutput)(
                context,
                0,
                dims.as_ptr(),
                dims.len(),
                &raw mut value,
            )
        })?;
        if value.is_null() {
            return Err(Failure::internal("the host returned no output"));
        }
        Ok(value)
    }

    /// Returns the shape of a tensor.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of the host.
    pub(crate) unsafe fn shape(self, value: *const OrtValue) -> Result<Shape, Failure> {
        let (mut element_type, mut dims, mut rank) = (0_i32, null(), 0);
        // SAFETY: `value` is valid (contract of this function) and owns the dims. The element type
        // is read as an integer, because the enumeration in Rust may not have its value.
        unsafe {
            if !self.has_shapes {
                return self.shape_by_info(value);
            }
            check(((*self.table).GetTensorElementTypeAndShapeDataReference)(
                value,
                (&raw mut element_type).cast(),
                &raw mut dims,
                &raw mut rank,
            ))?;
            if rank == 0 {
                return Ok(Shape::new());
            }
            sizes_of(std::slice::from_raw_parts(dims, rank))
        }
    }

    /// Returns the shape of a tensor of a host before 1.24.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::shape`] holds.
    unsafe fn shape_by_info(self, value: *const OrtValue) -> Result<Shape, Failure> {
        let mut info = null_mut();
        // SAFETY: `value` is valid (contract of this function). `info` is freed after its use.
        unsafe {
            check(((*self.table).GetTensorTypeAndShape)(value, &raw mut info))?;
            let dims = self.dims(info);
            ((*self.table).ReleaseTensorTypeAndShapeInfo)(info);
            sizes_of(&dims?)
        }
    }

    /// Returns the dims of a shape. An unknown dim is negative.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    unsafe fn dims(
        self,
        info: *const OrtTensorTypeAndShapeInfo,
    ) -> Result<SmallVec<[i64; 8]>, Failure> {
        let mut rank = 0;
        // SAFETY: `info` is valid (contract of this function). The buffer has space for `rank`
        // dims.
        unsafe {
            check(((*self.table).GetDimensionsCount)(info, &raw mut rank))?;
            let mut dims = SmallVec::from_elem(0, rank);
            check(((*self.table).GetDimensions)(info, dims.as_mut_ptr(), rank))?;
            Ok(dims)
        }
    }

    /// Returns the address of a tensor's elements.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of the host. The elements of an input must not be written.
    pub(crate) unsafe fn address(self, value: *const OrtValue) -> Result<*mut u8, Failure> {
        let mut address = null_mut();
        // SAFETY: `value` is valid (contract of this function). The call does not change it.
        check(unsafe { ((*self.table).GetTensorMutableData)(value.cast_mut(), &raw mut address) })?;
        Ok(address.cast())
    }

    /// Appends a string of a tensor to `bytes`.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of strings of the host.
    pub(crate) unsafe fn append_string(
        self,
        value: *const OrtValue,
        position: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let mut len = 0;
        let before = bytes.len();
        // SAFETY: `value` is valid (contract of this function). The buffer has `len` bytes.
        unsafe {
            check(((*self.table).GetStringTensorElementLength)(
                value,
                position,
                &raw mut len,
            ))?;
            bytes.resize(before + len, 0);
            let room: *mut c_void = bytes[before..].as_mut_ptr().cast();
            check(((*self.table).GetStringTensorElement)(
                value, len, position, room,
            ))
        }
    }

    /// Replaces a string of a tensor.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of strings of the host. Nothing else accesses it during the call.
    pub(crate) unsafe fn set_string(
        self,
        value: *mut OrtValue,
        position: usize,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let mut buffer = null_mut();
        // SAFETY: `value` is valid (contract of this function). The buffer has `bytes.len()` bytes.
        unsafe {
            check(((*self.table).GetResizedStringTensorElementBuffer)(
                value,
                position,
                bytes.len(),
                &raw mut buffer,
            ))?;
            let buffer: *mut u8 = buffer.cast();
            buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Ok(())
    }

    /// Runs tasks on the threads of the host's session, during a run of a node. Returns whether the
    /// host succeeded.
    ///
    /// # Safety
    ///
    /// `context` belongs to a run that has not ended. Any thread may call `task` with `argument`
    /// and each number below `tasks`.
    pub(crate) unsafe fn parallel_for(
        self,
        context: *const OrtKernelContext,
        tasks: usize,
        task: HostTask,
        argument: *mut c_void,
    ) -> bool {
        // 0: the host chooses the batches of tasks.
        const BATCHES: usize = 0;
        // SAFETY: the context and the task are valid (contract of this function). "system" and "C"
        // are the same calling convention on 64-bit hosts.
        let status = unsafe {
            let task = std::mem::transmute::<HostTask, unsafe extern "system" fn(*mut c_void, usize)>(
                task,
            );
            ((*self.table).KernelContext_ParallelFor)(context, task, tasks, BATCHES, argument)
        };
        self.succeeds(status)
    }

    /// Sets the shape of the output to the known shape of the first input. `unnamed` makes a name
    /// for an unknown size without a name.
    ///
    /// # Safety
    ///
    /// `context` is a valid context of the host.
    pub(crate) unsafe fn infer_same_shape(
        self,
        context: *mut OrtShapeInferContext,
        mut unnamed: impl FnMut() -> CString,
    ) -> Result<(), Failure> {
        let mut info = null_mut();
        // SAFETY: `context` is valid (contract of this function) and owns `info`. `names` has one
        // entry per dim. The host copies the names that it receives.
        unsafe {
            check(((*self.table).ShapeInferContext_GetInputTypeShape)(
                context,
                0,
                &raw mut info,
            ))?;
            let dims = self.dims(info)?;
            // An unknown rank has no dims either. Its output must not get rank 0.
            if dims.is_empty() {
                return Ok(());
            }
            let mut names = vec![null(); dims.len()];
            check(((*self.table).GetSymbolicDimensions)(
                info,
                names.as_mut_ptr(),
                names.len(),
            ))?;
            let mut made = Vec::new();
            for (&dim, name) in dims.iter().zip(&mut names) {
                if dim < 0 && (name.is_null() || **name == 0) {
                    let new = unnamed();
                    *name = new.as_ptr();
                    made.push(new);
                }
            }
            if !made.is_empty() {
                check(((*self.table).SetSymbolicDimensions)(
                    info,
                    names.as_mut_ptr(),
                    names.len(),
                ))?;
            }
            check(((*self.table).ShapeInferContext_SetOutputTypeShape)(
                context, 0, info,
            ))
        }
    }
}
