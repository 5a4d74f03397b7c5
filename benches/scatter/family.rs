//! Times element scatters, a decode step of a KV cache and a gather. Each is compared with the
//! loop that a user would write, which does not check indices.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "indices were made from sizes"
)]

use std::cell::RefCell;

use criterion::Criterion;
use half::f16;
use ndscatter::{CacheMode, Execution, Gather, Reduction, Scatter, TensorView, TensorViewMut};

use crate::Call;
use crate::common::aligned::Aligned;
use crate::common::numbers::{Number, assert_bits};
use crate::common::random::Random;
use crate::common::{view, view_mut};

/// Shapes of data and updates of the element scatters: messages along the edges of a graph.
const NODES: [usize; 2] = [556_416, WIDTH];
const EDGES: [usize; 2] = [481_385, WIDTH];
const WIDTH: usize = 80;

/// Elements of the 1-D tensor, and of its updates.
const LANE: usize = 16 << 20;
const LANE_UPDATES: usize = 4 << 20;

/// Shape of the KV cache: sequences, heads, positions, elements of a row. Then the shape of
/// its updates.
const CACHE: [usize; 4] = [64, HEADS, 4096, DEPTH];
const TOKENS: [usize; 4] = [64, HEADS, 1, DEPTH];
const HEADS: usize = 8;
const DEPTH: usize = 128;

/// Shapes of the table and of the rows that are gathered from it.
const TABLE: [usize; 2] = [500_000, EMBEDDING];
const LOOKUPS: [usize; 2] = [65_536, EMBEDDING];
const EMBEDDING: usize = 64;

pub(crate) fn family(criterion: &mut Criterion) {
    elements(criterion);
    lane(criterion);
    decode(criterion);
    gather(criterion);
}

/// Times a call on all workers and on one, compared with the reference loop `plain`.
fn row<T: Number>(
    criterion: &mut Criterion,
    name: &str,
    data: &[T],
    ours: impl Fn(Execution<'static>, &mut [T]),
    plain: impl Fn(&mut [T]),
) {
    let mut group = criterion.benchmark_group(format!("family/{name}"));
    let target = &RefCell::new(data.to_vec());
    let plain_loop = Call::new("the reference loop", |_| plain(&mut target.borrow_mut()));
    for (workers, execution) in [
        ("all workers", Execution::new()),
        ("one worker", Execution::new().max_workers(1)),
    ] {
        let run = |_| ours(execution, &mut target.borrow_mut());
        let check = || {
            let mut expected = data.to_vec();
            plain(&mut expected);
            target.borrow_mut().copy_from_slice(data);
            run(0);
            assert_bits(name, &target.borrow(), &expected);
        };
        let call = Call::new(workers, run).checked(check);
        call.compared_with(&plain_loop).bench(&mut group);
    }
}

fn floats(random: &mut Random, shape: &[usize]) -> Aligned<f32> {
    let mut values = Aligned::new(0.0, shape.iter().product());
    random.fill(&mut values);
    values
}

fn indices(random: &mut Random, len: usize, bound: usize) -> Vec<i64> {
    let numbers = random.uniform(len, bound).into_iter();
    numbers.map(|number| number as i64).collect()
}

/// Times sums of edge messages into nodes, the scatter that PyTorch Geometric exports.
fn elements(criterion: &mut Criterion) {
    let mut random = Random::new(1);
    let (data, updates) = (floats(&mut random, &NODES), floats(&mut random, &EDGES));
    let rows = indices(&mut random, EDGES[0], NODES[0]);
    let written_out: Vec<i64> = rows.iter().flat_map(|&row| [row; WIDTH]).collect();
    let random_rows = indices(&mut random, EDGES[0] * WIDTH, NODES[0]);
    let expanded = TensorView::strided(&rows, 0, &EDGES, &[1, 0]).expect("a view");
    for (name, list, listed) in [
        ("written out", view(&written_out, &EDGES), &written_out),
        ("stride 0", expanded, &written_out),
        ("random", view(&random_rows, &EDGES), &random_rows),
    ] {
        row(
            criterion,
            &format!("scatter_elements add, {name}"),
            &data,
            |execution, target| {
                let scatter = Scatter::elements(0).reduction(Reduction::Add);
                (scatter.execution(execution))
                    .in_place(view_mut(target, &NODES), list, view(&updates, &EDGES))
                    .expect("indices in range");
            },
            |target| {
                for (position, (&row, update)) in listed.iter().zip(&*updates).enumerate() {
                    target[row as usize * WIDTH + position % WIDTH] += update;
                }
            },
        );
    }
}

fn lane(criterion: &mut Criterion) {
    let mut random = Random::new(2);
    let data = floats(&mut random, &[LANE]);
    let updates = floats(&mut random, &[LANE_UPDATES]);
    let places = indices(&mut random, LANE_UPDATES, LANE);
    row(
        criterion,
        "scatter_elements add, 1-D",
        &data,
        |execution, target| {
            let scatter = Scatter::elements(0).reduction(Reduction::Add);
            (scatter.execution(execution))
                .in_place(
                    TensorViewMut::from(target),
                    TensorView::from(&places),
                    TensorView::from(&updates[..]),
                )
                .expect("indices in range");
        },
        |target| {
            for (&place, update) in places.iter().zip(&*updates) {
                target[place as usize] += update;
            }
        },
    );
}

/// Times one token per sequence. The reference is a `memcpy` of each row.
fn decode(criterion: &mut Criterion) {
    let mut random = Random::new(3);
    let [sequences, _, positions, _] = CACHE;
    let cache = vec![f16::ZERO; CACHE.iter().product()];
    let tokens: Vec<f16> = (0..sequences * HEADS * DEPTH)
        .map(|number| f16::from_f32(number as f32))
        .collect();
    let places = indices(&mut random, sequences, positions);
    row(
        criterion,
        "tensor_scatter, decode",
        &cache,
        |execution, target| {
            let scatter = Scatter::cache(-2, CacheMode::Linear).execution(execution);
            let (cache, tokens) = (view_mut(target, &CACHE), view(&tokens, &TOKENS));
            (scatter.in_place(cache, TensorView::from(&places), tokens)).expect("places in range");
        },
        |target| {
            for (row, token) in tokens.chunks_exact(DEPTH).enumerate() {
                let place = places[row / HEADS] as usize;
                let start = (row * positions + place) * DEPTH;
                target[start..start + DEPTH].copy_from_slice(token);
            }
        },
    );
}

fn gather(criterion: &mut Criterion) {
    let mut random = Random::new(4);
    let table = floats(&mut random, &TABLE);
    let places = indices(&mut random, LOOKUPS[0], TABLE[0]);
    row(
        criterion,
        "gather",
        &vec![0.0; LOOKUPS.iter().product()],
        |execution, target| {
            let gather = Gather::along(0).execution(execution);
            let (table, output) = (view(&table, &TABLE), view_mut(target, &LOOKUPS));
            (gather.write_into(table, TensorView::from(&places), output)).expect("places in range");
        },
        |target| {
            for (row, &place) in target.chunks_exact_mut(EMBEDDING).zip(&places) {
                row.copy_from_slice(&table[place as usize * EMBEDDING..][..EMBEDDING]);
            }
        },
    );
}
