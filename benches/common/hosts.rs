//! Compares the kernels of a host with an adapter of ndscatter in the same host, on the workloads.
//!
//! Every result is compared, bit for bit, with the sequential reference loop before it is timed.
//! The host and the adapter then run in turns. A ratio is the host's minimum time divided by the
//! adapter's minimum time: above 1, the adapter is faster. The peak of memory of one call is
//! measured in a separate process.

use std::num::NonZero;
use std::process::{Command, ExitCode};

use clap::Parser;

use super::contest::{Entrant, Entry, Fallible, calls, qualify, time};
use super::inputs::{Form, Inputs};
use super::rows::Rows;
use super::workloads::{WORKLOADS, Workload};

/// Maximum calls per sample.
const SAMPLE_CALLS: u32 = 5_000;

const FORMS: [Form; 2] = [Form::InPlace, Form::Allocating];

/// A host with its own kernels, and with the adapter.
pub(crate) trait Host {
    /// Name and version.
    const NAME: &'static str;

    /// Creates the host's kernels and the adapter, in this order, with the tensors of a workload.
    fn entrants<'a>(inputs: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2];
}

/// Compares a host's kernels with the adapter, and prints a table in Markdown.
#[derive(Debug, Parser)]
struct Options {
    /// Names of workloads, separated by commas. Default: all
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Samples of each of the two
    #[arg(long, default_value = "15")]
    rounds: NonZero<usize>,
    /// Threads of rayon's global pool
    #[arg(long, default_value = "2")]
    threads: NonZero<usize>,
    /// Prints the peak of memory of one call: workload, form and entrant as numbers
    #[arg(long, hide = true, num_args = 3)]
    peak: Option<Vec<usize>>,
    /// Passed by `cargo bench`. Without it (`cargo test`), only the smallest workloads run, once.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Runs the comparison with the options of the command line.
pub(crate) fn main<H: Host>() -> ExitCode {
    let options = Options::parse();
    super::start_pool(Some(options.threads));
    let done = match &options.peak {
        Some(numbers) => print_peak::<H>(numbers),
        None => compare::<H>(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare<H: Host>(options: &Options) -> Fallible<()> {
    let is_known = |name: &&String| WORKLOADS.iter().any(|workload| workload.name == **name);
    if let Some(unknown) = options.only.iter().find(|name| !is_known(name)) {
        return Err(format!("there is no workload `{unknown}`").into());
    }
    println!(
        "| workload | form | {}, us | ndscatter, us | ratio | peak of the host, MiB | peak, MiB |",
        H::NAME
    );
    println!("|---|---|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for (number, workload) in WORKLOADS.iter().enumerate() {
        let wanted = if options.only.is_empty() {
            options.bench || workload.name == "tiny" || workload.name == "small_add"
        } else {
            options.only.iter().any(|name| name == workload.name)
        };
        if wanted {
            ratios.extend(measure::<H>(number, *workload, options)?);
        }
    }
    if !ratios.is_empty() {
        let logarithms = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
        let mean = (logarithms / ratios.len() as f64).exp();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "\n{} ratios: geometric mean {mean:.2}, minimum {least:.2}",
            ratios.len()
        );
    }
    Ok(())
}

/// Measures both forms of a workload, and prints their rows. Returns the ratios. A form has no ratio if
/// the host has no call, or if the host's results are wrong.
fn measure<H: Host>(number: usize, workload: Workload, options: &Options) -> Fallible<Vec<f64>> {
    let inputs = Inputs::new(workload);
    let rows = Rows::new(&inputs);
    let [host, adapter] = H::entrants(&inputs, &rows);
    let expected = std::array::from_fn(|set| inputs.expected(set));
    let mut ratios = Vec::new();
    for form in FORMS {
        let mut after = qualify(adapter.entries(form)?, &expected)?;
        let calls = calls(&inputs, form, if options.bench { SAMPLE_CALLS } else { 1 });
        let before = match host.entries(form) {
            Ok(entries) => qualify(entries, &expected).map_err(|_| "wrong"),
            Err(_) => Err("none"),
        };
        let name = workload.name;
        let peaks = |which| peak(number, form, which, options.threads);
        match before {
            Ok(mut before) => {
                let times = time(&mut [&mut before, &mut after], options.rounds.get(), calls);
                let [old, new] = [times[0].min, times[1].min];
                ratios.push(old / new);
                println!(
                    "| {name} | {form} | {:.2} | {:.2} | {:.2} | {} | {} |",
                    old / 1e3,
                    new / 1e3,
                    old / new,
                    peaks(0),
                    peaks(1)
                );
            }
            Err(reason) => {
                let times = time(&mut [&mut after], options.rounds.get(), calls);
                let new = times[0].min / 1e3;
                println!(
                    "| {name} | {form} | {reason} | {new:.2} | – | – | {} |",
                    peaks(1)
                );
            }
        }
    }
    Ok(ratios)
}

/// Returns the peak of memory of one call above the memory before the call, in MiB. The call runs in
/// a new process.
fn peak(workload: usize, form: Form, which: usize, threads: NonZero<usize>) -> String {
    let form = usize::from(form != Form::InPlace);
    let numbers = [workload, form, which].map(|number| number.to_string());
    let output = std::env::current_exe().and_then(|program| {
        (Command::new(program)
            // Otherwise glibc would reuse the memory that the checked calls have freed.
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .arg("--threads")
            .arg(threads.to_string()))
        .arg("--peak")
        .args(numbers)
        .output()
    });
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "–".to_owned(),
    }
}

/// Prints the peak of memory of the host's last call, or of the adapter's call.
fn print_peak<H: Host>(numbers: &[usize]) -> Fallible<()> {
    let (workload, form) = (WORKLOADS[numbers[0]], FORMS[numbers[1]]);
    let inputs = Inputs::new(workload);
    let rows = Rows::new(&inputs);
    let entrants = H::entrants(&inputs, &rows);
    let expected = std::array::from_fn(|set| inputs.expected(set));
    let Entry { mut contender, .. } = qualify(entrants[numbers[2]].entries(form)?, &expected)?;
    contender.reset();
    // This resets the peak of the process to its resident memory.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = memory("VmRSS:")?;
    contender.run(0)?;
    println!(
        "{:.1}",
        (memory("VmHWM:")?.saturating_sub(before)) as f64 / 1024.0
    );
    Ok(())
}

/// Reads a figure of this process in KiB.
fn memory(name: &str) -> Fallible<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.ok_or("a figure of the system is missing")?.parse()?)
}
