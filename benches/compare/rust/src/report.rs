//! What was found, as JSON and as a table in Markdown.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::Options;
use crate::common::contenders::Time;
use crate::common::inputs::Form;
use crate::peers::CONTENDERS;

/// Pins the versions of the peers.
const MANIFEST: &str = include_str!("../Cargo.toml");

/// Has the version of ndscatter.
const OUR_MANIFEST: &str = include_str!("../../../../Cargo.toml");

/// Nanoseconds of the best peer from which a row is not of calls.
const THROUGHPUT: f64 = 5e5;

/// All contenders on a workload in a form.
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) form: Form,
    /// In the order of [`CONTENDERS`].
    pub(crate) outcomes: [Outcome; CONTENDERS.len()],
}

/// How one of them fared.
pub(crate) enum Outcome {
    Timed {
        call: String,
        time: Time,
    },
    /// Results other than the plain loop's.
    Wrong(String),
    /// It has no call for it.
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

    /// The fastest peer that is right: its name and its time.
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
        "{threads} threads, minima of {rounds} rounds; peers in multiples of ndscatter's time.\n"
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

/// The mean over the rows that move much.
fn print_mean(form: Form, rows: &[Row]) {
    let ratios: Vec<f64> = (rows.iter().filter(|row| row.form == form))
        .filter_map(|row| Some((row.best_peer()?.1, row.ours()?)))
        .filter(|(best, _)| *best >= THROUGHPUT)
        .map(|(best, ours)| best / ours)
        .collect();
    if !ratios.is_empty() {
        let (name, count) = (form_name(form), ratios.len());
        let mean = ratios.iter().product::<f64>().powf(1.0 / count as f64);
        println!("- {name}: {mean:.2} in geometric mean, best peers of 0.5 ms or more ({count})");
    }
}

/// Why peers have no time, each once.
fn reasons(rows: &[Row]) -> BTreeSet<String> {
    (rows
        .iter()
        .flat_map(|row| row.peers().map(move |peer| (row, peer))))
    .filter_map(|(row, (name, outcome))| match outcome {
        Outcome::Timed { .. } => None,
        Outcome::Wrong(reason) => Some(format!(
            "{name} is wrong, {} {}: {reason}",
            row.workload,
            form_name(row.form)
        )),
        Outcome::LeftOut(reason) => Some(format!("{name} is left out: {reason}")),
    })
    .collect()
}

/// The version that a package of the manifest is pinned to; else it is
/// ndscatter, which is not.
fn version(package: &str) -> &'static str {
    let pinned = MANIFEST.lines().find_map(|line| {
        let dependency = line.strip_prefix(package)?.strip_prefix(" = ")?;
        dependency.split("\"=").nth(1)
    });
    let ours = || (OUR_MANIFEST.lines()).find_map(|line| line.strip_prefix("version = \""));
    let version = pinned.or_else(ours).expect("manifests have versions");
    version.split('"').next().expect("a part before the quote")
}

/// The forms, in the order of the report.
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
