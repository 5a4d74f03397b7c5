//! How the crate compares, as ratios inside one interleaved run, in Markdown.
//!
//! Absolute times drift with whatever else a machine does; ratios of minima
//! over rounds in which all contenders take turns do not. Every result is
//! checked bit for bit against a plain sequential loop before it is timed.
//!
//! ```text
//! cargo bench --bench ratios -- [--only name,name] [--rounds n] [--threads n]
//!                               [--schedules] [--then-sum] [--check]
//! ```
//!
//! - `--only`: these workloads; default all.
//! - `--rounds`: how often every contender runs; default 15.
//! - `--threads`: threads of the pool; default one a core.
//! - `--schedules`: also every schedule that applies, against the serial one.
//! - `--then-sum`: also with a sum over the output after the call, where
//!   stores that only move their cost to the next reader would show.
//! - `--check`: only checks the results.

mod common;
#[path = "ratios/histograms.rs"]
mod histograms;

use std::fmt::Write;
use std::num::NonZero;
use std::time::Instant;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use common::contenders::{CALL_BYTES, Contender, Time, calls_a_sample, time};
use common::inputs::{Form, Inputs, SETS};
use common::numbers::Number;
use common::roof::{Copying, read};
use common::start_pool;
use common::workloads::{HISTOGRAMS, WORKLOADS, Workload};
use ndscatter::{CallingThread, Execution, ScatterPlan, Schedule};

/// Most calls of a sample of a row that measures the call itself: nanoseconds are shown.
const SAMPLE_CALLS: u32 = 20_000;

// Names of contenders, and keys of their times.
const ONE_SHOT: &str = "one-shot";
const ONE_WORKER: &str = "one-shot, one worker";
const SERIAL: &str = "one-shot, serial";
const PLANNED: &str = "planned";
const PLANNED_SERIAL: &str = "planned, serial";
const ALLOCATING: &str = "allocating";
const PLAIN: &str = "plain loop";
const READ: &str = "read";
const ONE_SHOT_SUM: &str = "one-shot, then sum";
const PLAIN_SUM: &str = "plain loop, then sum";

/// Ratios to a plain loop, to a copy, and between schedules.
#[derive(Debug, Parser)]
struct Options {
    /// Only these workloads.
    #[arg(long, value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// How often every contender runs.
    #[arg(long, default_value = "15")]
    rounds: NonZero<usize>,
    /// Threads of the pool; default one a core.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Also every schedule that applies, against the serial one.
    #[arg(long)]
    schedules: bool,
    /// Also with a sum over the output after the call.
    #[arg(long)]
    then_sum: bool,
    /// Only checks the results.
    #[arg(long)]
    check: bool,
    /// Given by `cargo bench`, not by `cargo test`, which is content with
    /// correct results.
    #[arg(long, hide = true)]
    bench: bool,
}

fn names() -> PossibleValuesParser {
    let histograms = HISTOGRAMS.iter().map(|histogram| histogram.workload.name);
    let workloads = WORKLOADS.iter().map(|workload| workload.name);
    PossibleValuesParser::new(workloads.chain(histograms).collect::<Vec<_>>())
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }

    fn only_checks(&self) -> bool {
        self.check || !self.bench
    }
}

fn main() {
    let options = Options::parse();
    let threads = start_pool(options.threads);
    let mut report = Report::default();
    for workload in WORKLOADS.iter().filter(|w| options.wants(w.name)) {
        let start = Instant::now();
        measure(*workload, &options, &mut report);
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("{}: {seconds:.1} s", workload.name);
    }
    for histogram in HISTOGRAMS.iter().filter(|h| options.wants(h.workload.name)) {
        histograms::measure(*histogram, &options, &mut report.histograms);
    }
    if options.only_checks() {
        println!("all results are those of the plain loop");
    } else {
        report.print(threads, options.rounds);
    }
}

/// Rows of the tables, as they are found.
#[derive(Default)]
struct Report {
    throughput: String,
    calls: String,
    schedules: String,
    sums: String,
    histograms: String,
}

impl Report {
    fn print(&self, threads: usize, rounds: NonZero<usize>) {
        println!("{threads} threads, minima of {rounds} rounds.\n");
        println!(
            "Times the speed of ... (columns 5 to 9); the share of the roof is the time that \
             the bytes to be moved take at the speed of the fastest copy and of a read, \
             divided by the time of the call.\n"
        );
        print_table(
            "workload | form | schedule | ms, minimum (median) | serial | plain loop \
             | one worker | planned: serial | planned: one-shot | allocating takes \
             | share of roof, one-shot (planned)",
            &self.throughput,
        );
        print_table(
            "call | form | schedule | one-shot ns | planned ns | plain loop ns",
            &self.calls,
        );
        let schedules = Schedule::ALL[1..].iter().map(|s| format!(" | {s}"));
        print_table(
            &format!(
                "workload | form | chosen | serial ms, one-shot / planned{}",
                schedules.collect::<String>()
            ),
            &self.schedules,
        );
        print_table(
            "workload, then a sum over the output | ms | plain loop",
            &self.sums,
        );
        print_table(histograms::HEAD, &self.histograms);
    }
}

