//! Checks DLPack tensors and converts them to views of the crate.
//!
//! The description of a tensor is its struct, shape and strides, without its elements. This module
//! checks the description, including the element type and the device. It knows nothing of
//! operators.

use std::fmt;
use std::ops::Range;

use ndscatter::{AnyView, AnyViewMut, DType, Layout, TensorView};
use ndscatter_host::dlpack::{DLDataType, DLDevice, DLTensor};

use crate::failure::Failure;
use crate::memory::with_room;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("sizes and strides are read in place, as 64-bit integers");

/// Address of each tensor without elements. The address is aligned for every element type and is
/// never dereferenced.
const DANGLING: *mut u8 = std::ptr::without_provenance_mut(16);

/// The element type of a tensor, as the dtype of the crate and as the type of DLPack.
///
/// For DLPack types that the crate only moves, such as 8-bit floats, the crate has one dtype per
/// size. Only the DLPack type distinguishes two such types of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementType {
    pub(crate) dtype: DType,
    pub(crate) given: DLDataType,
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dtype.is_opaque() {
            self.given.fmt(f)
        } else {
            write!(f, "type {}", self.dtype)
        }
    }
}

/// A checked description of a tensor. The memory of the elements was not checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description<'a> {
    ptr: *mut u8,
    pub(crate) element: ElementType,
    pub(crate) layout: Layout<'a>,
    is_empty: bool,
}

/// Reads and checks the description of a tensor. Does not access the elements of the tensor.
///
/// # Safety
///
/// `tensor` is null or points to a tensor. The tensor's `shape` and `strides` are each null or
/// point to `ndim` values. During `'a`, nothing writes to the struct, the shape or the strides.
#[inline(always)]
pub(crate) unsafe fn description<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<Description<'a>, Failure> {
    if tensor.is_null() || !tensor.is_aligned() {
        return Err(invalid_struct_pointer(name, tensor));
    }
    // SAFETY: the pointer is aligned and not null, so it points to a tensor (contract of this
    // function).
    let tensor = unsafe { &*tensor };
    let device = tensor.device.device_type;
    if !DLDevice::is_host(device) {
        return Err(Failure::unsupported(format_args!(
            "`{name}` is on a device of type {device}; use CPU memory (types 1, 3 and 11)"
        )));
    }
    // SAFETY: the shape and the strides are each null or have `ndim` values (contract of this
    // function).
    let (layout, is_empty) = unsafe { layout_of(name, tensor)? };
    let given = tensor.dtype;
    let dtype = given.dtype().ok_or_else(|| unsupported_type(name, given))?;
    Ok(Description {
        ptr: tensor.address(),
        element: ElementType { dtype, given },
        layout,
        is_empty,
    })
}

/// Returns the failure for a null or misaligned pointer to a tensor.
#[cold]
fn invalid_struct_pointer(name: &'static str, tensor: *const DLTensor) -> Failure {
    if tensor.is_null() {
        return Failure::invalid(format_args!("`{name}` is null"));
    }
    let (address, alignment) = (tensor.addr(), align_of::<DLTensor>());
    Failure::invalid(format_args!(
        "`{name}` is a struct at address {address:#x}, which is not a multiple of {alignment}"
    ))
}

impl Description<'_> {
    /// Returns the address of element `[0, 0, ...]`, or [`DANGLING`] for a tensor without elements.
    /// Fails if the tensor has elements and a null address.
    #[inline]
    fn memory(&self, name: &'static str) -> Result<*mut u8, Failure> {
        if self.is_empty {
            return Ok(DANGLING);
        }
        if self.ptr.is_null() {
            return Err(Failure::invalid(format_args!(
                "`{name}` has elements but `{name}.data` is null"
            )));
        }
        Ok(self.ptr)
    }
}

/// Returns a read-only view of a tensor.
///
/// # Safety
///
/// The contract of [`description`] holds. The tensor's memory holds initialised elements. During
/// `'a`, nothing writes to this memory, except the call from C through its output.
pub(crate) unsafe fn view<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyView<'a>, Failure> {
    // SAFETY: the description and the memory are valid (contract of this function).
    unsafe {
        let tensor = description(name, tensor)?;
        AnyView::from_raw_parts(tensor.memory(name)?, tensor.element.dtype, tensor.layout)
    }
    .map_err(|error| Failure::of_tensor(name, &error))
}

