//! The schedules that divide a case.
//!
//! This module contains the rules of docs/design.md a second time, computed from the fields of a
//! case. If a forced schedule would change a bit, the crate replaces it by another schedule. The
//! rules ensure that the tests of a schedule do not test its replacement.

use ndscatter::{Reduction, Schedule};

use super::cases::Case;
use crate::common::api::{DType, Options};
use crate::common::indices::resolve_axis;
use crate::common::layouts::Arrangement;
use crate::common::operators::Operator;
use crate::common::{Tensor, ndindex};

/// Number of workers for which the rules are computed.
pub(super) const WORKERS: usize = 8;

/// Largest size in bytes of a worker's copy of all windows: for single elements, and for rows.
const COPY_BYTES: usize = 512 * 1024;
const ROW_COPY_BYTES: usize = 1024 * 1024;

/// The properties of a case that the rules use.
#[derive(Debug)]
pub(super) struct Facts {
    repetitions: usize,
    /// Number of tuples that are applied in each repetition.
    tuples: usize,
    /// Whether a tuple was skipped.
    skips: bool,
    /// Number of elements of a window.
    window: usize,
    /// Number of elements that the tuples of one repetition can address.
    addressed: usize,
    /// Number of parts of the list whose tuples have no destination in common.
    independent: usize,
    /// Whether there are no duplicates, or the tuples are in the order of their destinations.
    ordered_or_unique: bool,
}

impl Facts {
    pub(super) fn new(case: &Case, options: &Options<'_>, indices: &Tensor<i128>) -> Self {
        let data = case.data;
        let (batch, tail) = case.window_of_tuples(indices);
        let window = match case.operator {
            Operator::Elements { .. } => indices.shape[tail..].iter().product(),
            Operator::Cache { axis, .. } => {
                let axis = resolve_axis(axis, data.len());
                data[axis + 1..].iter().product()
            }
            _ => data[tail..].iter().product(),
        };
        let independent = match case.operator {
            Operator::Elements { axis } => {
                let axis = resolve_axis(axis, data.len());
                indices.shape[batch..axis].iter().product()
            }
            _ => 1,
        };
        let destinations = case.destinations_of_tuples(options, indices, (batch, tail));
        let applied: Vec<usize> = destinations.iter().copied().flatten().collect();
        let mut sorted = applied.clone();
        sorted.sort_unstable();
        let is_ordered = sorted == applied;
        sorted.dedup();
        Self {
            repetitions: match case.operator {
                Operator::Elements { .. } => indices.shape[..batch].iter().product(),
                _ => data[..batch].iter().product(),
            },
            tuples: applied.len(),
            skips: applied.len() < destinations.len(),
            window,
            addressed: match case.operator {
                Operator::Elements { .. } => data[batch..tail].iter().product::<usize>() * window,
                _ => data[batch..].iter().product(),
            },
            independent,
            ordered_or_unique: is_ordered || sorted.len() == applied.len(),
        }
    }

    /// Returns the schedule that runs in place on [`WORKERS`] workers when `forced` is forced, and
    /// whether it has several tasks.
    pub(super) fn used(
        &self,
        case: &Case,
        (reduction, dtype): (Reduction, DType),
        forced: Schedule,
    ) -> (Schedule, bool) {
        let (moves, mean) = (reduction == Reduction::None, reduction == Reduction::Mean);
        let picks = matches!(reduction, Reduction::Min | Reduction::Max);
        let is_half = matches!(dtype, DType::F16 | DType::BF16);
        let is_float = is_half || !dtype.is_index() && dtype != DType::Bool;
        let is_wide = case.accumulate == ndscatter::Accumulate::Wide && is_half && !picks;
        if !moves && (mean || !case.include_self || is_wide) {
            return (Schedule::Grouped, self.tuples > 1);
        }
        let in_parts = !moves && dtype != DType::Bool && (picks || !is_float);
        let several = self.tuples > 0;
        let divides = match forced {
            Schedule::ByBatch => self.repetitions > 1,
            Schedule::ByTuple => {
                self.independent >= WORKERS || self.tuples > 1 && self.ordered_or_unique
            }
            Schedule::LastWrite => moves,
            Schedule::ByColumn => self.window > 1,
            Schedule::ByDestination | Schedule::ByPartition => several,
            Schedule::Grouped => several && !moves,
            Schedule::Private => {
                let most = if self.window > 1 {
                    ROW_COPY_BYTES
                } else {
                    COPY_BYTES
                };
                in_parts
                    && !self.skips
                    && self.tuples >= WORKERS
                    && case.layout == Arrangement::Contiguous
                    && self.addressed * dtype.size() <= most
            }
            _ => false,
        };
        let used = if divides { forced } else { Schedule::Serial };
        // A single destination cannot be divided into ranges.
        let is_one = forced == Schedule::ByDestination && self.addressed == 1;
        (used, divides && !is_one)
    }
}

