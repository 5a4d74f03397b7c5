//! Views of the memory of Flex's tensors: bytes, a layout and an element type.
//!
//! This module knows the layouts and types of both crates. It does not know scatters.

use std::ops::Range;

use burn_backend::{BoolStore, Bytes, DType, Shape};
use burn_flex::{FlexTensor, Layout};
use bytemuck::{Pod, Zeroable};
use ndscatter::{AnyView, Element, ScatterError, TensorView};

use crate::Error;

/// A type of floats or integers.
pub(super) trait Number: Element + burn_backend::Element + Pod {}

impl<E: Element + burn_backend::Element + Pod> Number for E {}

/// Returns elements of value 0, or an error if there is not enough memory.
pub(super) fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>, ScatterError> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| ScatterError::OutOfMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    })
}

/// Returns a row-major tensor.
pub(super) fn row_major<E: Pod + Send + Sync>(
    elements: Vec<E>,
    shape: Shape,
    dtype: DType,
) -> FlexTensor {
    FlexTensor::new(
        Bytes::from_elems(elements),
        Layout::contiguous(shape),
        dtype,
    )
}

/// Returns a view of a tensor to read. `name` is the name of the tensor in errors.
pub(super) fn view<'a>(tensor: &'a FlexTensor, name: &'static str) -> Result<AnyView<'a>, Error> {
    let (dtype, layout) = (element_type(tensor, name)?, tensor.layout());
    let bytes = tensor
        .bytes()
        .get(first_byte(layout, dtype)..)
        .unwrap_or_default();
    Ok(AnyView::from_bytes(bytes, dtype, layout_of(layout)?)?)
}

/// Returns a view of a tensor to read, or an error if its elements do not have the type `E`.
pub(super) fn typed<'a, E: Number>(
    tensor: &'a FlexTensor,
    name: &'static str,
) -> Result<TensorView<'a, E>, Error> {
    let (actual, expected) = (element_type(tensor, name)?, E::DTYPE);
    if actual != expected {
        return Err(ScatterError::DTypeMismatch {
            tensor: name,
            expected,
            actual,
        }
        .into());
    }
    check_memory::<E>(tensor)?;
    let (elements, layout) = (tensor.storage::<E>(), tensor.layout());
    if layout.is_contiguous() {
        let elements = elements.get(range_of(layout)).unwrap_or_default();
        return Ok(TensorView::contiguous(elements, layout.shape())?);
    }
    Ok(TensorView::strided(
        elements,
        layout.start_offset(),
        layout.shape(),
        layout.strides(),
    )?)
}

/// Checks that the memory of a tensor is a slice of `E`, as the methods of `FlexTensor` require.
pub(super) fn check_memory<E: Number>(tensor: &FlexTensor) -> Result<(), ScatterError> {
    let (bytes, dtype) = (tensor.bytes(), E::DTYPE);
    let (address, alignment) = (bytes.as_ptr().addr(), align_of::<E>());
    if !address.is_multiple_of(alignment) {
        return Err(ScatterError::Misaligned {
            address,
            dtype,
            alignment,
        });
    }
    if !bytes.len().is_multiple_of(size_of::<E>()) {
        return Err(ScatterError::BytesLength {
            shape: tensor.layout().shape().to_vec(),
            dtype,
            needed: bytes.len().next_multiple_of(size_of::<E>()),
            actual: bytes.len(),
        });
    }
    Ok(())
}

/// Returns the positions of the elements of a contiguous tensor in its memory.
pub(super) fn range_of(layout: &Layout) -> Range<usize> {
    let start = layout.start_offset();
    start..start.saturating_add(layout.num_elements())
}

/// Converts shape and strides.
pub(super) fn layout_of(layout: &Layout) -> Result<ndscatter::Layout<'_>, ScatterError> {
    if layout.is_contiguous() {
        return Ok(ndscatter::Layout::contiguous(layout.shape()));
    }
    ndscatter::Layout::strided(layout.shape(), layout.strides())
}

/// Returns the offset, in bytes, of the element with the lowest address. An offset that no memory
/// has stands for a layout that is outside every memory.
pub(super) fn first_byte(layout: &Layout, dtype: ndscatter::DType) -> usize {
    let dims = layout.shape().iter().zip(layout.strides());
    let below = dims.filter(|&(&size, &stride)| size > 1 && stride < 0);
    let reach = |(&size, stride): (&usize, &isize)| (size - 1).checked_mul(stride.unsigned_abs());
    let elements = below
        .map(reach)
        .try_fold(layout.start_offset(), |first, reach| {
            first.checked_sub(reach?)
        });
    elements
        .and_then(|elements| elements.checked_mul(dtype.size()))
        .unwrap_or(usize::MAX)
}

/// Returns the element type. Booleans of 32 bits, quantised floats and `Flex32` are refused: Flex has no kernels for
/// them either.
pub(super) fn element_type(
    tensor: &FlexTensor,
    name: &'static str,
) -> Result<ndscatter::DType, Error> {
    macro_rules! element_type {
        ($($variant:ident),*) => {
            match tensor.dtype() {
                $(DType::$variant => Ok(ndscatter::DType::$variant),)*
                DType::Bool(BoolStore::Native | BoolStore::U8) => Ok(ndscatter::DType::Bool),
                dtype => Err(Error::DType { tensor: name, dtype }),
            }
        };
    }
    element_type!(F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8)
}
