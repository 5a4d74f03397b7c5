//! Measures calls that share the machine: with other callers in the same process, and with
//! a second process that keeps one core busy.
//!
//! ```sh
//! cargo bench --bench callers
//! ```
//!
//! - *Concurrent callers*: 1, 2, 4 and 8 threads call in a loop, each with its own tensors.
//!   The table compares their calls per second with the default pool and with
//!   `CallingThread`.
//! - *Busy neighbour*: a second process spins. The table compares the default call with the
//!   serial schedule, both while the process spins.
//!
//! Every result is compared, bit for bit, with the sequential reference loop. `cargo test`
//! checks the results of concurrent callers and measures nothing.

mod common;

use std::process::{Child, Command};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::inputs::{Form, Inputs, SETS};
use common::workloads::{Pattern, WORKLOADS, Workload, nd};
use ndscatter::{CallingThread, Execution, Reduction};

/// Argument that makes this program the spinning process.
const SPIN: &str = "--spin";

/// Throughput measurements per number of callers. The printed row is their median.
const TURNS: usize = 5;

/// Duration of one throughput measurement.
const COUNTED: Duration = Duration::from_millis(400);

/// Timed calls per row of the table with a busy neighbour.
const ROUNDS: usize = 50;

/// Calls shorter than this are marked "short" in the table. They have no target ratio.
const LONG: Duration = Duration::from_millis(10);

/// Calls shorter than this are not printed: they end before a worker is awake.
const SHORTEST: Duration = Duration::from_micros(300);

#[rustfmt::skip] // A table: from 64 KiB to 64 MiB of updates.
const REQUESTS: [Workload; 8] = [
    nd("rows", &[20_000, 64], &[256, 1], Reduction::Add, Pattern::Uniform),
    nd("rows", &[20_000, 64], &[4096, 1], Reduction::Add, Pattern::Uniform),
    nd("rows", &[20_000, 64], &[65_536, 1], Reduction::Add, Pattern::Uniform),
    nd("rows", &[80_000, 64], &[262_144, 1], Reduction::Add, Pattern::Uniform),
    nd("rows", &[200_000, 64], &[4096, 1], Reduction::None, Pattern::Uniform),
    nd("rows", &[200_000, 64], &[65_536, 1], Reduction::None, Pattern::Uniform),
    nd("elements", &[1 << 22], &[1 << 20, 1], Reduction::Add, Pattern::Uniform),
    nd("elements", &[1 << 22], &[1 << 20, 1], Reduction::None, Pattern::Uniform),
];

fn main() {
    let has_argument = |flag: &str| std::env::args().any(|argument| argument == flag);
    if has_argument(SPIN) {
        spin();
    }
    // `cargo test` runs benches too, without `--bench`. It only checks results.
    let checks_only = !has_argument("--bench");
    concurrent_callers(checks_only);
    if !checks_only {
        with_a_busy_neighbour();
    }
}

/// Keeps a core busy until the process is killed.
fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Panics unless concurrent callers get the bits of the reference loop.
fn check_callers(requests: Workload) {
    let inputs = &Inputs::new(requests);
    thread::scope(|scope| {
        for caller in 0..4 {
            scope.spawn(move || {
                let set = caller % SETS;
                let (mut target, expected) = (inputs.target(), inputs.expected(set));
                inputs.check(Form::InPlace, &mut target, &expected, |target| {
                    inputs.scatter(Execution::new(), Form::InPlace, target, set);
                });
            });
        }
    });
}

/// Returns the calls per second of `callers` threads together. Each has its own tensors.
fn throughput(requests: Workload, callers: usize, execution: Execution<'_>) -> f64 {
    let (counted, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let ready = Barrier::new(callers + 1);
    thread::scope(|scope| {
        for caller in 0..callers {
            let (counted, is_over, ready) = (&counted, &is_over, &ready);
            scope.spawn(move || {
                let inputs = Inputs::new(requests);
                let mut target = inputs.target();
                let mut call = || {
                    inputs.scatter(execution, Form::InPlace, &mut target, caller % SETS);
                };
                call();
                ready.wait();
                while !is_over.load(Ordering::Relaxed) {
                    call();
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

fn concurrent_callers(checks_only: bool) {
    println!("| rows | table | reduction | callers | default, calls/s | calling thread | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for requests in REQUESTS {
        check_callers(requests);
        if checks_only {
            continue;
        }
        for callers in [1, 2, 4, 8] {
            let mut turns = [(); TURNS].map(|()| {
                let default = throughput(requests, callers, Execution::new());
                let alone = Execution::new().pool(&CallingThread);
                (default, throughput(requests, callers, alone))
            });
            turns.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
            let (default, alone) = turns[TURNS / 2];
            println!(
                "| {} of {} | {} | {} | {callers} | {default:.0} | {alone:.0} | {:.2} |",
                requests.tuples(),
                requests.window(),
                requests.slices(),
                requests.reduction,
                default / alone
            );
        }
    }
}

/// A process that spins until this value is dropped.
struct Neighbour(Child);

impl Neighbour {
    fn new() -> Self {
        let this = std::env::current_exe().expect("the path of this program");
        Self(
            Command::new(this)
                .arg(SPIN)
                .spawn()
                .expect("a started process"),
        )
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("an ended process");
    }
}

fn with_a_busy_neighbour() {
    println!("\n| workload | form | call | serial, ms | default, ms | serial: default | |");
    println!("|---|---|---|---|---|---|---|");
    let _neighbour = Neighbour::new();
    for workload in WORKLOADS {
        let inputs = Inputs::new(workload);
        let mut target = inputs.target();
        let expected = inputs.expected(0);
        for form in [Form::InPlace, Form::Functional] {
            inputs.check(form, &mut target, &expected, |target| {
                inputs.scatter(Execution::new(), form, target, 0);
            });
            for is_planned in [false, true] {
                let call = if is_planned { "planned" } else { "one-shot" };
                let [serial, default] = times(&inputs, form, is_planned, &mut target);
                if default >= SHORTEST {
                    let note = if default < LONG { "short" } else { "" };
                    let [serial, default] = [serial, default].map(|time| time.as_secs_f64() * 1e3);
                    println!(
                        "| {} | {form} | {call} | {serial:.2} | {default:.2} | {:.2} | {note} |",
                        workload.name,
                        serial / default
                    );
                }
            }
        }
    }
}

/// Returns the median times of serial and default calls, which are interleaved.
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

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