impl Case {
    /// Returns the number of leading dims that are repetitions, and the dim at which windows begin.
    /// Element scatters count the dims of indices. Other scatters count the dims of data.
    fn window_of_tuples(&self, indices: &Tensor<i128>) -> (usize, usize) {
        match self.operator {
            Operator::Nd => (0, *indices.shape.last().expect("rank 1 or more")),
            Operator::Update { axis } => {
                let axis = resolve_axis(axis, self.data.len());
                (axis, axis + 1)
            }
            Operator::Cache { .. } => (0, 0),
            Operator::Paged => (0, 2),
            Operator::Elements { axis } => {
                let (axis, rank) = (resolve_axis(axis, self.data.len()), self.data.len());
                let by_layout = match self.indices_layout {
                    Arrangement::ZeroLast => rank - 1,
                    Arrangement::ZeroTail => 1,
                    _ => rank,
                };
                // The crate detects repeated indices by their values only where they repeat along
                // all dims after the axis.
                let is_row = self.differ <= axis + 1 && self.exceptions == 0;
                let by_values = if is_row { axis + 1 } else { rank };
                let batch = usize::from(self.indices_layout == Arrangement::ZeroFirst && axis > 0);
                (batch, by_values.min(by_layout).max(axis + 1))
            }
        }
    }

    /// Returns the destination number of each tuple. `None`: the tuple is skipped.
    fn destinations_of_tuples(
        &self,
        options: &Options<'_>,
        indices: &Tensor<i128>,
        (batch, tail): (usize, usize),
    ) -> Vec<Option<usize>> {
        let rule = options.rules().index;
        let number = |coordinates: &[(usize, usize)]| {
            (coordinates.iter()).fold(0, |number, &(at, size)| number * size + at)
        };
        match self.operator {
            // Each sequence has separate destinations, and each position occurs once. This holds
            // for every index of the dims between the batch and the axis.
            Operator::Cache { axis, len, .. } => {
                let axis = resolve_axis(axis, self.data.len());
                let between: usize = self.data[..axis].iter().product();
                (0..between * len).map(Some).collect()
            }
            Operator::Elements { axis } => {
                let axis = resolve_axis(axis, self.data.len());
                let trailing = indices.shape.len() - tail;
                let tuples = ndindex(&indices.shape[batch..tail]);
                let tuple = |idx: Vec<usize>| {
                    let full = [&vec![0; batch], &idx[..], &vec![0; trailing]].concat();
                    let place = rule.resolve(*indices.at(&full), self.data[axis])?;
                    let coordinates = (batch..tail).map(|dim| match dim {
                        _ if dim == axis => (place, self.data[dim]),
                        _ => (full[dim], self.data[dim]),
                    });
                    Some(number(&coordinates.collect::<Vec<_>>()))
                };
                tuples.map(tuple).collect()
            }
            _ => {
                let axes = self.operator.axes(self.data, &indices.shape);
                let tuples = self.operator.tuples(&indices.shape);
                let tuple = |tuple: usize| {
                    let values = &indices.values[tuple * axes.len()..];
                    let place = |(&index, &(_, size)): (&i128, &(usize, usize))| {
                        Some((rule.resolve(index, size)?, size))
                    };
                    let places: Option<Vec<_>> = values.iter().zip(&axes).map(place).collect();
                    Some(number(&places?))
                };
                (0..tuples).map(tuple).collect()
            }
        }
    }
}
