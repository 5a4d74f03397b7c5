//! Prints, in Markdown, the speed of calls relative to a reference loop, to a copy, and to
//! other schedules.
//!
//! Absolute times drift with the load of the machine. Ratios of minima do not drift if all
//! contenders are interleaved in each round. Every result is compared, bit for bit, with the
//! sequential reference loop before anything is timed.
//!
//! ```text
//! cargo bench --bench ratios -- [--only name,name] [--rounds n] [--threads n]
//!                               [--schedules] [--then-sum] [--check]
//! ```
//!
//! - `--only`: names of workloads. Default: all.
//! - `--rounds`: samples of every contender. Default: 15.
//! - `--threads`: threads of the pool. Default: one per core.
//! - `--schedules`: also times every schedule that applies, relative to the serial schedule.
//! - `--then-sum`: also times a call together with a sum over its output. A store whose cost
//!   only moves to the next reader shows here.
//! - `--check`: only checks results.

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

/// Maximum calls per sample, for small calls. Their table shows nanoseconds.
const SAMPLE_CALLS: u32 = 20_000;

// Names of contenders. They are also the keys of their times.
const ONE_SHOT: &str = "one-shot";
const ONE_WORKER: &str = "one-shot, one worker";
const SERIAL: &str = "one-shot, serial";
const PLANNED: &str = "planned";
const PLANNED_SERIAL: &str = "planned, serial";
const ALLOCATING: &str = "allocating";
const PLAIN: &str = "reference loop";
const READ: &str = "read";
const ONE_SHOT_SUM: &str = "one-shot, then sum";
const PLAIN_SUM: &str = "reference loop, then sum";

/// Prints the speed of calls relative to a reference loop, to a copy, and to other schedules.
#[derive(Debug, Parser)]
struct Options {
    /// Names of workloads. Default: all.
    #[arg(long, value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// Samples of every contender.
    #[arg(long, default_value = "15")]
    rounds: NonZero<usize>,
    /// Threads of the pool. Default: one per core.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Also times every schedule that applies, relative to the serial schedule.
    #[arg(long)]
    schedules: bool,
    /// Also times a call together with a sum over its output.
    #[arg(long)]
    then_sum: bool,
    /// Only checks results.
    #[arg(long)]
    check: bool,
    /// Passed by `cargo bench`. Without it (`cargo test`), results are only checked.
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
        println!("all results equal the reference loop");
    } else {
        report.print(threads, options.rounds);
    }
}

/// Rows of each table, in the order of measurement.
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
            "Columns 5 to 9 are speeds: the time of the named contender, divided by the time of \
             the call. Above 1, the call is faster. \"allocating\" is the time of an allocating \
             call, divided by the time of the one-shot call. The last column is the part of the \
             achievable bandwidth: the time to move the bytes of the call at the speed of the \
             fastest copy and of a read, divided by the time of the call.\n"
        );
        print_table(
            "workload | form | schedule | ms, minimum (median) | serial | reference loop \
             | one worker | planned: serial | planned: one-shot | allocating \
             | part of the bandwidth, one-shot (planned)",
            &self.throughput,
        );
        print_table(
            "call | form | schedule | one-shot ns | planned ns | reference loop ns",
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
            "workload, then a sum over the output | ms | speed relative to the reference loop",
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

/// A workload in memory, with the plans that its contenders share.
struct Subject<T = f32> {
    inputs: Inputs<T>,
    plans: [ScatterPlan; SETS],
    /// Plans for forced schedules. A forced schedule may store facts in a plan that the
    /// default choice would not compute, so these plans are separate.
    forced_plans: [ScatterPlan; SETS],
}

/// Times of contenders, by name.
struct Times(Vec<(String, Time)>);

impl Times {
    fn of(&self, name: &str) -> Time {
        let found = self.0.iter().find(|(contender, _)| contender == name);
        found.expect("times of the contender").1
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

/// Returns an execution on the calling thread alone, which also reads the indices.
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

    /// Panics unless every contender gives the bits of the reference loop.
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

    /// Runs the loop that a user without the crate would write. In the functional form it
    /// copies all data first.
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

    /// Returns one-shot and planned calls with each schedule that applies, forced. Empty
    /// without `--schedules`.
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

    /// Returns a read and copies of the workload's own buffers.
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

    /// Returns the minimum nanoseconds to move the bytes of a call. Written bytes are counted at
    /// the speed of a copy, which also reads an equal number of bytes. The remaining bytes are
    /// counted at the speed of a read.
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

    /// Returns a row with the serial time divided by the time of each other schedule, one-shot
    /// and planned.
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
