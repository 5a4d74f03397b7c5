//! The choice of a schedule: the candidates (the schedules to try) for a transfer, best first, and
//! the reasons against all other schedules.
//!
//! The choice depends on sizes, on the order of the destination numbers (as the plan found it), on
//! a small sample of destinations, and on costs on the machine. The choice itself computes nothing
//! from the whole list of indices. The choice changes no state, except that
//! a kept plan stores the sample. Candidates are prepared after the choice, one at a time. If the
//! preparation of a candidate fails, the next candidate is tried.

use smallvec::SmallVec;

use super::cost::{Load, Model};
use super::schedule::{Candidate, Reason, Step};
use super::tasks::Workers;
use super::workload::{Direction, Grouping, Workload};
use crate::goal::Goal;
use crate::schedule::Schedule;

/// The way in which the schedule of a transfer is selected. An operation that only the grouped
/// schedule can compute, such as a mean, runs the grouped schedule in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The schedule that the caller has set, if it can run this transfer and gives the bits of the
    /// sequential reference loop. Otherwise the serial schedule.
    Forced(Schedule),
    /// The serial schedule, because the transfer is small. A choice would cost more time than it
    /// saves.
    Small,
    /// The schedule with the lowest price.
    Cheapest,
}

impl Selection {
    /// Returns the way in which the schedule of a transfer is selected. The argument `forced` is
    /// the schedule that the caller has set. The argument `is_small` states whether the transfer is
    /// so small that the serial schedule runs it.
    #[inline]
    pub(crate) fn new(forced: Option<Schedule>, is_small: bool) -> Self {
        match (forced, is_small) {
            (Some(schedule), _) => Self::Forced(schedule),
            (None, true) => Self::Small,
            (None, false) => Self::Cheapest,
        }
    }

    /// Returns the maximum number of parts that a transfer is divided into.
    fn parts(self, workers: &Workers<'_>) -> usize {
        match self {
            Self::Small => 1,
            Self::Forced(_) | Self::Cheapest => workers.parts(),
        }
    }
}

/// Schedules to try, best first. The last schedule is the serial schedule. If only the grouped
/// schedule can compute the result, the grouped schedule is the only candidate.
pub(crate) type Candidates = SmallVec<[Candidate; 3]>;

/// Returns the schedules to try for a transfer.
pub(crate) fn choose(
    work: &Workload<'_>,
    workers: &Workers<'_>,
    selection: Selection,
) -> Candidates {
    let parts = selection.parts(workers);
    let serial = (Schedule::Serial, 1);
    match (selection, work.direction) {
        _ if work.grouping == Grouping::Needed => applying(work, [(Schedule::Grouped, parts)]),
        (Selection::Forced(schedule), _) => applying(work, [(schedule, parts), serial]),
        (Selection::Small, _) => applying(work, [serial]),
        (Selection::Cheapest, Direction::Scatter) => cheapest(work, workers),
        (Selection::Cheapest, Direction::Gather) => {
            applying(work, [(for_gather(work, parts), parts), serial])
        }
    }
}

