//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use ndscatter::{Bounds, Duplicates, Gather, Reduction, Scatter};

use crate::complain;
use crate::job::Operator;

/// What the command line asks for, checked as far as it can be alone.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// `None`: the digits.
    pub(crate) files: Option<Files>,
    pub(crate) operator: Operator,
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
    /// Of a scatter.
    pub(crate) updates: Option<PathBuf>,
}

/// Scatters updates into data at indices, or gathers from data, all in .npy files
///
/// Without files it runs on the handwritten digits that it carries: every image
/// is added into the row of its label. It then prints what was planned, the time
/// that it took, and the sums as pictures.
#[derive(Debug, Parser)]
#[command(name = "scatter_npy")]
struct CommandLine {
    /// The tensor to update, or to gather from
    #[arg(long, value_name = "FILE", requires = "indices")]
    data: Option<PathBuf>,

    /// Where the updates go, or what is gathered; of any integer type
    #[arg(long, value_name = "FILE", requires = "data")]
    indices: Option<PathBuf>,

    /// What is scattered, of the element type of data
    #[arg(long, value_name = "FILE", requires = "data")]
    updates: Option<PathBuf>,

    /// Where the result is written, in the order (C or Fortran) of data
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The operator
    #[arg(long, value_enum, default_value_t = OperatorName::ScatterNd)]
    op: OperatorName,

    /// The axis of data that the indices run along; of all but scatter_nd and
    /// gather_nd
    #[arg(long, allow_negative_numbers = true)]
    axis: Option<isize>,

    /// Leading dims that data and indices of gather_nd share [default: 0]
    #[arg(long, value_name = "N")]
    batch_dims: Option<usize>,

    /// How an update meets the value that is there: none (it replaces it), add,
    /// sub, mul, min, max or mean [default: none for files, add for the digits]
    #[arg(long)]
    reduction: Option<Reduction>,

    /// What becomes of an index that lies outside its axis: error, skip (its update
    /// is dropped; a gather writes zeros) or clamp (it is moved to the nearest end)
    #[arg(long, default_value_t)]
    bounds: Bounds,

    /// Take negative indices as out of bounds, instead of counting them from the
    /// end
    #[arg(long)]
    forbid_negative: bool,

    /// Fail if two updates have one destination, instead of applying them in order
    #[arg(long)]
    reject_duplicates: bool,

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OperatorName {
    /// Each row of indices holds the coordinates of one slice of data
    ScatterNd,
    /// Indices run along one axis of data, the same for every position before it
    ScatterUpdate,
    /// Each index is the place of one update along an axis of data
    ScatterElements,
    /// The slices whose coordinates the rows of indices hold
    GatherNd,
    /// Slices along one axis of data, as numpy's take
    Gather,
    /// One element of data for each index, as numpy's take_along_axis
    GatherElements,
}

impl OperatorName {
    fn is_gather(self) -> bool {
        matches!(self, Self::GatherNd | Self::Gather | Self::GatherElements)
    }

    /// As it is written on the command line.
    fn as_str(self) -> &'static str {
        match self {
            Self::ScatterNd => "scatter_nd",
            Self::ScatterUpdate => "scatter_update",
            Self::ScatterElements => "scatter_elements",
            Self::GatherNd => "gather_nd",
            Self::Gather => "gather",
            Self::GatherElements => "gather_elements",
        }
    }
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
    let operator = operator(&line)?;
    let files = match (line.data, line.indices) {
        (Some(data), Some(indices)) => Some(Files {
            data,
            indices,
            updates: line.updates,
        }),
        // clap has seen to it that the others are not there either.
        _ => None,
    };
    check_updates(line.op, files.as_ref())?;
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
        operator,
        in_place: line.in_place,
        explain: line.explain,
        threads: line.threads.map(usize::from),
        out: line.out,
        check: line.check,
    })
}

/// Refuses updates to a gather, and their absence to a scatter.
fn check_updates(op: OperatorName, files: Option<&Files>) -> Result<(), clap::Error> {
    let name = op.as_str();
    match files {
        None if op.is_gather() => Err(mistake(&format!(
            "--op {name} needs --data and --indices; the digits are scattered"
        ))),
        None => Ok(()),
        Some(files) => match (op.is_gather(), &files.updates) {
            (true, Some(_)) => Err(mistake(&format!("--op {name} takes no --updates"))),
            (false, None) => Err(mistake(&format!("--op {name} needs --updates"))),
            _ => Ok(()),
        },
    }
}

/// The operator, with what it means.
fn operator(line: &CommandLine) -> Result<Operator, clap::Error> {
    use OperatorName as Name;
    let name = line.op.as_str();
    if line.op != Name::GatherNd && line.batch_dims.is_some() {
        return Err(mistake("--batch-dims needs --op gather_nd"));
    }
    let axis = match (line.op, line.axis) {
        (Name::ScatterNd | Name::GatherNd, Some(_)) => {
            return Err(mistake(&format!(
                "--op {name} has no --axis; scatter_update, scatter_elements, gather and \
                 gather_elements have one"
            )));
        }
        (Name::ScatterNd | Name::GatherNd, None) => 0,
        (_, Some(axis)) => axis,
        (_, None) => return Err(mistake(&format!("--op {name} needs --axis"))),
    };
    Ok(match line.op {
        Name::ScatterNd => scatter(Scatter::nd(), line),
        Name::ScatterUpdate => scatter(Scatter::along(axis), line),
        Name::ScatterElements => scatter(Scatter::elements(axis), line),
        Name::GatherNd => gather(Gather::nd(line.batch_dims.unwrap_or(0)), line)?,
        Name::Gather => gather(Gather::along(axis), line)?,
        Name::GatherElements => gather(Gather::elements(axis), line)?,
    })
}

fn scatter(operator: Scatter<'static>, line: &CommandLine) -> Operator {
    let usual_reduction = if line.data.is_some() {
        Reduction::None
    } else {
        Reduction::Add
    };
    let duplicates = if line.reject_duplicates {
        Duplicates::Reject
    } else {
        Duplicates::Allow
    };
    let operator = operator
        .reduction(line.reduction.unwrap_or(usual_reduction))
        .duplicates(duplicates)
        .bounds(line.bounds)
        .negative_indices(!line.forbid_negative);
    Operator::Scatter(operator)
}

fn gather(operator: Gather<'static>, line: &CommandLine) -> Result<Operator, clap::Error> {
    let of_scatters = [
        ("--reduction", line.reduction.is_some()),
        ("--reject-duplicates", line.reject_duplicates),
        ("--in-place", line.in_place),
    ];
    if let Some((option, _)) = of_scatters.iter().find(|(_, is_given)| *is_given) {
        let name = line.op.as_str();
        return Err(mistake(&format!("--op {name} has no {option}")));
    }
    let operator = operator
        .bounds(line.bounds)
        .negative_indices(!line.forbid_negative);
    Ok(Operator::Gather(operator))
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
