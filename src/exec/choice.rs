//! Which schedules are worth trying for a transfer, best first, and why the
//! others are not.
//!
//! Pure: sizes, facts and a small sample of destinations are all that it looks
//! at, and nothing is worked out or stored. What a schedule needs to know before
//! it may run is prepared afterwards; where that fails, the next one is tried.

use smallvec::SmallVec;

use super::schedule::{Candidate, Reason, partition_shift};
use super::tasks::Workers;
use super::thresholds::{
    COLUMN_BYTES, FEW_DESTINATIONS, FEW_DESTINATIONS_TUPLES, GROUP_TUPLES, LAST_WRITE_OUTPUT_BYTES,
    LAST_WRITE_WINDOW_BYTES, MOSTLY_COPIED, PARALLEL_BYTES, PARTITIONED_BYTES, PRIVATE_TUPLES,
    PRIVATE_TUPLES_EACH, READING_PARTS, REWRITTEN_WINDOW_BYTES, SAVED_BYTES, SAVED_BYTES_ALONE,
    SAVED_BYTES_FEW, SERIAL_REGION_BYTES, SERIAL_ROWS_BYTES, SMALL_CALL_BYTES, STREAM_BYTES,
    STREAMED_WINDOW_BYTES, WIDE_BYTES,
};
use super::tile::LINE_BYTES;
use super::workload::{Direction, Grouping, Order, Workload};
use crate::schedule::Schedule;

/// Schedules to try, best first: the last one needs no preparation, unless there
/// is only one that gives the result.
pub(crate) type Candidates = SmallVec<[Candidate; 3]>;

/// Two schedules, best first.
type Preferred = [Option<Schedule>; 2];

/// Schedules to try; `forced` where it applies and keeps the bits, then serial.
pub(crate) fn choose(
    work: &Workload<'_>,
    workers: &Workers<'_>,
    forced: Option<Schedule>,
) -> Candidates {
    if let Some(schedule) = forced {
        return candidates(work, [Some(schedule), None], |_| workers.parts());
    }
    if is_small(work) && work.grouping != Grouping::Needed {
        return candidates(work, [None, None], |_| 1);
    }
    let parts = useful_parts(work, workers);
    let preferred = match work.direction {
        Direction::Scatter => preferred(work, parts),
        Direction::Gather => preferred_for_gather(work, parts),
    };
    candidates(work, preferred, |schedule| parts_of(work, schedule, parts))
}

