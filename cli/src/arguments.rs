//! Parses the command line and checks it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use ndscatter::{Bounds, Duplicates, Gather, Reduction, Scatter};

use crate::complain;
use crate::job::Operator;

/// The checked arguments of the command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// The input files. `None`: the built-in digits.
    pub(crate) files: Option<Files>,
    pub(crate) operator: Operator,
    pub(crate) in_place: bool,
    pub(crate) explain: bool,
    pub(crate) threads: Option<usize>,
    pub(crate) out: Option<PathBuf>,
    /// The expected result. `Some(None)`: the expected sums of the digits.
    pub(crate) check: Option<Option<PathBuf>>,
}

/// The input files.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) data: PathBuf,
    pub(crate) indices: PathBuf,
    /// `None` for a gather.
    pub(crate) updates: Option<PathBuf>,
}

/// Scatters updates into data at indices, or gathers from data. All arrays are .npy files.
///
/// Without files, the program adds each of 1797 built-in images of handwritten digits into the row of its label.
/// It prints the plan, the time, and the sums as pictures.
#[derive(Debug, Parser)]
#[command(name = "scatter_npy")]
struct CommandLine {
    /// The tensor to update, or to gather from
    #[arg(long, value_name = "FILE", requires = "indices")]
    data: Option<PathBuf>,

    /// The positions that are written or gathered; any integer type
    #[arg(long, value_name = "FILE", requires = "data")]
    indices: Option<PathBuf>,

    /// The values that are scattered; same element type as data
    #[arg(long, value_name = "FILE", requires = "data")]
    updates: Option<PathBuf>,

    /// The file for the result, in the order (C or Fortran) of data
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The operator
    #[arg(long, value_enum, default_value_t = OperatorName::ScatterNd)]
    op: OperatorName,

    /// The indexed axis of data; required except for scatter_nd and gather_nd
    #[arg(long, allow_negative_numbers = true)]
    axis: Option<isize>,

    /// Number of leading dims that data and indices of gather_nd share [default: 0]
    #[arg(long, value_name = "N")]
    batch_dims: Option<usize>,

    /// How an update is combined with the existing value: none (replace), add,
    /// sub, mul, min, max or mean [default: none for files, add for the digits]
    #[arg(long)]
    reduction: Option<Reduction>,

    /// How an index outside its axis is handled: error, skip (the update is
    /// dropped; a gather writes zeros) or clamp (the nearest valid index is used)
    #[arg(long, default_value_t)]
    bounds: Bounds,

    /// Treat negative indices as out of bounds, instead of counting them from the
    /// end
    #[arg(long)]
    forbid_negative: bool,

    /// Fail if two updates have the same destination, instead of applying them in order
    #[arg(long)]
    reject_duplicates: bool,

    /// Update data in place instead of writing a copy
    #[arg(long)]
    in_place: bool,

    /// Print the route and the schedule
    #[arg(long)]
    explain: bool,

    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Fail unless the result equals this file bit for bit [default for the
    /// digits: the sums that numpy computed]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    check: Option<Option<PathBuf>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OperatorName {
    /// Writes slices of data; each row of indices holds the coordinates of one slice
    ScatterNd,
    /// Writes slices along one axis of data, as torch's index_add
    ScatterUpdate,
    /// Writes single elements; each index is a position along one axis, as torch's scatter
    ScatterElements,
    /// Reads slices of data; each row of indices holds the coordinates of one slice
    GatherNd,
    /// Reads slices along one axis of data, as numpy's take
    Gather,
    /// Reads one element of data for each index, as numpy's take_along_axis
    GatherElements,
}

impl OperatorName {
    fn is_gather(self) -> bool {
        matches!(self, Self::GatherNd | Self::Gather | Self::GatherElements)
    }

    /// Returns the name on the command line.
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
    /// Parses the command line. After `--help` or a mistake, prints the text and returns the
    /// exit code.
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

/// Checks that the arguments fit together.
fn check(line: CommandLine) -> Result<Arguments, clap::Error> {
    let operator = operator(&line)?;
    let files = match (line.data, line.indices) {
        (Some(data), Some(indices)) => Some(Files {
            data,
            indices,
            updates: line.updates,
        }),
        // clap requires `data` and `indices` together, and `updates` only with them.
        _ => None,
    };
    check_updates(line.op, files.as_ref())?;
    if files.is_some() {
        if matches!(line.check, Some(None)) {
            return Err(mistake("--check needs a file to compare the result with"));
        }
        if line.out.is_none() && line.check.is_none() && !line.explain {
            return Err(mistake("the result is not used; give --out or --check"));
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

/// Refuses a gather with updates and a scatter without updates.
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

/// Returns the operator with its options.
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

/// Returns the first paragraph of clap's message on one line, without its hints on usage.
fn first_paragraph(message: &str) -> String {
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").to_owned()
}
