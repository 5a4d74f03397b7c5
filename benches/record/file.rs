//! Reads and writes the record of a machine, a file in `benches/machines/`.
//!
//! Knows the format and the regret of a choice. Knows nothing of measurements.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// Number of the format. Records with another number are rejected.
pub(crate) const FORMAT: u32 = 1;

/// All times of one machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) format: u32,
    /// Version of this crate that was measured.
    pub(crate) version: String,
    pub(crate) machine: Machine,
    pub(crate) entries: Vec<Entry>,
}

/// Description of the machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    /// Threads of the pool.
    pub(crate) threads: usize,
    /// Level and bytes of each cache, and the number of logical processors that share it.
    pub(crate) caches: Vec<(u8, u64, usize)>,
}

/// Times of one problem.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) problem: Problem,
    /// Calls with the schedules that the measured version chose.
    pub(crate) chosen: Vec<Call>,
    /// Time of each call.
    pub(crate) times: Vec<(Call, Time)>,
}

/// Schedule, workers and plan of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Name of the forced schedule, or [`DEFAULT`], or [`DEFAULT`] with the name of a variant of
    /// the kernels.
    pub(crate) schedule: String,
    pub(crate) workers: usize,
    pub(crate) is_planned: bool,
}

/// Nanoseconds of one call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Time {
    /// Median over the samples.
    pub(crate) median: u64,
    /// Minimum over the samples.
    pub(crate) least: u64,
    /// Maximum over the samples.
    pub(crate) most: u64,
    /// Median CPU time of all threads together.
    pub(crate) cpu: u64,
}

/// Name of calls without a forced schedule. Names of variants begin with it.
pub(crate) const DEFAULT: &str = "default";

impl Call {
    /// Whether the call uses a variant of the kernels.
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
            other => Err(format!(
                "{}: the format is {other}; this version reads {FORMAT}",
                path.display()
            )),
        }
    }

    /// Writes the record, one line per problem.
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
        // A full disk leaves the record of the problems before.
        let unfinished = path.with_extension("part");
        std::fs::write(&unfinished, text)
            .and_then(|()| std::fs::rename(&unfinished, path))
            .map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Entry {
    /// Returns the time of the chosen schedule when it was forced. If it was not timed, returns
    /// the time of the default.
    pub(crate) fn time_of_chosen(&self, workers: usize, is_planned: bool) -> Option<Time> {
        let matches = |call: &Call| call.is_planned == is_planned && call.workers == workers;
        let chosen = self.chosen.iter().find(|call| matches(call))?;
        let of = |schedule: &str| {
            let mut times = self.times.iter();
            times.find(|(call, _)| matches(call) && call.schedule == schedule)
        };
        let found = of(&chosen.schedule).or_else(|| of(DEFAULT));
        found.map(|(_, time)| *time)
    }

    /// Returns the regret of a call: its time divided by the time of the fastest call with at
    /// most an equal number of workers. Only planned calls are compared with a planned call, and
    /// only one-shot calls with a one-shot call. The regret is 1 if the minimum of the call is
    /// not above the fastest median. Returns `None` if the call was not recorded.
    pub(crate) fn regret(&self, call: &Call) -> Option<f64> {
        self.regret_among(call, call.workers)
    }

    /// Returns the regret among calls with at most `workers` workers. Otherwise like
    /// [`regret`](Self::regret).
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
