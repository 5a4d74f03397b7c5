//! What a plan costs: reading and checking every index, numbering the
//! destinations, and looking for duplicates. Compare with `read`, which only
//! reads the indices.

#![allow(missing_docs, reason = "criterion makes a public function")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "indices are made from small sizes"
)]

mod common;

use std::hint::black_box;
use std::time::Duration;

use common::random::Random;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use ndscatter::{CallingThread, Duplicates, Execution, Index, Layout, Scatter, TensorView};

/// Tuples of the large plans.
const TUPLES: usize = 4 << 20;

/// Destinations of the large plans, and the shapes that they have for tuples
/// of one, two and three coordinates.
const SLICES: usize = 16 << 20;
const SHAPES: [&[usize]; 3] = [&[SLICES], &[4096, 4096], &[256, 256, 256]];

/// Indices of a plan, of one type.
struct Indices<I> {
    values: Vec<I>,
    shape: [usize; 2],
    data: &'static [usize],
}

impl<I: Index> Indices<I> {
    fn new(numbers: &[usize], data: &'static [usize], index: impl Fn(usize) -> I) -> Self {
        let values = numbers.iter().flat_map(|&number| {
            (0..data.len()).map(move |axis| {
                let inner: usize = data[axis + 1..].iter().product();
                number / inner % data[axis]
            })
        });
        Self {
            values: values.map(index).collect(),
            shape: [numbers.len(), data.len()],
            data,
        }
    }

    fn view(&self) -> TensorView<'_, I> {
        TensorView::contiguous(&self.values, &self.shape).expect("indices have their shape")
    }

    fn bench(&self, group: &mut BenchmarkGroup<'_, WallTime>, name: &str, scatter: &Scatter<'_>) {
        group.throughput(Throughput::Elements(self.shape[0] as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let plan = scatter.plan(Layout::contiguous(self.data), self.view());
                plan.expect("indices are in bounds")
            });
        });
    }
}

/// Validation alone: one, two and three coordinates, i64 and i32, on all
/// threads and on one. Its floor is `read`.
fn validate(criterion: &mut Criterion) {
    let numbers = Random::new(1).uniform(TUPLES, SLICES);
    let mut group = criterion.benchmark_group("planning/validate/4Mi");
    let (all, one) = (Scatter::nd(), Scatter::nd().execution(alone()));
    for data in SHAPES {
        let k = data.len();
        let wide = Indices::new(&numbers, data, |index| index as i64);
        wide.bench(&mut group, &format!("i64/k{k}"), &all);
        wide.bench(&mut group, &format!("i64/k{k}/one_thread"), &one);
        let narrow = Indices::new(&numbers, data, |index| index as i32);
        narrow.bench(&mut group, &format!("i32/k{k}"), &all);
        narrow.bench(&mut group, &format!("i32/k{k}/one_thread"), &one);
    }
    let wide = Indices::new(&numbers, SHAPES[0], |index| index as i64);
    group.bench_function("read/i64/one_thread", |bencher| {
        bencher.iter(|| {
            black_box(&wide.values)
                .iter()
                .fold(0, |all, &index| all | index)
        });
    });
    group.finish();
}

/// Validation and an exact answer to whether a destination repeats. Free
/// where destinations increase; a bitmap where they are few; else a sort.
fn duplicates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("planning/duplicates");
    let reject = Scatter::nd().duplicates(Duplicates::Reject);
    let mut random = Random::new(2);
    let i64_of = |index| index as i64;
    let cases: [(&str, usize, &'static [usize]); 3] = [
        ("random/4Mi_of_16Mi", TUPLES, &[SLICES]),
        ("random/64Ki_of_500k", 65_536, &[500_000]),
        ("random/64Ki_of_16Mi", 65_536, &[SLICES]),
    ];
    for (name, tuples, data) in cases {
        let mut numbers = random.distinct(tuples, data[0]);
        Indices::new(&numbers, data, i64_of).bench(&mut group, name, &reject);
        if tuples == TUPLES {
            numbers.sort_unstable();
            let increasing = Indices::new(&numbers, data, i64_of);
            increasing.bench(&mut group, "increasing/4Mi_of_16Mi", &reject);
        }
    }
    group.finish();
}

/// Plans that should cost no more than the call that they belong to.
fn small(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("planning/small");
    let mut random = Random::new(3);
    let cases: [(&str, usize, &'static [usize]); 4] = [
        ("4_of_8", 4, &[8]),
        ("16/k2", 16, &[16, 2048]),
        ("128_of_256", 128, &[256]),
        ("4096_of_64Ki", 4096, &[65_536]),
    ];
    for (name, tuples, data) in cases {
        let numbers = random.uniform(tuples, data.iter().product());
        let indices = Indices::new(&numbers, data, |index| index as i64);
        indices.bench(&mut group, name, &Scatter::nd());
    }
    group.finish();
}

fn alone() -> Execution<'static> {
    Execution::new().pool(&CallingThread)
}

fn config() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = validate, duplicates, small
}
criterion_main!(benches);
