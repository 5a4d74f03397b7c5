//! ONNX's conformance cases. `tests/data/onnx` contains the tensors and attributes that ONNX's
//! generators made. Every method of the crate must return the stored output bit for bit, and so
//! must the reference.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use crate::common::elements::Ref;
use crate::common::gather_harness::Gatherer;
use crate::common::harness;
use crate::common::indices::{IndexRule, resolve_axis};
use crate::common::request::Request;
use crate::common::{Tensor, repository};
use ndscatter::{
    AnyView, AnyViewMut, Gather, Reduction, Scatter, ScatterError, TensorView, TensorViewMut,
    scatter_elements, scatter_nd, tensor_scatter,
};

/// Number of cases of each operator in ONNX 1.23.2. None is left out.
const CASES: [(&str, usize); 7] = [
    ("Gather", 4),
    ("GatherElements", 3),
    ("GatherND", 3),
    ("Scatter", 2),
    ("ScatterElements", 7),
    ("ScatterND", 7),
    ("TensorScatter", 3),
];

/// An element type of the stored cases.
trait Value: Ref + bytemuck::Pod + npyz::Deserialize {}

impl<T: Ref + bytemuck::Pod + npyz::Deserialize> Value for T {}

/// A folder with its `case.txt`.
struct Case {
    folder: PathBuf,
    lines: BTreeMap<String, String>,
}

impl Case {
    fn all() -> Vec<Self> {
        let root = repository().join("tests/data/onnx");
        let entries =
            fs::read_dir(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        paths.filter(|path| path.is_dir()).map(Self::read).collect()
    }

    fn read(folder: PathBuf) -> Self {
        let text = fs::read_to_string(folder.join("case.txt")).expect("every case has a case.txt");
        let pairs = text
            .lines()
            .map(|line| line.split_once(" = ").expect("key = value"));
        let lines = pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Self { folder, lines }
    }

    fn get(&self, key: &str) -> &str {
        let line = self.lines.get(key);
        line.unwrap_or_else(|| panic!("{} has no {key}", self.folder.display()))
    }

    fn attribute<V: FromStr<Err: Debug>>(&self, key: &str) -> V {
        let value = self.get(key).parse();
        value.unwrap_or_else(|error| panic!("{}: {key}: {error:?}", self.folder.display()))
    }

    /// Returns the reduction. An operator without that attribute has none.
    fn reduction(&self) -> Reduction {
        if self.lines.contains_key("reduction") {
            self.attribute("reduction")
        } else {
            Reduction::None
        }
    }

    /// Reads the tensor that `case.txt` lists as `role.name`.
    fn tensor<T: npyz::Deserialize>(&self, role: &str, name: &str) -> Tensor<T> {
        let path = self.folder.join(name).with_extension("npy");
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let npy = npyz::NpyFile::new(&bytes[..]).expect("a .npy file");
        assert_eq!(npy.order(), npyz::Order::C, "{}: row-major", path.display());
        let sizes = npy
            .shape()
            .iter()
            .map(|&size| usize::try_from(size).expect("the size fits usize"));
        let shape: Vec<_> = sizes.collect();
        let stated = self.get(&format!("{role}.{name}"));
        let shape_matches = stated.ends_with(&format!(" {shape:?}"));
        assert!(shape_matches, "{}: {shape:?}, {stated}", path.display());
        Tensor::new(&shape, npy.into_vec().expect("values of the stated type"))
    }

    fn input<T: npyz::Deserialize>(&self, name: &str) -> Tensor<T> {
        self.tensor("input", name)
    }

    fn compare<T: Value>(&self, method: &str, got: Result<Vec<T>, ScatterError>, expected: &[T]) {
        let case = self.folder.display();
        let got = got.unwrap_or_else(|error| panic!("{case}, {method}: the call failed: {error}"));
        let same = bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(expected);
        assert!(same, "{case}, {method}: {got:?} instead of {expected:?}");
    }
}

fn view<T>(tensor: &Tensor<T>) -> TensorView<'_, T> {
    TensorView::contiguous(&tensor.values, &tensor.shape).expect("the values fit the shape")
}

