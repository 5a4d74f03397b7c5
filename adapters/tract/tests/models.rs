//! Typed models: symbols, constant indices, bodies, NNEF, other types, and errors.

mod common;

use common::{Case, Input, constant, integer, like, number, ops, same, text};
use tract_onnx::prelude::*;
use tract_onnx::tract_core;
use tract_onnx::tract_core::ops::array::ScatterReduction;
use tract_onnx::tract_core::ops::array::{GatherElements, GatherNd, ScatterElements, ScatterNd};
use tract_onnx::tract_core::ops::logic::IfThenElse;
use tract_onnx::tract_core::ops::scan::{InputMapping, OutputMapping, Scan, ScanInfo};

fn run(model: &Arc<TypedRunnableModel>, inputs: &[&Tensor]) -> TractResult<Tensor> {
    let inputs = inputs
        .iter()
        .map(|&tensor| tensor.clone().into_tvalue())
        .collect();
    Ok(model.run(inputs)?.remove(0).into_tensor())
}

/// A model of one node whose inputs are sources with the types and shapes of `inputs`.
fn model_of(op: impl Into<Box<dyn TypedOp>>, inputs: &[&Tensor]) -> TypedModel {
    let mut model = TypedModel::default();
    let sources: Vec<OutletId> = (inputs.iter().enumerate())
        .map(|(place, tensor)| {
            let fact = tensor.datum_type().fact(tensor.shape());
            model
                .add_source(format!("input_{place}"), fact)
                .expect("a source")
        })
        .collect();
    let result = model.wire_node("node", op, &sources).expect("a valid node");
    model.select_output_outlets(&result).expect("an output");
    model
}

fn added() -> ScatterNd {
    ScatterNd::new(ScatterReduction::Add)
}

