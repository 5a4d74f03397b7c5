//! The record of a machine, as it lies in `benches/machines/`.
//!
//! Knows the format. Knows nothing of how times are taken, or what they are
//! judged by.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// Of the format: a reader refuses others.
pub(crate) const FORMAT: u32 = 1;

/// All that was found on one machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) format: u32,
    /// Of this crate, when it was recorded.
    pub(crate) version: String,
    pub(crate) machine: Machine,
    pub(crate) entries: Vec<Entry>,
}

/// What was recorded on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    /// Threads of the pool.
    pub(crate) threads: usize,
    /// Level, bytes, and how many logical processors share it.
    pub(crate) caches: Vec<(u8, u64, usize)>,
}

/// What one problem takes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) problem: Problem,
    /// What the version that recorded chose.
    pub(crate) chosen: Vec<Call>,
    /// What each call takes.
    pub(crate) times: Vec<(Call, Time)>,
}

/// A way to do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Its name, or [`DEFAULT`]; or that and the name of a variant of the kernels.
    pub(crate) schedule: String,
    pub(crate) workers: usize,
    pub(crate) is_planned: bool,
}

/// Nanoseconds of one call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Time {
    /// Of the runs.
    pub(crate) median: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// What all threads spent, in the median.
    pub(crate) cpu: u64,
}

/// What the crate does by itself; a variant's name begins with it.
pub(crate) const DEFAULT: &str = "default";

impl Call {
    /// Whether the default runs with other variants of the kernels.
    pub(crate) fn is_variant(&self) -> bool {
        self.schedule.starts_with(DEFAULT) && self.schedule != DEFAULT
    }
}

impl Record {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let record: Self =
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        match record.format {
            FORMAT => Ok(record),
            other => Err(format!("{}: format {other}, not {FORMAT}", path.display())),
        }
    }

    /// Writes it, a line for each problem.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let failed = |e: serde_json::Error| e.to_string();
        let entries: Result<Vec<_>, _> = self.entries.iter().map(serde_json::to_string).collect();
        let text = format!(
            "{{\"format\":{},\"version\":\"{}\",\"machine\":{},\"entries\":[\n{}\n]}}\n",
            self.format,
            self.version,
            serde_json::to_string(&self.machine).map_err(failed)?,
            entries.map_err(failed)?.join(",\n")
        );
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Entry {
    /// The time of the schedule that was chosen, forced; else of the default.
    pub(crate) fn time_of_chosen(&self, workers: usize, is_planned: bool) -> Option<Time> {
        let is_asked = |call: &Call| call.is_planned == is_planned && call.workers == workers;
        let chosen = self.chosen.iter().find(|call| is_asked(call))?;
        let of = |schedule: &str| {
            let mut times = self.times.iter();
            times.find(|(call, _)| is_asked(call) && call.schedule == schedule)
        };
        let found = of(&chosen.schedule).or_else(|| of(DEFAULT));
        found.map(|(_, time)| *time)
    }

    /// The time of a call in that of the fastest on no more workers, planned or not
    /// as it is; 1 where it lies within the spread. `None` where it was not recorded.
    pub(crate) fn regret(&self, call: &Call) -> Option<f64> {
        self.regret_among(call, call.workers)
    }

    /// The same among calls on at most so many workers.
    pub(crate) fn regret_among(&self, call: &Call, workers: usize) -> Option<f64> {
        let (_, time) = self.times.iter().find(|(timed, _)| timed == call)?;
        let rivals = self.times.iter().filter(|(rival, _)| {
            rival.is_planned == call.is_planned && rival.workers <= workers && !rival.is_variant()
        });
        let best = rivals.map(|(_, rival)| rival.median).min()?;
        if time.least <= best {
            return Some(1.0);
        }
        #[allow(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
        Some(time.median as f64 / best as f64)
    }
}
