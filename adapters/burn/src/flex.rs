//! The backend Flex: scatters in place, and scatters that allocate their result.
//!
//! This module knows the owners of a tensor's memory. It does not know gradients.

mod gradient;
mod view;

use std::sync::Arc;

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Bytes, DType};
use burn_flex::{Flex, FlexTensor};
use half::{bf16, f16};
use ndscatter::{AnyView, AnyViewMut, Scatter, ScatterError};

use self::view::{element_type, first_byte, layout_of, row_major, typed, view};
use crate::{Error, ScatterBackend};

impl ScatterBackend for Flex {
    fn float_nd_scatter(
        scatter: &Scatter<'_>,
        data: FloatTensor<Self>,
        indices: IntTensor<Self>,
        updates: FloatTensor<Self>,
    ) -> Result<FloatTensor<Self>, Error> {
        apply(scatter, data, &indices, &updates)
    }

    fn int_nd_scatter(
        scatter: &Scatter<'_>,
        data: IntTensor<Self>,
        indices: IntTensor<Self>,
        updates: IntTensor<Self>,
    ) -> Result<IntTensor<Self>, Error> {
        apply(scatter, data, &indices, &updates)
    }

    fn bool_nd_scatter(
        scatter: &Scatter<'_>,
        data: BoolTensor<Self>,
        indices: IntTensor<Self>,
        updates: BoolTensor<Self>,
    ) -> Result<BoolTensor<Self>, Error> {
        apply(scatter, data, &indices, &updates)
    }
}

/// Returns `data` with the updates applied, in the memory of `data` if it has no other owner.
fn apply(
    scatter: &Scatter<'_>,
    data: FlexTensor,
    indices: &FlexTensor,
    updates: &FlexTensor,
) -> Result<FlexTensor, Error> {
    let listed = view(indices, "indices")?;
    let values = view(updates, "updates")?;
    match in_place(scatter, data, listed, values)? {
        Done::Yes(result) => Ok(result),
        Done::Shared(data) => allocated(scatter, &data, listed, updates),
    }
}

/// Result of an attempt to scatter in place.
enum Done {
    Yes(FlexTensor),
    /// The data has another owner, or some of its elements share memory. Nothing was written.
    Shared(FlexTensor),
}

/// Scatters into the memory of `data` if `data` has no other owner.
fn in_place(
    scatter: &Scatter<'_>,
    data: FlexTensor,
    indices: AnyView<'_>,
    updates: AnyView<'_>,
) -> Result<Done, Error> {
    let dtype = element_type(&data, "data")?;
    let (layout, burn_dtype) = (data.layout().clone(), data.dtype());
    let mut memory = data.data_arc();
    drop(data);
    if let Some(bytes) = Arc::get_mut(&mut memory) {
        let bytes = bytes
            .get_mut(first_byte(&layout, dtype)..)
            .unwrap_or_default();
        match AnyViewMut::from_bytes(bytes, dtype, layout_of(&layout)?) {
            Ok(output) => {
                scatter.in_place(output, indices, updates)?;
                return Ok(Done::Yes(FlexTensor::from_arc(memory, layout, burn_dtype)));
            }
            // Strides of 0, as after `expand`.
            Err(ScatterError::SelfOverlap { .. } | ScatterError::SelfOverlapUndecided { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Done::Shared(FlexTensor::from_arc(
        memory, layout, burn_dtype,
    )))
}

/// Returns a new tensor: a copy of `data` with the updates applied.
fn allocated(
    scatter: &Scatter<'_>,
    data: &FlexTensor,
    indices: AnyView<'_>,
    updates: &FlexTensor,
) -> Result<FlexTensor, Error> {
    macro_rules! allocated {
        ($($variant:ident: $element:ty),*) => {
            match data.dtype() {
                $(DType::$variant => {
                    let (data, updates) = (typed::<$element>(data, "data")?, typed::<$element>(updates, "updates")?);
                    Bytes::from_elems(scatter.allocate(data, indices, updates)?.into_vec())
                })*
                // A byte of a boolean may have any value, which Rust's `bool` forbids.
                _ => {
                    let (source, updates) = (view(data, "data")?, view(updates, "updates")?);
                    let mut bytes = vec![0; data.layout().num_elements()];
                    let shape = ndscatter::Layout::contiguous(data.layout().shape());
                    let output = AnyViewMut::from_bytes(&mut bytes, source.dtype(), shape)?;
                    scatter.write_into(source, indices, updates, output.of_new_memory())?;
                    Bytes::from_elems(bytes)
                }
            }
        };
    }
    let bytes = allocated! {
        F64: f64, F32: f32, F16: f16, BF16: bf16,
        I64: i64, I32: i32, I16: i16, I8: i8, U64: u64, U32: u32, U16: u16, U8: u8
    };
    Ok(row_major(
        bytes,
        data.layout().shape().clone(),
        data.dtype(),
    ))
}