#[test]
fn symbols_may_have_another_value_in_each_run() {
    let dynamic = |dims: &[&'static str]| Input::Runtime(1, dims.to_vec());
    for is_constant in [false, true] {
        let rows = tensor2(&[[-1_i64], [0], [-1]]);
        let rows_input = if is_constant {
            constant(&rows)
        } else {
            Input::Runtime(7, vec!["3", "1"])
        };
        let case = Case {
            op: "ScatterND",
            attributes: vec![text("reduction", "add")],
            inputs: vec![
                dynamic(&["rows", "columns"]),
                rows_input,
                dynamic(&["3", "columns"]),
            ],
        };
        let model = case.load(true).unwrap();
        for (size, columns) in [
            (2, 3),
            (5, 1),
            (2, 3),
            (1, 8),
            (7, 2),
            (4, 4),
            (6, 1),
            (2, 3),
            (3, 0),
        ] {
            let data = Tensor::zero::<f32>(&[size, columns]).unwrap();
            let mut updates = Tensor::zero::<f32>(&[3, columns]).unwrap();
            updates.fill_t(1.0_f32).unwrap();
            let inputs = if is_constant {
                vec![&data, &updates]
            } else {
                vec![&data, &rows, &updates]
            };
            let found = run(&model, &inputs).unwrap();
            let expected = common::scatter_nd::<f32>(&data, &rows, &updates, "add");
            assert!(same(&found, &expected), "{size} {columns}: {found:?}");
        }
    }
}

#[test]
fn gathers_have_symbols_in_their_shape() {
    let case = Case {
        op: "GatherND",
        attributes: vec![integer("batch_dims", 1)],
        inputs: vec![
            Input::Runtime(1, vec!["batch", "rows", "columns"]),
            Input::Runtime(7, vec!["batch", "picked", "1"]),
        ],
    };
    let typed = case.typed(true).unwrap();
    let fact = typed.output_fact(0).unwrap();
    assert_eq!(
        fact.shape
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["batch", "picked", "columns"]
    );
    let model = typed.into_optimized().unwrap().into_runnable().unwrap();
    let data = Tensor::from_shape(&[2, 3, 1], &[0_f32, 1., 2., 3., 4., 5.]).unwrap();
    let indices = Tensor::from_shape(&[2, 2, 1], &[-1_i64, 0, 1, 1]).unwrap();
    let found = run(&model, &[&data, &indices]).unwrap();
    assert_eq!(
        found,
        Tensor::from_shape(&[2, 2, 1], &[2_f32, 0., 4., 4.]).unwrap()
    );
}

#[test]
fn registered_models_have_the_nodes_of_the_adapter() {
    let (data, rows) = (tensor2(&[[1_f32, 2.]]), tensor2(&[[0_i64, 0]]));
    for op in [
        "ScatterND",
        "ScatterElements",
        "Scatter",
        "GatherND",
        "GatherElements",
    ] {
        let mut inputs = vec![like(&data), like(&rows)];
        if op.starts_with("Scatter") {
            let updates = if op == "ScatterND" {
                tensor1(&[1_f32])
            } else {
                data.clone()
            };
            inputs.push(like(&updates));
        }
        let case = Case {
            op,
            attributes: vec![],
            inputs,
        };
        let count = |with_adapter| {
            let typed = case.typed(with_adapter).unwrap();
            ops(&typed)
                .iter()
                .filter(|name| name.starts_with("ndscatter."))
                .count()
        };
        assert_eq!((count(false), count(true)), (0, 1), "{op}");
    }
}

#[test]
fn rewrite_and_restore_are_inverse() {
    let (data, rows) = (tensor2(&[[1_f32, 2.]]), tensor2(&[[0_i64, 0]]));
    let scatters: [Box<dyn TypedOp>; 2] = [
        Box::new(added()),
        Box::new(ScatterElements::new(1, ScatterReduction::Max)),
    ];
    let gathers: [Box<dyn TypedOp>; 2] =
        [Box::new(GatherNd::new(1)), Box::new(GatherElements::new(1))];
    let updates = [tensor1(&[5_f32]), tensor2(&[[5_f32, 6.]])];
    let scatters = scatters
        .iter()
        .zip(&updates)
        .map(|(op, updates)| model_of(op.clone(), &[&data, &rows, updates]));
    let one = tensor2(&[[1_i64]]);
    let gathers = gathers
        .iter()
        .map(|op| model_of(op.clone(), &[&data, &one]));
    for original in scatters.chain(gathers) {
        let mut model = original.clone();
        assert_eq!(ndscatter_tract::restore(&mut model).unwrap(), 0);
        assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 1);
        assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 0);
        assert!(
            ops(&model)
                .iter()
                .any(|name| name.starts_with("ndscatter."))
        );
        assert_eq!(ndscatter_tract::restore(&mut model).unwrap(), 1);
        assert_eq!(ops(&model), ops(&original));
        assert!(
            model.node(model.nodes().len() - 1).op == original.node(model.nodes().len() - 1).op
        );
    }
}

#[test]
fn models_of_nnef_are_rewritten() {
    let data = tensor2(&[[1_f32, 2.], [3., 4.]]);
    let (rows, updates) = (
        tensor2(&[[1_i64], [1]]),
        tensor2(&[[10_f32, 20.], [30., 40.]]),
    );
    let mut model = model_of(added(), &[&data, &rows, &updates]);
    ndscatter_tract::rewrite(&mut model).unwrap();
    // tract writes its own operators only.
    let nnef = tract_nnef::nnef();
    nnef.write_to_tar(&model, vec![])
        .expect_err("an operator without a name in NNEF");
    ndscatter_tract::restore(&mut model).unwrap();
    let file = nnef.write_to_tar(&model, vec![]).unwrap();
    let mut read = nnef.model_for_read(&mut &*file).unwrap();
    assert_eq!(ndscatter_tract::rewrite(&mut read).unwrap(), 1);
    let negative = tensor2(&[[-1_i64], [1]]);
    let read = read.into_optimized().unwrap().into_runnable().unwrap();
    let found = run(&read, &[&data, &negative, &updates]).unwrap();
    assert_eq!(found, tensor2(&[[1_f32, 2.], [43., 64.]]));
}

