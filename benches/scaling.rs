//! Measures how the time of a scatter grows. The sweeps change the number of tuples, the length
//! of windows, the number of duplicates, the size of data, and the number of workers.
//!
//! ```text
//! cargo bench --bench scaling -- [--only sweep,sweep] [--rounds n] [--threads n]
//!                                [--memory GiB] [--json path] [--quick]
//! ```
//!
//! Every result is compared, bit for bit, with the sequential reference loop before it is
//! timed. The quantity of a sweep doubles from point to point. If the time grows more than
//! 2.6 times, or falls below 0.85 times, both points are measured again, interleaved. Confirmed
//! findings are printed with the schedules of both points. A finding is also printed if several
//! workers need more than 1.1 times the time of one worker.

#[path = "scaling/findings.rs"]
mod findings;
#[path = "scaling/problem.rs"]
mod problem;
#[path = "scaling/sweeps.rs"]
mod sweeps;

mod common;

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use common::contenders::{Contender, calls_a_sample, time};
use common::inputs::{Form, Inputs};
use common::start_pool;
use common::workloads::WORKLOADS;
use findings::{Finding, Growth, Kind, Point, duration};
use problem::{Call, Subject};
use sweeps::{SWEEPS, Sweep};

/// Maximum calls per sample.
const SAMPLE_CALLS: u32 = 5_000;

/// Bytes from which on a call has only [`FEW_ROUNDS`] samples.
const LONG_BYTES: usize = 1 << 30;

/// Minimum samples of a median.
const FEW_ROUNDS: usize = 5;

/// Maximum bytes of a problem in a quick run.
const QUICK_BYTES: usize = 128 << 20;

/// Maximum bytes of data of a functional call.
const FUNCTIONAL_BYTES: usize = 1 << 30;

/// Unit of `x` in sweeps over the number of workers.
const WORKERS_UNIT: &str = "workers";

/// Sweeps over the number of workers: name, workload, form.
const WORKERS: [(&str, &str, Form); 5] = [
    ("workers_gnn_add", "gnn_add", Form::InPlace),
    ("workers_elem_random_add", "elem_random_add", Form::InPlace),
    ("workers_emb_update", "emb_update", Form::Functional),
    ("workers_kv_prefill", "kv_prefill", Form::InPlace),
    ("workers_kv_prefill", "kv_prefill", Form::Functional),
];

/// Measures how the time of a scatter grows with its size.
#[derive(Debug, Parser)]
struct Options {
    /// Names of sweeps, or first words of names. Default: all.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Samples of every point, at least 5.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Threads of the pool. Default: one per core.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Maximum memory of a problem. Larger problems are omitted.
    #[arg(long, value_name = "GiB", default_value_t = 16)]
    memory: usize,
    /// Omits problems of more than 128 MiB.
    #[arg(long)]
    quick: bool,
    /// File for the points, in JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Passed by `cargo bench`. Without it (`cargo test`), results are only checked.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// Returns an error unless the options are valid. `names` are the known sweeps.
    fn check(self, names: &[&str]) -> Result<Self, String> {
        let unknown =
            (self.only.iter()).find(|only| !names.iter().any(|name| is_named(name, only)));
        match unknown {
            Some(only) => Err(format!(
                "there is no sweep `{only}`; use one of {}",
                names.join(", ")
            )),
            None if self.rounds < FEW_ROUNDS => Err(format!(
                "`--rounds` is {}; use at least {FEW_ROUNDS}",
                self.rounds
            )),
            None => Ok(self),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| is_named(name, only))
    }

    /// Returns the maximum bytes of a problem.
    fn memory(&self) -> usize {
        if self.quick || !self.bench {
            QUICK_BYTES
        } else {
            self.memory << 30
        }
    }

    fn rounds(&self, bytes: usize) -> usize {
        if bytes < LONG_BYTES {
            self.rounds
        } else {
            FEW_ROUNDS
        }
    }
}

