//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use ndscatter::Reduction;

use crate::complain;
use crate::job::Operator;

/// What the command line asks for, checked as far as it can be alone.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// `None`: the digits.
    pub(crate) files: Option<Files>,
    pub(crate) operator: Operator,
    pub(crate) reduction: Option<Reduction>,
    pub(crate) in_place: bool,
    pub(crate) explain: bool,
    pub(crate) threads: Option<usize>,
    pub(crate) out: Option<PathBuf>,
    /// `Some(None)`: what is expected of the digits.
    pub(crate) check: Option<Option<PathBuf>>,
}

/// The files to read.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) data: PathBuf,
    pub(crate) indices: PathBuf,
    pub(crate) updates: PathBuf,
}

/// Scatters updates into data at indices, all in .npy files
///
/// Without files it runs on the handwritten digits that it carries: every image
/// is added into the row of its label. It then prints what was planned, the time
/// that it took, and the sums as pictures.
#[derive(Debug, Parser)]
#[command(name = "scatter_npy")]
struct CommandLine {
    /// The tensor to update
    #[arg(long, value_name = "FILE", requires_all = ["indices", "updates"])]
    data: Option<PathBuf>,

    /// Where the updates go, of any integer type
    #[arg(long, value_name = "FILE", requires = "data")]
    indices: Option<PathBuf>,

    /// What is scattered, of the element type of data
    #[arg(long, value_name = "FILE", requires = "data")]
    updates: Option<PathBuf>,

    /// Where the result is written, in the order (C or Fortran) of data
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// How an update meets the value that is there: none (it replaces it), add,
    /// sub, mul, min or max [default: none for files, add for the digits]
    #[arg(long)]
    reduction: Option<Reduction>,

    /// The operator
    #[arg(long, value_enum, default_value_t = OperatorName::ScatterNd)]
    op: OperatorName,

    /// The axis that the indices of scatter_update run along
    #[arg(long, allow_negative_numbers = true)]
    axis: Option<isize>,

    /// Scatter into the memory that data was read into
    #[arg(long)]
    in_place: bool,

    /// Print what the plan does
    #[arg(long)]
    explain: bool,

    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Fail unless the result equals this file to the bit [default for the
    /// digits: what numpy made of them]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    check: Option<Option<PathBuf>>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OperatorName {
    /// Each row of indices holds the coordinates of one slice of data
    ScatterNd,
    /// Indices run along one axis of data
    ScatterUpdate,
}

impl Arguments {
    /// Reads the command line. Where there is nothing to run, as after
    /// `--help` or a mistake, the user has been told and the exit code says so.
    pub(crate) fn from_command_line() -> Result<Self, ExitCode> {
        CommandLine::try_parse().and_then(check).map_err(|error| {
            if error.use_stderr() {
                complain(&first_paragraph(&error.to_string()));
                ExitCode::from(2)
            } else {
                crate::print(&error.to_string())
            }
        })
    }
}

/// Holds the arguments against each other.
fn check(line: CommandLine) -> Result<Arguments, clap::Error> {
    let files = match (line.data, line.indices, line.updates) {
        (Some(data), Some(indices), Some(updates)) => Some(Files {
            data,
            indices,
            updates,
        }),
        // clap has seen to it that the others are not there either.
        _ => None,
    };
    if files.is_some() {
        if matches!(line.check, Some(None)) {
            return Err(mistake("--check needs a file to compare the result with"));
        }
        if line.out.is_none() && line.check.is_none() && !line.explain {
            return Err(mistake("the result goes nowhere; give --out or --check"));
        }
    }
    Ok(Arguments {
        files,
        operator: operator(line.op, line.axis)?,
        reduction: line.reduction,
        in_place: line.in_place,
        explain: line.explain,
        threads: line.threads.map(usize::from),
        out: line.out,
        check: line.check,
    })
}

fn operator(name: OperatorName, axis: Option<isize>) -> Result<Operator, clap::Error> {
    match (name, axis) {
        (OperatorName::ScatterNd, None) => Ok(Operator::ScatterNd),
        (OperatorName::ScatterUpdate, Some(axis)) => Ok(Operator::ScatterUpdate { axis }),
        (OperatorName::ScatterNd, Some(_)) => Err(mistake("--axis needs --op scatter_update")),
        (OperatorName::ScatterUpdate, None) => Err(mistake("--op scatter_update needs --axis")),
    }
}

fn mistake(message: &str) -> clap::Error {
    CommandLine::command().error(ErrorKind::ArgumentConflict, message)
}

/// What clap has to say, on one line and without its advice on usage.
fn first_paragraph(message: &str) -> String {
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").to_owned()
}