#[test]
fn bodies_are_rewritten() {
    let data = tensor1(&[0_f32, 0.]);
    let (step_rows, step_updates) = (tensor2(&[[0_i64]]), tensor1(&[0_f32]));
    let body = model_of(added(), &[&data, &step_rows, &step_updates]);
    // A loop that adds one update to its state in each step.
    let chunk = || InputMapping::Scan(ScanInfo { axis: 0, chunk: 1 });
    let last = OutputMapping {
        scan: None,
        full_dim_hint: None,
        last_value_slot: Some(0),
        state: true,
    };
    let scan = Scan::new(
        body.clone(),
        vec![InputMapping::State, chunk(), chunk()],
        vec![last],
        0,
    )
    .unwrap();
    let (rows, updates) = (tensor2(&[[-1_i64], [0], [-1]]), tensor1(&[1_f32, 2., 3.]));
    let mut model = model_of(scan, &[&data, &rows, &updates]);
    assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 1);
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    assert_eq!(
        run(&model, &[&data, &rows, &updates]).unwrap(),
        tensor1(&[2_f32, 4.])
    );

    // A condition whose branches are one scatter each.
    let condition = IfThenElse {
        then_body: body.clone(),
        then_input_mapping: vec![1, 2, 3],
        else_body: body,
        else_input_mapping: vec![1, 2, 4],
    };
    let flag = tensor0(true);
    let (left, right) = (tensor1(&[1_f32]), tensor1(&[2_f32]));
    let row = tensor2(&[[-1_i64]]);
    let mut model = model_of(condition, &[&flag, &data, &row, &left, &right]);
    assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 2);
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    for (flag, expected) in [(true, 1_f32), (false, 2.)] {
        let found = run(&model, &[&tensor0(flag), &data, &row, &left, &right]).unwrap();
        assert_eq!(found, tensor1(&[0_f32, expected]));
    }
}

#[test]
fn tract_rewrites_blocks_and_single_slices() {
    // The indices are a block of rows in order, so the scatter is a concatenation.
    let rows = Tensor::from_shape(&[2, 1], &[1_i64, 2]).unwrap();
    let block = Tensor::from_shape(&[2, 2, 2], &[1_i64, 0, 1, 1, 2, 0, 2, 1]).unwrap();
    let data = Tensor::zero::<f32>(&[4, 2]).unwrap();
    let updates = tensor2(&[[1_f32, 2.], [3., 4.]]);
    for (indices, is_rewritten) in [(&rows, false), (&block, true)] {
        let case = Case {
            op: "ScatterND",
            attributes: vec![],
            inputs: vec![like(&data), constant(indices), like(&updates)],
        };
        let model = case.typed(true).unwrap().into_decluttered().unwrap();
        let stays = ops(&model)
            .iter()
            .any(|name| name.starts_with("ndscatter."));
        assert_eq!(stays, !is_rewritten, "{:?}", ops(&model));
        let found = run(&model.into_runnable().unwrap(), &[&data, &updates]).unwrap();
        assert_eq!(found, tensor2(&[[0_f32, 0.], [1., 2.], [3., 4.], [0., 0.]]));
    }
    // tract's rewrite of GatherND takes indices from 0 on, and ignores batch dims.
    let data = tensor2(&[[1_f32, 2.]]);
    let cases = [(0, [[0_i64, 1]], true), (0, [[0, -1]], false)];
    for (batch_dims, indices, is_rewritten) in cases {
        let case = Case {
            op: "GatherND",
            attributes: vec![integer("batch_dims", batch_dims)],
            inputs: vec![like(&data), constant(&tensor2(&indices))],
        };
        let model = case.typed(true).unwrap().into_decluttered().unwrap();
        let stays = ops(&model)
            .iter()
            .any(|name| name.starts_with("ndscatter."));
        assert_eq!(stays, !is_rewritten, "{:?}", ops(&model));
        let found = run(&model.into_runnable().unwrap(), &[&data]).unwrap();
        assert_eq!(found, tensor1(&[2_f32]));
    }
    let case = Case {
        op: "GatherND",
        attributes: vec![integer("batch_dims", 1)],
        inputs: vec![like(&data), constant(&tensor2(&[[1_i64]]))],
    };
    assert_eq!(
        run(&case.load(true).unwrap(), &[&data]).unwrap(),
        tensor1(&[2_f32])
    );
}

