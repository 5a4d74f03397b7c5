//! The schedule by tuple. The list of tuples is cut into parts of consecutive tuples. Each part is
//! applied by one task, in the order of the tuples.

use super::super::division::Cut;
use super::super::workload::Order;
use super::{Direction, Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};

pub(super) struct ByTuple;

impl Scheduler for ByTuple {
    fn gathers(&self) -> bool {
        true
    }

    /// Cuts the list of tuples into parts that write disjoint windows. The list of a scatter with
    /// at least `parts` strands (and at least 2) is cut between strands. With fewer strands, the
    /// list of a scatter in ascending order is cut between destinations. The list of any other
    /// scatter is cut anywhere, which requires distinct destinations. The list of a gather is cut
    /// anywhere, because each tuple of a gather writes a separate window.
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

/// Whether `division` requires distinct destinations, and the plan does not already know that the
/// destinations are distinct.
fn needs_distinct(work: &Workload<'_>, division: Division) -> bool {
    let is_cut_anywhere = matches!(division, Division::Tuples { cut, .. } if cut == Cut::Anywhere);
    is_cut_anywhere && work.direction == Direction::Scatter && !work.known_distinct
}
