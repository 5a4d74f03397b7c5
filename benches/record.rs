//! Records the times of 320 problems on this machine: with every schedule that applies, with
//! variants of the kernels, on one worker and on all. Tests and fits of the choice of schedules
//! use the records.
//!
//! ```text
//! cargo bench --bench record -- --out benches/machines/NAME.json
//! cargo bench --bench record -- --report benches/machines/NAME.json
//! ```
//!
//! Every result is compared, bit for bit, with the sequential reference loop before it is
//! timed. A record needs a quarter of an hour on two cores, 24 GiB of memory, and a machine
//! without other load.

mod common;
#[path = "record/file.rs"]
mod file;
#[path = "record/machine.rs"]
mod machine;
#[path = "record/names.rs"]
mod names;
#[path = "record/problem.rs"]
mod problem;
#[path = "record/subject.rs"]
mod subject;
#[path = "record/variants.rs"]
mod variants;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use common::numbers::Number;
use common::{random, start_pool};
use file::{Call, DEFAULT, Entry, FORMAT, Record};
use half::f16;
use indicatif::{ProgressBar, ProgressStyle};
use ndscatter::DType;
use problem::Problem;
use subject::Subject;

/// Records a machine, or prints a report on a record.
#[derive(Debug, Parser)]
struct Options {
    /// File for the record.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Prints a report on this record and measures nothing.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Range of problem numbers, as from..to, without the end.
    #[arg(long, value_parser = range)]
    only: Option<std::ops::Range<usize>>,
    /// Threads of the pool. Default: one per core.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Passed by `cargo bench`. Without it (`cargo test`), only 12 small problems run.
    #[arg(long, hide = true)]
    bench: bool,
}

fn range(text: &str) -> Result<std::ops::Range<usize>, String> {
    let parts = text
        .split_once("..")
        .ok_or("a range has the form from..to")?;
    let number = |text: &str| text.parse().map_err(|e| format!("{text}: {e}"));
    Ok(number(parts.0)?..number(parts.1)?)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.report {
        Some(path) => Record::read(path).map(|record| report(&record)),
        None => record(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Bytes below which a problem is used in a check.
const CHECKED_BYTES: u64 = 1 << 20;

fn record(options: &Options) -> Result<(), String> {
    let threads = start_pool(options.threads);
    let mut problems = Problem::all();
    if let Some(only) = &options.only {
        problems.retain(|problem| only.contains(&problem.number));
    }
    if !options.bench {
        problems.retain(|problem| problem.moved_bytes() < CHECKED_BYTES);
        problems.truncate(12);
    }
    let bar = ProgressBar::new(problems.len() as u64);
    let style = ProgressStyle::with_template("{elapsed} {wide_bar} {pos} of {len}, {eta} left");
    bar.set_style(style.map_err(|e| e.to_string())?);
    let mut record = Record {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        machine: machine::describe(threads),
        entries: Vec::new(),
    };
    for problem in problems {
        let number = problem.number;
        let start = Instant::now();
        record.entries.push(entry(problem, threads));
        // Write after every problem, so a stopped run keeps its finished entries.
        if let Some(path) = &options.out {
            record.write(path)?;
        }
        bar.inc(1);
        if bar.is_hidden() {
            eprintln!("problem {number}: {:.1} s", start.elapsed().as_secs_f64());
        }
    }
    bar.finish();
    if options.bench {
        report(&record);
    } else {
        println!("all results equal the reference loop");
    }
    Ok(())
}

fn entry(problem: Problem, threads: usize) -> Entry {
    match problem.dtype {
        DType::F32 => typed::<f32>(problem, threads),
        DType::F16 => typed::<f16>(problem, threads),
        DType::I64 => typed::<i64>(problem, threads),
        DType::U8 => typed::<u8>(problem, threads),
        other => unreachable!("no problem has elements of {other}"),
    }
}

fn typed<T: Number>(problem: Problem, threads: usize) -> Entry {
    let mut subject = Subject::<T>::new(&problem);
    let chosen = subject.chosen(threads);
    let times = subject.times(threads);
    drop(subject);
    Entry {
        problem,
        chosen,
        times,
    }
}

/// Number of worst choices that are printed for each kind of call.
const WORST: usize = 8;

/// Prints the regret of the recorded choices: their time divided by the best time.
fn report(record: &Record) {
    let machine = &record.machine;
    let (processor, threads, version) = (&machine.processor, machine.threads, &record.version);
    println!("{processor}, {threads} threads, version {version}");
    println!(
        "| workers | call | problems | median | 95th percentile | worst |\n\
         |---|---|---|---|---|---|"
    );
    let mut worst = Vec::new();
    for (workers, is_planned) in [(1, false), (1, true), (threads, false), (threads, true)] {
        let call = Call {
            schedule: DEFAULT.into(),
            workers,
            is_planned,
        };
        let mut regrets: Vec<(f64, &Entry)> = (record.entries.iter())
            .filter_map(|entry| Some((entry.regret(&call)?, entry)))
            .collect();
        regrets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(last) = regrets.len().checked_sub(1) else {
            continue;
        };
        let [median, most, all] = [50, 95, 100].map(|percent| regrets[last * percent / 100].0);
        let kind = if is_planned { "planned" } else { "one-shot" };
        let problems = regrets.len();
        println!("| {workers} | {kind} | {problems} | {median:.2} | {most:.2} | {all:.2} |");
        let first = regrets.len().saturating_sub(WORST);
        worst.extend(regrets.drain(first..).map(|found| (call.clone(), found)));
    }
    for (call, (regret, entry)) in worst {
        let of_call =
            |chosen: &&Call| chosen.workers == call.workers && chosen.is_planned == call.is_planned;
        let chosen = entry.chosen.iter().find(of_call);
        let schedule = chosen.map_or("", |chosen| &chosen.schedule);
        println!("{regret:.2} by {schedule}, {call:?}: {:?}", entry.problem);
        for (call, time) in &entry.times {
            println!("    {call:?}: {time:?}");
        }
    }
    report_variants(record);
}

/// Minimum nanoseconds of a call in the report on variants. In shorter calls the choice of the
/// schedule is a large part of the time, and variants run with a forced schedule.
const LONG: u64 = 100_000;

/// Prints the time of each variant of the kernels, divided by the time of its schedule with the
/// default kernels.
fn report_variants(record: &Record) {
    println!(
        "\n| variant | workers | problems | minimum | 5th percentile | median | 95th percentile \
         | maximum |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let mut ratios: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    for entry in &record.entries {
        for (call, time) in entry.times.iter().filter(|(call, _)| call.is_variant()) {
            if let Some(without) = entry.time_of_chosen(call.workers, call.is_planned)
                && without.median >= LONG
            {
                #[allow(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
                let ratio = time.median as f64 / without.median as f64;
                let name = call.schedule.as_str();
                ratios.entry((name, call.workers)).or_default().push(ratio);
            }
        }
    }
    for ((variant, workers), mut ratios) in ratios {
        ratios.sort_by(f64::total_cmp);
        let problems = ratios.len();
        let parts = [0, 5, 50, 95, 100].map(|percent| ratios[(problems - 1) * percent / 100]);
        let parts = parts.map(|part| format!("{part:.2}")).join(" | ");
        println!("| {variant} | {workers} | {problems} | {parts} |");
    }
}