#[test]
fn a_shared_tensor_does_not_change_and_an_unshared_one_is_reused() {
    let rows = tensor2(&[[1_i64]]);
    let (data, updates) = (tensor2(&[[1_f32, 2.], [3., 4.]]), tensor2(&[[5_f32, 6.]]));
    let mut model = model_of(added(), &[&data, &rows, &updates]);
    ndscatter_tract::rewrite(&mut model).unwrap();
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    let call = |data: TValue| {
        let inputs = tvec!(
            data,
            rows.clone().into_tvalue(),
            updates.clone().into_tvalue()
        );
        model.run(inputs).unwrap().remove(0)
    };
    let kept = data.clone().into_tvalue();
    let found = call(kept.clone());
    assert!(same(&kept, &data), "the shared tensor changed");
    assert_eq!(*found, tensor2(&[[1_f32, 2.], [8., 10.]]));
    assert_ne!(found.as_bytes().as_ptr(), kept.as_bytes().as_ptr());
    let address = kept.as_bytes().as_ptr();
    let found = call(kept);
    assert_eq!(
        found.as_bytes().as_ptr(),
        address,
        "the unshared tensor is not reused"
    );
}

#[test]
fn a_tensor_that_the_model_reads_again_does_not_change() {
    let (data, rows, updates) = (
        tensor1(&[1_f32, 2.]),
        tensor2(&[[0_i64]]),
        tensor1(&[5_f32]),
    );
    let mut model = TypedModel::default();
    let sources = [&data, &rows, &updates].map(|tensor| {
        let name = format!("input_{}", model.nodes().len());
        model
            .add_source(name, tensor.datum_type().fact(tensor.shape()))
            .unwrap()
    });
    let sums = model.wire_node("sums", added(), &sources).unwrap();
    let both = tract_core::ops::math::mul();
    let products = model
        .wire_node("products", both, &[sums[0], sources[0]])
        .unwrap();
    model.select_output_outlets(&products).unwrap();
    ndscatter_tract::rewrite(&mut model).unwrap();
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    assert_eq!(
        run(&model, &[&data, &rows, &updates]).unwrap(),
        tensor1(&[6_f32, 4.])
    );
}

#[test]
fn dimensions_and_strings_stay_with_tract() {
    let rows = tensor2(&[[1_i64]]);
    let dims = tensor1(&[TDim::from(1), 2.into()]);
    let names = tensor1(&["a".to_string(), "b".to_string()]);
    for (data, updates) in [
        (&dims, tensor1(&[TDim::from(7)])),
        (&names, tensor1(&["z".to_string()])),
    ] {
        let op = ScatterNd::new(ScatterReduction::None);
        let mut model = model_of(op, &[data, &rows, &updates]);
        assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 0);
        run(&model.into_runnable().unwrap(), &[data, &rows, &updates]).unwrap();
    }
}

#[test]
fn quantised_elements_are_moved_and_not_reduced() {
    let datum_type = DatumType::QU8(QParams::ZpScale {
        zero_point: 3,
        scale: 0.5,
    });
    let quantised = |values: &[u8]| {
        let reals = tensor1(
            &values
                .iter()
                .map(|&value| f32::from(value))
                .collect::<Vec<_>>(),
        );
        reals.cast_to_dt(datum_type).unwrap().into_owned()
    };
    let (data, updates) = (quantised(&[1, 2, 3]), quantised(&[9, 8]));
    let rows = tensor2(&[[-1_i64], [0]]);
    let mut model = model_of(
        ScatterNd::new(ScatterReduction::None),
        &[&data, &rows, &updates],
    );
    assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 1);
    let model = model.into_runnable().unwrap();
    let found = run(&model, &[&data, &rows, &updates]).unwrap();
    assert!(same(&found, &quantised(&[8, 2, 9])), "{found:?}");
    let mut model = model_of(added(), &[&data, &rows, &updates]);
    assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 0);
}

