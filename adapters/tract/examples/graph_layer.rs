//! A layer of a graph network as an ONNX model, in tract with and without ndscatter.
//!
//! ```sh
//! cargo run --release -p ndscatter-tract --example graph_layer
//! ```
//!
//! Each node of a graph gets the sum of the features of its neighbours. The model reads a row for
//! each edge (GatherND), and adds the row to the row of the edge's target (ScatterND).

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "the sizes of the example are small"
)]

use std::time::{Duration, Instant};

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension::Value};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto,
    TypeProto, ValueInfoProto, type_proto,
};
use tract_onnx::prelude::*;

const NODES: usize = 20_000;
const EDGES: usize = 300_000;
const FEATURES: usize = 64;
const RUNS: usize = 10;

const FLOAT: i32 = 1;
const INT64: i32 = 7;

fn value(name: &str, elem_type: i32, shape: &[usize]) -> ValueInfoProto {
    let dim = |&size: &usize| Dimension {
        value: Some(Value::DimValue(size as i64)),
        ..Default::default()
    };
    let tensor = type_proto::Tensor {
        elem_type,
        shape: Some(TensorShapeProto {
            dim: shape.iter().map(dim).collect(),
        }),
    };
    let tensor = Some(type_proto::Value::TensorType(tensor));
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            value: tensor,
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn node(op: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: op.into(),
        name: output.into(),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: vec![output.into()],
        attribute,
        ..Default::default()
    }
}

/// The layer as an ONNX model.
fn layer() -> ModelProto {
    let add = AttributeProto {
        name: "reduction".into(),
        r#type: AttributeType::String as i32,
        s: b"add".to_vec(),
        ..Default::default()
    };
    let graph = GraphProto {
        input: vec![
            value("features", FLOAT, &[NODES, FEATURES]),
            value("sources", INT64, &[EDGES, 1]),
            value("targets", INT64, &[EDGES, 1]),
            value("start", FLOAT, &[NODES, FEATURES]),
        ],
        node: vec![
            node("GatherND", &["features", "sources"], "messages", vec![]),
            node(
                "ScatterND",
                &["start", "targets", "messages"],
                "sums",
                vec![add],
            ),
        ],
        output: vec![value("sums", FLOAT, &[NODES, FEATURES])],
        ..Default::default()
    };
    ModelProto {
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 18,
        }],
        ..Default::default()
    }
}

/// Returns the features, the sources, the targets, and the tensor of zeros to which messages are
/// added.
fn inputs() -> TractResult<[Tensor; 4]> {
    let features: Vec<f32> = (0..NODES * FEATURES)
        .map(|at| (at % 997) as f32 * 0.1)
        .collect();
    let ends = |factor: usize| (0..EDGES).map(move |edge| (edge * factor % 65_537 % NODES) as i64);
    let column = |factor| Tensor::from_shape(&[EDGES, 1], &ends(factor).collect::<Vec<i64>>());
    Ok([
        Tensor::from_shape(&[NODES, FEATURES], &features)?,
        column(7919)?,
        column(104_729)?,
        Tensor::zero::<f32>(&[NODES, FEATURES])?,
    ])
}

/// Loads and runs the layer. Returns the result and the shortest time of a run.
fn run(onnx: &tract_onnx::Onnx) -> TractResult<(TValue, Duration)> {
    let model = onnx
        .model_for_proto_model(&layer())?
        .into_optimized()?
        .into_runnable()?;
    let [features, sources, targets, start] = inputs()?;
    let kept = [features, sources, targets].map(IntoTValue::into_tvalue);
    let (mut result, mut fastest) = (None, Duration::MAX);
    for _ in 0..RUNS {
        let mut inputs: TVec<TValue> = kept.iter().cloned().collect();
        inputs.push(start.clone().into_tvalue());
        let begin = Instant::now();
        let mut outputs = model.run(inputs)?;
        fastest = fastest.min(begin.elapsed());
        result = outputs.pop();
    }
    let result = result.ok_or_else(|| TractError::msg("the model has no output"))?;
    Ok((result, fastest))
}

fn main() -> TractResult<()> {
    println!("a graph of {NODES} nodes with {FEATURES} features, and {EDGES} edges");
    let mut onnx = tract_onnx::onnx();
    let (expected, before) = run(&onnx)?;
    println!("tract: {:.1} ms", before.as_secs_f64() * 1e3);
    ndscatter_tract::register(&mut onnx);
    let (found, after) = run(&onnx)?;
    println!(
        "tract with ndscatter: {:.1} ms, {:.1} times as fast",
        after.as_secs_f64() * 1e3,
        before.as_secs_f64() / after.as_secs_f64()
    );
    let is_same = expected.as_bytes() == found.as_bytes();
    println!(
        "bits of the results: {}",
        if is_same { "equal" } else { "different" }
    );
    Ok(())
}
