//! Parses the command line, and checks that its arguments fit together.

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
    /// The file of the expected result. `None`: the result is not checked. `Some(None)`: `--check`
    /// has no file, and the result must equal the built-in sums of the digits.
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

/// Scatters updates into data at indices, or gathers elements of data at indices. All files are
/// .npy files.
///
/// Without files, the program scatters 1797 built-in images of handwritten digits: it adds up the
/// images of each label. It prints how the scatter is executed, the times, and the sums as
/// pictures.
#[derive(Debug, Parser)]
#[command(name = "scatter_npy")]
struct CommandLine {
    /// The tensor to update, or to gather from
    #[arg(long, value_name = "FILE", requires = "indices")]
    data: Option<PathBuf>,

    /// The indices of the positions in data that are written or gathered; any integer type
    #[arg(long, value_name = "FILE", requires = "data")]
    indices: Option<PathBuf>,

    /// The values that are scattered; must have the element type of data
    #[arg(long, value_name = "FILE", requires = "data")]
    updates: Option<PathBuf>,

    /// The file to which the result is written, in C or Fortran order as data is stored
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The operator
    #[arg(long, value_enum, default_value_t = OperatorName::ScatterNd)]
    op: OperatorName,

    /// The axis of data that is indexed; required except for scatter_nd and gather_nd, which have
    /// none
    #[arg(long, allow_negative_numbers = true)]
    axis: Option<isize>,

    /// Number of leading batch dims of data and indices, for gather_nd [default: 0]
    #[arg(long, value_name = "N")]
    batch_dims: Option<usize>,

    /// How an update is combined with the value of data: none (replace), add,
    /// sub, mul, min, max or mean; names of other libraries, such as sum, prod and amax, are
    /// accepted [default: none for files, add for the digits]
    #[arg(long)]
    reduction: Option<Reduction>,

    /// How an index out of bounds is handled: error, skip (its update is dropped;
    /// a gather writes zeros), clamp (the nearest valid index is used), or skip-negative
    /// (an index below the axis is skipped, an index beyond the end is an error)
    #[arg(long, default_value_t)]
    bounds: Bounds,

    /// Treat negative indices as out of bounds. By default, they count from the
    /// end of the axis
    #[arg(long)]
    forbid_negative: bool,

    /// Fail if two updates have the same destination. By default, they are applied in order
    #[arg(long)]
    reject_duplicates: bool,

    /// Scatter in place in memory; this does not change the file of data
    #[arg(long)]
    in_place: bool,

    /// Print how the scatter or gather is executed: its route and its schedule
    #[arg(long)]
    explain: bool,

    /// Number of threads [default: RAYON_NUM_THREADS if set, otherwise one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Fail unless the result equals this file bit for bit, where all NaNs are
    /// equal. For the digits, FILE may be left out: the program then uses sums that numpy computed
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    check: Option<Option<PathBuf>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OperatorName {
    /// Writes slices of data; each row of indices has the coordinates of one slice
    ScatterNd,
    /// Writes slices of data at positions along one axis, as torch's index_copy and index_add
    ScatterUpdate,
    /// Writes one element of data for each index, a position along one axis, as torch's scatter
    ScatterElements,
    /// Reads slices of data; each row of indices has the coordinates of one slice
    GatherNd,
    /// Reads slices of data at positions along one axis, as numpy's take
    Gather,
    /// Reads one element of data for each index, as numpy's take_along_axis
    GatherElements,
}

impl OperatorName {
    fn is_gather(self) -> bool {
        matches!(self, Self::GatherNd | Self::Gather | Self::GatherElements)
    }

    /// Returns the name of the operator on the command line.
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
    /// Parses and checks the command line. For `--help`, prints the help and returns the exit code
    /// as an error. For a mistake, prints the message and returns the exit code 2.
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

/// Checks that the parsed arguments fit together, and converts them.
fn check(line: CommandLine) -> Result<Arguments, clap::Error> {
    let operator = operator(&line)?;
    let files = match (line.data, line.indices) {
        (Some(data), Some(indices)) => Some(Files {
            data,
            indices,
            updates: line.updates,
        }),
        // No files. clap has refused `data` without `indices`, `indices` without `data`, and
        // `updates` without `data`.
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

/// Refuses a gather without files, a gather with updates, and a scatter of files without updates.
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

/// Returns the operator that the command line names, with its options. Refuses options that this
/// operator does not have, and a missing `--axis`.
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

/// Returns the first paragraph of a message of clap, as one line without the prefix `error: `. The
/// later paragraphs are hints on usage.
fn first_paragraph(message: &str) -> String {
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").to_owned()
}