fn is_named(name: &str, only: &str) -> bool {
    name.strip_prefix(only)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn main() -> ExitCode {
    let workers = WORKERS.iter().map(|&(name, ..)| name);
    let names: Vec<_> = SWEEPS
        .iter()
        .map(|sweep| sweep.name)
        .chain(workers)
        .collect();
    let options = match Options::parse().check(&names) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    start_pool(options.threads);
    let mut report = Report::default();
    for sweep in SWEEPS.iter().filter(|sweep| options.wants(sweep.name)) {
        report.sweep(sweep, &options);
    }
    for (name, workload, form) in WORKERS.into_iter().filter(|(name, ..)| options.wants(name)) {
        report.workers(name, workload, form, &options);
    }
    report.print();
    match options
        .json
        .as_ref()
        .map_or(Ok(()), |path| report.write(path))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the points: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measured points, and the findings among them.
#[derive(Default)]
struct Report {
    points: Vec<Point>,
    findings: Vec<Finding>,
}

impl Report {
    fn sweep(&mut self, sweep: &Sweep, options: &Options) {
        let start = Instant::now();
        let xs = sweep.exponents.clone().map(|exponent| 1 << exponent);
        let points: Vec<_> = xs.flat_map(|x| measure(sweep, x, options)).collect();
        let suspects = Finding::all(&points, sweep.growth);
        let found = suspects
            .into_iter()
            .filter_map(|suspect| match suspect.kind {
                // Calls with one and with several workers were interleaved already.
                Kind::Slower => Some(suspect),
                Kind::Cliff | Kind::Drop => confirm(sweep, suspect, options),
            });
        self.findings.extend(found);
        self.add(sweep.name, sweep.unit, points, start);
    }

    fn workers(&mut self, name: &str, workload: &str, form: Form, options: &Options) {
        let start = Instant::now();
        let points = measure_workers(name, workload, form, options);
        self.findings.extend(Finding::all(&points, Growth::Workers));
        self.add(name, WORKERS_UNIT, points, start);
    }

    fn add(&mut self, name: &str, unit: &str, points: Vec<Point>, start: Instant) {
        print_points(name, unit, &points);
        self.points.extend(points);
        eprintln!("{name}: {:.1} s", start.elapsed().as_secs_f64());
    }

    fn print(&self) {
        for kind in Kind::ALL {
            let found = self.findings.iter().filter(|finding| finding.kind == kind);
            println!("\n{} {}", found.clone().count(), kind.title());
            found.for_each(|finding| println!("{finding}"));
        }
    }

    fn write(&self, path: &std::path::Path) -> std::io::Result<()> {
        let points: Vec<_> = self.points.iter().map(Point::json).collect();
        std::fs::write(path, format!("[\n{}\n]\n", points.join(",\n")))
    }
}

/// Returns the numbers of workers to try: powers of two below `threads`, and `threads`.
fn worker_counts(threads: usize) -> impl Iterator<Item = usize> {
    let powers = (0..).map(|exponent| 1 << exponent);
    powers
        .take_while(move |&workers| workers < threads)
        .chain([threads])
}

fn calls_of(sweep: &Sweep, data_bytes: usize, threads: usize) -> Vec<Call> {
    let fits = |form| form == Form::InPlace || data_bytes <= FUNCTIONAL_BYTES;
    let calls = sweep.calls.iter().filter(|(form, _)| fits(*form));
    calls
        .flat_map(|&(form, reduction)| {
            worker_counts(threads).map(move |workers| Call {
                form,
                reduction,
                workers,
            })
        })
        .collect()
}

/// Checks and times every call of one problem. Returns no points for a problem that needs too
/// much memory.
fn measure(sweep: &Sweep, x: usize, options: &Options) -> Vec<Point> {
    let problem = (sweep.problem)(x);
    let calls = calls_of(sweep, problem.data_bytes(), rayon::current_num_threads());
    let has_functional = calls.iter().any(|call| call.form == Form::Functional);
    if problem.footprint(has_functional) > options.memory() {
        return Vec::new();
    }
    let subject = Subject::new(problem, has_functional);
    let mut target = subject.target();
    for &call in &calls {
        subject.check(call, &mut target);
    }
    if !options.bench {
        return Vec::new();
    }
    let contenders: Vec<_> = calls
        .iter()
        .map(|&call| contender(&subject, call))
        .collect();
    let bytes: Vec<_> = calls.iter().map(|&call| subject.traffic(call)).collect();
    let most = bytes.iter().copied().max().unwrap_or(0);
    let times = time(
        &contenders,
        &mut target,
        options.rounds(most),
        calls_a_sample(most, SAMPLE_CALLS),
    );
    (calls.iter().zip(bytes).zip(times))
        .map(|((&call, bytes), time)| Point {
            sweep: sweep.name.into(),
            call,
            x,
            tuples: problem.tuples,
            bytes,
            schedule: subject.schedule(call),
            time,
        })
        .collect()
}

fn contender(subject: &Subject, call: Call) -> Contender<'_> {
    Contender::new(call.to_string(), move |target, _| {
        subject.run(call, target);
        None
    })
}

/// Measures both points again, interleaved. Returns `None` if the finding is not confirmed.
fn confirm(sweep: &Sweep, suspect: Finding, options: &Options) -> Option<Finding> {
    let (
        Finding {
            kind,
            mut from,
            mut to,
        },
        call,
    ) = (suspect.clone(), suspect.from.call);
    let is_functional = call.form == Form::Functional;
    let subjects = [&from, &to].map(|point| Subject::new((sweep.problem)(point.x), is_functional));
    let [longer, other] = [&subjects[0], &subjects[1]].map(Subject::target);
    let mut target = if longer.len() > other.len() {
        longer
    } else {
        other
    };
    let contenders = subjects.each_ref().map(|subject| contender(subject, call));
    for contender in &contenders {
        contender.run(&mut target, 0);
    }
    let bytes = from.bytes.max(to.bytes);
    let times = time(
        &contenders,
        &mut target,
        options.rounds(bytes),
        calls_a_sample(bytes, SAMPLE_CALLS),
    );
    (from.time, to.time) = (times[0], times[1]);
    kind.is_seen(from.time, to.time)
        .then_some(Finding { kind, from, to })
}

/// Measures a workload of the other benches with each number of workers.
fn measure_workers(name: &str, workload: &str, form: Form, options: &Options) -> Vec<Point> {
    let workload = WORKLOADS.iter().find(|known| known.name == workload);
    let inputs = Inputs::new(*workload.expect("a known workload"));
    let reduction = inputs.workload.reduction;
    let calls: Vec<_> = (1..=rayon::current_num_threads())
        .map(|workers| Call {
            form,
            reduction,
            workers,
        })
        .collect();
    let contenders: Vec<_> = (calls.iter())
        .map(|call| {
            Contender::new(call.to_string(), |target: &mut [f32], set| {
                inputs.scatter(call.execution(), form, target, set)
            })
        })
        .collect();
    let mut target = inputs.target();
    let expected = inputs.expected(0);
    for contender in &contenders {
        contender.check(&mut target, &inputs.data, 0, &expected);
    }
    if !options.bench {
        return Vec::new();
    }
    let bytes = inputs.traffic(form, 0).total();
    let times = time(
        &contenders,
        &mut target,
        options.rounds(bytes),
        calls_a_sample(bytes, SAMPLE_CALLS),
    );
    (calls.iter().zip(times))
        .map(|(&call, time)| Point {
            sweep: name.into(),
            call,
            x: call.workers,
            tuples: inputs.workload.tuples(),
            bytes,
            schedule: inputs.schedule(call.execution(), form),
            time,
        })
        .collect()
}

/// Prints a line for each `x`, with a column for each call.
fn print_points(name: &str, unit: &str, points: &[Point]) {
    for (number, same_x) in points.chunk_by(|a, b| a.x == b.x).enumerate() {
        if number == 0 {
            let titles = same_x.iter().map(|point| match unit {
                WORKERS_UNIT => point.call.kind(),
                _ => point.call.to_string(),
            });
            let titles: String = titles.map(|title| format!(" {title} |")).collect();
            let rule = "---|".repeat(1 + same_x.len());
            println!("\n{name}\n\n| {unit} |{titles}\n|{rule}");
        }
        let cells = same_x.iter().map(|point| {
            let (time, schedule) = (duration(point.time.median), point.schedule);
            format!(" {time} {schedule} |")
        });
        println!("| {} |{}", same_x[0].x, cells.collect::<String>());
    }
}
