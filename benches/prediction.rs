//! Predicts the time of calls with more workers than the machine has.
//!
//! ```text
//! cargo bench --bench prediction -- [--only name,name] [--rounds n] [--regions]
//!                                  [--force schedule]
//! ```
//!
//! - `--only`: names of problems. Default: all.
//! - `--rounds`: samples of every call, at least 5.
//! - `--regions`: also prints every step with tasks, with 16 workers.
//! - `--force`: uses this schedule where it applies, instead of the chosen one.
//!
//! A pool claims to have 4, 16 or 64 workers. It runs the tasks of a call one by one on the
//! calling thread, and times each. The predicted time is the time outside of tasks, plus the
//! span of each step. The span of a step ends when its last task ends, if each worker takes the
//! next task as soon as it is free. Every time is a median over the rounds of the thread's CPU
//! time, so other processes do not count.
//!
//! The prediction omits the effects of workers on each other: each worker has the whole memory
//! bandwidth and the whole last-level cache, and all begin at once. On a real machine, each
//! step costs tens of microseconds more until workers are awake; the tables show the number of
//! steps. A call in which one core almost saturates memory is limited by the bandwidth.
//!
//! Some tasks take pieces of work from a counter, for example the tasks of partitions. The first
//! task that runs would take all pieces. The pool therefore requests one task per piece
//! (`Pool::sees_pieces`).
//!
//! Every result is compared, bit for bit, with the sequential reference loop before it is timed.

mod common;
#[path = "prediction/forecast.rs"]
mod forecast;
#[path = "prediction/report.rs"]
mod report;
#[path = "prediction/subject.rs"]
mod subject;
#[path = "prediction/turns.rs"]
mod turns;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use common::contenders::CALL_BYTES;
use common::inputs::{Form, Inputs};
use common::numbers::Number;
use common::random::Random;
use common::workloads::{Pattern, WORKLOADS, Workload, nd, update};
use forecast::{Forecast, Sample, span};
use ndscatter::{Reduction, Schedule};
use report::{Aim, Report, Row};
use subject::{Subject, Way};

/// Numbers of workers. The time with one is measured, the others are predicted.
const WORKERS: [usize; 4] = [1, 4, 16, 64];

/// Minimum samples of a median.
const FEW_ROUNDS: usize = 5;

/// Shape of the keys of a histogram.
const KEYS: [usize; 2] = [4 << 20, 1];

/// Shape of the keys in a check. They are enough to be divided among workers.
const CHECKED_KEYS: [usize; 2] = [300_000, 1];

/// Workloads that only this bench has.
#[rustfmt::skip] // A table.
const OTHERS: [Workload; 2] = [
    nd("rows_20000_update", &[20_000, 64], &[20_000, 1], Reduction::None, Pattern::Unique),
    nd("rows_20000_add", &[20_000, 64], &[20_000, 1], Reduction::Add, Pattern::Uniform),
];

/// Small workloads for a check: rows and elements, with several kinds of schedule.
#[rustfmt::skip] // A table.
const CHECKED: [Workload; 4] = [
    nd("rows_update", &[4000, 64], &[2000, 1], Reduction::None, Pattern::Unique),
    nd("rows_add", &[4000, 64], &[16_000, 1], Reduction::Add, Pattern::Uniform),
    nd("elements_add", &[1 << 20], &[1 << 18, 1], Reduction::Add, Pattern::Uniform),
    update("batches", &[8, 256, 32], &[1000], 1, Reduction::None, Pattern::Uniform),
];

/// Predicts the time of calls with more workers than the machine has.
#[derive(Debug, Parser)]
struct Options {
    /// Names of problems. Default: all.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Samples of every call, at least 5.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Also prints every step with tasks, with 16 workers.
    #[arg(long)]
    regions: bool,
    /// Schedule of calls with several workers, where it applies.
    #[arg(long)]
    force: Option<Schedule>,
    /// Passed by `cargo bench`. Without it (`cargo test`), results are only checked.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn check(self) -> Result<Self, String> {
        let names = self.names();
        match self
            .only
            .iter()
            .find(|only| !names.contains(&only.as_str()))
        {
            Some(only) => Err(format!(
                "there is no problem `{only}`; use one of {}",
                names.join(", ")
            )),
            None if self.rounds < FEW_ROUNDS => Err(format!(
                "`--rounds` is {}; use at least {FEW_ROUNDS}",
                self.rounds
            )),
            None => Ok(self),
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let workloads = self.workloads().map(|workload| workload.name);
        workloads.chain(HISTOGRAMS.iter().map(|h| h.name)).collect()
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    fn workloads(&self) -> impl Iterator<Item = &'static Workload> {
        let (all, few) = ([&WORKLOADS[..], &OTHERS], [&CHECKED[..], &[]]);
        (if self.bench { all } else { few }).into_iter().flatten()
    }

    fn keys(&self) -> &'static [usize] {
        if self.bench { &KEYS } else { &CHECKED_KEYS }
    }

    fn rounds(&self) -> usize {
        if self.bench { self.rounds } else { 1 }
    }
}

fn main() -> ExitCode {
    let options = match Options::parse().check() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    check_spans();
    let mut report = Report::default();
    for workload in options.workloads().filter(|w| options.wants(w.name)) {
        let start = Instant::now();
        of_workload(*workload, &options, &mut report);
        eprintln!("{}: {:.1} s", workload.name, start.elapsed().as_secs_f64());
    }
    for histogram in HISTOGRAMS.iter().filter(|h| options.wants(h.name)) {
        (histogram.measure)(histogram, &options, &mut report);
    }
    if options.bench {
        report.print(options.regions);
    } else {
        println!("all results equal the reference loop");
    }
    ExitCode::SUCCESS
}

