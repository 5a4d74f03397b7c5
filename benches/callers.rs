//! What happens to a call that is not alone on the machine: callers side by side, and
//! a neighbour that keeps one core busy.
//!
//! ```sh
//! cargo bench --bench callers
//! ```
//!
//! - *Side by side*: calls a second of 1, 2, 4 and 8 threads that call again and again,
//!   each with tensors of its own: with the default pool, and with `CallingThread`.
//! - *A neighbour*: calls beside a process that spins, against the serial schedule
//!   beside the same one.

mod common;

use std::process::{Child, Command};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::inputs::{Form, Inputs};
use common::random::Random;
use common::workloads::WORKLOADS;
use ndscatter::{CallingThread, Execution, Reduction, Scatter, TensorView, TensorViewMut};

/// Makes this program the neighbour.
const SPIN: &str = "--spin";

/// How often callers are counted, and how long; calls beside the neighbour.
const TURNS: usize = 5;
const COUNTED: Duration = Duration::from_millis(400);
const ROUNDS: usize = 50;

/// Shorter calls are reported, and have no aim; of those that are over before a worker
/// is awake nothing is said.
const LONG: Duration = Duration::from_millis(10);
const SHORTEST: Duration = Duration::from_micros(300);

/// Rows of so many `f32` into a table of so many.
struct Requests {
    rows: usize,
    width: usize,
    table: usize,
    reduction: Reduction,
}

#[rustfmt::skip] // A table: from 64 KiB to 64 MiB of updates.
const REQUESTS: [Requests; 8] = [
    Requests { rows: 256, width: 64, table: 20_000, reduction: Reduction::Add },
    Requests { rows: 4096, width: 64, table: 20_000, reduction: Reduction::Add },
    Requests { rows: 65_536, width: 64, table: 20_000, reduction: Reduction::Add },
    Requests { rows: 262_144, width: 64, table: 80_000, reduction: Reduction::Add },
    Requests { rows: 4096, width: 64, table: 200_000, reduction: Reduction::None },
    Requests { rows: 65_536, width: 64, table: 200_000, reduction: Reduction::None },
    Requests { rows: 1 << 20, width: 1, table: 1 << 22, reduction: Reduction::Add },
    Requests { rows: 1 << 20, width: 1, table: 1 << 22, reduction: Reduction::None },
];

fn main() {
    let is_asked = |flag: &str| std::env::args().any(|argument| argument == flag);
    if is_asked(SPIN) {
        spin();
    }
    // `cargo test` runs benches too, and is content with correct results.
    let checks_only = !is_asked("--bench");
    side_by_side(checks_only);
    if !checks_only {
        beside_a_neighbour();
    }
}

/// Keeps a core busy until it is killed.
fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// One caller's tensors.
struct Caller {
    indices: Vec<i64>,
    updates: Vec<f32>,
    data: Vec<f32>,
}

impl Requests {
    fn caller(&self, number: u64) -> Caller {
        let mut random = Random::new(1 + number);
        let indices = random.uniform(self.rows, self.table).into_iter();
        let mut updates = vec![0.0; self.rows * self.width];
        random.fill(&mut updates);
        Caller {
            indices: indices
                .map(|row| i64::try_from(row).expect("a row"))
                .collect(),
            updates,
            data: vec![0.0; self.table * self.width],
        }
    }

    fn call(&self, caller: &mut Caller, execution: Execution<'_>) {
        let (table, list) = ([self.table, self.width], [self.rows, self.width]);
        let tuples = [self.rows, 1];
        let data = TensorViewMut::contiguous(&mut caller.data, &table);
        let indices = TensorView::contiguous(&caller.indices, &tuples);
        let updates = TensorView::contiguous(&caller.updates, &list);
        let scatter = Scatter::nd().reduction(self.reduction).execution(execution);
        scatter
            .in_place(
                data.expect("data"),
                indices.expect("indices"),
                updates.expect("updates"),
            )
            .expect("rows of the table");
    }

    /// What one update after another makes of the data.
    fn expected(&self) -> Vec<f32> {
        let mut caller = self.caller(0);
        let updates = caller.updates.chunks_exact(self.width);
        for (&row, update) in caller.indices.iter().zip(updates) {
            let row = usize::try_from(row).expect("a row") * self.width;
            for (value, &update) in caller.data[row..].iter_mut().zip(update) {
                *value = match self.reduction {
                    Reduction::Add => *value + update,
                    _ => update,
                };
            }
        }
        caller.data
    }

