//! Tensors as DLPack has them, and the views that they become.
//!
//! Knows the faults that a description may have. Knows nothing of operators.

use std::fmt;
use std::ops::Range;

use ndscatter::{AnyView, AnyViewMut, DType, Layout, TensorView};
use ndscatter_host::dlpack::{DLDataType, DLDevice, DLTensor};

use crate::failure::Failure;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("sizes and strides are read where they lie, as 64-bit integers");

/// An address for tensors without elements: aligned for all, and of no memory.
const NOWHERE: *mut u8 = std::ptr::without_provenance_mut(16);

/// The type of elements, as the crate has it and as DLPack has it, which alone
/// tells types apart that are only moved.
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

/// A tensor whose description has been checked, and of whose memory nothing is
/// known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described<'a> {
    ptr: *mut u8,
    pub(crate) element: ElementType,
    pub(crate) layout: Layout<'a>,
    is_empty: bool,
}

/// Reads the description of a tensor, and of its memory nothing.
///
/// # Safety
///
/// For `'a`, `tensor` is null or points to a tensor whose `shape`, and
/// `strides` unless null, have `ndim` values, and nobody writes to any of them.
#[inline(always)]
pub(crate) unsafe fn described<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<Described<'a>, Failure> {
    if tensor.is_null() || !tensor.is_aligned() {
        return Err(no_struct(name, tensor));
    }
    // SAFETY: the caller vouches for the struct.
    let tensor = unsafe { &*tensor };
    let device = tensor.device.device_type;
    if !DLDevice::is_host(device) {
        return Err(Failure::unsupported(format_args!(
            "`{name}` is on a device of type {device}; only memory of the CPU is served"
        )));
    }
    // SAFETY: the caller vouches for `ndim` sizes and strides.
    let (layout, is_empty) = unsafe { layout_of(name, tensor)? };
    let given = tensor.dtype;
    let dtype = given.dtype().ok_or_else(|| not_served(name, given))?;
    Ok(Described {
        ptr: tensor.address(),
        element: ElementType { dtype, given },
        layout,
        is_empty,
    })
}

/// What is wrong with a pointer to a tensor.
#[cold]
fn no_struct(name: &'static str, tensor: *const DLTensor) -> Failure {
    if tensor.is_null() {
        return Failure::invalid(format_args!("`{name}` is null"));
    }
    let (address, alignment) = (tensor.addr(), align_of::<DLTensor>());
    Failure::invalid(format_args!(
        "`{name}` is a struct at address {address:#x}, which is no multiple of {alignment}"
    ))
}

impl Described<'_> {
    /// Where the elements are; an address of no memory where there are none.
    #[inline]
    fn memory(&self, name: &'static str) -> Result<*mut u8, Failure> {
        if self.is_empty {
            return Ok(NOWHERE);
        }
        if self.ptr.is_null() {
            return Err(Failure::invalid(format_args!(
                "`{name}` has elements but its `data` is null"
            )));
        }
        Ok(self.ptr)
    }
}

/// A tensor to read.
///
/// # Safety
///
/// As for [`described`]; its memory holds its elements, and is written by
/// nobody for `'a` but through the output of the call.
pub(crate) unsafe fn view<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyView<'a>, Failure> {
    // SAFETY: the caller vouches for the description and for the memory.
    unsafe {
        let tensor = described(name, tensor)?;
        AnyView::from_raw_parts(tensor.memory(name)?, tensor.element.dtype, tensor.layout)
    }
    .map_err(|error| Failure::of_tensor(name, &error))
}

/// A tensor to read, unless it is null.
///
/// # Safety
///
/// As for [`view`].
pub(crate) unsafe fn view_if_any<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<Option<AnyView<'a>>, Failure> {
    // SAFETY: handed on as it is.
    (!tensor.is_null())
        .then(|| unsafe { view(name, tensor) })
        .transpose()
}

/// Positions of sequences to read; null is position 0 for each.
///
/// # Safety
///
/// As for [`view`].
pub(crate) unsafe fn positions<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyView<'a>, Failure> {
    // SAFETY: handed on as it is.
    match unsafe { view_if_any(name, tensor)? } {
        Some(positions) => Ok(positions),
        None => Ok(TensorView::splat(&0_i64, &[])?.into()),
    }
}

/// A tensor to write.
///
/// # Safety
///
/// As for [`described`]; its memory has room for its elements, and is touched
/// by nobody else for `'a`.
pub(crate) unsafe fn view_mut<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<AnyViewMut<'a>, Failure> {
    // SAFETY: the caller vouches for the description and for the memory.
    unsafe {
        let tensor = described(name, tensor)?;
        AnyViewMut::uninit_from_raw_parts(tensor.memory(name)?, tensor.element.dtype, tensor.layout)
    }
    .map_err(|error| Failure::of_tensor(name, &error))
}

