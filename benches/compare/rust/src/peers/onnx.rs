//! The bytes of an ONNX model of one node with three inputs, for a runtime
//! that has an operator's reductions in models alone.

pub(super) const INPUTS: [&str; 3] = ["data", "indices", "updates"];
pub(super) const OUTPUT: &str = "output";

/// The operator set whose scatters have all reductions.
const OPSET: usize = 18;

/// ONNX's numbers of types.
const FLOAT: usize = 1;
const INT64: usize = 7;
const STRING_ATTRIBUTE: usize = 3;

/// A model of the operator, with the reduction in ONNX's word for it.
pub(super) fn model(operator: &str, reduction: &str) -> Vec<u8> {
    let attribute = [
        text(1, "reduction"),
        text(4, reduction),
        number(20, STRING_ATTRIBUTE),
    ];
    let mut node: Vec<_> = INPUTS.map(|name| text(1, name)).into();
    node.extend([text(2, OUTPUT), text(4, operator), message(5, &attribute)]);
    let [data, indices, updates] = INPUTS;
    let graph = [
        message(1, &node),
        text(2, "scatter"),
        value(11, data, FLOAT),
        value(11, indices, INT64),
        value(11, updates, FLOAT),
        value(12, OUTPUT, FLOAT),
    ];
    let opset = [text(1, ""), number(2, OPSET)];
    [number(1, 8), message(7, &graph), message(8, &opset)].concat()
}

/// An input or an output, of any shape.
fn value(field: usize, name: &str, element_type: usize) -> Vec<u8> {
    let tensor = message(1, &[number(1, element_type)]);
    message(field, &[text(1, name), message(2, &[tensor])])
}

// Protocol buffers: a field is its number and wire type, then its content.

fn number(field: usize, value: usize) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn text(field: usize, text: &str) -> Vec<u8> {
    message(field, &[text.into()])
}

fn message(field: usize, content: &[Vec<u8>]) -> Vec<u8> {
    let content = content.concat();
    [varint(field << 3 | 2), varint(content.len()), content].concat()
}

/// Seven bits a byte, the lowest first; all but the last are marked.
fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}
