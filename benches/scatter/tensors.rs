//! Workloads in memory, end to end, checks of indices included: every workload as
//! `f32` with `i64` indices, and some of them with other types.

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

/// Functional calls write into an output that is there. In place, only the slices
/// that tuples name are touched: where that takes little less time, the updates are
/// the cost.
const FORMS: [Form; 2] = [Form::Functional, Form::InPlace];

/// Every workload, beside a copy of its data to the output on all threads: no form
/// moves more bytes a second.
pub(crate) fn workloads(criterion: &mut Criterion) {
    for workload in WORKLOADS {
        let mut group = criterion.benchmark_group(format!("workloads/{}", workload.name));
        let inputs = Inputs::new(workload);
        let subject = Subject::new(&inputs);
        let copying = LazyCell::new(|| fastest_copy(&inputs, &mut subject.target.borrow_mut()));
        let roof = Call::new("roof", |_| {
            copying.run(&mut subject.target.borrow_mut(), &inputs.data);
        })
        .checked(|| {
            LazyCell::force(&copying);
        })
        .moving(bytes(2 * size_of_val(&inputs.data[..])));
        for form in FORMS {
            let call = subject.call(&form.to_string(), form);
            call.beside(&roof).bench(&mut group);
        }
        roof.bench(&mut group);
    }
}

/// Adds one type of a workload to its group.
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

/// A call with other types should take the time that its bytes do: those that it
/// needs, once in, and those that it writes, once out, indices included. The plain
/// loop rounds sums of 16-bit floats after every update.
pub(crate) fn types(criterion: &mut Criterion) {
    for (name, kinds) in TYPES {
        let mut group = criterion.benchmark_group(format!("types/{name}"));
        let workload = WORKLOADS.iter().find(|workload| workload.name == name);
        let inputs = Inputs::new(*workload.expect("it is in the table of workloads"));
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
        call.beside(&usual).bench(group);
    }
}

/// A workload with its target. Values are not reset between calls: those that add
/// grow slowly, the others stay as they are.
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
    *fastest.expect("there is a way to copy").0
}