/// Refuses tensors whose elements are only moved and have another type than
/// these: of such a type, views know no more than the size.
///
/// # Safety
///
/// As for [`described`], of all tensors.
#[inline(always)]
pub(crate) unsafe fn check_types<const N: usize>(
    expected: DLDataType,
    tensors: [(&'static str, *const DLTensor); N],
) -> Result<(), Failure> {
    if !expected.is_moved() {
        return Ok(());
    }
    for (name, tensor) in tensors {
        // SAFETY: the caller vouches for the structs.
        let given = unsafe { tensor.as_ref() }.map(|tensor| tensor.dtype);
        if let Some(given) = given.filter(|&given| given != expected) {
            return Err(Failure::invalid(format_args!(
                "elements of `{name}` have {given}, not {expected}; they must have one type"
            )));
        }
    }
    Ok(())
}

/// Refuses descriptions that lie in the memory of the output: a call reads
/// shapes and strides for as long as it writes there.
///
/// # Safety
///
/// As for [`described`], of `output` and of all that are not null; `output` has
/// been found to be a tensor that can be written.
#[inline(always)]
pub(crate) unsafe fn check_descriptions<const N: usize>(
    output: *const DLTensor,
    inputs: [(&'static str, *const DLTensor); N],
) -> Result<(), Failure> {
    // SAFETY: the caller vouches for the structs, sizes and strides.
    unsafe {
        let written = span(&*output);
        let mut any = is_described_within(&*output, &written);
        for (_, tensor) in inputs {
            any |= tensor
                .as_ref()
                .is_some_and(|tensor| is_described_within(tensor, &written));
        }
        if any {
            return Err(described_in_output(&inputs, &written));
        }
    }
    Ok(())
}

/// # Safety
///
/// As for [`check_descriptions`].
#[cold]
unsafe fn described_in_output(
    inputs: &[(&'static str, *const DLTensor)],
    written: &Range<usize>,
) -> Failure {
    let at_fault = inputs.iter().find(|(_, tensor)| {
        // SAFETY: the caller vouches for the structs.
        unsafe { tensor.as_ref() }.is_some_and(|tensor| is_described_within(tensor, written))
    });
    let name = at_fault.map_or("output", |(name, _)| name);
    Failure::invalid(format_args!(
        "the struct of `{name}`, its shape or its strides lie in memory that is written"
    ))
}

/// Whether a description shares a byte with these addresses. Without a branch:
/// small calls wait for it.
#[inline(always)]
fn is_described_within(tensor: &DLTensor, written: &Range<usize>) -> bool {
    // Two ranges meet if the last byte of the one lies less behind the start of
    // the other than both are long; a null pointer is before any memory.
    let meets = |start: usize, bytes: usize| {
        let last = start.wrapping_add(bytes).wrapping_sub(1);
        let both = written.end.wrapping_sub(written.start).wrapping_add(bytes);
        last.wrapping_sub(written.start) < both.wrapping_sub(1)
    };
    let values = usize::try_from(tensor.ndim).unwrap_or(0) * size_of::<i64>();
    let dims = meets(tensor.shape.addr(), values) | meets(tensor.strides.addr(), values);
    meets((&raw const *tensor).addr(), size_of::<DLTensor>()) | (dims & (values != 0))
}

/// The addresses from the lowest byte of a tensor to its highest. Nothing
/// overflows, as the tensor has been found to lie in memory.
///
/// # Safety
///
/// `shape`, and `strides` unless null, have `ndim` values.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits")]
unsafe fn span(tensor: &DLTensor) -> Range<usize> {
    let (mut lowest, mut highest, mut row_major) = (0_i64, 0_i64, 1_i64);
    for axis in (0..usize::try_from(tensor.ndim).unwrap_or(0)).rev() {
        // SAFETY: the caller vouches for so many sizes, and strides unless null.
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

#[cold]
fn not_served(name: &'static str, dtype: DLDataType) -> Failure {
    if dtype.lanes != 1 && !dtype.is_moved() {
        let lanes = dtype.lanes;
        return Failure::unsupported(format_args!(
            "elements of `{name}` have {lanes} lanes; only 1 is served"
        ));
    }
    Failure::unsupported(format_args!(
        "elements of `{name}` have {dtype}, which is not served"
    ))
}

/// What is wrong with pointers to sizes and strides.
#[cold]
fn no_sizes(name: &'static str, shape: *const i64, strides: *const i64) -> Failure {
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
        "`{name}.{field}` is {address:#x}, which is no multiple of {alignment}"
    ))
}

/// The layout, and whether it has no elements.
///
/// # Safety
///
/// For `'a`, `shape`, and `strides` unless null, have `ndim` values, which
/// nobody writes to.
#[inline(always)]
unsafe fn layout_of<'a>(
    name: &'static str,
    tensor: &DLTensor,
) -> Result<(Layout<'a>, bool), Failure> {
    let Ok(rank) = usize::try_from(tensor.ndim) else {
        return Err(Failure::invalid(format_args!(
            "`{name}.ndim` is {}",
            tensor.ndim
        )));
    };
    if rank == 0 {
        return Ok((Layout::contiguous(&[]), false));
    }
    let (shape, strides) = (tensor.shape.cast_const(), tensor.strides.cast_const());
    if shape.is_null() || !shape.is_aligned() || !strides.is_aligned() {
        return Err(no_sizes(name, shape, strides));
    }
    let (mut smallest, mut is_row_major) = (i64::MAX, true);
    let mut expected = 1_i64;
    for axis in (0..rank).rev() {
        // SAFETY: the caller vouches for `rank` sizes, and strides unless null.
        let (size, stride) = unsafe {
            let stride = strides.wrapping_add(axis);
            (
                *shape.add(axis),
                if strides.is_null() { expected } else { *stride },
            )
        };
        smallest = smallest.min(size);
        // Dims of size 1 have any stride.
        is_row_major &= stride == expected || size == 1;
        // Where this wraps, the shape is refused later.
        expected = expected.wrapping_mul(size);
    }
    if smallest < 0 {
        return Err(Failure::invalid(format_args!(
            "`{name}` has a dimension of size {smallest}"
        )));
    }
    // SAFETY: as above; sizes are not negative, and both types 64 bits wide.
    let sizes: &[usize] = unsafe { std::slice::from_raw_parts(shape.cast(), rank) };
    let layout = if is_row_major {
        Layout::contiguous(sizes)
    } else {
        // SAFETY: they are not null, as nulls are row-major; both types are 64
        // bits wide.
        Layout::strided(sizes, unsafe {
            std::slice::from_raw_parts(strides.cast(), rank)
        })?
    };
    Ok((layout, smallest == 0))
}
