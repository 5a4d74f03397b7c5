//! The host's functions, as this library calls them: each status becomes a result.
//!
//! Knows the host's table of functions. Knows nothing of scatters. Pointers of the host's
//! are handed through as they are: who calls an unsafe function here vouches for them.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null, null_mut};

use ndscatter_host::HostTask;
use ort_sys::{
    OrtApi, OrtApiBase, OrtCustomOp, OrtCustomOpDomain, OrtKernelContext, OrtKernelInfo,
    OrtSessionOptions, OrtShapeInferContext, OrtStatusPtr, OrtTensorTypeAndShapeInfo, OrtValue,
};
use smallvec::SmallVec;

use crate::failure::Failure;

/// The version of the table: that of the first host that is supported.
pub(crate) const VERSION: u32 = 18;

/// Sizes of a tensor's dims.
pub(crate) type Shape = SmallVec<[usize; 8]>;

/// The version of the table that has a shape without an object made for it: that of 1.24.
const SHAPES: u32 = 24;

/// A host's table of functions. That of an older host is shorter than its type here: no more of
/// it is touched than it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Api {
    table: *const OrtApi,
    /// Whether it is that of [`SHAPES`] or a newer one.
    has_shapes: bool,
}

// SAFETY: the host's table is there to be read by all threads, and stays.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Turns a status into a result.
fn check(status: OrtStatusPtr) -> Result<(), Failure> {
    if status.0.is_null() {
        Ok(())
    } else {
        Err(Failure::Host(status.0))
    }
}

/// Sizes of a tensor that is there, which none but these are of.
fn known(dims: &[i64]) -> Result<Shape, Failure> {
    let sizes: Result<Shape, _> = dims.iter().map(|&dim| usize::try_from(dim)).collect();
    sizes.map_err(|_| Failure::invalid("a dim of a tensor is not known"))
}

impl Api {
    /// The table of host 1.`host`, if it has one of [`VERSION`].
    ///
    /// # Safety
    ///
    /// `base` is a host's.
    pub(crate) unsafe fn new(base: *const OrtApiBase, host: u32) -> Option<Self> {
        // A host that is asked for a version it does not have says so to the user.
        let has_shapes = host >= SHAPES;
        let version = if has_shapes { SHAPES } else { VERSION };
        // SAFETY: the caller vouches for it.
        let table = unsafe { ((*base).GetApi)(version) };
        (!table.is_null()).then_some(Self { table, has_shapes })
    }

    /// What the host is to be told of an outcome.
    pub(crate) fn told(self, outcome: Result<(), Failure>) -> OrtStatusPtr {
        match outcome {
            Ok(()) => OrtStatusPtr(null_mut()),
            Err(Failure::Host(status)) => OrtStatusPtr(status),
            Err(Failure::Own(code, message)) => {
                let message = CString::new(format!("ndscatter: {message}")).unwrap_or_default();
                // SAFETY: the message is copied.
                unsafe { ((*self.table).CreateStatus)(code, message.as_ptr()) }
            }
        }
    }

    /// Whether a call of the host's succeeded; its status is freed.
    fn succeeds(self, status: OrtStatusPtr) -> bool {
        let failed = !status.0.is_null();
        if failed {
            // SAFETY: it is the host's own, and no one else has it.
            unsafe { ((*self.table).ReleaseStatus)(status.0) };
        }
        !failed
    }

