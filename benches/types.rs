//! How other element types and `i32` indices fare beside `f32` and `i64`
//! indices, as ratios inside one interleaved run, in Markdown.
//!
//! ```text
//! cargo bench --bench types -- [--only name,name] [--rounds n] [--threads n] [--check]
//! ```
//!
//! - `--only`: these workloads; default all that have a row.
//! - `--rounds`: how often both contenders run; default 9.
//! - `--threads`: threads of the pool; default one a core.
//! - `--check`: only checks the results.
//!
//! A call with other types should take the time that its bytes do: those that
//! it needs, once in, and those that it writes, once out, indices included.
//! The quotient is the ratio of the times, divided by that of the bytes. Every
//! result is checked bit for bit against a plain sequential loop before it is
//! timed; the loop rounds sums of 16-bit floats after every update.

mod common;
#[path = "types/typed.rs"]
mod typed;

use std::fmt;
use std::process::ExitCode;

use common::aligned::Aligned;
use common::contenders::{Contender, Time, time};
use common::inputs::{Form, Inputs, SETS};
use common::numbers::Number;
use common::options::Options;
use common::workloads::{WORKLOADS, Workload};
use half::{bf16, f16};
use ndscatter::{DType, Execution, Reduction, Schedule};
use typed::{Place, Typed};

/// Rounds, unless others are asked for.
const ROUNDS: &str = "9";

/// Many calls make a sample of some milliseconds where one moves fewer bytes.
const SAMPLE_BYTES: usize = 16 << 20;

/// Most calls of a sample.
const SAMPLE_CALLS: usize = 20_000;

const FORMS: [Form; 2] = [Form::InPlace, Form::Functional];

/// What differs from the `f32` elements and `i64` indices of a workload.
#[derive(Clone, Copy)]
enum Kind {
    F16,
    Bf16,
    F64,
    I64,
    I32Indices,
}

const ROWS: [(&str, &[Kind]); 5] = {
    use Kind::{Bf16, F16, F64, I32Indices, I64};
    [
        ("kv_decode", &[F16, Bf16]),
        ("kv_prefill", &[F16, Bf16, I32Indices]),
        ("emb_update", &[I32Indices]),
        ("gnn_add", &[F16, Bf16, F64, I64, I32Indices]),
        ("elem_random_add", &[F64, I64, I32Indices]),
    ]
};

fn main() -> ExitCode {
    let rounds = ["--rounds", ROUNDS].map(Into::into);
    let arguments = rounds.into_iter().chain(std::env::args().skip(1));
    let Some(options) = Options::start(Options::parse(arguments).and_then(only_ours)) else {
        return ExitCode::FAILURE;
    };
    if !options.check {
        print_head(&options);
    }
    for (name, kinds) in ROWS.iter().filter(|(name, _)| options.wants(name)) {
        let workload = WORKLOADS.iter().find(|workload| workload.name == *name);
        let workload = workload.expect("it is in the table of workloads");
        measure(*workload, kinds, &options);
    }
    if options.check {
        println!("all results are those of the plain loop");
    }
    ExitCode::SUCCESS
}

/// Refuses what `ratios` can be asked for and this bench cannot.
fn only_ours(options: Options) -> Result<Options, String> {
    if options.schedules || options.then_sum {
        return Err("--schedules and --then-sum are arguments of ratios".into());
    }
    let has_rows = |name: &String| ROWS.iter().any(|(row, _)| row == name);
    match options.only.iter().find(|name| !has_rows(name)) {
        Some(name) => Err(format!("{name} has no row here")),
        None => Ok(options),
    }
}

fn print_head(options: &Options) {
    let (threads, rounds) = (options.threads, options.rounds);
    println!("{threads} threads, minima (medians) of {rounds} rounds; f32 has i64 indices.\n");
    let head = "| workload | form | type | schedule | ms | f32 schedule | f32 ms | time ratio \
                | bytes ratio | quotient | target | met |";
    println!("{head}\n{}|", "|---".repeat(head.matches('|').count() - 1));
}

fn measure(workload: Workload, kinds: &[Kind], options: &Options) {
    let inputs = Inputs::new(workload);
    let mut subject = Subject {
        target: inputs.target(),
        inputs: &inputs,
        options,
    };
    subject.check();
    for &kind in kinds {
        match kind {
            Kind::F16 => subject.rows::<f16, i64>(kind),
            Kind::Bf16 => subject.rows::<bf16, i64>(kind),
            Kind::F64 => subject.rows::<f64, i64>(kind),
            Kind::I64 => subject.rows::<i64, i64>(kind),
            Kind::I32Indices => subject.rows::<f32, i32>(kind),
        }
    }
}

