//! Random nodes, compared bit for bit with loops written for the tests, and with tract where
//! tract's operator is right.

#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "sizes of tests are small"
)]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{
    Case, REDUCTIONS, Random, TYPES, constant, gather_elements, gather_nd, integer, like, same,
    scatter_elements, scatter_nd, tensor_scatter, text,
};
use tract_onnx::prelude::*;
use tract_onnx::tract_core;
use tract_onnx::tract_hir::internal::*;

/// A random shape of rank `rank`, with sizes from 1 to 4.
fn shape(random: &mut Random, rank: usize) -> Vec<usize> {
    (0..rank).map(|_| 1 + random.below(4)).collect()
}

/// A node, its tensors and the expected result.
struct Drawn {
    op: &'static str,
    attributes: Vec<tract_onnx::pb::AttributeProto>,
    tensors: Vec<Tensor>,
    expected: Tensor,
    /// The input of the indices.
    indices: usize,
}

fn draw_scatter_nd(random: &mut Random, datum_type: DatumType, reduction: &str) -> Drawn {
    let rank = 1 + random.below(4);
    let data_shape = shape(random, rank);
    let len = 1 + random.below(rank);
    let mut indices_shape = {
        let rank = random.below(3);
        shape(random, rank)
    };
    if random.below(8) == 0 {
        indices_shape.push(0);
    }
    let mut updates_shape = indices_shape.clone();
    updates_shape.extend(&data_shape[len..]);
    indices_shape.push(len);
    let data = random.tensor(datum_type, &data_shape);
    let indices = random.indices(&indices_shape, &data_shape[..len]);
    let updates = random.tensor(datum_type, &updates_shape);
    Drawn {
        op: "ScatterND",
        attributes: vec![text("reduction", reduction)],
        expected: for_type!(datum_type, T => scatter_nd::<T>(&data, &indices, &updates, reduction)),
        tensors: vec![data, indices, updates],
        indices: 1,
    }
}

/// Data and indices of an element operator, and the axis as an attribute and as a number.
fn draw_elements(random: &mut Random, datum_type: DatumType) -> (Tensor, Tensor, i64, usize) {
    let rank = 1 + random.below(4);
    let data_shape = shape(random, rank);
    let axis = random.below(rank);
    let mut indices_shape: Vec<usize> = data_shape
        .iter()
        .map(|&size| 1 + random.below(size))
        .collect();
    indices_shape[axis] = random.below(6);
    let indices = random.indices(&indices_shape, &data_shape[axis..=axis]);
    let given = axis as i64 - if random.below(2) == 0 { rank as i64 } else { 0 };
    (random.tensor(datum_type, &data_shape), indices, given, axis)
}

fn draw_scatter_elements(random: &mut Random, datum_type: DatumType, reduction: &str) -> Drawn {
    let (data, indices, given, axis) = draw_elements(random, datum_type);
    let updates = random.tensor(datum_type, indices.shape());
    Drawn {
        op: if reduction == "none" && random.below(2) == 0 {
            "Scatter"
        } else {
            "ScatterElements"
        },
        attributes: vec![text("reduction", reduction), integer("axis", given)],
        expected: for_type!(datum_type, T => {
            scatter_elements::<T>(&data, &indices, &updates, axis, reduction)
        }),
        tensors: vec![data, indices, updates],
        indices: 1,
    }
}

fn draw_gather_elements(random: &mut Random, datum_type: DatumType) -> Drawn {
    let (data, indices, given, axis) = draw_elements(random, datum_type);
    Drawn {
        op: "GatherElements",
        attributes: vec![integer("axis", given)],
        expected: for_type!(datum_type, T => gather_elements::<T>(&data, &indices, axis)),
        tensors: vec![data, indices],
        indices: 1,
    }
}

fn draw_gather_nd(random: &mut Random, datum_type: DatumType) -> Drawn {
    let rank = 1 + random.below(4);
    let data_shape = shape(random, rank);
    let batch_dims = random.below(rank);
    let len = 1 + random.below(rank - batch_dims);
    let mut indices_shape = data_shape[..batch_dims].to_vec();
    let more = random.below(3);
    indices_shape.extend(shape(random, more));
    indices_shape.push(len);
    let data = random.tensor(datum_type, &data_shape);
    let indices = random.indices(&indices_shape, &data_shape[batch_dims..batch_dims + len]);
    Drawn {
        op: "GatherND",
        attributes: vec![integer("batch_dims", batch_dims as i64)],
        expected: for_type!(datum_type, T => gather_nd::<T>(&data, &indices, batch_dims)),
        tensors: vec![data, indices],
        indices: 1,
    }
}

fn draw_tensor_scatter(random: &mut Random, datum_type: DatumType) -> Drawn {
    let rank = 2 + random.below(3);
    let data_shape = shape(random, rank);
    let axis = 1 + random.below(rank - 1);
    let mut updates_shape = data_shape.clone();
    updates_shape[axis] = 1 + random.below(data_shape[axis]);
    let is_circular = random.below(2) == 0;
    let room = data_shape[axis] - updates_shape[axis];
    let end = if is_circular { 9 } else { room + 1 };
    let starts: Vec<i64> = (0..data_shape[0])
        .map(|_| random.below(end) as i64)
        .collect();
    let data = random.tensor(datum_type, &data_shape);
    let updates = random.tensor(datum_type, &updates_shape);
    let omits_starts = random.below(4) == 0;
    let starts = if omits_starts {
        vec![0; data_shape[0]]
    } else {
        starts
    };
    let expected = for_type!(datum_type, T => tensor_scatter::<T>(&data, &updates, &starts, axis));
    let mut tensors = vec![data, updates];
    if !omits_starts {
        tensors.push(tensor1(&starts));
    }
    let mode = if is_circular { "circular" } else { "linear" };
    let mut attributes = vec![text("mode", mode)];
    if axis + 2 != rank || random.below(2) == 0 {
        attributes.push(integer("axis", axis as i64));
    }
    Drawn {
        op: "TensorScatter",
        attributes,
        tensors,
        expected,
        indices: 2,
    }
}