    /// A text that the host writes when it has been asked for its length.
    fn text(
        self,
        mut get: impl FnMut(*mut std::ffi::c_char, *mut usize) -> OrtStatusPtr,
    ) -> Option<String> {
        let mut size = 0;
        // The host answers a call without a buffer by success or, before it has said how
        // long the text is, by a failure that means no more.
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

    /// # Safety
    ///
    /// `options` are the host's.
    pub(crate) unsafe fn config_entry(
        self,
        options: *const OrtSessionOptions,
        key: &CStr,
    ) -> Result<Option<String>, Failure> {
        let mut has: c_int = 0;
        // SAFETY: the caller vouches for the options.
        check(unsafe {
            ((*self.table).HasSessionConfigEntry)(options, key.as_ptr(), &raw mut has)
        })?;
        if has == 0 {
            return Ok(None);
        }
        // SAFETY: as above; the buffer is as long as the host is told.
        let get = |buffer, size| unsafe {
            ((*self.table).GetSessionConfigEntry)(options, key.as_ptr(), buffer, size)
        };
        Ok(Some(self.text(get).unwrap_or_default()))
    }

    /// A domain with these operators.
    ///
    /// # Safety
    ///
    /// The operators stay as long as the domain.
    pub(crate) unsafe fn domain(
        self,
        name: &CStr,
        operators: impl Iterator<Item = *const OrtCustomOp>,
    ) -> Result<*mut OrtCustomOpDomain, Failure> {
        let mut domain = null_mut();
        // SAFETY: the name is copied; the caller vouches for the operators.
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

    /// # Safety
    ///
    /// `options` are the host's, and the domain stays as long as they.
    pub(crate) unsafe fn add_domain(
        self,
        options: *mut OrtSessionOptions,
        domain: *mut OrtCustomOpDomain,
    ) -> Result<(), Failure> {
        // SAFETY: the caller vouches for both.
        check(unsafe { ((*self.table).AddCustomOpDomain)(options, domain) })
    }

    /// An attribute of a node, `None` where it has none of this name and type.
    ///
    /// # Safety
    ///
    /// `info` is the host's.
    pub(crate) unsafe fn int_attribute(
        self,
        info: *const OrtKernelInfo,
        name: &CStr,
    ) -> Option<i64> {
        let mut value = 0;
        // SAFETY: the caller vouches for `info`.
        let status = unsafe {
            ((*self.table).KernelInfoGetAttribute_int64)(info, name.as_ptr(), &raw mut value)
        };
        self.succeeds(status).then_some(value)
    }

    /// # Safety
    ///
    /// As for [`Self::int_attribute`].
    pub(crate) unsafe fn text_attribute(
        self,
        info: *const OrtKernelInfo,
        name: &CStr,
    ) -> Option<String> {
        // SAFETY: as above; the buffer is as long as the host is told.
        self.text(|buffer, size| unsafe {
            ((*self.table).KernelInfoGetAttribute_string)(info, name.as_ptr(), buffer, size)
        })
    }

    /// Whether the node has a number with a fraction, or a list of numbers, of this name.
    ///
    /// # Safety
    ///
    /// As for [`Self::int_attribute`].
    pub(crate) unsafe fn has_float_or_list(self, info: *const OrtKernelInfo, name: &CStr) -> bool {
        let (mut value, mut len) = (0.0, 0);
        let name = name.as_ptr();
        // SAFETY: as above; without a place for them, the host says how many numbers there are.
        unsafe {
            let is_float = ((*self.table).KernelInfoGetAttribute_float)(info, name, &raw mut value);
            let floats = (*self.table).KernelInfoGetAttributeArray_float;
            let ints = (*self.table).KernelInfoGetAttributeArray_int64;
            self.succeeds(is_float)
                || self.succeeds(floats(info, name, null_mut(), &raw mut len))
                || self.succeeds(ints(info, name, null_mut(), &raw mut len))
        }
    }

    /// Whether an input is the same in every run.
    ///
    /// # Safety
    ///
    /// As for [`Self::int_attribute`], and the node has the input.
    pub(crate) unsafe fn is_constant(self, info: *const OrtKernelInfo, input: usize) -> bool {
        let (mut is_constant, mut value) = (0, null());
        // SAFETY: the caller vouches for `info`.
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

    /// How many inputs a node has been given.
    ///
    /// # Safety
    ///
    /// As for [`Self::int_attribute`].
    pub(crate) unsafe fn input_count(self, info: *const OrtKernelInfo) -> Result<usize, Failure> {
        let mut count = 0;
        // SAFETY: the caller vouches for `info`.
        check(unsafe { ((*self.table).KernelInfo_GetInputCount)(info, &raw mut count) })?;
        Ok(count)
    }

    /// An input of a run, null where it was left out.
    ///
    /// # Safety
    ///
    /// `context` is that of a run that has not ended.
    pub(crate) unsafe fn input(
        self,
        context: *const OrtKernelContext,
        input: usize,
    ) -> Result<*const OrtValue, Failure> {
        let mut value = null();
        // SAFETY: the caller vouches for `context`.
        check(unsafe { ((*self.table).KernelContext_GetInput)(context, input, &raw mut value) })?;
        Ok(value)
    }

    /// The output of a run, of this shape.
    ///
    /// # Safety
    ///
    /// As for [`Self::input`].
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
        // SAFETY: the caller vouches for `context`; dims are as many as is said.
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
            return Err(Failure::internal("the host has no output"));
        }
        Ok(value)
    }

    /// # Safety
    ///
    /// `value` is a tensor of the host's.
    pub(crate) unsafe fn shape(self, value: *const OrtValue) -> Result<Shape, Failure> {
        let (mut element_type, mut dims, mut rank) = (0_i32, null(), 0);
        // SAFETY: the caller vouches for `value`, whose dims these are; a type of the host's
        // may be one that its enumeration here does not have.
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
            known(std::slice::from_raw_parts(dims, rank))
        }
    }

