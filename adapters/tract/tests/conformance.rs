//! The conformance cases of ONNX for scatters and gathers, through tract with and without the
//! adapter. `tests/data/make.py` has written the cases.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use common::{Case, constant, integer, like, onnx, same, text};
use prost::Message;
use tract_onnx::pb::{GraphProto, ModelProto};
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

/// The cases that tract 0.23.9 does not pass without the adapter.
const WITHOUT_ADAPTER: [&str; 3] = [
    "test_tensorscatter",
    "test_tensorscatter_3d",
    "test_tensorscatter_circular",
];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"))
}

/// The names of the cases, in order.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder())
        .expect("a folder")
        .map(|file| file.expect("a file"));
    let mut names: Vec<String> = files
        .filter_map(|file| {
            file.file_name()
                .to_str()?
                .strip_suffix(".onnx")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// Runs a case twice. `is_constant` makes the indices constant.
fn run(name: &str, with_adapter: bool, is_constant: bool) -> TractResult<()> {
    let read = |extension| std::fs::read(folder().join(format!("{name}.{extension}")));
    let mut model = ModelProto::decode(&*read("onnx")?)?;
    let tensors = GraphProto::decode(&*read("pb")?)?.initializer;
    let (inputs, outputs) = tensors.split_at(tensors.len() - 1);
    let onnx = onnx(with_adapter);
    let load = |tensor| tract_onnx::tensor::load_tensor(&*onnx.provider, tensor, None);
    let mut inputs = inputs
        .iter()
        .map(load)
        .collect::<TractResult<Vec<Tensor>>>()?;
    if is_constant {
        let graph = model.graph.as_mut().context("a graph")?;
        let place = if graph.node[0].op_type == "TensorScatter" {
            2
        } else {
            1
        };
        let name = graph.input.remove(place).name;
        inputs.remove(place);
        let mut initializer = tensors[place].clone();
        initializer.name = name;
        graph.initializer.push(initializer);
    }
    let model = onnx
        .model_for_proto_model(&model)?
        .into_optimized()?
        .into_runnable()?;
    for _ in 0..2 {
        let inputs = inputs
            .iter()
            .map(|input| input.clone().into_tvalue())
            .collect();
        let found = model.run(inputs)?;
        let expected = load(&outputs[0])?;
        ensure!(
            same(&found[0], &expected),
            "{:?} is not {expected:?}",
            found[0]
        );
    }
    Ok(())
}

#[test]
fn all_cases_pass_with_the_adapter() {
    assert_eq!(names().len(), 25, "cases");
    for name in names() {
        for is_constant in [false, true] {
            run(&name, true, is_constant).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        }
    }
}

#[test]
fn the_documented_cases_fail_without_the_adapter() {
    let fails = |name: &str| {
        [false, true].into_iter().any(|is_constant| {
            let run = catch_unwind(|| run(name, false, is_constant).is_err());
            run.unwrap_or(true)
        })
    };
    let failed: Vec<String> = names().into_iter().filter(|name| fails(name)).collect();
    assert_eq!(failed, WITHOUT_ADAPTER);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tract.md");
    let page = std::fs::read_to_string(page).expect("a page");
    for name in failed {
        assert!(page.contains(&name), "docs/tract.md lists {name}");
    }
}

/// What a node of one ONNX operator gives.
#[derive(Debug, PartialEq)]
enum Outcome {
    Right,
    Wrong,
    Error,
    Panic,
}

/// Runs a node whose indices are constant or not, and compares its result.
fn outcome(case: &Case, inputs: &[&Tensor], expected: &Tensor, with_adapter: bool) -> Outcome {
    let run = || -> TractResult<Tensor> {
        let inputs = inputs
            .iter()
            .map(|&input| input.clone().into_tvalue())
            .collect();
        Ok(case
            .load(with_adapter)?
            .run(inputs)?
            .remove(0)
            .into_tensor())
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(found)) if same(&found, expected) => Outcome::Right,
        Ok(Ok(_)) => Outcome::Wrong,
        Ok(Err(_)) => Outcome::Error,
        Err(_) => Outcome::Panic,
    }
}

/// Inputs that ONNX allows and that its cases do not have. The page lists what tract does.
#[test]
fn tract_fails_for_inputs_outside_the_cases() {
    let data = tensor2(&[[1_f32, 2.], [3., 4.]]);
    let update = tensor2(&[[5_f32, 6.]]);
    let last = tensor2(&[[-1_i64]]);
    let check = |op,
                 attributes: Vec<_>,
                 constant_indices: &[&Tensor],
                 given: &[&Tensor],
                 expected: &Tensor,
                 tract| {
        let inputs = given.iter().map(|tensor| like(tensor));
        let mut inputs: Vec<_> = inputs.collect();
        for indices in constant_indices {
            inputs.insert(1, constant(indices));
        }
        let case = Case {
            op,
            attributes,
            inputs,
        };
        assert_eq!(
            outcome(&case, given, expected, true),
            Outcome::Right,
            "{op}"
        );
        assert_eq!(outcome(&case, given, expected, false), tract, "{op}");
    };
    let set = tensor2(&[[1_f32, 2.], [5., 6.]]);
    let sums = tensor2(&[[1_f32, 2.], [8., 10.]]);
    let row = tensor2(&[[3_f32, 4.]]);
    check(
        "ScatterND",
        vec![],
        &[],
        &[&data, &last, &update],
        &set,
        Outcome::Error,
    );
    let add = || vec![text("reduction", "add")];
    check(
        "ScatterND",
        add(),
        &[],
        &[&data, &last, &update],
        &sums,
        Outcome::Panic,
    );
    check(
        "GatherND",
        vec![],
        &[],
        &[&data, &last],
        &row,
        Outcome::Panic,
    );
    // tract rewrites constant tuples, and ignores batch dims.
    check("GatherND", vec![], &[&last], &[&data], &row, Outcome::Error);
    let (one, second) = (tensor2(&[[1_f32, 2.]]), tensor2(&[[1_i64]]));
    let batch = vec![integer("batch_dims", 1)];
    check(
        "GatherND",
        batch,
        &[&second],
        &[&one],
        &tensor1(&[2_f32]),
        Outcome::Error,
    );
    let flags = tensor1(&[true, false]);
    let (rows, updates) = (tensor2(&[[1_i64]]), tensor1(&[true]));
    check(
        "ScatterND",
        add(),
        &[],
        &[&flags, &rows, &updates],
        &tensor1(&[true, true]),
        Outcome::Error,
    );
}