/// Returns the values of a copy of `start` after `write`.
fn written<T: Clone>(
    start: &Tensor<T>,
    write: impl FnOnce(TensorViewMut<'_, T>) -> Result<(), ScatterError>,
) -> Result<Vec<T>, ScatterError> {
    let mut values = start.values.clone();
    write(TensorViewMut::contiguous(&mut values, &start.shape)?)?;
    Ok(values)
}

fn logical(indices: &Tensor<i64>) -> Tensor<i128> {
    let values = indices.values.iter().copied().map(i128::from);
    Tensor::new(&indices.shape, values.collect())
}

/// Returns a tensor that differs from `tensor` in every bit.
fn inverted<T: Value>(tensor: &Tensor<T>) -> Tensor<T> {
    let mut tensor = tensor.clone();
    for byte in bytemuck::cast_slice_mut::<T, u8>(&mut tensor.values) {
        *byte = !*byte;
    }
    tensor
}

/// The tensors of a scatter, named as in ScatterND.
struct ScatterTensors<T> {
    data: Tensor<T>,
    indices: Tensor<i64>,
    updates: Tensor<T>,
    output: Tensor<T>,
}

impl<T: Value> ScatterTensors<T> {
    fn read(case: &Case) -> Self {
        Self {
            data: case.input("data"),
            indices: case.input("indices"),
            updates: case.input("updates"),
            output: case.tensor("output", "output"),
        }
    }

    /// Reads the tensors of a cache write. Without `write_indices`, every sequence is written at 0.
    fn read_cache(case: &Case) -> Self {
        let stated = case.lines.contains_key("input.write_indices");
        Self {
            data: case.input("past_cache"),
            indices: if stated {
                case.input("write_indices")
            } else {
                Tensor::new(&[], vec![0])
            },
            updates: case.input("update"),
            output: case.tensor("output", "present_cache"),
        }
    }

    /// Checks that all methods return ONNX's output. One plan serves all planned runs.
    fn check(&self, case: &Case, scatter: &Scatter<'_>) {
        let (data, indices) = (view(&self.data), view(&self.indices));
        let updates = view(&self.updates);
        let (start, blank) = (&self.data, &inverted(&self.output));
        let execution = Request::new(case.reduction());
        let scatter = execution.of(scatter.clone());
        let plan = scatter.plan(data.layout(), indices).expect("a plan");
        let any_plan = scatter.plan(data.layout(), AnyView::from(indices));
        let any_plan = any_plan.expect("a plan");

        for (method, got) in [
            (
                "allocate",
                scatter
                    .allocate(data, indices, updates)
                    .map(ndscatter::Tensor::into_vec),
            ),
            (
                "write_into",
                written(blank, |o| scatter.write_into(data, indices, updates, o)),
            ),
            (
                "in_place",
                written(start, |o| scatter.in_place(o, indices, updates)),
            ),
            (
                "write_into",
                written(blank, |o| {
                    let (data, indices) = (data.into(), AnyView::from(indices));
                    scatter.write_into(data, indices, updates.into(), AnyViewMut::from(o))
                }),
            ),
            (
                "in_place",
                written(start, |o| {
                    scatter.in_place(AnyViewMut::from(o), AnyView::from(indices), updates.into())
                }),
            ),
            (
                "planned allocate",
                execution
                    .run(&plan)
                    .allocate(data, updates)
                    .map(ndscatter::Tensor::into_vec),
            ),
            (
                "planned write_into",
                written(blank, |o| execution.run(&plan).write_into(data, updates, o)),
            ),
            (
                "planned in_place",
                written(start, |o| execution.run(&plan).in_place(o, updates)),
            ),
            (
                "planned write_into",
                written(blank, |o| {
                    execution.run(&plan).write_into(
                        data.into(),
                        updates.into(),
                        AnyViewMut::from(o),
                    )
                }),
            ),
            (
                "planned in_place",
                written(start, |o| {
                    execution
                        .run(&plan)
                        .in_place(AnyViewMut::from(o), updates.into())
                }),
            ),
            (
                "any_plan",
                execution
                    .run(&any_plan)
                    .allocate(data, updates)
                    .map(ndscatter::Tensor::into_vec),
            ),
        ] {
            case.compare(method, got, &self.output.values);
        }
    }

    /// Checks the free function of the operator.
    fn check_function(
        &self,
        case: &Case,
        function: impl FnOnce(TensorViewMut<'_, T>) -> Result<(), ScatterError>,
    ) {
        let got = written(&self.data, function);
        case.compare("the function", got, &self.output.values);
    }

    /// Checks the reference of the other tests.
    fn check_reference(&self, case: &Case, reference: harness::Operator) {
        let indices = logical(&self.indices);
        let got = reference.expected(case.reduction(), &self.data, &indices, &self.updates);
        case.compare("reference", Ok(got.values), &self.output.values);
    }
}

/// Checks that all methods and the reference return ONNX's output.
fn check_gather<T: Value>(case: &Case, gather: &Gather<'_>, reference: Gatherer) {
    let data = case.input::<T>("data");
    let indices = case.input::<i64>("indices");
    let output = case.tensor::<T>("output", "output");
    let expected = reference.expected(IndexRule::DEFAULT, &data, &logical(&indices));
    assert_eq!(expected.shape, output.shape, "{}", case.folder.display());
    case.compare("reference", Ok(expected.values), &output.values);

    let (data, indices, blank) = (view(&data), view(&indices), &inverted(&output));
    let shape = gather.output_shape(data.shape(), indices.shape());
    assert_eq!(shape, Ok(output.shape), "{}", case.folder.display());

    let plan = gather.plan(data.layout(), indices).expect("a plan");
    let any_plan = gather.plan(data.layout(), AnyView::from(indices));
    let any_plan = any_plan.expect("a plan");
    let planned = plan.output_shape();
    assert_eq!(planned, blank.shape, "{}", case.folder.display());

    for (method, got) in [
        (
            "allocate",
            gather
                .allocate(data, indices)
                .map(ndscatter::Tensor::into_vec),
        ),
        (
            "write_into",
            written(blank, |o| gather.write_into(data, indices, o)),
        ),
        (
            "write_into",
            written(blank, |o| {
                gather.write_into(data.into(), AnyView::from(indices), AnyViewMut::from(o))
            }),
        ),
        (
            "planned allocate",
            plan.run().allocate(data).map(ndscatter::Tensor::into_vec),
        ),
        (
            "planned write_into",
            written(blank, |o| plan.run().write_into(data, o)),
        ),
        (
            "planned write_into",
            written(blank, |o| {
                plan.run().write_into(data.into(), AnyViewMut::from(o))
            }),
        ),
        (
            "any_plan",
            any_plan
                .run()
                .allocate(data)
                .map(ndscatter::Tensor::into_vec),
        ),
    ] {
        case.compare(method, got, &output.values);
    }
}

fn check<T: Value>(case: &Case) {
    let axis = || case.attribute("axis");
    match case.get("op") {
        "ScatterND" => {
            let tensors = ScatterTensors::<T>::read(case);
            tensors.check(case, &Scatter::nd());
            tensors.check_function(case, |data| {
                let (indices, updates) = (view(&tensors.indices), view(&tensors.updates));
                scatter_nd(data, indices, updates, case.reduction())
            });
            tensors.check_reference(case, harness::Operator::Nd);
        }
        // Scatter is the old name of ScatterElements, before it had reductions.
        "ScatterElements" | "Scatter" => {
            let tensors = ScatterTensors::<T>::read(case);
            tensors.check(case, &Scatter::elements(axis()));
            tensors.check_function(case, |data| {
                let (indices, updates) = (view(&tensors.indices), view(&tensors.updates));
                scatter_elements(data, indices, updates, axis(), case.reduction())
            });
            tensors.check_reference(case, harness::Operator::Elements { axis: axis() });
        }
        "TensorScatter" => {
            let tensors = ScatterTensors::<T>::read_cache(case);
            let (axis, mode) = (axis(), case.attribute("mode"));
            let shape = &tensors.updates.shape;
            let len = shape[resolve_axis(axis, shape.len())];
            tensors.check(case, &Scatter::cache(axis, mode).update_len(len));
            tensors.check_function(case, |data| {
                let stated = case.lines.contains_key("input.write_indices");
                let indices = stated.then(|| view(&tensors.indices));
                tensor_scatter(data, indices, view(&tensors.updates), axis, mode)
            });
            tensors.check_reference(case, harness::Operator::Cache { axis, mode, len });
        }
        "GatherND" => {
            let batch_dims = case.attribute("batch_dims");
            let reference = Gatherer::Nd { batch_dims };
            check_gather::<T>(case, &Gather::nd(batch_dims), reference);
        }
        "Gather" => {
            let reference = Gatherer::Along { axis: axis() };
            check_gather::<T>(case, &Gather::along(axis()), reference);
        }
        "GatherElements" => {
            let reference = Gatherer::Elements { axis: axis() };
            check_gather::<T>(case, &Gather::elements(axis()), reference);
        }
        other => panic!("{}: unknown operator {other}", case.folder.display()),
    }
}

#[test]
fn every_case_is_stored() {
    let mut counts = BTreeMap::<_, usize>::new();
    for case in Case::all() {
        *counts.entry(case.get("op").to_owned()).or_default() += 1;
    }
    let expected = CASES.map(|(op, count)| (op.to_owned(), count));
    assert_eq!(counts, BTreeMap::from(expected), "cases of each operator");
}

#[test]
fn every_case_gives_the_stored_output() {
    for case in Case::all() {
        let data = ["input.data", "input.past_cache"];
        let stated = data.iter().find_map(|key| case.lines.get(*key));
        let element = stated.and_then(|stated| stated.split(' ').next());
        match element {
            Some("float32") => check::<f32>(&case),
            Some("int32") => check::<i32>(&case),
            other => panic!("{}: add {other:?} to this match", case.folder.display()),
        }
    }
}
