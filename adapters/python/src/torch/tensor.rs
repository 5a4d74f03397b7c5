//! PyTorch's tensors as addresses, element types and layouts.
//!
//! A tensor is read from its Python object by PyTorch's DLPack function, or from a `DLTensor` that
//! the C++ kernels have filled. The module does not depend on operators.

#![allow(
    unsafe_code,
    reason = "views of the memory that another library describes"
)]

use ndscatter::{AnyView, AnyViewMut, DType, Layout, Machine, ScatterError};
use ndscatter_host::dlpack::{DLDataType, DLDevice, DLTensor};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::connection::Connection;
use super::reason::Reason;
use crate::array::{Dims, Line, described, elements_of};

/// Returns the number of elements of a PyTorch tensor. Returns `None` if `object` is not a tensor,
/// or before the first call of [`connect`].
///
/// Returns `usize::MAX` if PyTorch's DLPack function cannot describe the tensor, or if the number
/// of elements exceeds `usize::MAX`.
pub(super) fn elements(object: &Bound<'_, PyAny>) -> Option<usize> {
    let connection = Connection::get()?;
    // SAFETY: both pointers point to living Python objects, and the second object is a type.
    let is_tensor =
        unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), connection.tensor.as_ptr().cast()) } != 0;
    if !is_tensor {
        return None;
    }
    let elements = described(connection.describe, object).and_then(|found| {
        (0..usize::try_from(found.ndim).ok()?).try_fold(1_usize, |all, dim| {
            // SAFETY: the array `shape` has `ndim` sizes. The array is valid until the tensor is
            // resized. No other thread resizes the tensor while this thread holds Python's lock.
            all.checked_mul(usize::try_from(unsafe { *found.shape.add(dim) }).ok()?)
        })
    });
    Some(elements.unwrap_or(usize::MAX))
}

/// Returns why PyTorch's DLPack function does not describe a tensor: its layout (such as sparse), or its
/// element type.
#[cold]
fn why_not_described(object: &Bound<'_, PyAny>) -> Reason {
    let layout = object.getattr("layout").map(|layout| layout.to_string());
    match layout.is_ok_and(|layout| layout == "torch.strided") {
        true => Reason::Dtype,
        false => Reason::Layout,
    }
}

/// Address, element type, shape and strides of a CPU tensor of PyTorch.
///
/// A value of this type does not keep the memory of the tensor alive. The caller's tensor does: the
/// Python object, or the C++ tensor of a native kernel. The caller keeps it until the end of the call.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    address: *mut u8,
    code: DLDataType,
    pub(super) dtype: DType,
    pub(super) shape: Dims<usize>,
    /// Strides in elements.
    pub(super) strides: Dims<isize>,
}

