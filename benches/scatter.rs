//! Every workload end to end, checks of indices included, beside the fastest
//! copy that the machine can do of the same bytes.

#![allow(missing_docs, reason = "criterion makes a public function")]

mod common;

use std::cell::Cell;
use std::time::Duration;

use common::contenders::Contender;
use common::inputs::{Form, Inputs, SETS};
use common::roof::Copying;
use common::workloads::{Operator, WORKLOADS, Workload};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use ndscatter::Execution;

fn workloads(criterion: &mut Criterion) {
    for workload in &WORKLOADS {
        one(criterion, *workload);
    }
}

/// One workload: what the crate chooses, in both forms, and the roof.
///
/// - `functional`: into an output that is there. Compare with `roof`.
/// - `in_place`: only the slices that tuples name are touched. Where it is
///   little faster than `functional`, the updates are the cost.
/// - `roof`: a copy of `data` to the output on all threads, by the fastest of
///   three ways. Its bytes a second are the most that any form can reach.
fn one(criterion: &mut Criterion, workload: Workload) {
    let group_name = format!(
        "{}/{}/f32/{}",
        match workload.operator {
            Operator::Nd => "scatter_nd",
            Operator::Update { .. } => "scatter_update",
        },
        workload.reduction,
        workload.name
    );
    let mut group = criterion.benchmark_group(&group_name);
    let inputs = Inputs::new(workload);
    let mut target = inputs.target();
    let execution = Execution::new();
    for (name, form) in [
        ("functional", Form::Functional),
        ("in_place", Form::InPlace),
    ] {
        let scatter = Contender::new(name, |target: &mut [f32], set| {
            inputs.scatter(execution, form, target, set)
        });
        check(&inputs, &scatter, &mut target);
        group.throughput(bytes(inputs.traffic(form, 0).total()));
        bench(&mut group, &scatter, &mut target);
    }
    let copying = fastest_copy(&inputs, &mut target);
    let roof = Contender::new("roof", |target: &mut [f32], _| {
        copying.run(target, &inputs.data);
        None
    });
    group.throughput(bytes(2 * size_of_val(&inputs.data[..])));
    bench(&mut group, &roof, &mut target);
    group.finish();
}

fn bytes(count: usize) -> Throughput {
    Throughput::Bytes(count as u64)
}

/// Panics unless every index set gives the bits of the plain loop.
fn check(inputs: &Inputs, scatter: &Contender<'_>, target: &mut [f32]) {
    for set in 0..SETS {
        scatter.check(target, &inputs.data, set, &inputs.expected(set));
    }
}

/// Values are not reset in between: those that add grow slowly, the others
/// stay as they are.
fn bench(group: &mut BenchmarkGroup<'_, WallTime>, contender: &Contender<'_>, target: &mut [f32]) {
    let calls = Cell::new(0);
    group.bench_function(&contender.name, |bencher| {
        bencher.iter(|| {
            calls.set(calls.get() + 1);
            contender.run(target, calls.get() % SETS)
        });
    });
}

fn fastest_copy(inputs: &Inputs, target: &mut [f32]) -> Copying {
    const ROUNDS: usize = 5;
    let copies = Copying::ALL.iter().map(|&copying| {
        Contender::new(copying.as_str(), move |target: &mut [f32], _| {
            copying.run(target, &inputs.data);
            None
        })
    });
    let copies: Vec<_> = copies.collect();
    let times = common::contenders::time(&copies, target, ROUNDS, 1);
    let fastest = (Copying::ALL.iter().zip(times)).min_by(|a, b| a.1.min.total_cmp(&b.1.min));
    *fastest.expect("there is a way to copy").0
}

/// Samples few and short: the whole table takes some three minutes.
fn config() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = workloads
}
criterion_main!(benches);
