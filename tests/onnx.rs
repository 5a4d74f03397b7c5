//! ONNX's own conformance cases for ScatterND, stored under `tests/data/onnx`
//! as the tensors and attributes that ONNX's generator made.

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::Tensor;
use common::elements::{Ref, compare};
use common::harness::{Operator, Options, Problem, Round, Verb};
use common::layouts::{Arrangement, Strided};
use ndscatter::{Execution, Reduction};

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx");
    let entries = fs::read_dir(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths.filter(|path| path.is_dir()).collect()
}

/// The lines `key = value` of a `case.txt`.
fn read_case(folder: &Path) -> HashMap<String, String> {
    let text = fs::read_to_string(folder.join("case.txt")).expect("every case has a case.txt");
    let pairs = text
        .lines()
        .map(|line| line.split_once(" = ").expect("key = value"));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn read_npy<T: npyz::Deserialize>(folder: &Path, name: &str) -> Tensor<T> {
    let path = folder.join(name).with_extension("npy");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let npy = npyz::NpyFile::new(&bytes[..]).expect("a .npy file");
    assert_eq!(npy.order(), npyz::Order::C, "{}: row-major", path.display());
    let sizes = npy
        .shape()
        .iter()
        .map(|&size| usize::try_from(size).expect("it fits"));
    let shape: Vec<_> = sizes.collect();
    Tensor::new(&shape, npy.into_vec().expect("values of the stated type"))
}

/// All verbs must give ONNX's output, and so must our own reference.
fn check<T: Ref + npyz::Deserialize>(folder: &Path, reduction: Reduction) {
    let data = read_npy::<T>(folder, "data");
    let updates = read_npy::<T>(folder, "updates");
    let expected = read_npy::<T>(folder, "output");
    let place = |tensor| Strided::new(tensor, Arrangement::Contiguous, 0, T::sentinel());
    let indices = read_npy::<i64>(folder, "indices");
    let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);

    let operator = Operator::Nd;
    let problem = Problem {
        operator,
        reduction,
        indices: &indices,
        rounds: vec![Round {
            data: place(&data),
            updates: place(&updates),
        }],
        output: Arrangement::Contiguous,
        margin: 0,
    };
    let logical = problem.indices.logical();
    let reference = operator.expected(reduction, &data, &logical, &updates);
    compare(&reference.values, &expected.values, true)
        .unwrap_or_else(|difference| panic!("{}: reference: {difference}", folder.display()));
    let options = Options::new(operator, Execution::new(reduction));
    for verb in Verb::ALL {
        problem
            .check(verb, &options)
            .unwrap_or_else(|difference| panic!("{}: {difference}", folder.display()));
    }
}

#[test]
fn every_case_gives_the_stored_output() {
    let folders = folders();
    assert!(!folders.is_empty(), "no case was found");
    for folder in folders {
        let case = read_case(&folder);
        assert_eq!(case["op"], "ScatterND", "{}", folder.display());
        let reduction = case["reduction"].parse().expect("a reduction");
        let element = case["input.data"]
            .split(' ')
            .next()
            .expect("dtype and shape");
        match element {
            "float32" => check::<f32>(&folder, reduction),
            "float64" => check::<f64>(&folder, reduction),
            "int32" => check::<i32>(&folder, reduction),
            "int64" => check::<i64>(&folder, reduction),
            other => panic!("{}: add {other} to this match", folder.display()),
        }
    }
}
