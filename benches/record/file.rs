//! The record of a machine, as it lies in `benches/machines/`.
//!
//! Knows the format. Knows nothing of how times are taken, or what they are
//! judged by.

use std::collections::BTreeMap;
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
    /// For each number of workers the schedule that this version chose.
    pub(crate) chosen: BTreeMap<usize, String>,
    /// By [key].
    pub(crate) times: BTreeMap<String, Time>,
}

/// Nanoseconds of one call: median, least and most of the runs, and the median
/// of what all threads spent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Time(
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
);

impl Time {
    pub(crate) fn median(self) -> u64 {
        self.0
    }

    /// Whether runs of this were as short as the median of others.
    pub(crate) fn reaches(self, median: u64) -> bool {
        self.1 <= median
    }
}

/// The name of what the crate does by itself.
pub(crate) const DEFAULT: &str = "default";

/// What a time is kept under.
pub(crate) fn key(schedule: &str, workers: usize, is_planned: bool) -> String {
    let call = if is_planned { "planned" } else { "once" };
    format!("{schedule}, {workers}, {call}")
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
    /// The time of what was chosen in that of the fastest, for so many workers; 1
    /// where it lies within the spread. `None` where nothing was recorded.
    pub(crate) fn regret(&self, chosen: &str, workers: usize, is_planned: bool) -> Option<f64> {
        let time = *self.times.get(&key(chosen, workers, is_planned))?;
        let call = if is_planned { "planned" } else { "once" };
        let is_rival = |name: &str| {
            let mut parts = name.rsplit(", ");
            let (last, number) = (parts.next(), parts.next().and_then(|n| n.parse().ok()));
            last == Some(call) && number.is_some_and(|number: usize| number <= workers)
        };
        let rivals = self.times.iter().filter(|(name, _)| is_rival(name));
        let best = rivals.map(|(_, time)| time.median()).min()?;
        if time.reaches(best) {
            return Some(1.0);
        }
        #[allow(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
        Some(time.median() as f64 / best as f64)
    }
}