/// Runs a node with indices that are an input, and with constant indices. Returns the text of the first error.
fn error(
    op: &'static str,
    attributes: Vec<tract_onnx::pb::AttributeProto>,
    inputs: &[&Tensor],
) -> String {
    let mut texts = vec![];
    for is_constant in [false, true] {
        let place = if op == "TensorScatter" { 2 } else { 1 };
        let is_constant = |at| is_constant && at == place;
        let case = Case {
            op,
            attributes: attributes.clone(),
            inputs: (inputs.iter().enumerate())
                .map(|(at, tensor)| {
                    if is_constant(at) {
                        constant(tensor)
                    } else {
                        like(tensor)
                    }
                })
                .collect(),
        };
        let given: Vec<&Tensor> = (inputs.iter().enumerate())
            .filter_map(|(at, tensor)| (!is_constant(at)).then_some(*tensor))
            .collect();
        let found = case.load(true).and_then(|model| run(&model, &given));
        texts.push(format!("{:?}", found.expect_err("an error")));
    }
    texts.remove(0)
}

#[test]
fn tuples_without_coordinates_address_data_of_rank_0() {
    let data = tensor0(1_f32);
    for (tuples, reduction, expected) in [(1, "none", 5_f32), (2, "none", 6.), (2, "add", 12.)] {
        let indices = Tensor::zero::<i64>(&[tuples, 0]).unwrap();
        let updates = tensor1(&[5_f32, 6.]).slice(0, 0, tuples).unwrap();
        for is_constant in [false, true] {
            let case = Case {
                op: "ScatterND",
                attributes: vec![text("reduction", reduction)],
                inputs: vec![
                    like(&data),
                    if is_constant {
                        constant(&indices)
                    } else {
                        like(&indices)
                    },
                    like(&updates),
                ],
            };
            let given: &[&Tensor] = if is_constant {
                &[&data, &updates]
            } else {
                &[&data, &indices, &updates]
            };
            let found = run(&case.load(true).unwrap(), given).unwrap();
            assert!(same(&found, &tensor0(expected)), "{found:?}");
        }
    }
}

/// New results of at least 4 MiB ask for huge pages.
#[test]
fn shared_data_may_have_any_size() {
    for len in [1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1] {
        let data = Tensor::zero::<f32>(&[len]).unwrap();
        let last = tensor2(&[[-1_i64]]);
        let update = tensor1(&[9_f32]);
        let mut model = model_of(added(), &[&data, &last, &update]);
        assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 1);
        let given: TVec<TValue> = [&data, &last, &update]
            .map(|tensor| tensor.clone().into_tvalue())
            .into_iter()
            .collect();
        let kept = given.clone();
        let found = model.into_runnable().unwrap().run(given).unwrap();
        assert!(same(&kept[0], &data), "data of {len} elements changed");
        let mut expected = vec![0_f32; len];
        expected[len - 1] = 9.;
        assert!(same(&found[0], &tensor1(&expected)), "{len} elements");
    }
}

#[test]
fn constant_indices_may_have_symbols() {
    let data = tensor2(&[[1_f32, 2.], [3., 4.], [5., 6.]]);
    for rows in [1, 2] {
        let mut model = TypedModel::default();
        let n = model.symbols.sym("N");
        let source = model
            .add_source("data", f32::fact([n.to_dim(), 2.to_dim()]))
            .unwrap();
        let tuples = [n.to_dim() - 1, 0.to_dim()];
        let tuples = tensor1(&tuples[..rows]).into_shape(&[rows, 1]).unwrap();
        let tuples = model.add_const("tuples", tuples).unwrap();
        let outlet = model
            .wire_node("node", GatherNd::new(0), &[source, tuples])
            .unwrap();
        model.select_output_outlets(&outlet).unwrap();
        assert_eq!(ndscatter_tract::rewrite(&mut model).unwrap(), 1);
        let values = [(n, 3.to_dim())].into_iter().collect();
        let model = model
            .into_decluttered()
            .unwrap()
            .set_symbols(&values)
            .unwrap();
        let model = model.into_optimized().unwrap().into_runnable().unwrap();
        let expected = tensor2(&[[5_f32, 6.], [1., 2.]]).slice(0, 0, rows).unwrap();
        let found = run(&model, &[&data]).unwrap();
        assert!(same(&found, &expected), "{found:?}");
    }
}

