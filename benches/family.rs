//! The rest of the family: element scatters, a cache's decode step, a gather,
//! each against the plain loop that a user would write, in turns.
//!
//! ```sh
//! cargo bench --bench family [-- --check]
//! ```
//!
//! - `--check`: only compares the results, bit for bit.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "indices were made from sizes"
)]

mod common;

use std::time::Instant;

use common::aligned::Aligned;
use common::random::Random;
use half::f16;
use ndscatter::{CacheMode, Execution, Gather, Reduction, Scatter, TensorView, TensorViewMut};

const ROUNDS: usize = 15;

/// Rows of the element scatters, and their length: messages of a graph.
const NODES: usize = 556_416;
const EDGES: usize = 481_385;
const WIDTH: usize = 80;

/// Elements of the long lane, and of what is scattered along it.
const LANE: usize = 16 << 20;
const LANE_UPDATES: usize = 4 << 20;

/// A cache of so many sequences, heads, positions and numbers.
const SEQUENCES: usize = 64;
const HEADS: usize = 8;
const POSITIONS: usize = 4096;
const DEPTH: usize = 128;

/// Rows of a table, their length, and how many are looked up.
const TABLE: usize = 500_000;
const EMBEDDING: usize = 64;
const LOOKUPS: usize = 65_536;

fn main() {
    let check_only = std::env::args().any(|argument| argument == "--check")
        || !std::env::args().any(|argument| argument == "--bench");
    let mut bench = Bench { check_only };
    println!("| workload | ours, ms | one worker | plain loop | against the plain loop |");
    println!("|---|---|---|---|---|");
    elements(&mut bench);
    lane(&mut bench);
    decode(&mut bench);
    gather(&mut bench);
}

/// One way to compute a row of the table.
type Run<'a, T> = &'a dyn Fn(&mut [T], usize);

struct Bench {
    check_only: bool,
}

