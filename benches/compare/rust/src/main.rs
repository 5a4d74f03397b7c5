//! Compares ndscatter with the scatters of other Rust runtimes, in one interleaved run.
//!
//! A runtime may have several calls that compute a workload. Each result is compared, bit for
//! bit, with the sequential reference loop. The fastest correct call takes part in the rounds.
//! The runtimes get matrices and row numbers, in memory that they have allocated. ndscatter
//! gets the arguments of the operator. There are three forms:
//!
//! - in place: the result replaces data. Data is restored before every sample.
//! - into: the result is written into an existing output. The runtimes have no such call. They
//!   copy data into an existing tensor and then call in place, or they allocate and then copy.
//!   Both steps are timed, and the faster variant counts.
//! - allocating: the call allocates the output, which is dropped outside the timing.

#[path = "../../../common/mod.rs"]
mod common;
mod neighbours;
mod ours;
mod peers;
mod report;

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use common::contest::{Entry, Fallible, calls, qualify, time};
use common::inputs::{Inputs, SETS};
use common::rows::Rows;
use common::workloads::{WORKLOADS, Workload};
use neighbours::Ticks;
use peers::{CONTENDERS, entrants};
use report::{FORMS, Outcome, Row};

/// Maximum calls per sample.
const SAMPLE_CALLS: u32 = 20_000;

/// Compares ndscatter with candle, tract, rten and burn, and prints a table in Markdown.
#[derive(Debug, Parser)]
struct Options {
    /// Names of workloads, separated by commas. Default: all
    #[arg(long, value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// Samples of every contender
    #[arg(long, default_value = "15")]
    rounds: NonZero<usize>,
    /// Threads of the pools
    #[arg(long, default_value_t = one_per_core())]
    threads: NonZero<usize>,
    /// File for all times, calls and reasons, in JSON
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(WORKLOADS.map(|workload| workload.name))
}

fn one_per_core() -> NonZero<usize> {
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }
}

fn main() -> Fallible<()> {
    let options = Options::parse();
    let threads = options.threads.get();
    (rayon::ThreadPoolBuilder::new().num_threads(threads)).build_global()?;
    let mut rows = Vec::new();
    for workload in WORKLOADS.iter().filter(|w| options.wants(w.name)) {
        let (start, ticks) = (Instant::now(), Ticks::now());
        rows.extend(measure(*workload, &options));
        eprint!("{}: {:.1} s", workload.name, start.elapsed().as_secs_f64());
        if let (Some(before), Some(now)) = (ticks, Ticks::now()) {
            let others = 100.0 * now.others_since(&before);
            eprint!(", other processes used {others:.0} % of the machine");
        }
        eprintln!();
    }
    report::print(&rows, &options);
    if let Some(path) = &options.json {
        let report = serde_json::to_string_pretty(&report::json(&rows, &options))?;
        std::fs::write(path, report + "\n")?;
    }
    Ok(())
}

/// Measures all forms of a workload.
fn measure(workload: Workload, options: &Options) -> [Row; FORMS.len()] {
    let inputs = Inputs::new(workload);
    let rows = Rows::new(&inputs);
    let entrants = entrants(&inputs, &rows, options.threads.get());
    let expected = std::array::from_fn(|set| inputs.expected(set));
    FORMS.map(|form| Row {
        workload: workload.name,
        form,
        outcomes: contest(
            entrants.each_ref().map(|entrant| entrant.entries(form)),
            &expected,
            options.rounds.get(),
            calls(&inputs, form, SAMPLE_CALLS),
        ),
    })
}

/// Checks the calls of each contender, and times the fastest correct call of each, interleaved.
fn contest(
    entries: [Result<Vec<Entry<'_>>, &'static str>; CONTENDERS.len()],
    expected: &[Vec<f32>; SETS],
    rounds: usize,
    calls: u32,
) -> [Outcome; CONTENDERS.len()] {
    let mut field = entries.map(|entries| {
        let entries = entries.map_err(Outcome::LeftOut)?;
        qualify(entries, expected).map_err(Outcome::Wrong)
    });
    let mut qualified: Vec<_> = field.iter_mut().flatten().collect();
    let mut times = time(&mut qualified, rounds, calls).into_iter();
    field.map(|entry| match entry {
        Ok(Entry { call, .. }) => Outcome::Timed {
            call,
            time: times.next().expect("one time per correct contender"),
        },
        Err(outcome) => outcome,
    })
}
