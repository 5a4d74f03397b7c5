//! Wrappers of the host's functions. The host is onnxruntime. Each wrapper converts the status that
//! a function of the host returns to a `Result`, an `Option` or a `bool`.
//!
//! This module knows the host's table of functions. It knows nothing of scatters. The wrappers do
//! not check the pointers that they pass to the host, so the callers of the unsafe functions
//! guarantee that these pointers are valid.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use ndscatter::ScatterError;
use ndscatter_host::HostTask;
use ort_sys::{
    OrtApi, OrtApiBase, OrtCustomOp, OrtCustomOpDomain, OrtKernelContext, OrtKernelInfo,
    OrtKeyValuePairs, OrtLoggingLevel, OrtSessionOptions, OrtShapeInferContext, OrtStatusPtr,
    OrtTensorTypeAndShapeInfo, OrtValue, os_char,
};
use smallvec::SmallVec;

use crate::failure::Failure;

/// Version of the function table of the oldest supported host, onnxruntime 1.18.
pub(crate) const VERSION: u32 = 18;

/// The shape of a tensor: the size of each dim.
pub(crate) type Shape = SmallVec<[usize; 8]>;

/// Version of the function table of newer hosts. This version has a function that returns a
/// tensor's shape without an allocation, and functions that list config entries. onnxruntime 1.24
/// introduced this version.
const NEW: u32 = 24;

/// A host's table of functions.
///
/// The table of an older host has fewer functions than the Rust type `OrtApi`. The wrappers access
/// only functions that the host's table has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Api {
    table: *const OrtApi,
    /// Whether the version of the table is [`NEW`], not [`VERSION`].
    is_new: bool,
}

// SAFETY: the host's table is immutable and is never freed, so all threads may read it.
unsafe impl Send for Api {}
// SAFETY: the host's table is immutable and is never freed, so all threads may read it.
unsafe impl Sync for Api {}

/// Converts a status of the host to a result. A null status means success.
fn check(status: OrtStatusPtr) -> Result<(), Failure> {
    if status.0.is_null() {
        Ok(())
    } else {
        Err(Failure::Host(status.0))
    }
}

/// Converts the dims of a tensor of a run to sizes. Fails if a dim is negative: a negative dim
/// means an unknown size.
fn sizes_of(dims: &[i64]) -> Result<Shape, Failure> {
    let sizes: Result<Shape, _> = dims.iter().map(|&dim| usize::try_from(dim)).collect();
    sizes.map_err(|_| Failure::invalid("a tensor has a dim of unknown size"))
}

impl Api {
    /// Returns the function table of a host, or `None` if the host does not have the requested
    /// version. `host` is the host's minor version: 24 means onnxruntime 1.24.
    ///
    /// # Safety
    ///
    /// `base` is valid and comes from a host.
    pub(crate) unsafe fn new(base: *const OrtApiBase, host: u32) -> Option<Self> {
        // A host prints a message to the user if it does not have the requested version. The newer
        // version is therefore requested only if the host has it.
        let is_new = host >= NEW;
        let version = if is_new { NEW } else { VERSION };
        // SAFETY: `base` is valid (contract of this function).
        let table = unsafe { ((*base).GetApi)(version) };
        (!table.is_null()).then_some(Self { table, is_new })
    }

    /// Converts a result to a status of the host. Success becomes a null status.
    pub(crate) fn status(self, outcome: Result<(), Failure>) -> OrtStatusPtr {
        match outcome {
            Ok(()) => OrtStatusPtr(null_mut()),
            Err(Failure::Host(status)) => OrtStatusPtr(status),
            Err(Failure::Own(code, message)) => {
                let message = CStr::from_bytes_until_nul(message.as_bytes());
                let message = message.unwrap_or(c"ndscatter: out of memory");
                // SAFETY: the message ends in a NUL, and the host copies it.
                unsafe { ((*self.table).CreateStatus)(code, message.as_ptr()) }
            }
        }
    }

    /// Returns whether `status` means success. Frees the status.
    fn succeeds(self, status: OrtStatusPtr) -> bool {
        let failed = !status.0.is_null();
        if failed {
            // SAFETY: the status comes from the host, and nothing else uses it afterwards.
            unsafe { ((*self.table).ReleaseStatus)(status.0) };
        }
        !failed
    }