impl Bench {
    /// Times ours with all workers, with one, and `plain`, in turns; each runs
    /// on a target of its own, `calls` times a round.
    fn row<T: Copy + PartialEq>(
        &mut self,
        name: &str,
        data: &[T],
        ours: &dyn Fn(Execution<'static>, &mut [T]),
        plain: &dyn Fn(&mut [T]),
        (execution, calls): (Execution<'static>, u32),
    ) {
        let one_worker = execution.max_workers(1);
        let runs: [Run<'_, T>; 3] = [
            &|target, _| ours(execution, target),
            &|target, _| ours(one_worker, target),
            &|target, _| plain(target),
        ];
        let mut target = data.to_vec();
        plain(&mut target);
        let expected = target.clone();
        for run in &runs[..2] {
            target.copy_from_slice(data);
            run(&mut target, 0);
            assert!(target == expected, "{name}: other bits than the plain loop");
        }
        if self.check_only {
            return;
        }
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            for (best, run) in best.iter_mut().zip(runs) {
                let start = Instant::now();
                (0..calls).for_each(|call| run(&mut target, call as usize));
                *best = best.min(start.elapsed().as_secs_f64() * 1e3 / f64::from(calls));
            }
        }
        let [ours, one, plain] = best;
        println!(
            "| {name} | {ours:.4} | {one:.4} | {plain:.4} | {:.2} |",
            ours / plain
        );
    }
}

fn floats(random: &mut Random, len: usize) -> Aligned<f32> {
    let mut values = Aligned::new(0.0, len);
    random.fill(&mut values);
    values
}

fn indices(random: &mut Random, len: usize, bound: usize) -> Vec<i64> {
    let numbers = random.uniform(len, bound).into_iter();
    numbers.map(|number| number as i64).collect()
}

/// What PyTorch Geometric exports: messages of edges summed into nodes.
fn elements(bench: &mut Bench) {
    let mut random = Random::new(1);
    let data = floats(&mut random, NODES * WIDTH);
    let updates = floats(&mut random, EDGES * WIDTH);
    let shape = [EDGES, WIDTH];
    let rows = indices(&mut random, EDGES, NODES);
    let written_out: Vec<i64> = rows.iter().flat_map(|&row| [row; WIDTH]).collect();
    let random_rows = indices(&mut random, EDGES * WIDTH, NODES);
    let updates_view = TensorView::contiguous(&updates, &shape).expect("a view");
    let full = |values| TensorView::contiguous(values, &shape).expect("a view");
    let expanded = TensorView::strided(&rows, 0, &shape, &[1, 0]).expect("a view");
    let cases = [
        (
            "scatter_elements add, written out",
            full(&written_out),
            &written_out,
        ),
        ("scatter_elements add, stride 0", expanded, &written_out),
        (
            "scatter_elements add, random",
            full(&random_rows),
            &random_rows,
        ),
    ];
    for (name, view, listed) in cases {
        bench.row(
            name,
            &data,
            &|execution, target| {
                let target = TensorViewMut::contiguous(target, &[NODES, WIDTH]).expect("a view");
                (Scatter::elements(0)
                    .reduction(Reduction::Add)
                    .execution(execution))
                .in_place(target, view, updates_view)
                .expect("indices in range");
            },
            &|target| {
                for (position, (&row, update)) in listed.iter().zip(updates.iter()).enumerate() {
                    target[row as usize * WIDTH + position % WIDTH] += update;
                }
            },
            (Execution::new(), 1),
        );
    }
}

fn lane(bench: &mut Bench) {
    let mut random = Random::new(2);
    let data = floats(&mut random, LANE);
    let updates = floats(&mut random, LANE_UPDATES);
    let places = indices(&mut random, LANE_UPDATES, LANE);
    bench.row(
        "scatter_elements add, 1-D",
        &data,
        &|execution, target| {
            let lane = [LANE_UPDATES];
            (Scatter::elements(0)
                .reduction(Reduction::Add)
                .execution(execution))
            .in_place(
                TensorViewMut::contiguous(target, &[LANE]).expect("a view"),
                TensorView::contiguous(&places, &lane).expect("a view"),
                TensorView::contiguous(&updates, &lane).expect("a view"),
            )
            .expect("indices in range");
        },
        &|target| {
            for (&place, update) in places.iter().zip(updates.iter()) {
                target[place as usize] += update;
            }
        },
        (Execution::new(), 1),
    );
}

/// The plain loop here is a `memcpy` of each of the same rows.
fn decode(bench: &mut Bench) {
    let mut random = Random::new(3);
    let cache = vec![f16::ZERO; SEQUENCES * HEADS * POSITIONS * DEPTH];
    let tokens: Vec<f16> = (0..SEQUENCES * HEADS * DEPTH)
        .map(|number| f16::from_f32(number as f32))
        .collect();
    let places = indices(&mut random, SEQUENCES, POSITIONS);
    bench.row(
        "tensor_scatter, decode",
        &cache,
        &|execution, target| {
            let shape = [SEQUENCES, HEADS, POSITIONS, DEPTH];
            (Scatter::cache(-2, CacheMode::Linear).execution(execution))
                .in_place(
                    TensorViewMut::contiguous(target, &shape).expect("a view"),
                    TensorView::contiguous(&places, &[SEQUENCES]).expect("a view"),
                    TensorView::contiguous(&tokens, &[SEQUENCES, HEADS, 1, DEPTH]).expect("a view"),
                )
                .expect("places in range");
        },
        &|target| {
            for (row, token) in tokens.chunks_exact(DEPTH).enumerate() {
                let place = places[row / HEADS] as usize;
                let start = (row * POSITIONS + place) * DEPTH;
                target[start..start + DEPTH].copy_from_slice(token);
            }
        },
        (Execution::new(), 100),
    );
}

fn gather(bench: &mut Bench) {
    let mut random = Random::new(4);
    let table = floats(&mut random, TABLE * EMBEDDING);
    let places = indices(&mut random, LOOKUPS, TABLE);
    let result = vec![0.0; LOOKUPS * EMBEDDING];
    bench.row(
        "gather",
        &result,
        &|execution, target| {
            (Gather::along(0).execution(execution))
                .write_into(
                    TensorView::contiguous(&table, &[TABLE, EMBEDDING]).expect("a view"),
                    TensorView::contiguous(&places, &[LOOKUPS]).expect("a view"),
                    TensorViewMut::contiguous(target, &[LOOKUPS, EMBEDDING]).expect("a view"),
                )
                .expect("places in range");
        },
        &|target| {
            for (row, &place) in target.chunks_exact_mut(EMBEDDING).zip(&places) {
                row.copy_from_slice(&table[place as usize * EMBEDDING..][..EMBEDDING]);
            }
        },
        (Execution::new(), 1),
    );
}
