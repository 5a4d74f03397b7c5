//! Element types that run on ndscatter.
//!
//! This module knows the types of both sides. It knows nothing of tensors or operators.

use ndscatter::DType;
use tract_core::internal::DatumType;

/// Returns ndscatter's type of elements, or `None` if tract's operator handles the elements.
///
/// Quantised elements are moved as integers. A reduction of quantised elements stays with tract,
/// because the result depends on scales and zero points that ndscatter does not know. Complex
/// numbers, dimensions, strings and blobs also stay with tract.
pub(crate) fn element(datum_type: DatumType, is_reduced: bool) -> Option<DType> {
    Some(match datum_type {
        DatumType::Bool => DType::Bool,
        DatumType::I8 => DType::I8,
        DatumType::I16 => DType::I16,
        DatumType::I32 => DType::I32,
        DatumType::I64 => DType::I64,
        DatumType::U8 => DType::U8,
        DatumType::U16 => DType::U16,
        DatumType::U32 => DType::U32,
        DatumType::U64 => DType::U64,
        DatumType::F16 => DType::F16,
        DatumType::F32 => DType::F32,
        DatumType::F64 => DType::F64,
        DatumType::QI8(_) if !is_reduced => DType::I8,
        DatumType::QU8(_) if !is_reduced => DType::U8,
        DatumType::QI32(_) if !is_reduced => DType::I32,
        _ => return None,
    })
}

/// Returns ndscatter's type of indices, or `None` if the indices must be cast first.
pub(crate) fn index(datum_type: DatumType) -> Option<DType> {
    let is_index = datum_type.is_integer() && !datum_type.is_quantized();
    element(datum_type, false).filter(|_| is_index)
}
