//! Times small calls of all operators, where most of the time is overhead and not the moves.
//!
//! Each call is compared with the sequential reference loop, and with the shortest call: one
//! row by `Scatter::along`. The three are interleaved. Results are compared bit for bit
//! before anything is timed.
//!
//! ```sh
//! cargo bench --bench small [-- --check] [-- words]
//! ```
//!
//! - `--check`: only compares results.
//! - words: only calls whose name contains one of the words.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "indices are small and positive"
)]

use std::hint::black_box;
use std::time::Instant;

use half::bf16;
use ndscatter::{
    Bounds, CacheMode, Duplicates, Gather, Layout, Reduction, Scatter, TensorView, TensorViewMut,
};

/// Samples of each contender. The printed time is their minimum.
const ROUNDS: usize = 41;
/// Calls per sample.
const CALLS: u32 = 2000;

/// Rows of the table, and elements of a row.
const ROWS: usize = 256;
const WIDTH: usize = 64;
const TABLE: [usize; 2] = [ROWS, WIDTH];
/// Strides of a table with a gap after each row.
const PADDED: [isize; 2] = [80, 1];

/// Shape of a KV cache: sequences, heads, positions, elements of a row.
const SEQUENCES: usize = 16;
const HEADS: usize = 8;
const POSITIONS: usize = 2048;
const DEPTH: usize = 128;

/// Lists of row indices.
const ONE: &[i64] = &[5];
const FOUR: &[i64] = &[9, 5, 200, 10];
const ALIKE: &[i64] = &[9, 9, 200, 9];
const PARTLY_SKIPPED: &[i64] = &[5, -999, 200, 999];
const SIXTEEN: &[i64] = &[7, 8, 200, 9, 1, 2, 3, 4, 30, 40, 50, 60, 77, 78, 79, 81];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag| arguments.iter().any(|argument| argument == flag);
    let words = arguments.iter().filter(|word| !word.starts_with("--"));
    let mut bench = Bench {
        check_only: has("--check") || !has("--bench"),
        words: words.cloned().collect(),
        table: numbers(ROWS * WIDTH),
    };
    println!("| call | ns | reference, ns | minus reference, ns | / reference | / shortest call |");
    println!("|---|---|---|---|---|---|");
    rows(&mut bench);
    padded_rows(&mut bench);
    single_elements(&mut bench);
    gathers(&mut bench);
    decode_steps(&mut bench);
}

struct Bench {
    check_only: bool,
    words: Vec<String>,
    table: Vec<f32>,
}

impl Bench {
    /// Times `ours`, `plain` and the shortest call, interleaved. Before, panics unless `ours`
    /// and `plain` give equal results.
    fn row<T: Copy + PartialEq>(
        &mut self,
        name: &str,
        data: &[T],
        mut ours: impl FnMut(&mut [T]),
        mut plain: impl FnMut(&mut [T]),
    ) {
        let is_wanted = self.words.iter().any(|word| name.contains(word));
        if !self.words.is_empty() && !is_wanted {
            return;
        }
        let (mut target, mut expected) = (data.to_vec(), data.to_vec());
        ours(&mut target);
        plain(&mut expected);
        assert!(
            target == expected,
            "{name}: other bits than the reference loop"
        );
        if self.check_only {
            return;
        }
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            best[0] = best[0].min(nanoseconds(|| ours(black_box(&mut target))));
            best[1] = best[1].min(nanoseconds(|| plain(black_box(&mut expected))));
            best[2] = best[2].min(nanoseconds(|| one_row(black_box(&mut self.table))));
        }
        let [ours, plain, shortest] = best;
        println!(
            "| {name} | {ours:.0} | {plain:.0} | {:.0} | {:.2} | {:.2} |",
            ours - plain,
            ours / plain,
            ours / shortest
        );
    }
}

/// Makes the shortest call.
fn one_row(table: &mut [f32]) {
    let update = [1.0; WIDTH];
    (Scatter::along(0).in_place(
        view_mut(table, &TABLE),
        view(ONE, &[1]),
        view(&update, &[1, WIDTH]),
    ))
    .expect("in range");
}

/// Returns the mean nanoseconds of one of [`CALLS`] calls.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..CALLS).for_each(|_| call());
    start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

