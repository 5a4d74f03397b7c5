//! Times complete calls, with the checks of indices: every workload with `f32` data and `i64`
//! indices, and some workloads with other types.

use std::cell::{LazyCell, RefCell};

use criterion::{Criterion, Throughput};
use half::{bf16, f16};
use ndscatter::Execution;

use crate::common::aligned::Aligned;
use crate::common::contenders::{Contender, time};
use crate::common::inputs::{Form, Inputs, Place, SETS};
use crate::common::numbers::Number;
use crate::common::roof::Copying;
use crate::common::workloads::WORKLOADS;
use crate::{Call, Group};

/// Forms that are timed. A functional call writes an existing output. A call in place touches
/// only the slices that tuples name. If the times are similar, the updates dominate the cost.
const FORMS: [Form; 2] = [Form::Functional, Form::InPlace];

/// Times every workload, compared with a copy of its data to the output on all threads. No form
/// moves more bytes per second than the copy.
pub(crate) fn workloads(criterion: &mut Criterion) {
    for workload in WORKLOADS {
        let mut group = criterion.benchmark_group(format!("workloads/{}", workload.name));
        let inputs = Inputs::new(workload);
        let subject = Subject::new(&inputs);
        let copying = LazyCell::new(|| fastest_copy(&inputs, &mut subject.target.borrow_mut()));
        let copy = Call::new("copy", |_| {
            copying.run(&mut subject.target.borrow_mut(), &inputs.data);
        })
        .checked(|| {
            LazyCell::force(&copying);
        })
        .moving(bytes(2 * size_of_val(&inputs.data[..])));
        for form in FORMS {
            let call = subject.call(&form.to_string(), form);
            call.compared_with(&copy).bench(&mut group);
        }
        copy.bench(&mut group);
    }
}

/// Function that adds the calls with one type to the group of a workload.
type Add = fn(&mut Group<'_>, &str, &Inputs);

const F16: (&str, Add) = ("f16", typed::<f16, i64>);
const BF16: (&str, Add) = ("bf16", typed::<bf16, i64>);
const F64: (&str, Add) = ("f64", typed::<f64, i64>);
const I64: (&str, Add) = ("i64", typed::<i64, i64>);
const I32_INDICES: (&str, Add) = ("i32 indices", typed::<f32, i32>);

const TYPES: [(&str, &[(&str, Add)]); 5] = [
    ("kv_decode", &[F16, BF16]),
    ("kv_prefill", &[F16, BF16, I32_INDICES]),
    ("emb_update", &[I32_INDICES]),
    ("gnn_add", &[F16, BF16, F64, I64, I32_INDICES]),
    ("elem_random_add", &[F64, I64, I32_INDICES]),
];

/// Times workloads with other types. The time should be proportional to the bytes that a call
/// moves: each needed byte is read once, and each result byte is written once, indices
/// included. The reference loop rounds sums of 16-bit floats after every update.
pub(crate) fn types(criterion: &mut Criterion) {
    for (name, kinds) in TYPES {
        let mut group = criterion.benchmark_group(format!("types/{name}"));
        let workload = WORKLOADS.iter().find(|workload| workload.name == name);
        let inputs = Inputs::new(*workload.expect("a known workload"));
        for (kind, add) in kinds {
            add(&mut group, kind, &inputs);
        }
    }
}

fn typed<T: Number, I: Place>(group: &mut Group<'_>, kind: &str, inputs: &Inputs) {
    let converted = inputs.converted::<T, I>();
    let (subject, plain) = (Subject::new(&converted), Subject::new(inputs));
    for form in FORMS {
        let usual = plain.call("f32 with i64 indices", form);
        let call = subject.call(&format!("{form}, {kind}"), form);
        call.compared_with(&usual).bench(group);
    }
}

/// A workload with its target. Values are not reset between calls. Sums grow slowly, and other
/// results do not change.
struct Subject<'a, T, I> {
    inputs: &'a Inputs<T, I>,
    target: RefCell<Aligned<T>>,
}

impl<'a, T: Number, I: Place> Subject<'a, T, I> {
    fn new(inputs: &'a Inputs<T, I>) -> Self {
        Self {
            inputs,
            target: RefCell::new(inputs.target()),
        }
    }

    fn call(&self, name: &str, form: Form) -> Call<'_> {
        let run = move |target: &mut [T], set| {
            let execution = Execution::new();
            drop(self.inputs.scatter(execution, form, target, set));
        };
        Call::new(name, move |set| run(&mut self.target.borrow_mut(), set))
            .checked(move || {
                for set in 0..SETS {
                    let expected = self.inputs.expected(set);
                    let target = &mut self.target.borrow_mut();
                    (self.inputs).check(form, target, &expected, |target| run(target, set));
                }
            })
            .moving(bytes(self.inputs.traffic(form, 0).total()))
    }
}

fn bytes(count: usize) -> Throughput {
    Throughput::Bytes(count as u64)
}

fn fastest_copy(inputs: &Inputs, target: &mut [f32]) -> Copying {
    const ROUNDS: usize = 5;
    let copies = Copying::ALL.iter().map(|&copying| {
        Contender::new(copying.as_str(), move |target: &mut [f32], _| {
            copying.run(target, &inputs.data);
            None
        })
    });
    let times = time(&copies.collect::<Vec<_>>(), target, ROUNDS, 1);
    let fastest = (Copying::ALL.iter().zip(times)).min_by(|a, b| a.1.min.total_cmp(&b.1.min));
    *fastest.expect("a kind of copy").0
}
