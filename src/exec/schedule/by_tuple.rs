//! Each worker has some of the tuples, in order.

use super::super::division::Cut;
use super::super::workload::Order;
use super::{Direction, Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};

pub(super) struct ByTuple;

impl Scheduler for ByTuple {
    fn gathers(&self) -> bool {
        true
    }

    /// Where parts of the list share no destination: between strands, between
    /// tuples of different destinations that stand in order, or anywhere if no
    /// two tuples have one destination.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        let scatters = work.direction == Direction::Scatter;
        if scatters && work.strands >= parts.max(2) {
            let cut = Cut::BetweenStrands;
            return Ok(Division::Tuples { parts, cut });
        }
        if work.tuples <= 1 {
            return Err(Reason("the list has at most one tuple"));
        }
        Ok(Division::Tuples {
            parts: parts.min(work.tuples),
            cut: match work.order {
                Order::Ascending if scatters => Cut::BetweenDestinations,
                _ => Cut::Anywhere,
            },
        })
    }

    fn preparation(&self, work: &Workload<'_>, division: Division) -> Preparation {
        if needs_distinct(work, division) {
            Preparation::new(Step::LookForDuplicates, work.detection_bytes)
        } else {
            Preparation::of_streaming(work)
        }
    }

    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        if needs_distinct(divided.work, divided.division) {
            let duplicate = divided.transfer.plan().first_duplicate();
            if duplicate.map_err(Stop::unprepared)?.is_some() {
                return Err(Stop::Duplicates);
            }
        }
        Ok(divided.run_tiles()?)
    }
}

/// Whether the division rests on distinct destinations that are not known.
fn needs_distinct(work: &Workload<'_>, division: Division) -> bool {
    let is_cut_anywhere = match division {
        Division::Tuples { cut, .. } => cut == Cut::Anywhere,
        _ => false,
    };
    is_cut_anywhere && work.direction == Direction::Scatter && !work.known_distinct
}