/// Returns the schedules of `wanted` that can run the transfer, in order and without repeats. Each
/// pair of `wanted` is a schedule and its number of parts.
fn applying<const N: usize>(work: &Workload<'_>, wanted: [(Schedule, usize); N]) -> Candidates {
    let mut candidates = Candidates::new();
    for (schedule, parts) in wanted {
        let is_new = candidates.iter().all(|other| other.schedule != schedule);
        if let (true, Ok(candidate)) = (is_new, Candidate::new(schedule, work, parts)) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Weight of CPU time per worker in a schedule's price. If two schedules are about equally fast,
/// the weight favours the schedule with less CPU time. That schedule leaves more CPU time to other
/// work on the machine.
///
/// A schedule's price is its time plus this weight times its CPU time per worker: the CPU time of
/// all workers, divided by the number of workers. An earlier price did not divide the CPU time. For
/// sums of rows with one very frequent destination (`emb_grad_add`, kept plan, 16 workers), the
/// earlier price chose the grouped schedule. The predicted time of the grouped schedule is twice
/// the predicted time of the schedule that the present price chooses.
///
/// The weight was set by hand. On the recorded timings of a Xeon (Skylake), the schedules chosen
/// with the weight take the same total time as the schedules chosen without it.
const CPU_TIME: f64 = 0.03;

/// Returns the schedule with the lowest price, followed by fallbacks in ascending order of price.
///
/// The price of a schedule is its time plus a small part of its CPU time. With [`Goal::Latency`],
/// the price is the time alone. A schedule that requires distinct destinations may find duplicates
/// when it is prepared, and then cannot run. The list therefore continues until it has a schedule
/// without this requirement. The serial schedule comes last, because it always applies.
fn cheapest(work: &Workload<'_>, workers: &Workers<'_>) -> Candidates {
    let all = workers.parts();
    let load = Load::new(work, all);
    #[expect(clippy::cast_precision_loss, reason = "a small number of workers")]
    let cpu_time = match workers.goal {
        Some(Goal::Latency) => 0.0,
        _ => CPU_TIME / all as f64,
    };
    let price = |candidate: &Candidate, parts| {
        let model = Model::new(&load, workers.machine(), parts);
        let model = model.with_tasks(candidate.division.tasks());
        let cost = model.cost(candidate.schedule);
        cost.time + cpu_time * cost.cpu
    };
    // The price of the serial schedule depends on the number of workers, because all workers copy
    // the data before the serial schedule applies the updates.
    let serial = Candidate::new(Schedule::Serial, work, 1).ok();
    let mut options: SmallVec<[(f64, Candidate); 12]> = SmallVec::new();
    options.extend(serial.map(|candidate| (price(&candidate, all), candidate)));
    let worker_counts = if all == 1 { &[1][..] } else { &[1, all] };
    for schedule in Schedule::ALL {
        for &parts in worker_counts {
            let is_tried = match parts {
                1 => may_pay_alone(schedule) && (all == 1 || schedule == Schedule::LastWrite),
                _ => schedule != Schedule::Serial,
            };
            if is_tried
                && let Ok(candidate) = Candidate::new(schedule, work, parts)
                && !(needs_distinct(&candidate) && work.has_duplicates())
            {
                options.push((price(&candidate, parts), candidate));
            }
        }
    }
    // The sort is stable. Among options with equal prices, the serial schedule stays first.
    options.sort_by(|(price, _), (other, _)| price.total_cmp(other));
    let mut candidates = Candidates::new();
    for (_, candidate) in options {
        let is_wanted = candidates.iter().all(needs_distinct);
        let is_serial = candidate.schedule == Schedule::Serial;
        if is_wanted || is_serial {
            candidates.push(candidate);
        }
        if is_serial {
            break;
        }
    }
    candidates
}

/// Whether the candidate can run only if its preparation finds no duplicates.
fn needs_distinct(candidate: &Candidate) -> bool {
    candidate.preparation.step == Step::DetectDuplicates
}

/// Whether this schedule, run by one worker, may be faster than the serial schedule.
fn may_pay_alone(schedule: Schedule) -> bool {
    use Schedule::{ByPartition, Grouped, LastWrite, Private};
    matches!(schedule, ByPartition | Grouped | LastWrite | Private)
}

/// Returns all schedules that are not candidates (schedules to try), each with the reason as a text
/// for a person.
pub(crate) fn refusals(
    work: &Workload<'_>,
    workers: &Workers<'_>,
    candidates: &Candidates,
    selection: Selection,
) -> SmallVec<[(Schedule, Reason); Schedule::ALL.len()]> {
    let parts = selection.parts(workers);
    let is_candidate = |schedule| candidates.iter().any(|other| other.schedule == schedule);
    (Schedule::ALL.into_iter())
        .filter(|&schedule| !is_candidate(schedule))
        .map(|schedule| (schedule, refusal(work, schedule, parts, selection)))
        .collect()
}

fn refusal(work: &Workload<'_>, schedule: Schedule, parts: usize, selection: Selection) -> Reason {
    match (Candidate::new(schedule, work, parts), selection) {
        (Err(reason), _) => reason,
        _ if work.grouping == Grouping::Needed => Reason("all updates are needed together"),
        (Ok(_), Selection::Forced(_)) => Reason("another schedule is forced"),
        (Ok(_), Selection::Small) => Reason("the call is too small for a choice by cost"),
        (Ok(_), Selection::Cheapest) if parts == 1 && !may_pay_alone(schedule) => {
            Reason("there is only one worker")
        }
        (Ok(_), Selection::Cheapest) => Reason("another schedule is expected to be faster"),
    }
}

/// Returns the schedule of a gather for `parts` workers. One worker runs the serial schedule.
/// Several workers run by batch if there are at least as many repetitions as workers. With fewer
/// repetitions, several workers run by column if cutting each window gives work to more workers
/// than cutting the list of tuples. In all other cases they run by tuple.
fn for_gather(work: &Workload<'_>, parts: usize) -> Schedule {
    if parts == 1 {
        Schedule::Serial
    } else if work.repetitions >= parts {
        Schedule::ByBatch
    } else if parts.min(work.columns) > parts.min(work.tuples) {
        Schedule::ByColumn
    } else {
        Schedule::ByTuple
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidates, Selection, choose, refusals};
    use crate::exec::division::{Cut, Division};
    use crate::exec::schedule::Step;
    use crate::exec::tasks::Workers;
    use crate::exec::workload::fixtures::{moves, spread, sums};
    use crate::exec::workload::{Direction, Grouping, Order, Workload};
    use crate::machine::{Machine, Variants, Vendor};
    use crate::plan::Destinations;
    use crate::pool::Pool;
    use crate::schedule::Schedule;

    /// A pool with the given number of workers. Its `run` panics.
    struct NoTaskPool(usize);

    impl Pool for NoTaskPool {
        fn workers(&self) -> Option<usize> {
            Some(self.0)
        }

        fn run(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {
            panic!("a choice runs no task");
        }
    }

    #[test]
    fn windows_of_few_destinations_are_not_prefetched() {
        let variants = Variants::TYPICAL;
        let (few, many) = (Destinations::Narrow(vec![7919; 4096].into()), spread());
        assert_eq!(
            sums(&few).prefetch_variants(variants).near_bytes,
            u64::MAX,
            "one destination"
        );
        assert_eq!(
            sums(&many).prefetch_variants(variants),
            variants,
            "many destinations"
        );
        let gather = Workload {
            direction: Direction::Gather,
            ..sums(&few)
        };
        assert_eq!(gather.prefetch_variants(variants), variants, "a gather");
    }

    #[test]
    fn windows_that_recur_soon_are_not_prefetched() {
        let variants = Variants::TYPICAL;
        let (anywhere, repeated, apart) = (
            spread(),
            Destinations::Narrow((0..4096).map(|tuple| tuple / 2 * 77).collect()),
            Destinations::Narrow((0..4096).map(|tuple| tuple * 39).collect()),
        );
        let rows = |destinations, elements, region_bytes, order| {
            let rows = Workload {
                window_elements: elements,
                region_bytes,
                order,
                ..sums(destinations)
            };
            rows.prefetch_variants(variants).near_bytes == u64::MAX
        };
        let (short, long) = (variants.near_short_bytes, 64 << 20);
        assert!(
            rows(&anywhere, 16, short, Order::Unordered),
            "one cache line"
        );
        assert!(
            !rows(&anywhere, 17, short, Order::Unordered),
            "longer windows"
        );
        assert!(
            !rows(&anywhere, 16, short + 1, Order::Unordered),
            "a larger region"
        );
        assert!(rows(&repeated, 64, long, Order::Ascending), "ordered pairs");
        assert!(
            !rows(&repeated, 64, long, Order::Unordered),
            "unordered pairs"
        );
        assert!(
            !rows(&apart, 64, long, Order::Increasing),
            "ordered, far apart"
        );
    }

    fn chosen(work: &Workload<'_>, workers: usize, forced: Option<Schedule>) -> Candidates {
        let selection = Selection::new(forced, work.sizes().are_small(work.direction));
        let machine = Machine::of(Vendor::Intel, [32 << 10, 1 << 20, 32 << 20]);
        let workers = &NoTaskPool(workers);
        choose(
            work,
            &Workers::new(workers, None).with_machine(Some(&machine)),
            selection,
        )
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
        let cases: [(&str, Workload<'_>, usize, &[Schedule]); 18] = [
            (
                "unordered rows",
                sums(all_over),
                2,
                &[ByDestination, Serial],
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
                "fewer repetitions than workers",
                Workload {
                    repetitions: 2,
                    ..sums(all_over)
                },
                16,
                &[ByPartition, Serial],
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
                &[ByDestination, Serial],
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
                "a histogram that cannot be merged",
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
                &[ByTuple, ByDestination, Serial],
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
                &[ByTuple, Serial],
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
                &[ByPartition, Serial],
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
        let mut others = Vec::new();
        for (name, work, workers, expected) in cases {
            let candidates = names(&chosen(&work, workers, None));
            if candidates != expected {
                others.push(format!("{name}: {candidates:?}, not {expected:?}"));
            }
        }
        assert!(others.is_empty(), "{others:#?}");
    }

    #[test]
    fn a_forced_schedule_comes_before_the_serial_one() {
        let all_over = &spread();
        for schedule in Schedule::ALL {
            for work in [sums(all_over), moves(all_over)] {
                let candidates = names(&chosen(&work, 3, Some(schedule)));
                let serial = *candidates.last().expect("at least one candidate");
                assert_eq!(
                    serial,
                    Schedule::Serial,
                    "the last candidate after {schedule}"
                );
                let is_first = candidates[0] == schedule;
                assert!(
                    is_first || candidates.len() == 1,
                    "{schedule}: {candidates:?}"
                );
            }
        }
    }

    /// The list of candidates (schedules to try) is the same in two cases. In the first case, the
    /// cost model chooses the serial schedule (one worker). In the second case, the caller forces
    /// the serial schedule (eight workers).
    #[test]
    fn there_is_one_serial_schedule() {
        let all_over = &spread();
        let free = chosen(&sums(all_over), 1, None);
        let forced = chosen(&sums(all_over), 8, Some(Schedule::Serial));
        assert_eq!(free, forced, "chosen and forced");
        assert_eq!(free[0].division, Division::Whole, "undivided");
    }

    #[test]
    fn requirements_of_a_division_are_prepared() {
        let all_over = &spread();
        let by_tuple = |work: &Workload<'_>| chosen(work, 4, Some(Schedule::ByTuple))[0];
        let unknown = by_tuple(&sums(all_over));
        let (cut, parts) = (Cut::Anywhere, 4);
        assert_eq!(unknown.division, Division::Tuples { parts, cut });
        assert_eq!(unknown.preparation.step, Step::DetectDuplicates);
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
                    let pool = NoTaskPool(workers);
                    let workers = Workers::new(&pool, None);
                    let selection = Selection::new(forced, false);
                    let refused = refusals(&work, &workers, &candidates, selection);
                    assert_eq!(candidates.len() + refused.len(), Schedule::ALL.len());
                }
            }
        }
        let refused = refusals(
            &sums(all_over),
            &Workers::new(&NoTaskPool(2), None),
            &chosen(&sums(all_over), 2, None),
            Selection::Cheapest,
        );
        let reason = |schedule| {
            let found = refused.iter().find(|(refused, _)| *refused == schedule);
            found.map(|(_, reason)| reason.to_string())
        };
        let expected = [
            (Schedule::ByBatch, "there is one repetition"),
            (
                Schedule::ByTuple,
                "another schedule is expected to be faster",
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
