//! Times gradients of scatters with every reduction, one-shot and with a kept plan, and
//! gradients of a gather.

use std::cell::RefCell;

use criterion::{Criterion, Throughput};
use ndscatter::{Forward, Gather, Gradients, Layout, Reduction, TensorView, TensorViewMut};

use crate::Call;
use crate::common::inputs::Inputs;
use crate::common::numbers::assert_bits;
use crate::common::random::Random;
use crate::common::workloads::{Pattern, Workload, update};
use crate::common::{view, view_mut};

/// Shapes of data and updates: messages along the edges of a graph into its nodes.
const NODES: [usize; 2] = [40_000, WIDTH];
const EDGES: [usize; 2] = [160_000, WIDTH];
const WIDTH: usize = 64;
const MESSAGES: Workload = update(
    "messages",
    &NODES,
    &[EDGES[0]],
    0,
    Reduction::Add,
    Pattern::Uniform,
);

pub(crate) fn gradients(criterion: &mut Criterion) {
    let inputs = Inputs::new(MESSAGES);
    scatters(criterion, &inputs);
    gathers(criterion, &inputs);
}

struct Graph<'a> {
    inputs: &'a Inputs,
    /// Gradient of the output.
    gradient: Vec<f32>,
    of_data: Vec<f32>,
    of_updates: Vec<f32>,
}

/// Arguments of each call: the gradient of the output, the forward tensors, the results.
type Tensors<'a> = (
    TensorView<'a, f32>,
    Forward<TensorView<'a, f32>>,
    Gradients<TensorViewMut<'a, f32>>,
);

impl Graph<'_> {
    fn tensors(&mut self) -> Tensors<'_> {
        let written = Gradients::new(
            view_mut(&mut self.of_data, &NODES),
            view_mut(&mut self.of_updates, &EDGES),
        );
        let forward = Forward::new(self.inputs.data_view(), self.inputs.updates_view());
        (view(&self.gradient, &NODES), forward, written)
    }

    /// Compares the gradients of a sample of data rows, and of the updates of these rows, with
    /// a sequential reference. Panics if one differs.
    fn check(&self, reduction: Reduction) {
        let targets = self.inputs.indices(0);
        for node in (0..NODES[0]).step_by(997) {
            let edges: Vec<usize> = (0..EDGES[0])
                .filter(|&edge| usize::try_from(targets[edge]) == Ok(node))
                .collect();
            for column in 0..WIDTH {
                let at = node * WIDTH + column;
                let update = |&edge: &usize| edge * WIDTH + column;
                let updates = edges.iter().map(|edge| self.inputs.updates[update(edge)]);
                let values: Vec<f32> = [self.inputs.data[at]].into_iter().chain(updates).collect();
                let of_updates = edges.iter().map(|edge| self.of_updates[update(edge)]);
                let is: Vec<f32> = [self.of_data[at]].into_iter().chain(of_updates).collect();
                let expected = shares(reduction, self.gradient[at], &values);
                assert!(
                    is == expected,
                    "{reduction}, node {node}: {is:?}; expected {expected:?}"
                );
            }
        }
    }
}

/// Computes the gradients of the existing value and of each update, from the gradient of their
/// result. `values` are the existing value and the updates.
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

fn scatters(criterion: &mut Criterion, inputs: &Inputs) {
    let mut gradient = vec![0.0; inputs.data.len()];
    Random::new(2).fill(&mut gradient);
    let graph = RefCell::new(Graph {
        inputs,
        gradient,
        of_data: vec![0.0; inputs.data.len()],
        of_updates: vec![0.0; inputs.updates.len()],
    });
    for reduction in Reduction::ALL {
        let mut group = criterion.benchmark_group(format!("gradients/{reduction}"));
        let (scatter, indices) = (
            inputs.operator().reduction(reduction),
            inputs.indices_view(0),
        );
        let plan = (scatter.plan(Layout::contiguous(&NODES), indices)).expect("a plan");
        let once = |(gradient, forward, written): Tensors<'_>| {
            (scatter.backward_into(gradient, forward, indices, 1.0, written)).expect("a gradient");
        };
        let planned = |(gradient, forward, written): Tensors<'_>| {
            (plan.run().backward_into(gradient, forward, 1.0, written)).expect("a gradient");
        };
        call("one-shot", &graph, reduction, &once).bench(&mut group);
        call("planned", &graph, reduction, &planned).bench(&mut group);
    }
}

fn call<'a>(
    name: &str,
    graph: &'a RefCell<Graph<'_>>,
    reduction: Reduction,
    run: &'a dyn Fn(Tensors<'_>),
) -> Call<'a> {
    Call::new(name, |_| run(graph.borrow_mut().tensors()))
        .checked(move || {
            graph.borrow_mut().of_data.fill(f32::NAN);
            graph.borrow_mut().of_updates.fill(f32::NAN);
            run(graph.borrow_mut().tensors());
            graph.borrow().check(reduction);
        })
        .moving(Throughput::Bytes((EDGES[0] * WIDTH * 4) as u64))
}

fn gathers(criterion: &mut Criterion, inputs: &Inputs) {
    let mut group = criterion.benchmark_group("gradients/gather");
    let sums = RefCell::new(inputs.target());
    for scale in [1.0_f32, 0.5] {
        let run = |_| {
            let (gradient, indices) = (inputs.updates_view(), inputs.indices_view(0));
            let sums = &mut *sums.borrow_mut();
            (Gather::along(0).backward_into(
                gradient,
                indices,
                scale.into(),
                view_mut(sums, &NODES),
            ))
            .expect("a gradient");
        };
        let check = || {
            let mut expected = inputs.target();
            inputs.plain_loop(&mut expected, 0);
            expected.iter_mut().for_each(|sum| *sum *= scale);
            sums.borrow_mut().fill(f32::NAN);
            run(0);
            assert_bits("the gradient of a gather", &sums.borrow(), &expected);
        };
        let call = Call::new(format!("one-shot, factor {scale}"), run);
        call.checked(check).bench(&mut group);
    }
}
