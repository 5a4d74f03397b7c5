//! Times plans. A plan reads and checks every index, numbers the destinations, and detects
//! duplicates.

#![allow(clippy::cast_possible_truncation, reason = "indices are small")]

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use ndscatter::{CallingThread, Duplicates, Execution, Index, Layout, Reduction, Scatter};

use crate::common::random::Random;
use crate::common::view;
use crate::common::workloads::{Pattern, nd};
use crate::{Call, Group};

/// Tuples of the large plans.
const TUPLES: usize = 4 << 20;

/// Number of destinations of the large plans, and the shapes of data for tuples of one, two
/// and three coordinates.
const SLICES: usize = 16 << 20;
const SHAPES: [&[usize]; 3] = [&[SLICES], &[4096, 4096], &[256, 256, 256]];

pub(crate) fn planning(criterion: &mut Criterion) {
    validate(criterion);
    duplicates(criterion);
    small(criterion);
}

/// Times plans of `list`, compared with a loop on one thread that only reads `list`.
fn plan<I: Index + std::ops::BitOr<Output = I>>(
    group: &mut Group<'_>,
    name: &str,
    scatter: &Scatter<'_>,
    data: &[usize],
    list: &[I],
) {
    let shape = [list.len() / data.len(), data.len()];
    let read = Call::new("a read of the indices", |_| {
        black_box(
            black_box(list)
                .iter()
                .copied()
                .reduce(|all, index| all | index),
        );
    });
    Call::new(name, |_| {
        let plan = scatter.plan(Layout::contiguous(data), view(list, &shape));
        drop(plan.expect("indices are in bounds"));
    })
    .moving(Throughput::Elements(shape[0] as u64))
    .compared_with(&read)
    .bench(group);
}

/// Returns the coordinates of `tuples` tuples.
fn list(tuples: usize, data: &'static [usize], pattern: Pattern) -> Vec<i64> {
    let indices = [tuples, data.len()];
    nd(
        "list",
        data,
        indices.to_vec().leak(),
        Reduction::None,
        pattern,
    )
    .coordinates(&mut Random::new(1))
}

/// Times plans that only check indices: one, two and three coordinates, i64 and i32, on all
/// threads and on one.
fn validate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("planning/validate/4Mi");
    let alone = Execution::new().pool(&CallingThread);
    for data in SHAPES {
        let k = data.len();
        let wide = list(TUPLES, data, Pattern::Uniform);
        let narrow: Vec<i32> = wide.iter().map(|&index| index as i32).collect();
        for (threads, scatter) in [
            ("", Scatter::nd()),
            ("/one_thread", Scatter::nd().execution(alone)),
        ] {
            plan(
                &mut group,
                &format!("i64/k{k}{threads}"),
                &scatter,
                data,
                &wide,
            );
            plan(
                &mut group,
                &format!("i32/k{k}{threads}"),
                &scatter,
                data,
                &narrow,
            );
        }
    }
}

/// Times plans that check indices and detect duplicates exactly. Detection costs nothing if
/// destinations increase. It uses a bitmap if destinations are few, and a sort otherwise.
fn duplicates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("planning/duplicates");
    let reject = Scatter::nd().duplicates(Duplicates::Reject);
    let cases: [(&str, usize, &'static [usize]); 3] = [
        ("random/4Mi_of_16Mi", TUPLES, &[SLICES]),
        ("random/64Ki_of_500k", 65_536, &[500_000]),
        ("random/64Ki_of_16Mi", 65_536, &[SLICES]),
    ];
    for (name, tuples, data) in cases {
        plan(
            &mut group,
            name,
            &reject,
            data,
            &list(tuples, data, Pattern::Unique),
        );
    }
    let mut increasing = list(TUPLES, &[SLICES], Pattern::Unique);
    increasing.sort_unstable();
    plan(
        &mut group,
        "increasing/4Mi_of_16Mi",
        &reject,
        &[SLICES],
        &increasing,
    );
}

/// Times small plans. Each should cost at most as much as its call.
fn small(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("planning/small");
    let cases: [(&str, usize, &'static [usize]); 4] = [
        ("4_of_8", 4, &[8]),
        ("16/k2", 16, &[16, 2048]),
        ("128_of_256", 128, &[256]),
        ("4096_of_64Ki", 4096, &[65_536]),
    ];
    for (name, tuples, data) in cases {
        plan(
            &mut group,
            name,
            &Scatter::nd(),
            data,
            &list(tuples, data, Pattern::Uniform),
        );
    }
}
