//! Scatters or gathers `.npy` files. Without files, adds up the images of handwritten digits that
//! are compiled into the program.
//!
//! ```text
//! scatter_npy
//! scatter_npy --data D.npy --indices I.npy --updates U.npy --reduction add --out O.npy
//! scatter_npy --op gather --axis 0 --data D.npy --indices I.npy --out O.npy
//! ```
//!
//! The program is also an example of how a runtime with its own array type calls ndscatter. The
//! element types are known only at run time, from the input files. `array.rs` makes views of the
//! arrays for all element types. The only other file that depends on an element type is
//! `digits.rs`, whose images are float32.

mod arguments;
mod array;
mod compare;
mod digits;
mod files;
mod job;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use ndscatter::ScatterError;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use arguments::Arguments;
use array::{Array, ReadError};
use compare::Difference;
use job::{Job, Outcome};

/// Why the program failed. `Display` writes one line.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: ReadError },

    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error("{inputs}: {source}")]
    Scatter {
        inputs: String,
        source: ScatterError,
    },

    #[error("{threads} threads could not be started: {source}")]
    Threads {
        threads: usize,
        source: ThreadPoolBuildError,
    },

    #[error("the result differs from {}: {difference}", expected.display())]
    Check {
        expected: PathBuf,
        difference: Difference,
    },
}

fn main() -> ExitCode {
    let arguments = match Arguments::from_command_line() {
        Ok(arguments) => arguments,
        Err(exit) => return exit,
    };
    match run(&arguments) {
        Ok(report) => print(&report),
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints `text`. `println!` would panic on a closed pipe, as in `scatter_npy | head`.
fn print(text: &str) -> ExitCode {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("the report cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints an error to standard error. If this fails, the failure is ignored, because it cannot be
/// reported anywhere else.
fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "error: {message}");
}

/// Runs the operator of the command line, writes and checks the result, and returns the report.
fn run(arguments: &Arguments) -> Result<String, Failure> {
    let inputs = match &arguments.files {
        Some(files) => files::read_inputs(files)?,
        None => digits::inputs()?,
    };
    // The expected result is read before the scatter or gather runs, so that an unreadable file is
    // reported early.
    let expected = read_expected(arguments)?;
    let pool = arguments.threads.map(start_threads).transpose()?;
    let job = Job {
        operator: arguments.operator.clone(),
        in_place: arguments.in_place,
        pool: pool.as_ref(),
    };
    let names = inputs.names.clone();
    let outcome = job.run(inputs).map_err(|source| Failure::Scatter {
        inputs: names,
        source,
    })?;
    let mut report = describe(arguments, &outcome);
    deliver(arguments, &outcome.result, expected, &mut report)?;
    Ok(report)
}

/// Returns the report: the number of skipped tuples if it is not 0, the times, and the explanation
/// if `--explain` requests it. For the built-in digits, the report always has the explanation, and
/// also pictures.
fn describe(arguments: &Arguments, outcome: &Outcome) -> String {
    let explanation = &outcome.explanation;
    let mut lines = match outcome.skipped {
        0 => String::new(),
        skipped => format!("  skipped    {skipped} tuple(s) of indices, out of bounds\n"),
    };
    let _ = writeln!(lines, "{}", outcome.timing);
    if arguments.files.is_none() {
        let pictures = digits::pictures(&outcome.result);
        let (title, source) = (digits::TITLE, digits::ATTRIBUTION);
        format!("{title}\n{explanation}\n{lines}\n{pictures}{source}")
    } else if arguments.explain {
        format!("{explanation}\n{lines}")
    } else {
        lines
    }
}

/// Writes the result to the file of `--out`, if there is one. Then compares the result with
/// `expected`, if there is an expected array. Fails if they differ, after the file was written.
fn deliver(
    arguments: &Arguments,
    result: &Array,
    expected: Option<(PathBuf, Array)>,
    report: &mut String,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.out {
        files::write(path, result)?;
        let _ = writeln!(report, "wrote {result} to {}", path.display());
    }
    if let Some((path, expected)) = expected {
        if let Some(difference) = compare::difference(result, &expected) {
            return Err(Failure::Check {
                expected: path,
                difference,
            });
        }
        let _ = writeln!(report, "the result equals {} to the bit", path.display());
    }
    Ok(())
}

/// Returns the expected array of `--check`, and the path of its file. `None`: the command line has
/// no `--check`.
fn read_expected(arguments: &Arguments) -> Result<Option<(PathBuf, Array)>, Failure> {
    match &arguments.check {
        None => Ok(None),
        Some(None) => digits::expected().map(Some),
        Some(Some(path)) => Ok(Some((path.clone(), files::read(path)?))),
    }
}

fn start_threads(threads: usize) -> Result<ThreadPool, Failure> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|source| Failure::Threads { threads, source })
}
