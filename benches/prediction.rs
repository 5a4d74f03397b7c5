//! What calls would take with more workers than a machine has.
//!
//! ```text
//! cargo bench --bench prediction -- [--only name,name] [--rounds n] [--regions]
//!                                  [--force schedule]
//! ```
//!
//! - `--only`: these problems; default all.
//! - `--rounds`: how often every call runs, 5 at the least.
//! - `--regions`: also every step with tasks, with 16 workers.
//! - `--force`: this schedule where it applies, instead of the one that is chosen.
//!
//! Calls are divided for 4, 16 and 64 workers by a pool that runs their tasks one
//! by one on the calling thread and takes the time of each. A call is then taken
//! to last as long as what it does outside of tasks and, for every step that has
//! tasks, until the last of them is done, when each worker takes the next one as
//! soon as it is done with one. Every time is a median over the rounds, of the
//! thread's processor time: what else the machine does meanwhile does not count.
//!
//! What workers do to one another is not in it: all have the bandwidth of memory
//! and the last-level cache to themselves, and begin at once. On a machine, each
//! step takes tens of microseconds more until workers have woken (the number of
//! steps is shown), and a call that one core can almost saturate memory with
//! ends at the bandwidth.
//!
//! Tasks that take pieces of work from a counter, as those of partitions do, would
//! leave nothing to those that run after the first one. The pool therefore asks
//! for a task a piece (`Pool::sees_pieces`).
//!
//! Every result is held against the plain loop, bit for bit, before it is timed.

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

/// Workers that calls are timed for: one, and those that are predicted.
const WORKERS: [usize; 4] = [1, 4, 16, 64];

/// Rounds that a median needs.
const FEW_ROUNDS: usize = 5;

/// Keys of a histogram; in a check, enough to be divided among workers.
const KEYS: [usize; 2] = [4 << 20, 1];
const CHECKED_KEYS: [usize; 2] = [300_000, 1];

/// Workloads of this bench alone.
#[rustfmt::skip] // A table.
const OTHERS: [Workload; 2] = [
    nd("rows_20000_update", &[20_000, 64], &[20_000, 1], Reduction::None, Pattern::Unique),
    nd("rows_20000_add", &[20_000, 64], &[20_000, 1], Reduction::Add, Pattern::Uniform),
];

/// Those of a check: small ones, of rows and of elements, divided in several ways.
#[rustfmt::skip] // A table.
const CHECKED: [Workload; 4] = [
    nd("rows_update", &[4000, 64], &[2000, 1], Reduction::None, Pattern::Unique),
    nd("rows_add", &[4000, 64], &[16_000, 1], Reduction::Add, Pattern::Uniform),
    nd("elements_add", &[1 << 20], &[1 << 18, 1], Reduction::Add, Pattern::Uniform),
    update("batches", &[8, 256, 32], &[1000], 1, Reduction::None, Pattern::Uniform),
];

/// Predicts what calls take with more workers.
#[derive(Debug, Parser)]
struct Options {
    /// Only these problems, by their names.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Samples of every call, 5 at the least.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Also prints every step that has tasks.
    #[arg(long)]
    regions: bool,
    /// The schedule of several workers, where it applies.
    #[arg(long)]
    force: Option<Schedule>,
    /// Given by `cargo bench`, not by `cargo test`, which is content with
    /// correct results.
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
                "there is no problem {only}; there are {}",
                names.join(", ")
            )),
            None if self.rounds < FEW_ROUNDS => Err("a median needs 5 rounds".into()),
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
        println!("all results are those of the plain loop");
    }
    ExitCode::SUCCESS
}

/// Panics unless tasks are laid out as workers would take them.
fn check_spans() {
    for (tasks, workers, expected) in [
        (&[][..], 4, 0.0),
        (&[3.0, 1.0, 1.0, 1.0], 2, 3.0),
        (&[1.0, 1.0, 1.0, 3.0], 2, 4.0),
        (&[2.0, 2.0], 64, 2.0),
    ] {
        let is = span(tasks, workers);
        assert!(is == expected, "{tasks:?} take {workers} workers {is}");
    }
}

fn of_workload(workload: Workload, options: &Options, report: &mut Report) {
    let subject = Subject::new(Inputs::new(workload));
    // Sums of few elements: no worker can begin before another is done.
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

/// A histogram, by its bins and by what is done with the keys.
struct Histogram {
    name: &'static str,
    bins: &'static [usize],
    aim: Aim,
    measure: fn(&Histogram, &Options, &mut Report),
}

#[rustfmt::skip] // A table.
const HISTOGRAMS: [Histogram; 8] = [
    histogram("counts_u32", &[1000], Aim::Merged, counts::<u32>),
    histogram("counts_u32_many", &[65_536], Aim::Merged, counts::<u32>),
    histogram("counts_u8", &[1000], Aim::Merged, counts::<u8>),
    histogram("counts_u8_many", &[65_536], Aim::Merged, counts::<u8>),
    histogram("counts_i64", &[1000], Aim::Merged, counts::<i64>),
    histogram("counts_i64_many", &[65_536], Aim::Merged, counts::<i64>),
    histogram("maxima_f32", &[1000], Aim::Merged, |it, options, report| numbers(it, Reduction::Max, options, report)),
    histogram("sums_f32", &[1000], Aim::None, |it, options, report| numbers(it, Reduction::Add, options, report)),
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

/// How often each key occurs.
fn counts<T: Number + From<u8>>(of: &Histogram, options: &Options, report: &mut Report) {
    keys(of, Reduction::Add, |_| T::from(1), options, report);
}

/// Random numbers, one a key.
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

/// Checks a call and predicts it, once and with a plan.
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
        // Of a plan before it is run: what it will do, and not what is left to do.
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

/// Samples of all ways, in turns: the speed of a shared machine drifts.
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