fn print_table(head: &str, rows: &str) {
    if !rows.is_empty() {
        let rule = "|---".repeat(head.split('|').count());
        println!("| {head} |\n{rule}|\n{rows}");
    }
}

/// A workload in memory, with all that its contenders share.
struct Subject<T = f32> {
    inputs: Inputs<T>,
    plans: [ScatterPlan; SETS],
    /// For forced schedules, some of which make a plan find out more than the
    /// crate by itself would.
    forced_plans: [ScatterPlan; SETS],
}

/// Times of contenders, by name.
struct Times(Vec<(String, Time)>);

impl Times {
    fn of(&self, name: &str) -> Time {
        let found = self.0.iter().find(|(contender, _)| contender == name);
        found.expect("a contender of this name has run").1
    }

    fn min(&self, name: &str) -> f64 {
        self.of(name).min
    }
}

fn measure(workload: Workload, options: &Options, report: &mut Report) {
    let subject = Subject::new(Inputs::new(workload));
    let mut target = subject.inputs.target();
    for form in [Form::InPlace, Form::Functional] {
        let traffic = subject.inputs.traffic(form, 0).total();
        let is_call = traffic < CALL_BYTES;
        let mut contenders = subject.calls(form);
        if !is_call {
            contenders.extend(subject.schedules(form, options));
        }
        if form == Form::Functional && options.then_sum && !is_call {
            contenders.extend(subject.sums());
        }
        subject.check(&contenders, &mut target);
        if options.only_checks() {
            continue;
        }
        if !is_call {
            contenders.extend(subject.roofs());
        }
        let calls = if is_call {
            calls_a_sample(traffic, SAMPLE_CALLS)
        } else {
            1
        };
        let found = time(&contenders, &mut target, options.rounds.get(), calls);
        let names = contenders.into_iter().map(|contender| contender.name);
        let times = Times(names.zip(found).collect());
        subject.report(form, is_call, &times, options, report);
    }
}

/// Without any other thread, indices included.
fn serial() -> Execution<'static> {
    (Execution::new().pool(&CallingThread)).force_schedule(Schedule::Serial)
}

impl<T: Number> Subject<T> {
    fn new(inputs: Inputs<T>) -> Self {
        Self {
            plans: std::array::from_fn(|set| inputs.plan(set)),
            forced_plans: std::array::from_fn(|set| inputs.plan(set)),
            inputs,
        }
    }

    /// Panics unless every contender gives the bits of the plain loop.
    fn check(&self, contenders: &[Contender<'_, T>], target: &mut [T]) {
        for set in 0..SETS {
            let expected = self.inputs.expected(set);
            for contender in contenders {
                contender.check(target, &self.inputs.data, set, &expected);
            }
        }
    }

    fn one_shot(&self, name: &str, execution: Execution<'static>, form: Form) -> Contender<'_, T> {
        Contender::new(name, move |target, set| {
            self.inputs.scatter(execution, form, target, set)
        })
    }

    fn planned<'a>(
        &'a self,
        name: &str,
        plans: &'a [ScatterPlan; SETS],
        execution: Execution<'static>,
        form: Form,
    ) -> Contender<'a, T> {
        Contender::new(name, move |target, set| {
            (self.inputs).scatter_planned(&plans[set], execution, form, target)
        })
    }

    /// What a user without the crate would write: in the functional form a
    /// copy of all data, then the loop over tuples.
    fn plain(&self, form: Form, target: &mut [T], set: usize) {
        if form != Form::InPlace {
            target.copy_from_slice(&self.inputs.data);
        }
        self.inputs.plain_loop(target, set);
    }
}

