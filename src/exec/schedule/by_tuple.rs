//! Each worker has some of the tuples, in order.

use super::super::division::Cut;
use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::transfer::Transfer;
use super::super::workload::Workload;
use super::super::workload::{Direction, Order};
use super::scheduler::{Preparation, Reason, Scheduler, Step, Stop};

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
            return Err(Reason("there is no more than one tuple"));
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
            Preparation {
                step: Step::LookForDuplicates,
                bytes: work.detection_bytes,
            }
        } else {
            Preparation::of_streaming(work)
        }
    }

    fn run(
        &self,
        transfer: &Transfer<'_>,
        work: &Workload<'_>,
        division: Division,
        workers: &Workers<'_>,
    ) -> Result<(), Stop> {
        if needs_distinct(work, division) {
            let duplicate = transfer
                .plan()
                .first_duplicate()
                .map_err(Stop::unprepared)?;
            if duplicate.is_some() {
                return Err(Stop::Duplicates);
            }
        }
        Ok(transfer.run_tiles(work, division, workers)?)
    }
}

/// Whether the division rests on distinct destinations that are not known.
fn needs_distinct(work: &Workload<'_>, division: Division) -> bool {
    let cuts_anywhere = matches!(
        division,
        Division::Tuples {
            cut: Cut::Anywhere,
            ..
        }
    );
    cuts_anywhere && work.direction == Direction::Scatter && !work.known_distinct
}
