//! Checks DLPack tensors and converts them to views of the crate.
//!
//! Knows the faults that the description of a tensor may have: its struct, shape, strides, type
//! and device. Knows nothing of operators.

use std::fmt;
use std::ops::Range;

use ndscatter::{AnyView, AnyViewMut, DType, Layout, TensorView};
use ndscatter_host::dlpack::{DLDataType, DLDevice, DLTensor};

use crate::failure::Failure;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("sizes and strides are read in place, as 64-bit integers");

/// Address of tensors without elements: aligned for every type, and never dereferenced.
const DANGLING: *mut u8 = std::ptr::without_provenance_mut(16);

/// The element type: the dtype of the crate and the type of DLPack.
///
/// The crate has one dtype for all unknown types of one size. Only the DLPack type distinguishes
/// them.
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

/// A checked description of a tensor. It says nothing about the tensor's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description<'a> {
    ptr: *mut u8,
    pub(crate) element: ElementType,
    pub(crate) layout: Layout<'a>,
    is_empty: bool,
}

/// Reads and checks the description of a tensor. Does not access the tensor's memory.
///
/// # Safety
///
/// `tensor` is null or points to a tensor. `shape` has `ndim` values, and so has `strides` unless
/// it is null. Nothing writes to the struct, the shape or the strides for `'a`.
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
    // SAFETY: the shape and the strides have `ndim` values (contract of this function).
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
    /// Returns the address of the first element. Returns [`DANGLING`] for a tensor without
    /// elements.
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

/// Returns a view of a tensor to read.
///
/// # Safety
///
/// The contract of [`description`] holds. The tensor's memory holds its elements. Only the output
/// of the call may write to this memory for `'a`.
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

/// Returns a view of a tensor to read, or `None` for a null pointer.
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

/// Returns a view of the positions of sequences. A null pointer selects position 0 for each
/// sequence.
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

/// Returns a view of a tensor to write.
///
/// # Safety
///
/// The contract of [`description`] holds. The tensor's memory has space for its elements. Nothing
/// else accesses this memory for `'a`.
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

/// Checks that `tensors` have the type `expected`, if the crate only moves elements of this type.
///
/// A view of such a type knows only the size of an element. The crate checks all other types.
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

/// Checks that no struct, shape or strides of a tensor overlap the memory of the output.
///
/// A call reads shapes and strides while it writes the output.
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

/// Returns the failure that names the first tensor whose description overlaps the output.
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
    let name = at_fault.map_or("output", |(name, _)| name);
    Failure::invalid(format_args!(
        "the struct, shape or strides of `{name}` lie in memory that is written; move them"
    ))
}

/// Whether the struct, shape or strides of a tensor share a byte with the addresses `written`.
///
/// The check has no branches, because its latency is part of every small call.
#[inline(always)]
fn description_overlaps(tensor: &DLTensor, written: &Range<usize>) -> bool {
    // Let d be the distance, modulo 2^64, from the start of the second range to the last byte of
    // the first. The ranges overlap if d + 1 is less than the sum of both lengths. A null pointer
    // is below all memory.
    let overlaps = |start: usize, bytes: usize| {
        let last = start.wrapping_add(bytes).wrapping_sub(1);
        let both = written.end.wrapping_sub(written.start).wrapping_add(bytes);
        last.wrapping_sub(written.start) < both.wrapping_sub(1)
    };
    let values = usize::try_from(tensor.ndim).unwrap_or(0) * size_of::<i64>();
    let dims = overlaps(tensor.shape.addr(), values) | overlaps(tensor.strides.addr(), values);
    overlaps((&raw const *tensor).addr(), size_of::<DLTensor>()) | (dims & (values != 0))
}

/// Returns the addresses from the lowest byte of a tensor to the end of its highest byte.
///
/// Nothing overflows, because [`view_mut`] has checked that the tensor fits the address space.
///
/// # Safety
///
/// `shape` has `ndim` values, and so has `strides` unless it is null.
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
/// `shape` has `ndim` values, and so has `strides` unless it is null. Nothing writes to them for
/// `'a`.
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
        // SAFETY: `axis` is below the number of sizes and of strides. Null strides are not read.
        let (size, stride) = unsafe {
            let stride = strides.wrapping_add(axis);
            (
                *shape.add(axis),
                if strides.is_null() { expected } else { *stride },
            )
        };
        smallest = smallest.min(size);
        // The stride of an axis of size 1 has no meaning.
        is_row_major &= stride == expected || size == 1;
        // If this wraps, the crate refuses the shape later.
        expected = expected.wrapping_mul(size);
    }
    if smallest < 0 {
        return Err(Failure::invalid(format_args!(
            "`{name}` has a dimension of size {smallest}; use 0 or a positive size"
        )));
    }
    // SAFETY: `shape` has `rank` values. None is negative (checked above), and `usize` has 64 bits.
    let sizes: &[usize] = unsafe { std::slice::from_raw_parts(shape.cast(), rank) };
    let layout = if is_row_major {
        Layout::contiguous(sizes)
    } else {
        // SAFETY: the strides are not null, because null strides are row-major. They have `rank`
        // values, and `isize` has 64 bits.
        Layout::strided(sizes, unsafe {
            std::slice::from_raw_parts(strides.cast(), rank)
        })?
    };
    Ok((layout, smallest == 0))
}