// SAFETY: a `Tensor` only stores an address, a type, a shape and strides. The methods that make a
// view of the memory each prove in a SAFETY comment that the view is valid.
unsafe impl Send for Tensor {}
// SAFETY: as for `Send`.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Reads the description of a PyTorch tensor. Returns a reason if the tensor is not on the CPU,
    /// if its memory was freed, or if PyTorch cannot describe it. Also returns a reason if the crate
    /// has no dtype for the element type.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Result<Self, Reason> {
        let connection = Connection::get().ok_or(Reason::Error)?;
        let found = described(connection.describe, object);
        let found = found.ok_or_else(|| why_not_described(object))?;
        // SAFETY: PyTorch's function has filled the struct. No other thread resizes the tensor
        // while this thread holds Python's lock.
        let tensor = unsafe { Self::of_struct(&found) }?;
        match tensor.has_memory(object) {
            Some(true) => Ok(tensor),
            _ => Err(Reason::Layout),
        }
    }

    /// Whether the storage of a tensor has all of its elements. A program can shrink or free a
    /// storage without a change of the tensors that use it. Returns `None` if PyTorch cannot tell.
    fn has_memory(&self, object: &Bound<'_, PyAny>) -> Option<bool> {
        if self.shape.contains(&0) {
            return Some(true);
        }
        let storage = object.call_method0("untyped_storage").ok()?;
        let bytes: usize = storage.call_method0("nbytes").ok()?.extract().ok()?;
        let offset: usize = object.call_method0("storage_offset").ok()?.extract().ok()?;
        let last =
            (self.shape.iter().zip(&self.strides)).try_fold(offset, |last, (&size, &stride)| {
                last.checked_add_signed((size.cast_signed() - 1).checked_mul(stride)?)
            });
        let end = last?.checked_add(1)?.checked_mul(self.dtype.size())?;
        Some(end <= bytes)
    }

    /// Reads the description of a PyTorch tensor from a `DLTensor` with strides. Returns a reason in
    /// the same cases as [`of`](Self::of).
    ///
    /// # Safety
    ///
    /// `shape` and `strides` of `found` must point to `ndim` values each. If a view of the result is
    /// made, `data` must be null, or must point to memory with all elements of the tensor.
    pub(super) unsafe fn of_struct(found: &DLTensor) -> Result<Self, Reason> {
        if found.device.device_type != DLDevice::CPU.device_type {
            return Err(Reason::Layout);
        }
        let dtype = found.dtype.dtype().ok_or(Reason::Dtype)?;
        let rank = usize::try_from(found.ndim).map_err(|_| Reason::Layout)?;
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for dim in 0..rank {
            // SAFETY: the caller guarantees `ndim` values of each array.
            let (size, stride) = unsafe { (*found.shape.add(dim), *found.strides.add(dim)) };
            shape.push(usize::try_from(size).map_err(|_| Reason::Layout)?);
            strides.push(isize::try_from(stride).map_err(|_| Reason::Layout)?);
        }
        // The address is null if the tensor has no memory.
        if found.data.is_null() && !shape.contains(&0) {
            return Err(Reason::Layout);
        }
        Ok(Self {
            address: found.address(),
            code: found.dtype,
            dtype,
            shape,
            strides,
        })
    }

    /// Checks whether both tensors have the same element type.
    pub(super) fn has_type_of(&self, other: &Self) -> bool {
        self.code == other.code
    }

    /// Returns the number of elements without the copies of a broadcast: the product of the sizes,
    /// where the size of an expanded dimension (stride 0) counts as at most 1.
    pub(super) fn stored_elements(&self) -> usize {
        let sizes = self.shape.iter().zip(&self.strides);
        let stored = sizes.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
        stored.fold(1, usize::saturating_mul)
    }

    /// Checks whether both tensors begin at the same address but have different strides. If an
    /// input and the output of a call are such a pair, PyTorch raises an error for some calls.
    pub(super) fn aliases_with_other_strides(&self, other: &Self) -> bool {
        self.address == other.address && self.strides != other.strides
    }

    /// Checks whether every scatter kernel of PyTorch supports the element type of this tensor. If
    /// not, at least one of PyTorch's scatter kernels raises an error for this type.
    pub(super) fn has_common_type(&self) -> bool {
        !matches!(self.dtype, DType::U16 | DType::U32 | DType::U64) && !self.dtype.is_opaque()
    }

    /// Whether the element type is one that PyTorch accepts for indices.
    pub(super) fn is_index(&self) -> bool {
        matches!(self.dtype, DType::I64 | DType::I32)
    }

    /// Shortens each axis to its size in `shape`, and keeps the first elements of the axis. Returns
    /// `None` if `shape` has another rank, or if an axis is shorter than its size in `shape`.
    pub(super) fn narrow(&mut self, shape: &[usize]) -> Option<()> {
        let fits = self.shape.len() == shape.len()
            && (self.shape.iter().zip(shape)).all(|(&size, &wanted)| wanted <= size);
        fits.then(|| self.shape = shape.into())
    }

    /// Broadcasts the tensor to `shape` by PyTorch's rules. Returns `None` if these rules do not
    /// allow the broadcast.
    pub(super) fn expand(&mut self, shape: &[usize]) -> Option<()> {
        let new = shape.len().checked_sub(self.shape.len())?;
        let mut strides: Dims<isize> = SmallVec::from_elem(0, new);
        for (dim, &wanted) in shape.iter().enumerate().skip(new) {
            let (size, stride) = (self.shape[dim - new], self.strides[dim - new]);
            match size {
                _ if size == wanted => strides.push(stride),
                1 => strides.push(0),
                _ => return None,
            }
        }
        (self.shape, self.strides) = (shape.into(), strides);
        Some(())
    }

    /// Number of elements.
    pub(super) fn elements(&self) -> usize {
        elements_of(&self.shape)
    }

    /// Number of bytes of all elements, without gaps between them.
    pub(super) fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }

    /// Whether the tensor does not fit into the last-level cache. A machine may report a cache that
    /// it shares with other machines, so a larger cache counts as 32 MiB.
    pub(super) fn exceeds_the_cache(&self) -> bool {
        const MOST: u64 = 32 << 20;
        let [_, _, last] = Machine::current().caches();
        self.bytes() as u64 > last.min(MOST)
    }

    /// Whether the tensor fits into the second-level cache.
    pub(super) fn fits_second_cache(&self) -> bool {
        let [_, second, _] = Machine::current().caches();
        self.bytes() as u64 <= second
    }

    /// Returns the elements in row-major order as a vector. Returns `None` if they are not at a
    /// constant stride.
    pub(super) fn flat(&self) -> Option<Self> {
        let (mut tensor, rank) = (self.clone(), self.shape.len());
        match rank {
            0 => (tensor.shape, tensor.strides) = ([1][..].into(), [1][..].into()),
            _ => tensor.merge_first(rank)?,
        }
        Some(tensor)
    }

    /// Returns the elements of a vector in another shape, in row-major order. The number of elements
    /// must not change.
    pub(super) fn split(mut self, shape: &[usize]) -> Self {
        let mut stride = self.strides.first().copied().unwrap_or(1);
        let mut strides: Dims<isize> = SmallVec::from_elem(0, shape.len());
        for (to, &size) in strides.iter_mut().zip(shape).rev() {
            *to = stride;
            stride = stride.wrapping_mul(size.cast_signed());
        }
        (self.shape, self.strides) = (shape.into(), strides);
        self
    }

    /// Permutes the axes.
    pub(super) fn permute(&mut self, order: &[usize]) {
        self.shape = order.iter().map(|&axis| self.shape[axis]).collect();
        self.strides = order.iter().map(|&axis| self.strides[axis]).collect();
    }

    fn layout(&self) -> Result<Layout<'_>, ScatterError> {
        let mut row_major = 1;
        let is_contiguous = (self.shape.iter().zip(&self.strides).rev()).all(|(&size, &stride)| {
            let fits = size == 1 || stride == row_major;
            row_major = row_major.wrapping_mul(size.cast_signed());
            fits
        });
        match is_contiguous {
            true => Ok(Layout::contiguous(&self.shape)),
            false => Layout::strided(&self.shape, &self.strides),
        }
    }

    /// Returns a view that a call of the crate reads.
    pub(super) fn view(&self) -> Result<AnyView<'_>, ScatterError> {
        // SAFETY: PyTorch described address, shape and strides (`of_struct`), and the caller's tensor
        // keeps the memory alive until the end of the call. During the call, no thread of
        // the program may write to the tensor. PyTorch's own kernels have the same requirement.
        unsafe { AnyView::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Returns a view that a call of the crate reads and writes. The elements must be initialised.
    pub(super) fn view_mut(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as in `view`. The crate's scatter returns an error if a view of an input shares
        // memory with this view.
        unsafe { AnyViewMut::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Returns a view whose elements a call of the crate writes before it reads them. The elements
    /// may be uninitialised: the tensor is new memory (`is_new`), or an output that the call
    /// overwrites.
    pub(super) fn view_written(&self, is_new: bool) -> Result<AnyViewMut<'_>, ScatterError> {
        let layout = self.layout()?;
        // SAFETY: as in `view_mut`.
        let view = unsafe { AnyViewMut::uninit_from_raw_parts(self.address, self.dtype, layout)? };
        Ok(if is_new { view.of_new_memory() } else { view })
    }

    /// Checks whether the address is a multiple of the alignment of the element type. PyTorch
    /// aligns the memory that it allocates. Memory that PyTorch receives from other libraries can
    /// be unaligned.
    pub(super) fn is_aligned(&self) -> bool {
        self.address.addr().is_multiple_of(self.dtype.alignment())
    }

    /// Returns the elements of row `row`, which are the elements along the last axis for one
    /// position on the other axes. Rows are numbered in row-major order. The tensor must be aligned
    /// ([`is_aligned`](Self::is_aligned)).
    pub(super) fn line(&self, mut row: usize) -> Line {
        debug_assert!(self.is_aligned());
        let (mut offset, outer) = (0, self.shape.len().saturating_sub(1));
        for (&size, &stride) in self.shape[..outer].iter().zip(&self.strides).rev() {
            offset += (row % size).cast_signed() * stride;
            row /= size;
        }
        let len = self.shape.last().copied().unwrap_or(1);
        let stride = self.strides.last().copied().unwrap_or(1);
        let bytes = offset * self.dtype.size().cast_signed();
        let address = self.address.wrapping_offset(bytes).cast_const();
        // SAFETY: PyTorch described address, shape and strides (`of_struct`), and the caller's tensor
        // keeps the memory alive until the end of the call. Callers check `is_aligned`.
        unsafe { Line::from_raw_parts(address, len, stride, self.dtype) }
    }

    /// Merges the first `axes` axes into one axis. Returns `None`, and changes nothing, if the
    /// elements along the merged axis would not be at a constant stride, if `axes` is 0, or if the
    /// merged size overflows. The strides of axes of size 1 are ignored.
    pub(super) fn merge_first(&mut self, axes: usize) -> Option<()> {
        let last = axes.checked_sub(1)?;
        let (mut all, mut step, mut span) = (1_usize, self.strides[last], None);
        for (&size, &stride) in self.shape[..axes].iter().zip(&self.strides).rev() {
            all = all.checked_mul(size)?;
            if size == 1 {
                continue;
            }
            match span {
                None => step = stride,
                Some(span) if span == stride => {}
                Some(_) => return None,
            }
            span = Some(stride.checked_mul(size.cast_signed())?);
        }
        (self.shape[last], self.strides[last]) = (all, step);
        self.shape.drain(..last);
        self.strides.drain(..last);
        Some(())
    }
}
