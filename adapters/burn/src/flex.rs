//! The backend Flex: scatters in place, and scatters that allocate their result.
//!
//! This module knows the owners of a tensor's memory. It does not know gradients.

mod gradient;
mod view;

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{BoolStore, DType};
use burn_flex::{Flex, FlexTensor};
use half::{bf16, f16};
use ndscatter::{AnyView, AnyViewMut, Scatter, ScatterError, TensorViewMut};

use self::view::{
    Number, check_memory, first_byte, layout_of, range_of, row_major, typed, view, zeros,
};
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
    let indices = view(indices, "indices")?;
    macro_rules! of_type {
        ($($variant:ident: $element:ty),*) => {
            match data.dtype() {
                $(DType::$variant => numbers::<$element>(scatter, data, indices, updates),)*
                DType::Bool(BoolStore::Native | BoolStore::U8) => {
                    booleans(scatter, data, indices, updates)
                }
                dtype => Err(Error::DType { tensor: "data", dtype }),
            }
        };
    }
    of_type!(
        F64: f64, F32: f32, F16: f16, BF16: bf16,
        I64: i64, I32: i32, I16: i16, I8: i8, U64: u64, U32: u32, U16: u16, U8: u8
    )
}

/// Bytes of shared data up to which a copy and a scatter in place take less time than one pass.
const COPIED_FIRST: usize = 16 << 10;

/// Scatters floats or integers.
fn numbers<E: Number>(
    scatter: &Scatter<'_>,
    mut data: FlexTensor,
    indices: AnyView<'_>,
    updates: &FlexTensor,
) -> Result<FlexTensor, Error> {
    let updates = typed::<E>(updates, "updates")?;
    check_memory::<E>(&data)?;
    if data.is_contiguous() {
        let (shape, range) = (data.layout().shape().clone(), range_of(data.layout()));
        if data.is_unique() {
            let elements = data.storage_mut::<E>().get_mut(range).unwrap_or_default();
            let output = TensorViewMut::contiguous(elements, &shape)?;
            scatter.in_place(output, indices, updates)?;
            return Ok(data);
        }
        let elements = data.storage::<E>().get(range).unwrap_or_default();
        if size_of_val(elements) <= COPIED_FIRST
            && let Some(mut elements) = copied(elements)
        {
            let output = TensorViewMut::contiguous(&mut elements, &shape)?;
            scatter.in_place(output, indices, updates)?;
            return Ok(row_major(elements, shape, data.dtype()));
        }
    }
    if data.is_unique() {
        let layout = data.layout().clone();
        let (elements, first) = (data.storage_mut::<E>(), layout.start_offset());
        match TensorViewMut::strided(elements, first, layout.shape(), layout.strides()) {
            Ok(output) => {
                scatter.in_place(output, indices, updates)?;
                return Ok(data);
            }
            Err(error) => unless_overlap(error)?,
        }
    }
    let source = typed::<E>(&data, "data")?;
    let result = scatter.allocate(source, indices, updates)?;
    let shape = data.layout().shape().clone();
    Ok(row_major(result.into_vec(), shape, data.dtype()))
}

/// Returns a copy, or `None` if there is not enough memory.
fn copied<E: Copy>(elements: &[E]) -> Option<Vec<E>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(elements.len()).ok()?;
    copy.extend_from_slice(elements);
    Some(copy)
}

/// Scatters booleans. A byte of a boolean may have any value, which Rust's `bool` forbids.
fn booleans(
    scatter: &Scatter<'_>,
    mut data: FlexTensor,
    indices: AnyView<'_>,
    updates: &FlexTensor,
) -> Result<FlexTensor, Error> {
    let updates = view(updates, "updates")?;
    let (dtype, layout) = (view(&data, "data")?.dtype(), data.layout().clone());
    if data.is_unique() {
        let bytes = data
            .storage_mut::<u8>()
            .get_mut(first_byte(&layout, dtype)..);
        match AnyViewMut::from_bytes(bytes.unwrap_or_default(), dtype, layout_of(&layout)?) {
            Ok(output) => {
                scatter.in_place(output, indices, updates)?;
                return Ok(data);
            }
            Err(error) => unless_overlap(error)?,
        }
    }
    let mut bytes = zeros::<u8>(layout.num_elements())?;
    let shape = ndscatter::Layout::contiguous(layout.shape());
    let output = AnyViewMut::from_bytes(&mut bytes, dtype, shape)?;
    scatter.write_into(
        view(&data, "data")?,
        indices,
        updates,
        output.of_new_memory(),
    )?;
    Ok(row_major(bytes, layout.shape().clone(), data.dtype()))
}

/// Returns the error unless elements of the tensor share memory, as after `expand` or `unfold`. A
/// scatter of such a tensor needs new memory.
fn unless_overlap(error: ScatterError) -> Result<(), ScatterError> {
    match error {
        ScatterError::SelfOverlap { .. } | ScatterError::SelfOverlapUndecided { .. } => Ok(()),
        error => Err(error),
    }
}