    /// Returns a text of the host, or `None` if the host has no such text.
    ///
    /// Calls `get` with a null buffer to get the size of the text in bytes, with its NUL. Then
    /// calls `get` with a buffer of this size to get the text.
    fn text(self, mut get: impl FnMut(*mut c_char, *mut usize) -> OrtStatusPtr) -> Option<String> {
        let mut size = 0;
        // With a null buffer, the host sets `size` to the size of an existing text. For a missing
        // text, `size` remains 0. The host may return a failure for a null buffer even if the text
        // exists, so the status of the call with a null buffer is ignored.
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

    /// Returns the value of the config entry `key` of a session, or `None` if the entry is not set.
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
        // SAFETY: the options are valid (contract of this function). `text` passes a null buffer,
        // or a buffer of `size` bytes.
        let get = |buffer, size| unsafe {
            ((*self.table).GetSessionConfigEntry)(options, key.as_ptr(), buffer, size)
        };
        Ok(Some(self.text(get).unwrap_or_default()))
    }

    /// Adds a config entry to the options of a session.
    ///
    /// # Safety
    ///
    /// `options` are valid options of the host. Nothing else accesses them during the call.
    pub(crate) unsafe fn add_config_entry(
        self,
        options: *mut OrtSessionOptions,
        key: &CStr,
        value: &CStr,
    ) -> Result<(), Failure> {
        // SAFETY: the options are valid (contract of this function). The host copies both texts.
        check(unsafe {
            ((*self.table).AddSessionConfigEntry)(options, key.as_ptr(), value.as_ptr())
        })
    }

    /// Returns all config entries of the options of a session: keys and values. Returns `None` if
    /// the host has no function for this.
    ///
    /// # Safety
    ///
    /// `options` are valid options of the host.
    pub(crate) unsafe fn config_entries(
        self,
        options: *const OrtSessionOptions,
    ) -> Result<Option<Vec<(String, String)>>, Failure> {
        // SAFETY: the options are valid (contract of this function). `pairs` calls this closure
        // only if `is_new` is true, and tables of the version `NEW` have the function.
        self.pairs(|pairs| unsafe {
            ((*self.table).GetSessionOptionsConfigEntries)(options, pairs)
        })
    }