impl Subject {
    fn calls(&self, form: Form) -> Vec<Contender<'_>> {
        let (chosen, serial) = (Execution::new(), serial());
        let mut contenders = vec![
            self.one_shot(ONE_SHOT, chosen, form),
            self.one_shot(ONE_WORKER, chosen.max_workers(1), form),
            self.one_shot(SERIAL, serial, form),
            self.planned(PLANNED, &self.plans, chosen, form),
            self.planned(PLANNED_SERIAL, &self.plans, serial, form),
            Contender::new(PLAIN, move |target, set| {
                self.plain(form, target, set);
                None
            }),
        ];
        if form == Form::Functional {
            contenders.push(self.one_shot(ALLOCATING, chosen, Form::Allocating));
        }
        contenders
    }

    /// Every schedule that applies, forced, if they are asked for.
    fn schedules(&self, form: Form, options: &Options) -> Vec<Contender<'_>> {
        let mut contenders = Vec::new();
        for schedule in Schedule::ALL {
            let forced = Execution::new().force_schedule(schedule);
            if options.schedules && self.inputs.schedule(forced, form) == schedule {
                contenders.push(self.one_shot(&format!("{schedule}"), forced, form));
                let name = format!("{schedule}, planned");
                contenders.push(self.planned(&name, &self.forced_plans, forced, form));
            }
        }
        contenders
    }

    fn sums(&self) -> [Contender<'_>; 2] {
        let chosen = Execution::new();
        [
            Contender::new(ONE_SHOT_SUM, move |target, set| {
                (self.inputs).scatter(chosen, Form::Functional, target, set);
                read(target);
                None
            }),
            Contender::new(PLAIN_SUM, |target, set| {
                self.plain(Form::Functional, target, set);
                read(target);
                None
            }),
        ]
    }

    /// How fast these very buffers can be copied and read.
    fn roofs(&self) -> Vec<Contender<'_>> {
        let mut contenders = vec![Contender::new(READ, |_, _| {
            read(self.longest_input());
            None
        })];
        for &copying in Copying::ALL {
            contenders.push(Contender::new(copying.as_str(), move |target, _| {
                copying.run(target, &self.inputs.data);
                None
            }));
        }
        contenders
    }

    fn longest_input(&self) -> &[f32] {
        let (data, updates) = (&self.inputs.data, &self.inputs.updates);
        if data.len() > updates.len() {
            data
        } else {
            updates
        }
    }

    /// Nanoseconds that the bytes of a call take at the least: those written
    /// at the speed of a copy, which reads as many; the rest at that of a read.
    fn roof(&self, form: Form, times: &Times) -> f64 {
        let traffic = self.inputs.traffic(form, 0);
        let copies = Copying::ALL
            .iter()
            .map(|copying| times.min(copying.as_str()));
        let copied = size_of_val(&self.inputs.data[..]) as f64;
        let copy = copies.fold(f64::INFINITY, f64::min) / copied;
        let read = times.min(READ) / size_of_val(self.longest_input()) as f64;
        let only_read = traffic.read.saturating_sub(traffic.written);
        copy * traffic.written as f64 + read * only_read as f64
    }

    fn report(
        &self,
        form: Form,
        is_call: bool,
        times: &Times,
        options: &Options,
        report: &mut Report,
    ) {
        if is_call {
            writeln!(report.calls, "{}", self.call_row(form, times)).expect("a string");
            return;
        }
        let row = self.throughput_row(form, times);
        writeln!(report.throughput, "{row}").expect("a string");
        if options.schedules {
            let row = self.schedules_row(form, times);
            writeln!(report.schedules, "{row}").expect("a string");
        }
        if options.then_sum && form == Form::Functional {
            let (ours, plain) = (times.min(ONE_SHOT_SUM), times.min(PLAIN_SUM));
            let (name, ms) = (self.inputs.workload.name, ours * 1e-6);
            writeln!(report.sums, "| {name} | {ms:.3} | {:.2} |", plain / ours).expect("a string");
        }
    }

    fn title(&self, form: Form) -> String {
        let schedule = self.inputs.schedule(Execution::new(), form);
        format!("| {} | {form} | {schedule}", self.inputs.workload.name)
    }

    fn throughput_row(&self, form: Form, times: &Times) -> String {
        let ours = times.of(ONE_SHOT);
        let (one_shot, planned) = (ours.min, times.min(PLANNED));
        let allocating = if form == Form::Functional {
            format!("{:.2}", times.min(ALLOCATING) / one_shot)
        } else {
            "–".into()
        };
        let roof = self.roof(form, times);
        format!(
            "{} | {:.3} ({:.3}) | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {allocating} | {:.0} % ({:.0} %) |",
            self.title(form),
            one_shot * 1e-6,
            ours.median * 1e-6,
            times.min(SERIAL) / one_shot,
            times.min(PLAIN) / one_shot,
            times.min(ONE_WORKER) / one_shot,
            times.min(PLANNED_SERIAL) / planned,
            one_shot / planned,
            100.0 * roof / one_shot,
            100.0 * roof / planned,
        )
    }

    fn call_row(&self, form: Form, times: &Times) -> String {
        format!(
            "{} | {:.1} | {:.1} | {:.1} |",
            self.title(form),
            times.min(ONE_SHOT),
            times.min(PLANNED),
            times.min(PLAIN),
        )
    }

    /// Serial time over the time of every other schedule, one-shot / planned.
    fn schedules_row(&self, form: Form, times: &Times) -> String {
        let key = |schedule: Schedule, suffix: &str| format!("{schedule}{suffix}");
        let serial = ["", ", planned"].map(|suffix| times.min(&key(Schedule::Serial, suffix)));
        let mut row = format!(
            "{} | {:.3} / {:.3} |",
            self.title(form),
            serial[0] * 1e-6,
            serial[1] * 1e-6
        );
        for &schedule in &Schedule::ALL[1..] {
            let applies = times.0.iter().any(|(name, _)| *name == key(schedule, ""));
            let cell = if applies {
                format!(
                    " {:.2} / {:.2} |",
                    serial[0] / times.min(&key(schedule, "")),
                    serial[1] / times.min(&key(schedule, ", planned"))
                )
            } else {
                " – |".into()
            };
            row.push_str(&cell);
        }
        row
    }
}