#[test]
fn a_constant_index_may_be_the_largest_of_its_type() {
    for index in [i64::from(i32::MAX) - 1, i64::from(i32::MAX), 1 << 40] {
        let case = Case {
            op: "GatherND",
            attributes: vec![],
            inputs: vec![Input::Runtime(1, vec!["n"]), constant(&tensor2(&[[index]]))],
        };
        let model = case.load(true);
        let found = model.and_then(|model| run(&model, &[&tensor1(&[1_f32, 2.])]));
        assert!(found.is_err(), "{found:?}");
    }
}

#[test]
fn wrong_attributes_and_ranks_of_tensor_scatter_are_errors_at_load() {
    let data = tensor2(&[[1_f32, 2.], [3., 4.]]);
    let (starts, matrix) = (tensor1(&[0_i64, 0]), tensor2(&[[0_i64]]));
    for (axis, starts) in [(0, &starts), (-2, &starts), (1, &matrix), (2, &starts)] {
        let case = Case {
            op: "TensorScatter",
            attributes: vec![integer("axis", axis)],
            inputs: vec![like(&data), like(&data), like(starts)],
        };
        assert!(case.load(true).is_err(), "axis {axis}");
    }
}

#[test]
fn indices_out_of_bounds_are_errors() {
    let data = tensor2(&[[1_f32, 2.], [3., 4.]]);
    for index in [2_i64, -3, i64::MIN, i64::MAX] {
        let wanted = format!("index {index} ");
        let rows = tensor2(&[[index]]);
        let update = tensor2(&[[5_f32, 6.]]);
        for reduction in ["none", "add"] {
            let found = error(
                "ScatterND",
                vec![text("reduction", reduction)],
                &[&data, &rows, &update],
            );
            assert!(found.contains(&wanted), "{found}");
        }
        let one = tensor2(&[[5_f32]]);
        let found = error("ScatterElements", vec![], &[&data, &rows, &one]);
        assert!(found.contains(&wanted), "{found}");
        let found = error("GatherND", vec![], &[&data, &rows]);
        assert!(found.contains(&wanted), "{found}");
        let found = error("GatherElements", vec![], &[&data, &rows]);
        assert!(found.contains(&wanted), "{found}");
        let cache = [&data, &update.clone().into_shape(&[1, 2]).unwrap()];
        let starts = tensor1(&[index, index]);
        error(
            "TensorScatter",
            vec![integer("axis", 1)],
            &[cache[0], &data, &starts],
        );
    }
}