/// Those of the preferred schedules that apply, for as many parts as each is
/// worth, then the serial one; where only groups give the result, groups.
fn candidates(
    work: &Workload<'_>,
    preferred: Preferred,
    parts_of: impl Fn(Schedule) -> usize,
) -> Candidates {
    let (preferred, last) = match work.grouping {
        Grouping::Needed => ([None, None], Schedule::Grouped),
        _ => (preferred, Schedule::Serial),
    };
    let last = Some(last);
    let mut candidates = Candidates::new();
    for schedule in preferred.into_iter().chain([last]).flatten() {
        let is_new = candidates.iter().all(|other| other.schedule != schedule);
        if let (true, Ok(candidate)) = (is_new, Candidate::new(schedule, work, parts_of(schedule)))
        {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Why each schedule that is not among the candidates is not, for people.
pub(crate) fn refusals(
    work: &Workload<'_>,
    workers: &Workers<'_>,
    candidates: &Candidates,
    forced: Option<Schedule>,
) -> SmallVec<[(Schedule, Reason); Schedule::ALL.len()]> {
    let parts = match forced {
        Some(_) => workers.parts(),
        None => useful_parts(work, workers),
    };
    let is_candidate = |schedule| candidates.iter().any(|other| other.schedule == schedule);
    (Schedule::ALL.into_iter())
        .filter(|&schedule| !is_candidate(schedule))
        .map(|schedule| (schedule, refusal(work, schedule, parts, forced.is_some())))
        .collect()
}

fn refusal(work: &Workload<'_>, schedule: Schedule, parts: usize, is_forced: bool) -> Reason {
    let candidate = match Candidate::new(schedule, work, parts) {
        Ok(candidate) => candidate,
        Err(reason) => return reason,
    };
    if work.grouping == Grouping::Needed {
        Reason("only groups give the result")
    } else if is_forced {
        Reason("another schedule is forced")
    } else if is_small(work) {
        Reason("the call is small")
    } else if parts == 1 && schedule != Schedule::LastWrite {
        Reason("the call is not worth several workers")
    } else {
        unwanted(work, &candidate, parts)
    }
}

/// Why a schedule that applies is not preferred.
fn unwanted(work: &Workload<'_>, candidate: &Candidate, parts: usize) -> Reason {
    let window = work.window_bytes();
    let better = Reason("another schedule is expected to be faster");
    match candidate.schedule {
        Schedule::ByBatch if !repetitions_suffice(work, parts) => {
            Reason("there are too few repetitions to share out evenly")
        }
        Schedule::ByTuple if !work.known_distinct => {
            Reason("destinations are not known to be distinct")
        }
        Schedule::LastWrite if window < LAST_WRITE_WINDOW_BYTES => {
            Reason("windows are too short to look for last writes")
        }
        Schedule::LastWrite => Reason("too few updates are overwritten by later ones"),
        Schedule::ByColumn if window < 2 * COLUMN_BYTES || window / COLUMN_BYTES < parts => {
            Reason("windows are too narrow to cut")
        }
        Schedule::ByDestination if !copies_most(work) => {
            Reason("every worker would look at every tuple")
        }
        Schedule::ByPartition if is_cached(work) => {
            Reason("the destinations fit in a cache as they come")
        }
        Schedule::ByPartition if !spreads(work, parts) => {
            Reason("nearly all tuples lie in one range of destinations")
        }
        Schedule::Grouped if window < WIDE_BYTES => Reason("windows are too short to sort for"),
        Schedule::Grouped if !groups_pay(work) => {
            Reason("too few or too many tuples have one destination")
        }
        Schedule::Private if !private_pays(work) => Reason("too few tuples for each destination"),
        _ => better,
    }
}

fn is_small(work: &Workload<'_>) -> bool {
    let bytes = match work.direction {
        Direction::Scatter => work.touched_bytes(),
        Direction::Gather => work.bytes(),
    };
    bytes < SMALL_CALL_BYTES
}

/// How many workers the call is worth. Asks for their number only if several
/// are.
fn useful_parts(work: &Workload<'_>, workers: &Workers<'_>) -> usize {
    let is_worth = match work.direction {
        Direction::Scatter => work.touched_bytes() >= PARALLEL_BYTES,
        Direction::Gather => !is_small(work),
    };
    if is_worth { workers.parts() } else { 1 }
}

/// How many of the workers a schedule is worth: last writes may be few however
/// many updates they are found among.
fn parts_of(work: &Workload<'_>, schedule: Schedule, parts: usize) -> usize {
    let last_writes = work.copy_bytes().saturating_mul(work.repetitions as u64);
    let written = last_writes.max(work.copied_bytes as u64 * 2);
    match schedule {
        Schedule::LastWrite if written < PARALLEL_BYTES as u64 => 1,
        _ => parts,
    }
}

/// Repetitions for every worker, else tuples, else columns.
fn preferred_for_gather(work: &Workload<'_>, parts: usize) -> Preferred {
    if parts == 1 {
        [None, None]
    } else if work.repetitions >= parts {
        [Some(Schedule::ByBatch), None]
    } else if parts.min(work.columns) > parts.min(work.tuples) {
        [Some(Schedule::ByColumn), None]
    } else {
        [Some(Schedule::ByTuple), None]
    }
}

fn preferred(work: &Workload<'_>, parts: usize) -> Preferred {
    if overwrites_a_copy(work) {
        return match parts {
            1 => [None, None],
            _ => [Some(Schedule::ByTuple), Some(Schedule::LastWrite)],
        };
    }
    let moves_rows = work.replaces && work.window_bytes() >= LAST_WRITE_WINDOW_BYTES;
    if moves_rows && last_writes_pay(work, parts) || rewrites(work) {
        return [Some(Schedule::LastWrite), without_detection(work, parts)];
    }
    if moves_rows && work.order == Order::Increasing && work.bytes() >= STREAM_BYTES {
        return [Some(Schedule::LastWrite), Some(Schedule::ByTuple)];
    }
    if parts == 1 {
        return [None, None];
    }
    if repetitions_suffice(work, parts) {
        return [Some(Schedule::ByBatch), None];
    }
    if tuples_divide(work, parts) {
        return [Some(Schedule::ByTuple), None];
    }
    if !moves_rows {
        return [without_detection(work, parts), None];
    }
    // To find duplicates costs less than to sort out last writes, which are
    // streamed where there is enough to write.
    let streams = work.window_bytes() >= WIDE_BYTES || work.is_sparse();
    let otherwise = if streams {
        Some(Schedule::LastWrite)
    } else {
        without_detection(work, parts)
    };
    [Some(Schedule::ByTuple), otherwise]
}

/// Whether there are repetitions to share out evenly.
fn repetitions_suffice(work: &Workload<'_>, parts: usize) -> bool {
    work.repetitions.is_multiple_of(parts) || work.repetitions >= 4 * parts
}

/// Whether tuples are known to fall into parts that share no destination, and to
/// be shared out evenly by them.
fn tuples_divide(work: &Workload<'_>, parts: usize) -> bool {
    let strands = work.strands;
    let enough_strands =
        strands >= 4 * parts || (strands >= parts && strands.is_multiple_of(parts));
    let is_ordered = work.order != Order::Unordered;
    enough_strands || work.known_distinct || is_ordered && work.sample().groups_balance(parts)
}

/// Whether so many updates are overwritten by later ones that it costs less to
/// find out first which ones stay.
fn last_writes_pay(work: &Workload<'_>, parts: usize) -> bool {
    let (tuples, distinct) = (work.tuples as u64, work.distinct());
    let Some(lost) = tuples.checked_sub(distinct).filter(|&lost| lost > 0) else {
        return false;
    };
    let saved = (work.window_bytes() as u64).saturating_mul(lost) / tuples;
    let are_few = distinct <= FEW_DESTINATIONS && tuples / FEW_DESTINATIONS_TUPLES >= distinct;
    if are_few {
        saved >= SAVED_BYTES_FEW
    } else if work.touched_bytes() < PARALLEL_BYTES || work.order != Order::Unordered {
        false
    } else if parts == 1 {
        saved >= SAVED_BYTES_ALONE
    } else {
        saved >= SAVED_BYTES
    }
}

/// Whether one pass over the output, which takes every slice from `data` or from
/// its last write, beats a copy that updates are then written over.
fn rewrites(work: &Workload<'_>) -> bool {
    let per_tuple = work.windows().saturating_mul(LAST_WRITE_OUTPUT_BYTES);
    work.replaces
        && !work.in_place
        && work.window_bytes() >= REWRITTEN_WINDOW_BYTES
        && work.copied_bytes >= per_tuple
}

/// Whether to stream a copy and then windows over it beats one pass in order,
/// for which the updates lie all over memory.
fn overwrites_a_copy(work: &Workload<'_>) -> bool {
    work.is_sparse()
        && work.window_bytes() >= STREAMED_WINDOW_BYTES
        && work.order != Order::Increasing
}

/// A schedule that needs to know nothing about duplicates.
fn without_detection(work: &Workload<'_>, parts: usize) -> Option<Schedule> {
    if parts == 1 {
        None
    } else if copies_most(work) {
        Some(Schedule::ByDestination)
    } else if groups_pay(work) {
        Some(Schedule::Grouped)
    } else if work.window_bytes() < 2 * COLUMN_BYTES
        && private_pays(work)
        && Candidate::new(Schedule::Private, work, parts).is_ok()
    {
        Some(Schedule::Private)
    } else if !is_cached(work) && spreads(work, parts) {
        Some(Schedule::ByPartition)
    } else if work.window_bytes() < LINE_BYTES {
        None
    } else {
        by_windows(work, parts)
    }
}

/// Whether far more data is copied than is then touched again.
fn copies_most(work: &Workload<'_>) -> bool {
    work.line_bytes() <= work.copied_bytes / MOSTLY_COPIED
}

/// Whether a cache holds what tuples come to, in their order.
fn is_cached(work: &Workload<'_>) -> bool {
    let destinations = work.destination_bytes();
    if work.window_bytes() < LINE_BYTES {
        let region = work.region_bytes.saturating_add(work.copied_bytes as u64);
        region <= SERIAL_REGION_BYTES || destinations <= PARTITIONED_BYTES
    } else {
        destinations <= SERIAL_ROWS_BYTES || work.region_bytes <= PARTITIONED_BYTES
    }
}

/// Whether workers that have ranges of destinations all find something to do. It
/// need not be as much for each: where many tuples have few destinations, these
/// stay in the caches of who has them.
fn spreads(work: &Workload<'_>, parts: usize) -> bool {
    work.sample().is_spread(partition_shift(work, parts))
}

/// For windows that lie in so few bytes that to partition them gains nothing.
fn by_windows(work: &Workload<'_>, parts: usize) -> Option<Schedule> {
    let window = work.window_bytes();
    let is_read_alone = work.destination_bytes() <= SERIAL_ROWS_BYTES
        && window < WIDE_BYTES
        && parts < READING_PARTS;
    if is_read_alone || window < 2 * COLUMN_BYTES {
        None
    } else if window / COLUMN_BYTES >= parts {
        Some(Schedule::ByColumn)
    } else {
        Some(Schedule::ByDestination)
    }
}

/// Whether to combine the updates of one destination after another pays: the
/// sort costs little beside wide windows.
fn groups_pay(work: &Workload<'_>) -> bool {
    let per_destination = work.tuples as u64 / work.slices.max(1);
    work.window_bytes() >= WIDE_BYTES
        && work.grouping != Grouping::Impossible
        && GROUP_TUPLES.contains(&per_destination)
}

/// Whether private copies pay.
fn private_pays(work: &Workload<'_>) -> bool {
    work.tuples >= PRIVATE_TUPLES && work.tuples as u64 / PRIVATE_TUPLES_EACH >= work.slices
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;

    use super::{Candidates, choose, refusals};
    use crate::exec::division::{Cut, Division};
    use crate::exec::schedule::Step;
    use crate::exec::tasks::Workers;
    use crate::exec::workload::{Direction, Grouping, Order, Workload};
    use crate::plan::Destinations;
    use crate::pool::Pool;
    use crate::schedule::Schedule;

    /// Has workers, and must run nothing.
    struct Asked(usize);

    impl Pool for Asked {
        fn workers(&self) -> Option<usize> {
            Some(self.0)
        }

        fn run(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {
            panic!("a choice runs no task");
        }
    }

    /// Sums of rows of 64 `f32` in no order, in a table of 169343.
    fn sums(destinations: &Destinations) -> Workload<'_> {
        let slices = 169_343;
        Workload {
            direction: Direction::Scatter,
            in_place: true,
            tuples: 1_166_243,
            repetitions: 1,
            element_bytes: 4,
            window_elements: 64,
            columns: 64,
            copied_bytes: 0,
            slices,
            region_bytes: slices * 256,
            order: Order::Unordered,
            known_distinct: false,
            detection_bytes: 1 << 18,
            strands: 1,
            replaces: false,
            grouping: Grouping::Possible,
            can_stream: true,
            has_slices: false,
            can_merge: false,
            destinations,
            sample: OnceCell::new(),
        }
    }

    fn moves(destinations: &Destinations) -> Workload<'_> {
        Workload {
            replaces: true,
            grouping: Grouping::Impossible,
            ..sums(destinations)
        }
    }

    /// Destinations all over a table, none twice.
    fn spread() -> Destinations {
        Destinations::Narrow((0..4096).map(|tuple| tuple * 7919 % 169_343).collect())
    }

    fn chosen(work: &Workload<'_>, workers: usize, forced: Option<Schedule>) -> Candidates {
        choose(work, &Workers::new(&Asked(workers), None), forced)
    }

    fn names(candidates: &Candidates) -> Vec<Schedule> {
        candidates
            .iter()
            .map(|candidate| candidate.schedule)
            .collect()
    }

    #[test]
    fn each_workload_has_its_candidates() {
        use Schedule::{
            ByBatch, ByColumn, ByDestination, ByPartition, ByTuple, Grouped, LastWrite, Private,
            Serial,
        };
        let all_over = &spread();
        let few = &Destinations::Narrow((0..4096).map(|tuple| tuple % 7).collect());
        let cases: [(&str, Workload<'_>, usize, &[Schedule]); 17] = [
            (
                "rows in no order",
                sums(all_over),
                2,
                &[ByPartition, Serial],
            ),
            ("with one worker", sums(all_over), 1, &[Serial]),
            (
                "a small call",
                Workload {
                    tuples: 1000,
                    ..sums(all_over)
                },
                8,
                &[Serial],
            ),
            (
                "distinct destinations",
                Workload {
                    known_distinct: true,
                    ..sums(all_over)
                },
                2,
                &[ByTuple, Serial],
            ),
            (
                "many repetitions",
                Workload {
                    repetitions: 16,
                    ..sums(all_over)
                },
                2,
                &[ByBatch, Serial],
            ),
            (
                "strands",
                Workload {
                    strands: 8,
                    ..sums(all_over)
                },
                2,
                &[ByTuple, Serial],
            ),
            (
                "a mean",
                Workload {
                    grouping: Grouping::Needed,
                    ..sums(all_over)
                },
                2,
                &[Grouped],
            ),
            (
                "wide windows with some duplicates",
                Workload {
                    window_elements: 2048,
                    tuples: 8192,
                    slices: 2048,
                    region_bytes: 2048 * 8192,
                    ..sums(all_over)
                },
                2,
                &[Grouped, Serial],
            ),
            (
                "wide windows of few destinations",
                Workload {
                    window_elements: 2048,
                    tuples: 8192,
                    slices: 7,
                    region_bytes: 7 * 8192,
                    ..sums(few)
                },
                2,
                &[ByColumn, Serial],
            ),
            (
                "a histogram that can be merged",
                Workload {
                    window_elements: 1,
                    columns: 1,
                    slices: 1024,
                    region_bytes: 4096,
                    can_merge: true,
                    ..sums(few)
                },
                2,
                &[Private, Serial],
            ),
            (
                "a histogram that cannot",
                Workload {
                    window_elements: 1,
                    columns: 1,
                    slices: 1024,
                    region_bytes: 4096,
                    ..sums(few)
                },
                2,
                &[Serial],
            ),
            (
                "moves",
                Workload {
                    tuples: 65_536,
                    slices: 500_000,
                    region_bytes: 500_000 * 256,
                    ..moves(all_over)
                },
                2,
                &[ByTuple, ByPartition, Serial],
            ),
            (
                "moves that are mostly overwritten",
                moves(few),
                2,
                &[LastWrite, Serial],
            ),
            (
                "moves into a large copy",
                Workload {
                    in_place: false,
                    copied_bytes: 500_000 * 256,
                    has_slices: true,
                    tuples: 65_536,
                    slices: 500_000,
                    region_bytes: 500_000 * 256,
                    ..moves(all_over)
                },
                2,
                &[ByTuple, LastWrite, Serial],
            ),
            (
                "sums into a large copy",
                Workload {
                    in_place: false,
                    copied_bytes: 500_000 * 256,
                    tuples: 9000,
                    ..sums(all_over)
                },
                2,
                &[ByDestination, Serial],
            ),
            (
                "a gather",
                Workload {
                    direction: Direction::Gather,
                    ..moves(all_over)
                },
                2,
                &[ByTuple, Serial],
            ),
            (
                "a gather of a few wide windows",
                Workload {
                    direction: Direction::Gather,
                    tuples: 3,
                    window_elements: 1 << 20,
                    columns: 1 << 20,
                    ..moves(all_over)
                },
                8,
                &[ByColumn, Serial],
            ),
        ];
        for (name, work, workers, expected) in cases {
            let candidates = names(&chosen(&work, workers, None));
            assert_eq!(candidates, expected, "{name}");
        }
    }

    #[test]
    fn a_forced_schedule_comes_before_the_serial_one() {
        let all_over = &spread();
        for schedule in Schedule::ALL {
            for work in [sums(all_over), moves(all_over)] {
                let candidates = names(&chosen(&work, 3, Some(schedule)));
                let serial = *candidates.last().expect("one at least");
                assert_eq!(serial, Schedule::Serial, "{schedule} and then serial");
                let is_first = candidates[0] == schedule;
                assert!(
                    is_first || candidates.len() == 1,
                    "{schedule}: {candidates:?}"
                );
            }
        }
    }

    /// A chosen serial schedule is what a forced one is.
    #[test]
    fn there_is_one_serial_schedule() {
        let all_over = &spread();
        let free = chosen(&sums(all_over), 1, None);
        let forced = chosen(&sums(all_over), 8, Some(Schedule::Serial));
        assert_eq!(free, forced, "the same");
        assert_eq!(free[0].division, Division::Whole, "undivided");
    }

    #[test]
    fn what_a_division_rests_on_is_prepared() {
        let all_over = &spread();
        let by_tuple = |work: &Workload<'_>| chosen(work, 4, Some(Schedule::ByTuple))[0];
        let unknown = by_tuple(&sums(all_over));
        let (cut, parts) = (Cut::Anywhere, 4);
        assert_eq!(unknown.division, Division::Tuples { parts, cut });
        assert_eq!(unknown.preparation.step, Step::LookForDuplicates);
        let known = by_tuple(&Workload {
            known_distinct: true,
            ..sums(all_over)
        });
        assert_eq!(known.division, Division::Tuples { parts, cut });
        assert_eq!(known.preparation.step, Step::Nothing);
        let ordered = by_tuple(&Workload {
            order: Order::Ascending,
            ..sums(all_over)
        });
        let cut = Cut::BetweenDestinations;
        assert_eq!(ordered.division, Division::Tuples { parts, cut });
        assert_eq!(ordered.preparation.step, Step::Nothing);
    }

    #[test]
    fn every_schedule_is_a_candidate_or_has_a_reason() {
        let all_over = &spread();
        for work in [sums(all_over), moves(all_over)] {
            for workers in [1, 2, 9] {
                for forced in [None, Some(Schedule::Private), Some(Schedule::ByColumn)] {
                    let candidates = chosen(&work, workers, forced);
                    let pool = Asked(workers);
                    let workers = Workers::new(&pool, None);
                    let refused = refusals(&work, &workers, &candidates, forced);
                    assert_eq!(candidates.len() + refused.len(), Schedule::ALL.len());
                }
            }
        }
        let refused = refusals(
            &sums(all_over),
            &Workers::new(&Asked(2), None),
            &chosen(&sums(all_over), 2, None),
            None,
        );
        let reason = |schedule| {
            let found = refused.iter().find(|(refused, _)| *refused == schedule);
            found.map(|(_, reason)| reason.to_string())
        };
        let expected = [
            (Schedule::ByBatch, "there is one repetition"),
            (
                Schedule::ByTuple,
                "destinations are not known to be distinct",
            ),
            (
                Schedule::LastWrite,
                "every update counts, not only the last",
            ),
            (Schedule::Private, "partial results cannot be merged"),
        ];
        for (schedule, text) in expected {
            assert_eq!(reason(schedule).as_deref(), Some(text), "{schedule}");
        }
    }
}