fn view<'a, T>(values: &'a [T], shape: &'a [usize]) -> TensorView<'a, T> {
    TensorView::contiguous(values, shape).expect("a view")
}

fn view_mut<'a, T>(values: &'a mut [T], shape: &'a [usize]) -> TensorViewMut<'a, T> {
    TensorViewMut::contiguous(values, shape).expect("a view")
}

fn numbers(len: usize) -> Vec<f32> {
    let numbers = (0..=u16::MAX).cycle().map(f32::from);
    numbers.take(len).collect()
}

/// Runs the loop that a user would write: one row of updates for each index. `distance` is
/// the stride between rows of `target`, in elements. Indices out of bounds are skipped.
fn each_row(
    target: &mut [f32],
    distance: isize,
    (indices, updates): (&[i64], &[f32]),
    combine: impl Fn(&mut [f32], &[f32]),
) {
    for (&index, update) in indices.iter().zip(updates.chunks_exact(WIDTH)) {
        if (0..ROWS as i64).contains(&index) {
            let start = index as usize * distance as usize;
            combine(&mut target[start..start + WIDTH], update);
        }
    }
}

fn replace(target: &mut [f32], update: &[f32]) {
    target.copy_from_slice(update);
}

fn add(target: &mut [f32], update: &[f32]) {
    let sums = target.iter_mut().zip(update);
    sums.for_each(|(sum, update)| *sum += update);
}

fn average(target: &mut [f32], update: &[f32]) {
    let means = target.iter_mut().zip(update);
    means.for_each(|(mean, update)| *mean = (*mean + update) / 2.0);
}

