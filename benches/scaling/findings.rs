//! Finds anomalies in the points of a sweep: cliffs, drops (more work in less time), and
//! calls that are slower with more workers.

use std::fmt;

use ndscatter::Schedule;

use super::problem::Call;
use crate::common::contenders::Time;

/// Maximum ratio of the time of twice the work to the time of the work.
const CLIFF: f64 = 2.6;

/// Minimum ratio of the time of twice the work to the time of the work. Below it, the smaller
/// call should be executed like the larger one.
const DROP: f64 = 0.85;

/// Maximum ratio of the time with several workers to the time with one.
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
    /// Twice the work, or an equal amount of another shape, is much slower.
    Cliff,
    /// Twice the work is faster.
    Drop,
    /// Several workers are slower than one.
    Slower,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Cliff, Self::Drop, Self::Slower];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Cliff => {
                "cliffs: twice the work, or an equal amount of another shape, is too slow"
            }
            Self::Drop => "drops: twice the work is faster",
            Self::Slower => "slower with more workers",
        }
    }

    /// Whether the times show this anomaly. A cliff needs only the median. A drop, and a call
    /// that is slower with more workers, need the median and the minimum.
    pub(crate) fn is_seen(self, from: Time, to: Time) -> bool {
        let (median, min) = (to.median / from.median, to.min / from.min);
        match self {
            Self::Cliff => median > CLIFF,
            Self::Drop => median.max(min) < DROP,
            Self::Slower => median.min(min) > SLOWER,
        }
    }
}

/// Quantity that grows from one point of a sweep to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Amount of work.
    Work,
    /// Shape of the work. The amount of work is constant, so neighbouring points should have
    /// similar times.
    Shape,
    /// Number of workers, which grows by one from point to point.
    Workers,
}

/// Two points of a sweep whose times show an anomaly.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) from: Point,
    pub(crate) to: Point,
}

impl Finding {
    /// Returns all pairs among the points of one sweep that show an anomaly.
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

/// Returns the anomalies that a pair of points of one sweep could show.
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