#[test]
fn wrong_shapes_and_attributes_are_errors() {
    let data = tensor2(&[[1_f32, 2.], [3., 4.]]);
    let (row, scalar) = (tensor2(&[[0_i64]]), tensor0(0_i64));
    let long = tensor2(&[[0_i64, 0, 0]]);
    let axis = |axis| vec![integer("axis", axis)];
    error("ScatterND", vec![], &[&data, &scalar, &data]);
    error("ScatterND", vec![], &[&data, &long, &data]);
    error(
        "ScatterND",
        vec![],
        &[&data, &row, &tensor2(&[[1_f32, 2., 3.]])],
    );
    error(
        "ScatterND",
        vec![text("reduction", "mean")],
        &[&data, &row, &tensor2(&[[1_f32, 2.]])],
    );
    error(
        "ScatterElements",
        axis(2),
        &[&data, &row, &tensor2(&[[1_f32]])],
    );
    error(
        "ScatterElements",
        axis(-3),
        &[&data, &row, &tensor2(&[[1_f32]])],
    );
    error(
        "ScatterElements",
        axis(i64::MIN),
        &[&data, &row, &tensor2(&[[1_f32]])],
    );
    error(
        "ScatterElements",
        vec![],
        &[&data, &row, &tensor2(&[[1_f32, 2.]])],
    );
    error(
        "ScatterElements",
        vec![],
        &[&data, &long, &tensor2(&[[1_f32, 2., 3.]])],
    );
    error(
        "ScatterElements",
        vec![],
        &[&tensor0(1_f32), &scalar, &tensor0(1_f32)],
    );
    error("GatherND", vec![], &[&data, &scalar]);
    error("GatherND", vec![], &[&data, &long]);
    error("GatherND", vec![integer("batch_dims", 2)], &[&data, &row]);
    error("GatherND", vec![integer("batch_dims", 1)], &[&data, &row]);
    error("GatherND", vec![integer("batch_dims", -1)], &[&data, &row]);
    error("GatherElements", axis(7), &[&data, &row]);
    error("GatherElements", vec![], &[&data, &scalar]);
    error(
        "TensorScatter",
        axis(0),
        &[&data, &data, &tensor1(&[0_i64, 0])],
    );
    error(
        "TensorScatter",
        axis(1),
        &[&data, &data, &tensor1(&[0_i64])],
    );
    error(
        "TensorScatter",
        vec![text("mode", "none")],
        &[&data, &data, &tensor1(&[0_i64, 0])],
    );
}

#[test]
fn empty_tensors_and_rank_0_are_accepted() {
    let empty_row = Tensor::zero::<f32>(&[0, 2]).unwrap();
    let none = Tensor::zero::<i64>(&[0, 1]).unwrap();
    let data = tensor2(&[[1_f32, 2.]]);
    for (data, indices, updates) in [
        (&data, &none, &empty_row),
        (&empty_row, &none, &empty_row),
        // A tuple without coordinates addresses the whole tensor.
        (
            &tensor0(1_f32),
            &Tensor::zero::<i64>(&[0]).unwrap(),
            &tensor0(1_f32),
        ),
    ] {
        for is_constant in [false, true] {
            let indices_input = if is_constant {
                constant(indices)
            } else {
                like(indices)
            };
            let case = Case {
                op: "ScatterND",
                attributes: vec![],
                inputs: vec![like(data), indices_input, like(updates)],
            };
            let model = case.load(true).unwrap();
            let inputs = [data, indices, updates];
            let given: Vec<&Tensor> = if is_constant {
                vec![data, updates]
            } else {
                inputs.to_vec()
            };
            assert!(same(&run(&model, &given).unwrap(), data), "{data:?}");
        }
    }
    let case = Case {
        op: "GatherND",
        attributes: vec![],
        inputs: vec![
            Input::Runtime(number(DatumType::F32), vec!["0", "2"]),
            like(&none),
        ],
    };
    assert!(same(
        &run(&case.load(true).unwrap(), &[&empty_row, &none]).unwrap(),
        &empty_row
    ));
}

#[test]
fn nan_propagates_in_minima_and_maxima() {
    let data = tensor1(&[1_f32, f32::NAN]);
    let rows = tensor2(&[[0_i64], [1]]);
    let updates = tensor1(&[f32::NAN, 1.]);
    for reduction in [ScatterReduction::Min, ScatterReduction::Max] {
        let mut model = model_of(ScatterNd::new(reduction), &[&data, &rows, &updates]);
        ndscatter_tract::rewrite(&mut model).unwrap();
        let found = run(&model.into_runnable().unwrap(), &[&data, &rows, &updates]).unwrap();
        let found = found.try_as_plain_ram().unwrap();
        assert!(
            found
                .as_slice::<f32>()
                .unwrap()
                .iter()
                .all(|value| value.is_nan())
        );
    }
}
