//! The host's element types: their codes, and their storage in memory.

use ndscatter::DType;
use ort_sys::ONNXTensorElementDataType as Code;

/// Storage of elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// Each element occupies whole bytes.
    Whole(DType),
    /// Each byte holds two elements.
    Packed,
    /// Each element is a string, an object of the host.
    Text,
}

/// An element type of the host.
#[derive(Debug)]
pub(crate) struct ElementType {
    /// The host's number for the element type. The host's enumeration has more values than the
    /// enumeration in `ort_sys`, so this field is an integer.
    pub(crate) code: i32,
    pub(crate) element: Element,
    /// Minor version x of the oldest supported host, onnxruntime 1.x, that has the element type.
    pub(crate) host: u32,
}

const fn whole(code: Code, dtype: DType) -> ElementType {
    ElementType {
        code: code as i32,
        element: Element::Whole(dtype),
        host: 18,
    }
}

/// Returns an element type of one byte that the crate only copies. Reductions do not support it.
const fn byte(code: Code) -> ElementType {
    whole(code, DType::Bytes1)
}

const fn packed(code: i32, host: u32) -> ElementType {
    ElementType {
        code,
        element: Element::Packed,
        host,
    }
}

pub(crate) static ELEMENT_TYPES: [ElementType; 21] = [
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DType::F32),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DType::U8),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DType::I8),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DType::U16),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DType::I16),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DType::I32),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DType::I64),
    ElementType {
        code: Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING as i32,
        element: Element::Text,
        host: 18,
    },
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DType::Bool),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DType::F16),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DType::F64),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DType::U32),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DType::U64),
    whole(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DType::BF16),
    byte(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN),
    byte(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ),
    byte(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2),
    byte(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ),
    packed(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 as i32, 19),
    packed(Code::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 as i32, 19),
    // float4e2m1
    packed(23, 24),
];

/// Returns the host's code of the index type `dtype`.
pub(crate) fn code_of(dtype: DType) -> i32 {
    let is_it = |known: &&ElementType| known.element == Element::Whole(dtype);
    ELEMENT_TYPES
        .iter()
        .find(is_it)
        .map_or(0, |known| known.code)
}