    /// Returns all config entries of the session of a node, as [`Self::config_entries`] does.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    pub(crate) unsafe fn config_entries_of_node(
        self,
        info: *const OrtKernelInfo,
    ) -> Result<Option<Vec<(String, String)>>, Failure> {
        // SAFETY: `info` is valid (contract of this function). `pairs` calls this closure only if
        // `is_new` is true, and tables of the version `NEW` have the function.
        self.pairs(|pairs| unsafe { ((*self.table).KernelInfo_GetConfigEntries)(info, pairs) })
    }

    /// Returns the pairs of the list that `get` writes to its argument. Returns `None` and does not
    /// call `get` if the host has no such lists.
    fn pairs(
        self,
        get: impl FnOnce(*mut *mut OrtKeyValuePairs) -> OrtStatusPtr,
    ) -> Result<Option<Vec<(String, String)>>, Failure> {
        if !self.is_new {
            return Ok(None);
        }
        let mut list = null_mut();
        check(get(&raw mut list))?;
        let (mut keys, mut values, mut count) = (null(), null(), 0);
        // SAFETY: `get` has succeeded, so the host has made the list. The list is freed once, after
        // its last use. `keys` and `values` have `count` texts that end in a NUL. The table has
        // both functions, because `is_new` is true (checked above).
        unsafe {
            ((*self.table).GetKeyValuePairs)(list, &raw mut keys, &raw mut values, &raw mut count);
            let text = |text: *const c_char| CStr::from_ptr(text).to_string_lossy().into_owned();
            let pairs = (0..count).map(|pair| (text(*keys.add(pair)), text(*values.add(pair))));
            let pairs = pairs.collect();
            ((*self.table).ReleaseKeyValuePairs)(list);
            Ok(Some(pairs))
        }
    }

    /// Writes a message of the severity INFO to the log of a node's session. Does nothing if the
    /// node has no log, or if the log omits this severity. Calls `message` only if the log writes
    /// the message.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    pub(crate) unsafe fn log(self, info: *const OrtKernelInfo, message: impl FnOnce() -> String) {
        const SEVERITY: OrtLoggingLevel = OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO;
        let mut logger = null();
        let mut least = OrtLoggingLevel::ORT_LOGGING_LEVEL_FATAL;
        let file: [os_char; 1] = [0];
        // SAFETY: `info` is valid (contract of this function). The logger is valid while the host
        // creates the kernel. The texts end in a NUL, and the host copies them.
        unsafe {
            let found = ((*self.table).KernelInfo_GetLogger)(info, &raw mut logger);
            if !self.succeeds(found) || logger.is_null() {
                return;
            }
            let read = ((*self.table).Logger_GetLoggingSeverityLevel)(logger, &raw mut least);
            if !self.succeeds(read) || least as i32 > SEVERITY as i32 {
                return;
            }
            let message = CString::new(message()).unwrap_or_default();
            self.succeeds(((*self.table).Logger_LogMessage)(
                logger,
                SEVERITY,
                message.as_ptr(),
                file.as_ptr(),
                0,
                c"ndscatter".as_ptr(),
            ));
        }
    }

    /// Returns the name of a node. The name is empty if the node has no name.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    pub(crate) unsafe fn node_name(self, info: *const OrtKernelInfo) -> String {
        // SAFETY: `info` is valid (contract of this function). `text` passes a null buffer, or a
        // buffer of `size` bytes.
        let name = self.text(|buffer, size| unsafe {
            ((*self.table).KernelInfo_GetNodeName)(info, buffer, size)
        });
        name.unwrap_or_default()
    }

    /// Creates an operator domain with the name `name` that contains `operators`.
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

    /// Adds an operator domain to the options of a session.
    ///
    /// # Safety
    ///
    /// `options` are valid options of the host. The domain outlives the options and the sessions
    /// that are created with them.
    pub(crate) unsafe fn add_domain(
        self,
        options: *mut OrtSessionOptions,
        domain: *mut OrtCustomOpDomain,
    ) -> Result<(), Failure> {
        // SAFETY: the options and the domain are valid (contract of this function).
        check(unsafe { ((*self.table).AddCustomOpDomain)(options, domain) })
    }

    /// Returns the integer attribute `name` of a node, or `None` if the node has no integer
    /// attribute of this name.
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

    /// Returns the string attribute `name` of a node, or `None` if the node has no string attribute
    /// of this name.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds.
    pub(crate) unsafe fn text_attribute(
        self,
        info: *const OrtKernelInfo,
        name: &CStr,
    ) -> Option<String> {
        // SAFETY: `info` is valid (contract of this function). `text` passes a null buffer, or a
        // buffer of `size` bytes.
        self.text(|buffer, size| unsafe {
            ((*self.table).KernelInfoGetAttribute_string)(info, name.as_ptr(), buffer, size)
        })
    }

    /// Whether the node has an attribute `name` that is a float, a list of floats or a list of
    /// integers.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds.
    pub(crate) unsafe fn has_float_or_list(self, info: *const OrtKernelInfo, name: &CStr) -> bool {
        let (mut value, mut len) = (0.0, 0);
        let name = name.as_ptr();
        // SAFETY: `info` is valid (contract of this function). For a null buffer, the host writes
        // only the length of a list.
        unsafe {
            let is_float = ((*self.table).KernelInfoGetAttribute_float)(info, name, &raw mut value);
            let floats = (*self.table).KernelInfoGetAttributeArray_float;
            let ints = (*self.table).KernelInfoGetAttributeArray_int64;
            self.succeeds(is_float)
                || self.succeeds(floats(info, name, null_mut(), &raw mut len))
                || self.succeeds(ints(info, name, null_mut(), &raw mut len))
        }
    }

    /// Whether input number `input` of a node is constant, that is, the same in every run.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::int_attribute`] holds. The node has an input of this number.
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

    /// Returns the tensor of input number `input` in a run, or null if the node omits this input.
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

    /// Returns the tensor of the output of a run. The host makes the tensor with the shape `shape`.
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
        // SAFETY: `context` is valid (contract of this function). `dims` has `dims.len()` entries.
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
        // SAFETY: `value` is valid (contract of this function) and owns the dims. The host writes
        // the element type to an `i32`, not to the enumeration of `ort_sys`, because the host may
        // have element types that this enumeration does not have.
        unsafe {
            if !self.is_new {
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

    /// Returns the shape of a tensor, with the functions of hosts older than onnxruntime 1.24.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::shape`] holds.
    unsafe fn shape_by_info(self, value: *const OrtValue) -> Result<Shape, Failure> {
        let mut info = null_mut();
        // SAFETY: `value` is valid (contract of this function). `info` is valid until it is freed,
        // and is not used afterwards.
        unsafe {
            check(((*self.table).GetTensorTypeAndShape)(value, &raw mut info))?;
            let dims = self.dims(info);
            ((*self.table).ReleaseTensorTypeAndShapeInfo)(info);
            sizes_of(&dims?)
        }
    }

    /// Returns the dims of the shape that `info` describes. A dim of unknown size is negative.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    unsafe fn dims(
        self,
        info: *const OrtTensorTypeAndShapeInfo,
    ) -> Result<SmallVec<[i64; 8]>, Failure> {
        let mut rank = 0;
        // SAFETY: `info` is valid (contract of this function). The buffer `dims` has space for
        // `rank` dims.
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
    /// `value` is a tensor of the host. If the tensor is an input of a run, the caller must not
    /// write to the returned address.
    pub(crate) unsafe fn address(self, value: *const OrtValue) -> Result<*mut u8, Failure> {
        let mut address = null_mut();
        // SAFETY: `value` is valid (contract of this function). The call does not change the
        // tensor.
        check(unsafe { ((*self.table).GetTensorMutableData)(value.cast_mut(), &raw mut address) })?;
        Ok(address.cast())
    }

    /// Appends the string at `position` in a tensor to `bytes`.
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
        // SAFETY: `value` is valid (contract of this function). The buffer `room` has `len` bytes.
        unsafe {
            check(((*self.table).GetStringTensorElementLength)(
                value,
                position,
                &raw mut len,
            ))?;
            let reserved = bytes.try_reserve(len);
            reserved.map_err(|_| ScatterError::OutOfMemory { bytes: len })?;
            bytes.resize(before + len, 0);
            let room: *mut c_void = bytes[before..].as_mut_ptr().cast();
            check(((*self.table).GetStringTensorElement)(
                value, len, position, room,
            ))
        }
    }

    /// Replaces the string at `position` in a tensor by `bytes`.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of strings of the host. Nothing else accesses the tensor during the
    /// call.
    pub(crate) unsafe fn set_string(
        self,
        value: *mut OrtValue,
        position: usize,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let mut buffer = null_mut();
        // SAFETY: `value` is valid (contract of this function). The host resizes the string to
        // `bytes.len()` bytes and returns its buffer.
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

    /// Runs `tasks` tasks on the threads of the host's session, during a run of a node. Each task
    /// is a call of `task` with `argument` and the number of the task, from 0 to `tasks - 1`.
    /// Returns whether the host reported success.
    ///
    /// # Safety
    ///
    /// `context` belongs to a run that has not ended. It is sound that any thread calls `task` with
    /// `argument` and any number below `tasks`.
    pub(crate) unsafe fn parallel_for(
        self,
        context: *const OrtKernelContext,
        tasks: usize,
        task: HostTask,
        argument: *mut c_void,
    ) -> bool {
        // Number of batches into which the host divides the tasks. 0: the host chooses the number.
        const BATCHES: usize = 0;
        // SAFETY: `context` is valid, and any thread may call `task` (contract of this function).
        // The calling conventions "system" and "C" are equal on 64-bit machines.
        let status = unsafe {
            let task = std::mem::transmute::<HostTask, unsafe extern "system" fn(*mut c_void, usize)>(
                task,
            );
            ((*self.table).KernelContext_ParallelFor)(context, task, tasks, BATCHES, argument)
        };
        self.succeeds(status)
    }

    /// Sets the inferred shape of the output to the inferred shape of the first input. Sets no
    /// shape if the first input has no dims. For each dim of the first input that has neither a
    /// size nor a name, calls `unnamed` and uses the returned name.
    ///
    /// # Safety
    ///
    /// `context` is a valid object of the host.
    pub(crate) unsafe fn infer_same_shape(
        self,
        context: *mut OrtShapeInferContext,
        mut unnamed: impl FnMut() -> CString,
    ) -> Result<(), Failure> {
        let mut info = null_mut();
        // SAFETY: `context` is valid (contract of this function) and owns `info`. `names` has one
        // entry per dim. The host copies the names that this function passes to it.
        unsafe {
            check(((*self.table).ShapeInferContext_GetInputTypeShape)(
                context,
                0,
                &raw mut info,
            ))?;
            let dims = self.dims(info)?;
            // The host reports no dims for a tensor of rank 0, and also for a tensor of unknown
            // rank. An output of unknown rank must not get rank 0, so no shape is set in both
            // cases.
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