fn draw(random: &mut Random, datum_type: DatumType, reduction: &str) -> Drawn {
    match random.below(if reduction == "none" { 5 } else { 2 }) {
        0 => draw_scatter_nd(random, datum_type, reduction),
        1 => draw_scatter_elements(random, datum_type, reduction),
        2 => draw_gather_nd(random, datum_type),
        3 => draw_gather_elements(random, datum_type),
        _ => draw_tensor_scatter(random, datum_type),
    }
}

impl Drawn {
    fn case(&self, is_constant: bool) -> Case {
        let inputs = self.tensors.iter().enumerate().map(|(place, tensor)| {
            if is_constant && place == self.indices {
                constant(tensor)
            } else {
                like(tensor)
            }
        });
        Case {
            op: self.op,
            attributes: self.attributes.clone(),
            inputs: inputs.collect(),
        }
    }

    /// Runs the node twice, with data that no one else holds and with data that the test holds.
    fn run(&self, with_adapter: bool, is_constant: bool) -> TractResult<()> {
        let model = self.case(is_constant).load(with_adapter)?;
        for is_shared in [false, true, false] {
            let inputs: Vec<&Tensor> = (self.tensors.iter().enumerate())
                .filter(|&(place, _)| !(is_constant && place == self.indices))
                .map(|(_, tensor)| tensor)
                .collect();
            let given: TVec<TValue> = (inputs.iter())
                .map(|&tensor| tensor.clone().into_tvalue())
                .collect();
            let kept = if is_shared { given.clone() } else { tvec!() };
            let found = model.run(given)?;
            ensure!(
                same(&found[0], &self.expected),
                "{:?} is not {:?} ({self:?})",
                found[0],
                self.expected
            );
            for (kept, tensor) in kept.iter().zip(&inputs) {
                ensure!(same(kept, tensor), "an input changed ({self:?})");
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} of {:?}", self.op, self.attributes, self.tensors)
    }
}

#[test]
fn random_nodes_equal_the_loops() {
    let mut random = Random::new(1);
    for datum_type in TYPES {
        for reduction in REDUCTIONS {
            for round in 0..8 {
                let drawn = draw(&mut random, datum_type, reduction);
                (drawn.run(true, round % 2 == 1))
                    .unwrap_or_else(|error| panic!("{datum_type:?} {drawn:?}: {error:?}"));
            }
        }
    }
}

/// tract's operators with the adapter's results, where tract does not fail. tract is wrong about
/// negative indices in ScatterND and GatherND, and about batch dims of constant GatherND.
#[test]
fn results_equal_those_of_tract_where_tract_is_right() {
    let mut random = Random::new(2);
    let mut agreed = 0;
    for _ in 0..150 {
        let reduction = REDUCTIONS[random.below(5)];
        let drawn = draw(&mut random, DatumType::I64, reduction);
        let plain = drawn
            .tensors
            .get(1)
            .and_then(|indices| indices.cast_to::<i64>().ok());
        let has_negative = plain.is_some_and(|indices| {
            let indices = indices.try_as_plain_ram().expect("memory");
            indices
                .as_slice::<i64>()
                .expect("i64")
                .iter()
                .any(|&index| index < 0)
        });
        if drawn.op == "TensorScatter" || has_negative && drawn.op.ends_with("ND") {
            continue;
        }
        let run = catch_unwind(AssertUnwindSafe(|| drawn.run(false, false)));
        match run {
            Ok(Ok(())) => agreed += 1,
            // tract refuses some valid models. It must not compute another result.
            Ok(Err(error)) => assert!(!error.to_string().contains(" is not "), "{error}"),
            Err(_) => eprintln!("tract panics: {drawn:?}"),
        }
    }
    assert!(agreed > 50, "tract agreed {agreed} times");
}

/// All types of indices that tract has, and dimensions.
#[test]
fn indices_may_have_any_type() {
    let data = tensor1(&[0_i32, 1, 2, 3]);
    let updates = tensor1(&[8_i32, 9]);
    for datum_type in TYPES
        .into_iter()
        .filter(DatumType::is_integer)
        .chain([DatumType::TDim])
    {
        let indices = tensor2(&[[3_i64], [1]])
            .cast_to_dt(datum_type)
            .unwrap()
            .into_owned();
        let mut model = TypedModel::default();
        let inputs = [&data, &indices, &updates].map(|tensor| {
            let name = format!("input_{}", model.nodes().len());
            model
                .add_source(name, tensor.datum_type().fact(tensor.shape()))
                .unwrap()
        });
        let op = tract_core::ops::array::ScatterNd::new(Default::default());
        let result = model.wire_node("node", op, &inputs).unwrap();
        model.select_output_outlets(&result).unwrap();
        assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 1);
        let model = model.into_runnable().unwrap();
        let inputs = [&data, &indices, &updates].map(|tensor| tensor.clone().into_tvalue());
        let found = model.run(inputs.into_iter().collect()).unwrap();
        assert_eq!(*found[0], tensor1(&[0, 9, 2, 8]), "{datum_type:?}");
    }
}