    /// [`Self::shape`] of an older host's tensor.
    ///
    /// # Safety
    ///
    /// As for that.
    unsafe fn shape_by_info(self, value: *const OrtValue) -> Result<Shape, Failure> {
        let mut info = null_mut();
        // SAFETY: the caller vouches for `value`; what is made is freed.
        unsafe {
            check(((*self.table).GetTensorTypeAndShape)(value, &raw mut info))?;
            let dims = self.dims(info);
            ((*self.table).ReleaseTensorTypeAndShapeInfo)(info);
            known(&dims?)
        }
    }

    /// # Safety
    ///
    /// `info` is the host's.
    unsafe fn dims(
        self,
        info: *const OrtTensorTypeAndShapeInfo,
    ) -> Result<SmallVec<[i64; 8]>, Failure> {
        let mut rank = 0;
        // SAFETY: the caller vouches for `info`; there is room for `rank` dims.
        unsafe {
            check(((*self.table).GetDimensionsCount)(info, &raw mut rank))?;
            let mut dims = SmallVec::from_elem(0, rank);
            check(((*self.table).GetDimensions)(info, dims.as_mut_ptr(), rank))?;
            Ok(dims)
        }
    }

    /// The address of a tensor's elements.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of the host's; an input is only read there.
    pub(crate) unsafe fn address(self, value: *const OrtValue) -> Result<*mut u8, Failure> {
        let mut address = null_mut();
        // SAFETY: the caller vouches for `value`, which this call does not change.
        check(unsafe { ((*self.table).GetTensorMutableData)(value.cast_mut(), &raw mut address) })?;
        Ok(address.cast())
    }

    /// Appends a string of a tensor to `bytes`.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of strings of the host's.
    pub(crate) unsafe fn append_string(
        self,
        value: *const OrtValue,
        position: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let mut len = 0;
        let before = bytes.len();
        // SAFETY: the caller vouches for `value`; `len` bytes are there to be written.
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
    /// `value` is a tensor of strings of the host's that no one else looks at.
    pub(crate) unsafe fn set_string(
        self,
        value: *mut OrtValue,
        position: usize,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let mut buffer = null_mut();
        // SAFETY: the caller vouches for `value`; the host has made room for all bytes.
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

    /// Runs tasks on the threads of a run; whether the host has run them.
    ///
    /// # Safety
    ///
    /// `context` is that of a run that has not ended, and `task` may be called with
    /// `argument` and each number below `tasks` from any thread.
    pub(crate) unsafe fn parallel_for(
        self,
        context: *const OrtKernelContext,
        tasks: usize,
        task: HostTask,
        argument: *mut c_void,
    ) -> bool {
        // The host cuts the tasks itself where it is told of no batches.
        const BATCHES: usize = 0;
        // SAFETY: the caller vouches for all of it. "system" and "C" are the same
        // convention wherever the host is 64-bit.
        let status = unsafe {
            let task = std::mem::transmute::<HostTask, unsafe extern "system" fn(*mut c_void, usize)>(
                task,
            );
            ((*self.table).KernelContext_ParallelFor)(context, task, tasks, BATCHES, argument)
        };
        self.succeeds(status)
    }

    /// Says that the output has the shape of the first input, as far as that is known.
    /// `unnamed` makes a name for a size that has none.
    ///
    /// # Safety
    ///
    /// `context` is the host's.
    pub(crate) unsafe fn infer_same_shape(
        self,
        context: *mut OrtShapeInferContext,
        mut unnamed: impl FnMut() -> CString,
    ) -> Result<(), Failure> {
        let mut info = null_mut();
        // SAFETY: the caller vouches for `context`, to which `info` belongs; there is room
        // for as many names as there are dims, and the host copies those it is given.
        unsafe {
            check(((*self.table).ShapeInferContext_GetInputTypeShape)(
                context,
                0,
                &raw mut info,
            ))?;
            let dims = self.dims(info)?;
            // A rank that is not known looks the same, and is not to become 0.
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
