//! Gradients: of scatters with every reduction, one by one and by a kept plan, and of a
//! gather. Each is compared with a plain loop before it is timed.
//!
//! ```sh
//! cargo bench --bench backward
//! ```

mod common;

use std::hint::black_box;

use common::random::Random;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndscatter::{
    Forward, Gather, Gradients, Layout, Reduction, Scatter, TensorView, TensorViewMut,
};

/// Messages along edges of a graph, into its nodes.
const NODES: usize = 40_000;
const EDGES: usize = 160_000;
const WIDTH: usize = 64;

struct Graph {
    data: Vec<f32>,
    updates: Vec<f32>,
    gradient: Vec<f32>,
    targets: Vec<usize>,
    indices: Vec<i64>,
    of_data: Vec<f32>,
    of_updates: Vec<f32>,
}

impl Graph {
    fn new() -> Self {
        let mut random = Random::new(1);
        let mut floats = |len| {
            let mut values = vec![0.0; len];
            random.fill(&mut values);
            values
        };
        let [data, gradient] = [floats(NODES * WIDTH), floats(NODES * WIDTH)];
        let updates = floats(EDGES * WIDTH);
        let targets = random.uniform(EDGES, NODES);
        let number = |&target: &usize| i64::try_from(target).expect("it fits");
        Self {
            indices: targets.iter().map(number).collect(),
            of_data: vec![0.0; data.len()],
            of_updates: vec![0.0; updates.len()],
            data,
            updates,
            gradient,
            targets,
        }
    }

    /// What each call takes: the gradient, the forward tensors, where gradients go.
    #[allow(clippy::type_complexity, reason = "three views of a call")]
    fn views(
        &mut self,
    ) -> (
        TensorView<'_, f32>,
        Forward<TensorView<'_, f32>>,
        Gradients<TensorViewMut<'_, f32>>,
    ) {
        let view =
            |values, rows: &'static [usize; 2]| TensorView::contiguous(values, rows).expect("rows");
        let written = Gradients::new(
            TensorViewMut::contiguous(&mut self.of_data, &DATA).expect("rows"),
            TensorViewMut::contiguous(&mut self.of_updates, &UPDATES).expect("rows"),
        );
        let forward = Forward::new(view(&self.data, &DATA), view(&self.updates, &UPDATES));
        (view(&self.gradient, &DATA), forward, written)
    }

    /// The gradients of one row of data and of its updates, by a plain loop.
    fn check(&self, reduction: Reduction) {
        for node in (0..NODES).step_by(997) {
            let edges: Vec<usize> = (0..EDGES)
                .filter(|&edge| self.targets[edge] == node)
                .collect();
            for column in 0..WIDTH {
                let at = node * WIDTH + column;
                let gradient = self.gradient[at];
                let update = |edge: usize| self.updates[edge * WIDTH + column];
                let values: Vec<f32> = std::iter::once(self.data[at])
                    .chain(edges.iter().map(|&edge| update(edge)))
                    .collect();
                let expected = shares(reduction, gradient, &values);
                assert_eq!(self.of_data[at], expected[0], "{reduction}: data");
                for (&edge, &share) in edges.iter().zip(&expected[1..]) {
                    let got = self.of_updates[edge * WIDTH + column];
                    assert_eq!(got, share, "{reduction}: updates");
                }
            }
        }
    }
}

const DATA: [usize; 2] = [NODES, WIDTH];
const UPDATES: [usize; 2] = [EDGES, WIDTH];

/// What the value that was there and each update get.
fn shares(reduction: Reduction, gradient: f32, values: &[f32]) -> Vec<f32> {
    let count = values.len();
    let best = values.iter().copied().reduce(match reduction {
        Reduction::Min => f32::min,
        _ => f32::max,
    });
    let share = |at: usize| match reduction {
        Reduction::None if at + 1 == count => gradient,
        Reduction::None => 0.0,
        Reduction::Sub if at > 0 => -gradient,
        Reduction::Mul => {
            let before = values[..at].iter().copied().reduce(|a, b| a * b);
            let after = values[at + 1..].iter().rev().copied().reduce(|a, b| a * b);
            let others = [before, after].into_iter().flatten().reduce(|a, b| a * b);
            others.map_or(gradient, |others| gradient * others)
        }
        Reduction::Mean => gradient / count as f32,
        // Random values have no ties.
        Reduction::Min | Reduction::Max if Some(values[at]) != best => 0.0,
        _ => gradient,
    };
    (0..count).map(share).collect()
}

fn backward(criterion: &mut Criterion) {
    let mut graph = Graph::new();
    let mut group = criterion.benchmark_group("backward");
    group.sample_size(20);
    group.throughput(Throughput::Bytes((EDGES * WIDTH * 4) as u64));
    for reduction in Reduction::ALL {
        let scatter = Scatter::update(0).reduction(reduction);
        let indices = graph.indices.clone();
        let at = || TensorView::from(&indices[..]);
        let (gradient, forward, written) = graph.views();
        let done = scatter.backward_into(gradient, forward, at(), 1.0, written);
        done.expect("a gradient");
        graph.check(reduction);
        group.bench_function(BenchmarkId::new("one-shot", reduction), |bencher| {
            bencher.iter(|| {
                let (gradient, forward, written) = graph.views();
                scatter.backward_into(black_box(gradient), forward, at(), 1.0, written)
            });
        });
        let plan = scatter
            .plan(Layout::contiguous(&DATA), at())
            .expect("a plan");
        group.bench_function(BenchmarkId::new("planned", reduction), |bencher| {
            bencher.iter(|| {
                let (gradient, forward, written) = graph.views();
                (plan.run()).backward_into(black_box(gradient), forward, 1.0, written)
            });
        });
    }
    group.finish();
}

fn gathers(criterion: &mut Criterion) {
    let graph = Graph::new();
    let mut sums = vec![0.0_f32; NODES * WIDTH];
    let mut expected = sums.clone();
    let rows = graph.updates.chunks_exact(WIDTH);
    for (&target, row) in graph.targets.iter().zip(rows) {
        let sums = &mut expected[target * WIDTH..][..WIDTH];
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, value)| *sum += value);
    }
    let mut group = criterion.benchmark_group("backward of a gather");
    group.sample_size(20);
    for scale in [1.0_f32, 0.5] {
        let call = |sums: &mut Vec<f32>| {
            Gather::along(0).backward_into(
                TensorView::contiguous(&graph.updates, &UPDATES).expect("rows"),
                TensorView::from(&graph.indices[..]),
                scale.into(),
                TensorViewMut::contiguous(sums, &DATA).expect("rows"),
            )
        };
        call(&mut sums).expect("a gradient");
        let is_right = |(got, sum): (&f32, &f32)| *got == sum * scale;
        assert!(sums.iter().zip(&expected).all(is_right), "other sums");
        group.bench_function(BenchmarkId::new("one-shot, factor", scale), |bencher| {
            bencher.iter(|| call(&mut sums));
        });
    }
    group.finish();
}

criterion_group!(benches, backward, gathers);
criterion_main!(benches);
