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

/// Shorter calls are reported, and have no aim.
const LONG: Duration = Duration::from_millis(10);

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
    let checks_only = !is_asked("--bench");
    side_by_side(checks_only);
    beside_a_neighbour(checks_only);
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

    /// Panics unless callers side by side get what one gets alone.
    fn check(&self) {
        let mut alone = self.caller(0);
        self.call(&mut alone, Execution::new().pool(&CallingThread));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut caller = self.caller(0);
                    self.call(&mut caller, Execution::new());
                    assert!(caller.data == alone.data, "{} rows", self.rows);
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

fn beside_a_neighbour(checks_only: bool) {
    println!("\n| workload | form | call | serial, ms | default, ms | serial: default | |");
    println!("|---|---|---|---|---|---|---|");
    let _neighbour = (!checks_only).then(Neighbour::new);
    for workload in WORKLOADS {
        if checks_only {
            break; // `ratios` has compared them.
        }
        let inputs = Inputs::new(workload);
        let mut target = inputs.target();
        let plan = inputs.plan(0);
        check(&inputs, &mut target);
        for form in [Form::InPlace, Form::Functional] {
            for is_planned in [false, true] {
                let mut time = |execution| {
                    let start = Instant::now();
                    if is_planned {
                        inputs.scatter_planned(&plan, execution, form, &mut target);
                    } else {
                        inputs.scatter(execution, form, &mut target, 0);
                    }
                    start.elapsed()
                };
                let mut times = [Vec::new(), Vec::new()];
                for round in 0..2 * ROUNDS {
                    let which = round % 2;
                    let alone = Execution::new().pool(&CallingThread);
                    times[which].push(time([alone, Execution::new()][which]));
                }
                let [serial, default] = times.map(median);
                if default < Duration::from_micros(300) {
                    continue;
                }
                let note = if default < LONG { "short" } else { "" };
                println!(
                    "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {note} |",
                    workload.name,
                    if form == Form::InPlace {
                        "in place"
                    } else {
                        "functional"
                    },
                    if is_planned { "planned" } else { "once" },
                    serial.as_secs_f64() * 1e3,
                    default.as_secs_f64() * 1e3,
                    serial.as_secs_f64() / default.as_secs_f64()
                );
            }
        }
    }
}

/// Panics unless a call in place leaves the bits of the plain loop; `target` has them
/// then.
fn check(inputs: &Inputs, target: &mut [f32]) {
    target.copy_from_slice(&inputs.data);
    inputs.scatter(Execution::new(), Form::InPlace, target, 0);
    let expected = inputs.expected(0);
    let differs = |(is, not): (&f32, &f32)| is.to_bits() != not.to_bits();
    let differs = target.iter().zip(&expected).any(differs);
    assert!(!differs, "{}", inputs.workload.name);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
