//! The schedule by tuple: each worker takes some consecutive tuples, in order.

use super::super::division::Cut;
use super::super::workload::Order;
use super::{Direction, Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};

pub(super) struct ByTuple;

impl Scheduler for ByTuple {
    fn gathers(&self) -> bool {
        true
    }

    /// Cuts the list where its parts share no destination. A scatter with enough strands is cut
    /// between strands. A scatter in ascending order is cut between destinations. Any other scatter
    /// is cut anywhere, and requires distinct destinations. A gather writes one window per tuple,
    /// so its list is cut anywhere.
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
            Preparation::new(Step::DetectDuplicates, work.detection_bytes)
        } else {
            Preparation::of_streaming(work)
        }
    }

    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        if needs_distinct(divided.work, divided.division)
            && (divided.transfer.plan().first_duplicate())
                .map_err(Stop::unprepared)?
                .is_some()
        {
            return Err(Stop::Duplicates);
        }
        Ok(divided.run_tiles()?)
    }
}

/// Whether this way to divide the tuples among tasks requires distinct destinations, and the plan
/// does not know whether the destinations are distinct.
fn needs_distinct(work: &Workload<'_>, division: Division) -> bool {
    let is_cut_anywhere = matches!(division, Division::Tuples { cut, .. } if cut == Cut::Anywhere);
    is_cut_anywhere && work.direction == Direction::Scatter && !work.known_distinct
}