/// A workload as it is everywhere else, for others to be held against.
struct Subject<'a> {
    inputs: &'a Inputs,
    target: Aligned<f32>,
    options: &'a Options,
}

impl Subject<'_> {
    /// Panics unless both forms give the bits of the plain loop.
    fn check(&mut self) {
        for set in 0..SETS {
            let expected = self.inputs.expected(set);
            for form in FORMS {
                let contender = contender(self.inputs, form);
                contender.check(&mut self.target, &self.inputs.data, set, &expected);
            }
        }
    }

    /// Checks both forms with other types, and prints a row for each.
    fn rows<T: Number, I: Place>(&mut self, kind: Kind) {
        let typed = Typed::<T, I>::new(self.inputs);
        typed.check();
        if self.options.check {
            return;
        }
        for form in FORMS {
            let contenders = [
                contender(self.inputs, form),
                Contender::new(kind.to_string(), |_, set| {
                    typed.scatter(form, set);
                    None
                }),
            ];
            let bytes = self.inputs.traffic(form, 0).total();
            let calls = (SAMPLE_BYTES / bytes).clamp(1, SAMPLE_CALLS);
            let calls = u32::try_from(calls).expect("not so many calls");
            let times = time(&contenders, &mut self.target, self.options.rounds, calls);
            let row = Row {
                workload: self.inputs.workload,
                form,
                kind,
                schedules: [self.schedule(form), typed.schedule(form)],
                times: [times[0], times[1]],
                bytes_ratio: typed.traffic(form) as f64 / bytes as f64,
            };
            println!("{row}");
        }
    }

    /// The schedule of a call with a fresh plan.
    fn schedule(&self, form: Form) -> Schedule {
        (self.inputs.plan(0))
            .run()
            .explain(DType::F32, form == Form::InPlace)
            .expect("f32 has every reduction")
            .schedule()
    }
}

fn contender(inputs: &Inputs, form: Form) -> Contender<'_> {
    let execution = Execution::new();
    Contender::new("f32", move |target, set| {
        inputs.scatter(execution, form, target, set)
    })
}

/// What was found: of `f32` first, then of the other type.
struct Row {
    workload: Workload,
    form: Form,
    kind: Kind,
    schedules: [Schedule; 2],
    times: [Time; 2],
    bytes_ratio: f64,
}

impl Row {
    fn target(&self) -> Target {
        let reduces = self.workload.reduction != Reduction::None;
        match self.kind {
            Kind::F16 | Kind::Bf16 if reduces => Target::Quotient(1.5),
            // An update costs a line of memory, whatever it has in it.
            Kind::F64 | Kind::I64 if self.workload.window() == 1 => Target::Time(1.15),
            _ => Target::Quotient(1.15),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::InPlace => "in place",
            Form::Functional | Form::Allocating => "functional",
        };
        let (name, kind, target) = (self.workload.name, self.kind, self.target());
        let [f32_schedule, schedule] = self.schedules;
        let [f32_ms, ms] = self.times.map(milliseconds);
        let time_ratio = self.times[1].min / self.times[0].min;
        let bytes_ratio = self.bytes_ratio;
        let quotient = time_ratio / bytes_ratio;
        let met = match target {
            Target::Quotient(most) => quotient <= most,
            Target::Time(most) => time_ratio <= most,
        };
        let met = if met { "yes" } else { "no" };
        write!(
            f,
            "| {name} | {form} | {kind} | {schedule} | {ms} | {f32_schedule} | {f32_ms} | {time_ratio:.2} \
             | {bytes_ratio:.2} | {quotient:.2} | {target} | {met} |"
        )
    }
}

fn milliseconds(time: Time) -> String {
    let (min, median) = (time.min * 1e-6, time.median * 1e-6);
    let decimals = if min < 0.1 { 5 } else { 3 };
    format!("{min:.decimals$} ({median:.decimals$})")
}

/// What is aimed at.
enum Target {
    /// Time for the bytes: at most so many times that of `f32`.
    Quotient(f64),
    /// Time: at most so many times that of `f32`.
    Time(f64),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quotient(most) => write!(f, "quotient ≤ {most:.2}"),
            Self::Time(most) => write!(f, "time ratio ≤ {most:.2}"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F64 => "f64",
            Self::I64 => "i64",
            Self::I32Indices => "f32, i32 indices",
        })
    }
}