/// Returns a read-only view of a tensor, or `None` for a null pointer.
///
/// # Safety
///
/// The contract of [`view`] holds.
pub(crate) unsafe fn view_if_any<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<Option<AnyView<'a>>, Failure> {
    // SAFETY: this function has the contract of `view`.
    (!tensor.is_null())
        .then(|| unsafe { view(name, tensor) })
        .transpose()
}

/// Returns a view of the tensor of positions, which has one position for each sequence. For a null
/// pointer, returns a view of the single position 0, which serves all sequences.
///
/// # Safety
///
/// The contract of [`view`] holds.
pub(crate) unsafe fn positions<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyView<'a>, Failure> {
    // SAFETY: this function has the contract of `view`.
    match unsafe { view_if_any(name, tensor)? } {
        Some(positions) => Ok(positions),
        None => Ok(TensorView::splat(&0_i64, &[])?.into()),
    }
}

/// Returns a writable view of a tensor. The elements may be uninitialised.
///
/// # Safety
///
/// The contract of [`description`] holds. The tensor's memory has space for its elements. During
/// `'a`, only the call from C accesses this memory. In a call in place, the view of data has the
/// same memory.
pub(crate) unsafe fn view_mut<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyViewMut<'a>, Failure> {
    // SAFETY: the description and the memory are valid (contract of this function).
    unsafe {
        let tensor = description(name, tensor)?;
        AnyViewMut::uninit_from_raw_parts(tensor.memory(name)?, tensor.element.dtype, tensor.layout)
    }
    .map_err(|error| Failure::of_tensor(name, &error))
}

/// Returns a writable view of a tensor whose elements are initialised, for calls in place.
///
/// # Safety
///
/// The contract of [`view_mut`] holds. The tensor's memory holds initialised elements.
pub(crate) unsafe fn view_in_place<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyViewMut<'a>, Failure> {
    // SAFETY: the description and the memory are valid (contract of this function).
    unsafe {
        let tensor = description(name, tensor)?;
        AnyViewMut::from_raw_parts(tensor.memory(name)?, tensor.element.dtype, tensor.layout)
    }
    .map_err(|error| Failure::of_tensor(name, &error))
}