    /// Panics unless callers side by side get the bits of the plain loop.
    fn check(&self) {
        let expected = self.expected();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut caller = self.caller(0);
                    self.call(&mut caller, Execution::new());
                    assert!(are_bits(&caller.data, &expected), "{} rows", self.rows);
                });
            }
        });
    }

    /// Calls a second of so many callers.
    fn throughput(&self, callers: usize, execution: Execution<'_>) -> f64 {
        let (counted, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let ready = Barrier::new(callers + 1);
        thread::scope(|scope| {
            for number in 0..callers {
                let (counted, is_over, ready) = (&counted, &is_over, &ready);
                scope.spawn(move || {
                    let mut caller = self.caller(number as u64);
                    self.call(&mut caller, execution);
                    ready.wait();
                    while !is_over.load(Ordering::Relaxed) {
                        self.call(&mut caller, execution);
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            ready.wait();
            let (start, before) = (Instant::now(), counted.load(Ordering::Relaxed));
            thread::sleep(COUNTED);
            let calls = counted.load(Ordering::Relaxed) - before;
            is_over.store(true, Ordering::Relaxed);
            calls as f64 / start.elapsed().as_secs_f64()
        })
    }
}

fn side_by_side(checks_only: bool) {
    println!("| rows | table | reduction | callers | default, calls/s | calling thread | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for requests in &REQUESTS {
        requests.check();
        if checks_only {
            continue;
        }
        for callers in [1, 2, 4, 8] {
            let mut turns = [(); TURNS].map(|()| {
                let default = requests.throughput(callers, Execution::new());
                let alone = Execution::new().pool(&CallingThread);
                (default, requests.throughput(callers, alone))
            });
            turns.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
            let (default, alone) = turns[TURNS / 2];
            println!(
                "| {} of {} | {} | {} | {callers} | {default:.0} | {alone:.0} | {:.2} |",
                requests.rows,
                requests.width,
                requests.table,
                requests.reduction,
                default / alone
            );
        }
    }
}

/// A process that spins, until it is dropped.
struct Neighbour(Child);

impl Neighbour {
    fn new() -> Self {
        let this = std::env::current_exe().expect("this program has a file");
        Self(Command::new(this).arg(SPIN).spawn().expect("it starts"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("the neighbour ends");
    }
}

fn beside_a_neighbour() {
    println!("\n| workload | form | call | serial, ms | default, ms | serial: default | |");
    println!("|---|---|---|---|---|---|---|");
    let _neighbour = Neighbour::new();
    for workload in WORKLOADS {
        let inputs = Inputs::new(workload);
        let mut target = inputs.target();
        for (form, name) in [
            (Form::InPlace, "in place"),
            (Form::Functional, "functional"),
        ] {
            check(&inputs, form, &mut target);
            for is_planned in [false, true] {
                let call = if is_planned { "planned" } else { "once" };
                let [serial, default] = times(&inputs, form, is_planned, &mut target);
                if default >= SHORTEST {
                    let note = if default < LONG { "short" } else { "" };
                    let [serial, default] = [serial, default].map(|time| time.as_secs_f64() * 1e3);
                    println!(
                        "| {} | {name} | {call} | {serial:.2} | {default:.2} | {:.2} | {note} |",
                        workload.name,
                        serial / default
                    );
                }
            }
        }
    }
}

/// Medians of serial and default calls, in turns.
fn times(inputs: &Inputs, form: Form, is_planned: bool, target: &mut [f32]) -> [Duration; 2] {
    let plan = is_planned.then(|| inputs.plan(0));
    let executions = [Execution::new().pool(&CallingThread), Execution::new()];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (times, execution) in times.iter_mut().zip(executions) {
            let start = Instant::now();
            match &plan {
                Some(plan) => inputs.scatter_planned(plan, execution, form, target),
                None => inputs.scatter(execution, form, target, 0),
            };
            times.push(start.elapsed());
        }
    }
    times.map(median)
}

/// Panics unless a call leaves the bits of the plain loop.
fn check(inputs: &Inputs, form: Form, target: &mut [f32]) {
    match form {
        Form::InPlace => target.copy_from_slice(&inputs.data),
        _ => target.fill(f32::NAN),
    }
    inputs.scatter(Execution::new(), form, target, 0);
    let name = inputs.workload.name;
    assert!(are_bits(target, &inputs.expected(0)), "{name}");
}

fn are_bits(result: &[f32], expected: &[f32]) -> bool {
    let mut pairs = result.iter().zip(expected);
    result.len() == expected.len() && pairs.all(|(is, not)| is.to_bits() == not.to_bits())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
