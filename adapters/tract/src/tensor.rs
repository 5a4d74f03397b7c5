//! Views of tract's tensors, and new tensors that a call fills.
//!
//! tract's tensors in memory are row-major. This module knows tensors and nothing of operators.

#![expect(
    unsafe_code,
    reason = "tract makes tensors without initialised elements only in an unsafe function"
)]

use std::borrow::Cow;

use ndscatter::{AnyView, AnyViewMut, DType, Layout, ScatterError};
use tract_core::internal::{DatumType, TVec, Tensor, TractResult};

use crate::{element, huge_pages};

/// Returns a view of the elements of `tensor`.
pub(crate) fn view(tensor: &Tensor, dtype: DType) -> TractResult<AnyView<'_>> {
    let bytes = tensor.try_as_plain_ram()?.as_bytes();
    Ok(AnyView::from_bytes(
        bytes,
        dtype,
        Layout::contiguous(tensor.shape()),
    )?)
}

/// Calls `write` with a view of the elements of `tensor`.
pub(crate) fn change(
    tensor: &mut Tensor,
    dtype: DType,
    write: impl FnOnce(AnyViewMut<'_>) -> Result<(), ScatterError>,
) -> TractResult<()> {
    let shape = TVec::from_slice(tensor.shape());
    let mut memory = tensor.try_as_plain_ram_mut()?;
    let layout = Layout::contiguous(&shape);
    Ok(write(AnyViewMut::from_bytes(
        memory.as_bytes_mut(),
        dtype,
        layout,
    )?)?)
}

/// Returns a new tensor that `write` has filled. `write` is one scatter or gather into its argument.
///
/// The elements have the type `datum_type`, which [`element::element`] has converted to `dtype`.
pub(crate) fn written(
    datum_type: DatumType,
    dtype: DType,
    shape: &[usize],
    write: impl FnOnce(AnyViewMut<'_>) -> Result<(), ScatterError>,
) -> TractResult<Tensor> {
    debug_assert_eq!(datum_type.size_of(), dtype.size(), "sizes of one type");
    // SAFETY: no element is read before `write` has written all elements. If `write` fails, the
    // tensor is dropped. `element::element` converts only types without a destructor.
    let mut tensor = unsafe { Tensor::uninitialized_dt(datum_type, shape)? };
    // SAFETY: the pointer is used only below.
    let memory = unsafe { tensor.as_ptr_mut_unchecked::<u8>() };
    // SAFETY: the tensor has this many bytes from `memory` on, in one allocation.
    unsafe { huge_pages::request(memory, tensor.volume() * dtype.size()) };
    // SAFETY: `memory` is the start of the elements of `tensor`: row-major elements of the shape
    // `shape` and of the size of `dtype`, in one allocation that only the view uses.
    let output =
        unsafe { AnyViewMut::uninit_from_raw_parts(memory, dtype, Layout::contiguous(shape)) }?;
    write(output.of_new_memory())?;
    Ok(tensor)
}

/// Returns the indices as integers. Indices of a type that is no integer, such as dimensions
/// (`TDim`), are cast to `i64`, as in tract's operators.
pub(crate) fn indices(tensor: &Tensor) -> TractResult<Cow<'_, Tensor>> {
    match element::index(tensor.datum_type()) {
        Some(_) => Ok(Cow::Borrowed(tensor)),
        None => tensor.cast_to::<i64>(),
    }
}

/// Returns a view of a tensor from [`indices`].
pub(crate) fn indices_view(tensor: &Tensor) -> TractResult<AnyView<'_>> {
    view(
        tensor,
        element::index(tensor.datum_type()).unwrap_or(DType::I64),
    )
}