/// Checks that `tensors` have the element type `expected`. Does nothing unless `expected` is a type
/// that the crate only moves and does not compute with, such as an 8-bit float. Skips tensors that
/// are null.
///
/// A view of such a type knows only the size of an element, so the crate cannot find that two types
/// of one size differ. For all other types, the crate itself checks that the types are equal.
///
/// # Safety
///
/// The contract of [`description`] holds for all tensors.
#[inline(always)]
pub(crate) unsafe fn check_types<const N: usize>(
    expected: DLDataType,
    tensors: [(&'static str, *const DLTensor); N],
) -> Result<(), Failure> {
    if !expected.is_moved() {
        return Ok(());
    }
    for (name, tensor) in tensors {
        // SAFETY: each pointer is null or valid (contract of this function).
        let given = unsafe { tensor.as_ref() }.map(|tensor| tensor.dtype);
        if let Some(given) = given.filter(|&given| given != expected) {
            return Err(Failure::invalid(format_args!(
                "elements of `{name}` have {given}, not {expected}; all must have one type"
            )));
        }
    }
    Ok(())
}

/// Checks that no struct, shape or strides of an input or of the output overlap the memory of the
/// output's elements.
///
/// The reason is that a call reads shapes and strides while it writes the output.
///
/// # Safety
///
/// The contract of [`description`] holds for `output` and all inputs. [`view_mut`] has accepted
/// `output`.
#[inline(always)]
pub(crate) unsafe fn check_descriptions<const N: usize>(
    output: *const DLTensor,
    inputs: [(&'static str, *const DLTensor); N],
) -> Result<(), Failure> {
    // SAFETY: the structs, shapes and strides are valid (contract of this function).
    unsafe {
        let written = span(&*output);
        let mut any = description_overlaps(&*output, &written);
        for (_, tensor) in inputs {
            any |= tensor
                .as_ref()
                .is_some_and(|tensor| description_overlaps(tensor, &written));
        }
        if any {
            return Err(overlapping_description(&inputs, &written));
        }
    }
    Ok(())
}

/// Checks that no struct, shape or strides of a tensor of `all` overlap the memory of the elements
/// of a tensor of `outputs`, which are a part of `all`.
///
/// # Safety
///
/// The contract of [`description`] holds for all tensors. [`view_in_place`] has accepted each
/// tensor of `outputs`.
pub(crate) unsafe fn check_all_descriptions(
    outputs: impl ExactSizeIterator<Item = *const DLTensor>,
    all: impl Iterator<Item = (&'static str, *const DLTensor)>,
) -> Result<(), Failure> {
    let mut written = with_room(outputs.len())?;
    // SAFETY: the structs, shapes and strides are valid (contract of this function).
    written.extend(outputs.map(|output| unsafe { span(&*output) }));
    written.sort_unstable_by_key(|span| span.start);
    // After this loop, `end` of a span is the greatest end of all spans up to this span. A range
    // then shares a byte with a span exactly if it shares a byte with the last span that starts
    // before the end of the range.
    let mut end = 0;
    for span in &mut written {
        end = span.end.max(end);
        span.end = end;
    }
    for (name, tensor) in all {
        // SAFETY: each pointer is null or valid (contract of this function).
        let Some(tensor) = (unsafe { tensor.as_ref() }) else {
            continue;
        };
        if parts_of(tensor).into_iter().any(|part| {
            let before = written.partition_point(|span| span.start < part.end);
            before > 0 && !part.is_empty() && written[before - 1].end > part.start
        }) {
            return Err(description_in_output(name));
        }
    }
    Ok(())
}

/// Returns the addresses of the struct, the shape and the strides of a tensor.
fn parts_of(tensor: &DLTensor) -> [Range<usize>; 3] {
    let values = usize::try_from(tensor.ndim).unwrap_or(0) * size_of::<i64>();
    let strides = if tensor.strides.is_null() { 0 } else { values };
    let range = |start: usize, bytes: usize| start..start.saturating_add(bytes);
    [
        range((&raw const *tensor).addr(), size_of::<DLTensor>()),
        range(tensor.shape.addr(), values),
        range(tensor.strides.addr(), strides),
    ]
}

/// Returns the failure for a description that is stored in memory that the call writes.
#[cold]
fn description_in_output(name: &'static str) -> Failure {
    Failure::invalid(format_args!(
        "the struct, shape or strides of `{name}` lie in memory that is written; move them"
    ))
}

/// Returns the failure that names the first input whose description overlaps the output. If no
/// input's description overlaps the output, the failure names the output itself.
///
/// # Safety
///
/// The contract of [`check_descriptions`] holds.
#[cold]
unsafe fn overlapping_description(
    inputs: &[(&'static str, *const DLTensor)],
    written: &Range<usize>,
) -> Failure {
    let at_fault = inputs.iter().find(|(_, tensor)| {
        // SAFETY: each pointer is null or valid (contract of this function).
        unsafe { tensor.as_ref() }.is_some_and(|tensor| description_overlaps(tensor, written))
    });
    description_in_output(at_fault.map_or("output", |(name, _)| name))
}

/// Whether the struct, shape or strides of a tensor share a byte with the addresses `written`.
///
/// The check has no branches, because its latency is part of the latency of every small call.
#[inline(always)]
fn description_overlaps(tensor: &DLTensor, written: &Range<usize>) -> bool {
    // The first range has `bytes` bytes from `start` and is not empty. The second range is
    // `written`. Let d be the last address of the first range minus the first address of the second
    // range, modulo 2^64. The ranges overlap exactly if d + 1 is less than the sum of both lengths.
    // Null strides need no branch, because a range from address 0 overlaps no memory of a tensor.
    let overlaps = |start: usize, bytes: usize| {
        let last = start.wrapping_add(bytes).wrapping_sub(1);
        let both = written.end.wrapping_sub(written.start).wrapping_add(bytes);
        last.wrapping_sub(written.start) < both.wrapping_sub(1)
    };
    let values = usize::try_from(tensor.ndim).unwrap_or(0) * size_of::<i64>();
    let dims = overlaps(tensor.shape.addr(), values) | overlaps(tensor.strides.addr(), values);
    overlaps((&raw const *tensor).addr(), size_of::<DLTensor>()) | (dims & (values != 0))
}

/// Returns the range of addresses from the lowest byte of a tensor's elements to the end of the
/// highest byte. The range of a tensor without elements is empty.
///
/// [`view_mut`] has checked that the tensor fits the address space, so no computation wraps.
///
/// # Safety
///
/// `shape` has `ndim` values. `strides` is null or has `ndim` values.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits")]
unsafe fn span(tensor: &DLTensor) -> Range<usize> {
    let (mut lowest, mut highest, mut row_major) = (0_i64, 0_i64, 1_i64);
    for axis in (0..usize::try_from(tensor.ndim).unwrap_or(0)).rev() {
        // SAFETY: `axis` is below `ndim`, the number of sizes and of strides. Null strides are not
        // read.
        let (size, stride) = unsafe {
            let stride = tensor.strides.wrapping_add(axis);
            let is_given = !tensor.strides.is_null();
            let size = *tensor.shape.add(axis);
            (size, if is_given { *stride } else { row_major })
        };
        if size == 0 {
            return 0..0;
        }
        let reach = stride.wrapping_mul(size - 1);
        lowest = lowest.wrapping_add(reach.min(0));
        highest = highest.wrapping_add(reach.max(0));
        row_major = row_major.wrapping_mul(size);
    }
    let bytes = i64::from(tensor.dtype.bits) * i64::from(tensor.dtype.lanes) / 8;
    let at = |elements: i64| {
        let from_data = elements.wrapping_mul(bytes).cast_unsigned();
        let from_data = from_data.wrapping_add(tensor.byte_offset);
        (tensor.data.addr() as u64).wrapping_add(from_data) as usize
    };
    at(lowest)..at(highest.wrapping_add(1))
}

/// Returns the failure for an element type or a number of lanes that is not supported.
#[cold]
fn unsupported_type(name: &'static str, dtype: DLDataType) -> Failure {
    if dtype.lanes != 1 && !dtype.is_moved() {
        let lanes = dtype.lanes;
        return Failure::unsupported(format_args!(
            "elements of `{name}` have {lanes} lanes; use 1"
        ));
    }
    Failure::unsupported(format_args!(
        "elements of `{name}` have {dtype}, which is not supported"
    ))
}

/// Returns the failure for a null shape, or for a misaligned shape or strides.
#[cold]
fn invalid_dims_pointer(name: &'static str, shape: *const i64, strides: *const i64) -> Failure {
    if shape.is_null() {
        return Failure::invalid(format_args!("`{name}.shape` is null"));
    }
    let (field, address) = if shape.is_aligned() {
        ("strides", strides.addr())
    } else {
        ("shape", shape.addr())
    };
    let alignment = align_of::<i64>();
    Failure::invalid(format_args!(
        "`{name}.{field}` is {address:#x}, which is not a multiple of {alignment}"
    ))
}

/// Returns the layout of a tensor, and whether the tensor has no elements.
///
/// # Safety
///
/// `shape` and `strides` are each null or have `ndim` values. During `'a`, nothing writes to these
/// values.
#[inline(always)]
unsafe fn layout_of<'a>(
    name: &'static str,
    tensor: &DLTensor,
) -> Result<(Layout<'a>, bool), Failure> {
    let Ok(rank) = usize::try_from(tensor.ndim) else {
        return Err(Failure::invalid(format_args!(
            "`{name}.ndim` is {}; use 0 or a positive number",
            tensor.ndim
        )));
    };
    if rank == 0 {
        return Ok((Layout::contiguous(&[]), false));
    }
    let (shape, strides) = (tensor.shape.cast_const(), tensor.strides.cast_const());
    if shape.is_null() || !shape.is_aligned() || !strides.is_aligned() {
        return Err(invalid_dims_pointer(name, shape, strides));
    }
    let (mut smallest, mut is_row_major) = (i64::MAX, true);
    let mut expected = 1_i64;
    for axis in (0..rank).rev() {
        // SAFETY: the shape is not null (checked above), and null strides are not read. `axis` is
        // below `rank`, the number of sizes and of strides.
        let (size, stride) = unsafe {
            let stride = strides.wrapping_add(axis);
            (
                *shape.add(axis),
                if strides.is_null() { expected } else { *stride },
            )
        };
        smallest = smallest.min(size);
        // The stride of an axis of size 1 addresses no element, so it is not compared.
        is_row_major &= stride == expected || size == 1;
        // If this product wraps, the crate refuses the shape later, when it makes a view.
        expected = expected.wrapping_mul(size);
    }
    if smallest < 0 {
        return Err(Failure::invalid(format_args!(
            "`{name}` has a dimension of size {smallest}; use 0 or a positive size"
        )));
    }
    // SAFETY: `shape` has `rank` values, and no value is negative (checked above). `usize` has 64
    // bits, as `i64` has.
    let sizes: &[usize] = unsafe { std::slice::from_raw_parts(shape.cast(), rank) };
    let layout = if is_row_major {
        Layout::contiguous(sizes)
    } else {
        // SAFETY: the strides are not null, because `is_row_major` is true for null strides. The
        // strides are `rank` values, and `isize` has 64 bits, as `i64` has.
        Layout::strided(sizes, unsafe {
            std::slice::from_raw_parts(strides.cast(), rank)
        })?
    };
    Ok((layout, smallest == 0))
}
