//! Encodes an ONNX model of one node with three inputs, for a runtime that supports the
//! reductions of an operator only in models.

pub(super) const INPUTS: [&str; 3] = ["data", "indices", "updates"];
pub(super) const OUTPUT: &str = "output";

/// Operator set in which scatters have all reductions.
const OPSET: usize = 18;

/// Type codes of ONNX.
const FLOAT: usize = 1;
const INT64: usize = 7;
const STRING_ATTRIBUTE: usize = 3;

/// Encodes a model of an operator. `reduction` is ONNX's name.
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

/// Encodes an input or an output of any shape.
fn value(field: usize, name: &str, element_type: usize) -> Vec<u8> {
    let tensor = message(1, &[number(1, element_type)]);
    message(field, &[text(1, name), message(2, &[tensor])])
}

// Protocol buffers: a field consists of its number, its wire type, and its content.

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

/// Encodes an integer with seven bits per byte, lowest bits first. The high bit is set in every
/// byte except the last.
fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}