/// Times rows of a contiguous table with each option. Calls with four rows are also timed
/// with a kept plan.
fn rows(bench: &mut Bench) {
    type Combine = fn(&mut [f32], &[f32]);
    let nd = Scatter::nd;
    let (add_all, skip) = (nd().reduction(Reduction::Add), nd().bounds(Bounds::Skip));
    let (mean, reject) = (
        nd().reduction(Reduction::Mean),
        nd().duplicates(Duplicates::Reject),
    );
    let cases: [(&str, Scatter<'_>, &[i64], Combine); 16] = [
        ("update", Scatter::along(0), ONE, replace),
        ("nd", nd(), ONE, replace),
        ("nd, 4 rows", nd(), FOUR, replace),
        ("nd, 16 rows", nd(), SIXTEEN, replace),
        ("add, 4 rows, 2 distinct", add_all.clone(), ALIKE, add),
        ("skip", skip.clone(), ONE, replace),
        ("skip, none of 4 rows", skip.clone(), FOUR, replace),
        ("skip, 2 of 4 rows", skip.clone(), PARTLY_SKIPPED, replace),
        (
            "skip, 2 of 4 rows, add",
            skip.reduction(Reduction::Add),
            PARTLY_SKIPPED,
            add,
        ),
        ("clamp", nd().bounds(Bounds::Clamp), ONE, replace),
        ("reject duplicates", reject.clone(), ONE, replace),
        ("reject duplicates, 4 rows", reject, FOUR, replace),
        ("mean", mean.clone(), ONE, average),
        ("mean, 4 rows", mean, FOUR, average),
        (
            "add without self",
            add_all.clone().include_self(false),
            ONE,
            replace,
        ),
        (
            "add without self, 4 rows",
            add_all.include_self(false),
            FOUR,
            replace,
        ),
    ];
    let (data, updates) = (numbers(ROWS * WIDTH), numbers(SIXTEEN.len() * WIDTH));
    for (name, scatter, indices, combine) in cases {
        let len = indices.len();
        let (tuples, line, updates_shape) = ([len, 1], [len], [len, WIDTH]);
        let is_update = name.starts_with("update");
        let indices_view = view(indices, if is_update { &line } else { &tuples });
        let updates = &updates[..len * WIDTH];
        let plain = |target: &mut [f32]| each_row(target, 64, (indices, updates), combine);
        let once = |target: &mut [f32]| {
            (scatter.in_place(
                view_mut(target, &TABLE),
                indices_view,
                view(updates, &updates_shape),
            ))
            .expect("in range");
        };
        bench.row(name, &data, once, plain);
        if len == FOUR.len() {
            let plan = scatter.plan(Layout::contiguous(&TABLE), indices_view);
            let plan = plan.expect("in range");
            let planned = |target: &mut [f32]| {
                (plan
                    .run()
                    .in_place(view_mut(target, &TABLE), view(updates, &updates_shape)))
                .expect("a run");
            };
            bench.row(&format!("{name}, planned"), &data, planned, plain);
        }
    }
}

/// Times tensors that are not contiguous.
fn padded_rows(bench: &mut Bench) {
    let (data, updates) = (numbers(ROWS * 80), numbers(4 * 80));
    let packed: Vec<f32> = (updates.chunks(80))
        .flat_map(|row| &row[..WIDTH])
        .copied()
        .collect();
    for indices in [ONE, FOUR] {
        let len = indices.len();
        let (tuples, updates_shape) = ([len, 1], [len, WIDTH]);
        let packed = &packed[..len * WIDTH];
        let padded =
            TensorView::strided(&updates, 0, &updates_shape, &PADDED).expect("padded rows");
        for (name, updates) in [
            ("padded data", view(packed, &updates_shape)),
            ("padded data and updates", padded),
        ] {
            let ours = |target: &mut [f32]| {
                let target = TensorViewMut::strided(target, 0, &TABLE, &PADDED);
                (Scatter::nd().in_place(target.expect("padded"), view(indices, &tuples), updates))
                    .expect("in range");
            };
            let plain = |target: &mut [f32]| each_row(target, 80, (indices, packed), replace);
            bench.row(&format!("{name}, {len}"), &data, ours, plain);
        }
    }
    let spaced: Vec<i64> = FOUR.iter().flat_map(|&index| [index, -1]).collect();
    let list = TensorView::strided(&spaced, 0, &[4, 1], &[2, 1]).expect("every other");
    let ours = |target: &mut [f32]| {
        (Scatter::nd().in_place(
            view_mut(target, &TABLE),
            list,
            view(packed.as_slice(), &[4, WIDTH]),
        ))
        .expect("in range");
    };
    let plain = |target: &mut [f32]| each_row(target, 64, (FOUR, &packed), replace);
    bench.row("spaced indices, 4", &data[..ROWS * WIDTH], ours, plain);
}

/// Times single elements, rows whose indices are given per element, and repetitions.
fn single_elements(bench: &mut Bench) {
    let (data, updates) = (numbers(ROWS * WIDTH), numbers(16 * WIDTH));
    let places = [3_i64, 60, 7, 1];
    bench.row(
        "elements, 4 of a line",
        &data,
        |target| {
            (Scatter::elements(0).in_place(
                TensorViewMut::from(target),
                TensorView::from(&places),
                TensorView::from(&updates[..4]),
            ))
            .expect("in range");
        },
        |target| {
            for (&place, &update) in places.iter().zip(&updates) {
                target[place as usize] = update;
            }
        },
    );
    bench.row(
        "elements, 1 in each of 4 rows",
        &data,
        |target| {
            (Scatter::elements(1).in_place(
                view_mut(target, &TABLE),
                view(&places, &[4, 1]),
                view(&updates[..4], &[4, 1]),
            ))
            .expect("in range");
        },
        |target| {
            for (row, (&place, &update)) in places.iter().zip(&updates).enumerate() {
                target[row * WIDTH + place as usize] = update;
            }
        },
    );
    let expanded = TensorView::strided(FOUR, 0, &[4, WIDTH], &[1, 0]).expect("rows");
    bench.row(
        "elements, 4 rows by stride 0",
        &data,
        |target| {
            (Scatter::elements(0).in_place(
                view_mut(target, &TABLE),
                expanded,
                view(&updates[..4 * WIDTH], &[4, WIDTH]),
            ))
            .expect("in range");
        },
        |target| each_row(target, 64, (FOUR, &updates), replace),
    );
    bench.row(
        "update along axis 1, 1 in each of 16",
        &data,
        |target| {
            (Scatter::along(1).in_place(
                view_mut(target, &[16, 16, WIDTH]),
                view(ONE, &[1]),
                view(&updates, &[16, 1, WIDTH]),
            ))
            .expect("in range");
        },
        |target| {
            for (slice, update) in
                (target.chunks_exact_mut(16 * WIDTH)).zip(updates.chunks_exact(WIDTH))
            {
                slice[5 * WIDTH..6 * WIDTH].copy_from_slice(update);
            }
        },
    );
}

/// Times gathers of rows, from a contiguous and from a padded table.
fn gathers(bench: &mut Bench) {
    let skip = Gather::along(0).bounds(Bounds::Skip);
    let cases = [
        ("gather", Gather::along(0), ONE, 64),
        ("gather, 4 rows", Gather::along(0), FOUR, 64),
        ("gather, skip 2 of 4 rows", skip, PARTLY_SKIPPED, 64),
        ("gather, 4 padded rows", Gather::along(0), FOUR, 80),
    ];
    for (name, gather, indices, distance) in cases {
        let table = numbers(ROWS * 80);
        let strides = [distance, 1];
        let data = match distance {
            64 => view(&table[..ROWS * WIDTH], &TABLE),
            _ => TensorView::strided(&table, 0, &TABLE, &strides).expect("padded rows"),
        };
        let (list, shape) = ([indices.len()], [indices.len(), WIDTH]);
        let ours = |target: &mut [f32]| {
            (gather.write_into(data, view(indices, &list), view_mut(target, &shape)))
                .expect("in range");
        };
        let plain = |target: &mut [f32]| {
            for (target, &index) in target.chunks_exact_mut(WIDTH).zip(indices) {
                if (0..ROWS as i64).contains(&index) {
                    let start = index as usize * distance as usize;
                    target.copy_from_slice(&table[start..start + WIDTH]);
                } else {
                    target.fill(0.0);
                }
            }
        };
        bench.row(name, &vec![0.0; indices.len() * WIDTH], ours, plain);
    }
}

/// Times writes of one token per sequence to a KV cache. The reference is a `memcpy` of each
/// row.
fn decode_steps(bench: &mut Bench) {
    let cache = vec![bf16::ZERO; SEQUENCES * HEADS * POSITIONS * DEPTH];
    let tokens: Vec<bf16> = (0..SEQUENCES * HEADS * DEPTH)
        .map(|number| bf16::from_f32(number as f32))
        .collect();
    let places = |sequences: usize, idle: usize| -> Vec<i64> {
        (0..sequences as i64)
            .map(|sequence| match sequence as usize % 4 < idle {
                true => -1,
                false => sequence * 97 % POSITIONS as i64,
            })
            .collect()
    };
    for (name, sequences, idle, mode) in [
        ("decode, 1 sequence", 1, 0, CacheMode::Linear),
        ("decode, 16 sequences", 16, 0, CacheMode::Linear),
        ("decode, 16 sequences, circular", 16, 0, CacheMode::Circular),
        (
            "decode, 16 sequences, 8 of them idle",
            16,
            2,
            CacheMode::Linear,
        ),
    ] {
        let places = places(sequences, idle);
        let bounds = if idle > 0 {
            Bounds::Skip
        } else {
            Bounds::Error
        };
        let scatter = Scatter::cache(-2, mode).bounds(bounds);
        let tokens = &tokens[..sequences * HEADS * DEPTH];
        let (shape, tokens_shape) = (
            [sequences, HEADS, POSITIONS, DEPTH],
            [sequences, HEADS, 1, DEPTH],
        );
        let ours = |target: &mut [bf16]| {
            let places = TensorView::from(&places[..]);
            (scatter.in_place(
                view_mut(target, &shape),
                places,
                view(tokens, &tokens_shape),
            ))
            .expect("places in range");
        };
        let plain = |target: &mut [bf16]| {
            for (row, token) in tokens.chunks_exact(DEPTH).enumerate() {
                if let Ok(place) = usize::try_from(places[row / HEADS]) {
                    let start = (row * POSITIONS + place) * DEPTH;
                    target[start..start + DEPTH].copy_from_slice(token);
                }
            }
        };
        bench.row(
            name,
            &cache[..sequences * HEADS * POSITIONS * DEPTH],
            ours,
            plain,
        );
    }
}
