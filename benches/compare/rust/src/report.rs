//! Reports the results, as JSON and as a table in Markdown.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::Options;
use crate::common::contenders::Time;
use crate::common::inputs::Form;
use crate::peers::CONTENDERS;

/// Manifest with the pinned versions of the peers.
const MANIFEST: &str = include_str!("../Cargo.toml");

/// Manifest with the version of ndscatter.
const OUR_MANIFEST: &str = include_str!("../../../../Cargo.toml");

/// Nanoseconds of the best peer from which on a row counts in the mean.
const THROUGHPUT: f64 = 5e5;

/// Results of all contenders for a workload and a form.
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) form: Form,
    /// Outcomes in the order of [`CONTENDERS`].
    pub(crate) outcomes: [Outcome; CONTENDERS.len()],
}

/// Result of one contender.
pub(crate) enum Outcome {
    /// Time of the fastest correct call.
    Timed { call: String, time: Time },
    /// No call gives the bits of the reference loop. Has the difference.
    Wrong(String),
    /// The contender has no call for the workload. Has the reason.
    LeftOut(&'static str),
}

impl Outcome {
    fn min(&self) -> Option<f64> {
        match self {
            Self::Timed { time, .. } => Some(time.min),
            Self::Wrong(_) | Self::LeftOut(_) => None,
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Timed { call, time } => {
                json!({ "min": time.min, "median": time.median, "call": call })
            }
            Self::Wrong(reason) => json!({ "wrong": reason }),
            Self::LeftOut(reason) => json!({ "left_out": reason }),
        }
    }
}

impl Row {
    fn ours(&self) -> Option<f64> {
        self.outcomes[0].min()
    }

    fn peers(&self) -> impl Iterator<Item = (&'static str, &Outcome)> {
        (CONTENDERS.iter().zip(&self.outcomes).skip(1)).map(|((name, _), outcome)| (*name, outcome))
    }

    /// Returns name and nanoseconds of the fastest correct peer.
    fn best_peer(&self) -> Option<(&'static str, f64)> {
        (self
            .peers()
            .filter_map(|(name, outcome)| Some((name, outcome.min()?))))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn json(&self) -> Value {
        let names = CONTENDERS.iter().map(|(name, _)| (*name).to_owned());
        let times = names.zip(self.outcomes.iter().map(Outcome::json));
        json!({
            "workload": self.workload,
            "form": form_name(self.form),
            "times": times.collect::<Map<_, _>>(),
        })
    }

    fn markdown(&self) -> String {
        let ratio = |nanoseconds: f64| {
            (self.ours()).map_or("–".into(), |ours| format!("{:.2}", nanoseconds / ours))
        };
        let ours = self.ours().map_or("wrong".into(), duration);
        let peers = self.peers().map(|(_, outcome)| match outcome {
            Outcome::Timed { time, .. } => format!(" {} |", ratio(time.min)),
            Outcome::Wrong(_) => " wrong |".into(),
            Outcome::LeftOut(_) => " – |".into(),
        });
        let best = self.best_peer().map_or("–".into(), |(name, nanoseconds)| {
            format!("{} ({name})", ratio(nanoseconds))
        });
        let (workload, form) = (self.workload, form_name(self.form));
        let peers = peers.collect::<String>();
        format!("| {workload} | {form} | {ours} |{peers} {best} |")
    }
}

pub(crate) fn json(rows: &[Row], options: &Options) -> Value {
    let versions = CONTENDERS.iter();
    let versions = versions.map(|(name, package)| ((*name).to_owned(), version(package).into()));
    json!({
        "threads": options.threads,
        "rounds": options.rounds,
        "contenders": versions.collect::<Map<_, _>>(),
        "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
    })
}

pub(crate) fn print(rows: &[Row], options: &Options) {
    let (threads, rounds) = (options.threads, options.rounds);
    println!(
        "{threads} threads, minima of {rounds} rounds. Cells of peers are their time divided by \
         the time of ndscatter.\n"
    );
    let names = CONTENDERS.map(|(name, package)| format!("{name} {}", version(package)));
    println!("| workload | form | {} | best peer |", names.join(" | "));
    println!("|{}", "---|".repeat(names.len() + 3));
    for row in rows {
        println!("{}", row.markdown());
    }
    println!();
    for form in FORMS {
        print_mean(form, rows);
    }
    for reason in reasons(rows) {
        println!("- {reason}");
    }
}

/// Prints the geometric mean of a form, over the rows whose best peer needs at least 0.5 ms.
fn print_mean(form: Form, rows: &[Row]) {
    let ratios: Vec<f64> = (rows.iter().filter(|row| row.form == form))
        .filter_map(|row| Some((row.best_peer()?.1, row.ours()?)))
        .filter(|(best, _)| *best >= THROUGHPUT)
        .map(|(best, ours)| best / ours)
        .collect();
    if !ratios.is_empty() {
        let (name, count) = (form_name(form), ratios.len());
        let mean = ratios.iter().product::<f64>().powf(1.0 / count as f64);
        println!(
            "- {name}: geometric mean {mean:.2} of {count} rows; their best peers need 0.5 ms or \
             more"
        );
    }
}

/// Returns the distinct reasons why peers have no time.
fn reasons(rows: &[Row]) -> BTreeSet<String> {
    (rows
        .iter()
        .flat_map(|row| row.peers().map(move |peer| (row, peer))))
    .filter_map(|(row, (name, outcome))| match outcome {
        Outcome::Timed { .. } => None,
        Outcome::Wrong(reason) => Some(format!(
            "{name} gives a wrong result ({}, {}): {reason}",
            row.workload,
            form_name(row.form)
        )),
        Outcome::LeftOut(reason) => Some(format!("{name} is not measured: {reason}")),
    })
    .collect()
}

/// Returns the pinned version of a package. A package without one is ndscatter.
fn version(package: &str) -> &'static str {
    let pinned = MANIFEST.lines().find_map(|line| {
        let dependency = line.strip_prefix(package)?.strip_prefix(" = ")?;
        dependency.split("\"=").nth(1)
    });
    let ours = || (OUR_MANIFEST.lines()).find_map(|line| line.strip_prefix("version = \""));
    let version = pinned.or_else(ours).expect("manifests have versions");
    version.split('"').next().expect("a part before the quote")
}

/// Forms in the order of the report.
pub(crate) const FORMS: [Form; 3] = [Form::InPlace, Form::Functional, Form::Allocating];

fn form_name(form: Form) -> &'static str {
    match form {
        Form::InPlace => "in place",
        Form::Functional => "into",
        Form::Allocating => "allocating",
    }
}

fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e4 => format!("{nanoseconds:.0} ns"),
        ..1e6 => format!("{:.1} µs", nanoseconds * 1e-3),
        _ => format!("{:.2} ms", nanoseconds * 1e-6),
    }
}