/// Checks [`span`] on small examples. Panics if a span is wrong.
fn check_spans() {
    for (tasks, workers, expected) in [
        (&[][..], 4, 0.0),
        (&[3.0, 1.0, 1.0, 1.0], 2, 3.0),
        (&[1.0, 1.0, 1.0, 3.0], 2, 4.0),
        (&[2.0, 2.0], 64, 2.0),
    ] {
        let is = span(tasks, workers);
        assert!(
            is == expected,
            "the span of {tasks:?} with {workers} workers is {is}; expected {expected}"
        );
    }
}

fn of_workload(workload: Workload, options: &Options, report: &mut Report) {
    let subject = Subject::new(Inputs::new(workload));
    // Sums of few bins are sequential: each update depends on the one before.
    let aim = match workload.name {
        "histogram_add" => Aim::None,
        _ => Aim::Throughput,
    };
    for form in [Form::InPlace, Form::Functional] {
        if !options.bench || subject.bytes(form) >= CALL_BYTES {
            measure(&subject, form, aim, options, report);
        }
    }
}

/// Name, shape of the bins, target and measurement of a histogram.
struct Histogram {
    name: &'static str,
    bins: &'static [usize],
    aim: Aim,
    measure: fn(&Histogram, &Options, &mut Report),
}

#[rustfmt::skip] // A table.
const HISTOGRAMS: [Histogram; 10] = [
    histogram("counts_u32", &[1000], Aim::Merged, counts::<u32>),
    histogram("counts_u32_many", &[65_536], Aim::Merged, counts::<u32>),
    histogram("counts_u8", &[1000], Aim::Merged, counts::<u8>),
    histogram("counts_u8_many", &[65_536], Aim::Merged, counts::<u8>),
    histogram("counts_i64", &[1000], Aim::Merged, counts::<i64>),
    histogram("counts_i64_many", &[65_536], Aim::Merged, counts::<i64>),
    histogram("maxima_f32", &[1000], Aim::Merged, |it, options, report| numbers(it, Reduction::Max, options, report)),
    histogram("sums_f32", &[1000], Aim::None, |it, options, report| numbers(it, Reduction::Add, options, report)),
    histogram("sums_f32_many", &[65_536], Aim::None, |it, options, report| numbers(it, Reduction::Add, options, report)),
    histogram("sums_f32_million", &[1 << 20], Aim::None, |it, options, report| numbers(it, Reduction::Add, options, report)),
];

const fn histogram(
    name: &'static str,
    bins: &'static [usize],
    aim: Aim,
    measure: fn(&Histogram, &Options, &mut Report),
) -> Histogram {
    Histogram {
        name,
        bins,
        aim,
        measure,
    }
}

/// Measures a count of each key.
fn counts<T: Number + From<u8>>(of: &Histogram, options: &Options, report: &mut Report) {
    keys(of, Reduction::Add, |_| T::from(1), options, report);
}

/// Measures a reduction of one random number per key.
fn numbers(of: &Histogram, reduction: Reduction, options: &Options, report: &mut Report) {
    let number = |random: &mut Random| {
        let mut value = [0.0_f32];
        random.fill(&mut value);
        value[0]
    };
    keys(of, reduction, number, options, report);
}

fn keys<T: Number>(
    of: &Histogram,
    reduction: Reduction,
    update: impl FnMut(&mut Random) -> T,
    options: &Options,
    report: &mut Report,
) {
    let workload = nd(
        of.name,
        of.bins,
        options.keys(),
        reduction,
        Pattern::Uniform,
    );
    let subject = Subject::new(Inputs::of_values(workload, T::of(0.0), update));
    measure(&subject, Form::InPlace, of.aim, options, report);
}

/// Checks a call and predicts its time, one-shot and with a kept plan.
fn measure<T: Number>(
    subject: &Subject<T>,
    form: Form,
    aim: Aim,
    options: &Options,
    report: &mut Report,
) {
    let mut target = subject.target();
    for is_planned in [false, true] {
        let ways = WORKERS.map(|workers| subject.way(form, is_planned, workers, options.force));
        // Explain before the first run. Afterwards a plan has stored facts, and explains the
        // remaining work only.
        let explanations = ways.each_ref().map(|way| subject.explain(way));
        for way in &ways {
            subject.check(way, &mut target);
        }
        let [one, others @ ..] = forecasts(subject, &ways, &mut target, options.rounds());
        report.add(Row {
            name: subject.name(),
            form,
            is_planned,
            aim,
            explanations,
            one: one.time(),
            forecasts: others,
        });
    }
}

/// Samples all ways, interleaved, because the speed of a shared machine drifts.
fn forecasts<T: Number>(
    subject: &Subject<T>,
    ways: &[Way; WORKERS.len()],
    target: &mut [T],
    rounds: usize,
) -> [Forecast; WORKERS.len()] {
    let mut samples: [Vec<Sample>; WORKERS.len()] = Default::default();
    for round in 0..rounds {
        for turn in 0..ways.len() {
            let which = (round + turn) % ways.len();
            samples[which].push(subject.sample(&ways[which], target));
        }
    }
    std::array::from_fn(|which| Forecast::new(ways[which].workers(), &samples[which]))
}
