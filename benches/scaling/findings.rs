//! What should not be seen in a curve: cliffs, more work in less time, workers
//! that are in each other's way.

use std::fmt;

use ndscatter::Schedule;

use super::problem::Call;
use crate::common::contenders::Time;

/// Most that the time of twice the work may be.
const CLIFF: f64 = 2.6;

/// Where twice the work takes less than this part of the time, the half could
/// have been done as the whole is.
const DROP: f64 = 0.85;

/// Most that the time of more workers may be.
const SLOWER: f64 = 1.1;

/// One measured point of a curve.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) sweep: String,
    pub(crate) call: Call,
    pub(crate) x: usize,
    pub(crate) tuples: usize,
    pub(crate) bytes: usize,
    pub(crate) schedule: Schedule,
    pub(crate) time: Time,
}

impl Point {
    pub(crate) fn json(&self) -> String {
        format!(
            "{{\"sweep\": \"{}\", \"form\": \"{}\", \"reduction\": \"{}\", \"x\": {}, \
             \"workers\": {}, \"min_ns\": {:.1}, \"median_ns\": {:.1}, \"schedule\": \"{}\", \
             \"bytes\": {}, \"tuples\": {}}}",
            self.sweep,
            self.call.form,
            self.call.reduction,
            self.x,
            self.call.workers,
            self.time.min,
            self.time.median,
            self.schedule,
            self.bytes,
            self.tuples,
        )
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (x, workers, time) = (self.x, self.call.workers, duration(self.time.median));
        write!(f, "x {x}, {workers} worker(s): {time}, {}", self.schedule)
    }
}

pub(crate) fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns * 1e-3),
        ns => format!("{:.2} ms", ns * 1e-6),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Twice the work, or another shape of it, takes much longer.
    Cliff,
    /// Twice the work takes less time.
    Drop,
    /// More workers take longer than one.
    Slower,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Cliff, Self::Drop, Self::Slower];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Cliff => "cliffs: twice the work, or another shape of it, takes too long",
            Self::Drop => "drops: twice the work takes less time",
            Self::Slower => "slower with more workers",
        }
    }

    /// Whether times say so. What is not a cliff is only noted where median and
    /// minimum agree.
    pub(crate) fn is_seen(self, from: Time, to: Time) -> bool {
        let (median, min) = (to.median / from.median, to.min / from.min);
        match self {
            Self::Cliff => median > CLIFF,
            Self::Drop => median.max(min) < DROP,
            Self::Slower => median.min(min) > SLOWER,
        }
    }
}

/// What grows from one point of a sweep to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The work.
    Work,
    /// Nothing: the work takes another shape, and of two neighbours neither
    /// should take much longer than the other.
    Shape,
    /// The number of workers.
    Workers,
}

/// Two points that should not be so far apart, or so near.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) from: Point,
    pub(crate) to: Point,
}

impl Finding {
    /// All pairs among the points of one sweep that their times speak against.
    pub(crate) fn all(points: &[Point], growth: Growth) -> Vec<Self> {
        let pairs = (points.iter()).flat_map(|from| points.iter().map(move |to| (from, to)));
        pairs
            .filter_map(|(from, to)| {
                let kinds = suspected(from, to, growth).iter();
                let kind = *kinds
                    .clone()
                    .find(|kind| kind.is_seen(from.time, to.time))?;
                let (from, to) = (from.clone(), to.clone());
                Some(Self { kind, from, to })
            })
            .collect()
    }

    pub(crate) fn ratio(&self) -> f64 {
        self.to.time.median / self.from.time.median
    }
}

/// What could be wrong between two points of one sweep.
fn suspected(from: &Point, to: &Point, growth: Growth) -> &'static [Kind] {
    let (a, b) = (from.call, to.call);
    if a == b && to.x == 2 * from.x && growth == Growth::Work {
        &[Kind::Cliff, Kind::Drop]
    } else if a == b && (to.x == 2 * from.x || from.x == 2 * to.x) && growth == Growth::Shape {
        &[Kind::Cliff]
    } else if a == (Call { workers: 1, ..b })
        && b.workers > 1
        && (from.x == to.x || growth == Growth::Workers)
    {
        &[Kind::Slower]
    } else {
        &[]
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (&self.from, &self.to);
        let (name, kind, ratio) = (&from.sweep, from.call.kind(), self.ratio());
        write!(f, "{name}, {kind} | {from} | {to} | {ratio:.2}")
    }
}
