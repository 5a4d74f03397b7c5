//! Which schedules are worth trying for a transfer, best first, and why the
//! others are not.
//!
//! Pure: sizes, facts, a small sample of destinations and what the machine takes
//! for them are all that it looks at, and nothing is worked out or stored. What a
//! schedule needs to know before it may run is prepared afterwards; where that
//! fails, the next one is tried.

use smallvec::SmallVec;

use super::cost::{Load, Model};
use super::schedule::{Candidate, Reason, Step};
use super::tasks::Workers;
use super::workload::{Direction, Grouping, Workload};
use crate::goal::Goal;
use crate::schedule::Schedule;

/// How the schedule of a transfer is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// This schedule, where it applies and keeps the bits.
    Forced(Schedule),
    /// The serial schedule: the transfer is over before a choice is worth making.
    Small,
    /// The schedule that costs least.
    Cheapest,
}

impl Selection {
    /// The selection for a transfer that is or is not [small](Sizes::are_small).
    #[inline]
    pub(crate) fn new(forced: Option<Schedule>, is_small: bool) -> Self {
        match (forced, is_small) {
            (Some(schedule), _) => Self::Forced(schedule),
            (None, true) => Self::Small,
            (None, false) => Self::Cheapest,
        }
    }

    /// The most tasks that a transfer is divided into.
    fn parts(self, workers: &Workers<'_>) -> usize {
        match self {
            Self::Small => 1,
            Self::Forced(_) | Self::Cheapest => workers.parts(),
        }
    }
}

/// Schedules to try, best first: the last one needs no preparation, unless there
/// is only one that gives the result.
pub(crate) type Candidates = SmallVec<[Candidate; 3]>;

/// Schedules to try. The serial one comes last where it gives the result.
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
            applying(work, [for_gather(work, parts), serial])
        }
    }
}

/// Those that apply, each for so many parts and each once.
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

/// Of the CPU time that a schedule takes of each worker, what counts beside its time: of
/// two that are about as fast, the other work of a machine has more of the one with less.
/// Of each worker, as with 0.03 of all CPU time sums of rows with one very frequent
/// destination (`emb_grad_add`, planned) were grouped on 16 workers, where they are
/// predicted to take twice as long. Set by hand: by the record (a Xeon, Skylake) what is
/// chosen takes as long as without.
const CPU_TIME: f64 = 0.03;

/// The schedule of the least price, which is its time and a little of its CPU time, but
/// for calls that ask for the least time alone; where it may find that it does not apply,
/// then the best of those that do; and the serial one, which needs nothing.
fn cheapest(work: &Workload<'_>, workers: &Workers<'_>) -> Candidates {
    let all = workers.parts();
    let load = Load::new(work, all);
    #[expect(clippy::cast_precision_loss, reason = "a part")]
    let cpu_time = match workers.goal() {
        Some(Goal::Latency) => 0.0,
        _ => CPU_TIME / all as f64,
    };
    let price = |schedule, parts| {
        let model = Model::new(&load, workers.machine(), parts);
        let cost = model.cost(schedule);
        cost.time + cpu_time * cost.cpu
    };
    // The serial schedule knows of the workers that copy data with it.
    let serial = Candidate::new(Schedule::Serial, work, 1).ok();
    let mut options: SmallVec<[(f64, Candidate); 12]> = SmallVec::new();
    options.extend(serial.map(|candidate| (price(Schedule::Serial, all), candidate)));
    let numbers = if all == 1 { &[1][..] } else { &[1, all] };
    for schedule in Schedule::ALL {
        for &parts in numbers {
            let is_another = match parts {
                1 => works_alone(schedule) && (all == 1 || schedule == Schedule::LastWrite),
                _ => schedule != Schedule::Serial,
            };
            if is_another
                && let Ok(candidate) = Candidate::new(schedule, work, parts)
                && !(needs_distinct(&candidate) && work.has_duplicates())
            {
                options.push((price(schedule, parts), candidate));
            }
        }
    }
    // Stable: of two alike the serial one.
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

/// Whether it may turn out that it does not apply.
fn needs_distinct(candidate: &Candidate) -> bool {
    candidate.preparation.step == Step::LookForDuplicates
}

/// Whether a schedule does on one worker what the serial one does not.
fn works_alone(schedule: Schedule) -> bool {
    use Schedule::{ByPartition, Grouped, LastWrite, Private};
    matches!(schedule, ByPartition | Grouped | LastWrite | Private)
}

/// Why each schedule that is not among the candidates is not, for people.
pub(crate) fn refusals(
    work: &Workload<'_>,
    workers: &Workers<'_>,
    candidates: &Candidates,
    selection: Selection,
) -> SmallVec<[(Schedule, Reason); Schedule::ALL.len()]> {
    let is_candidate = |schedule| candidates.iter().any(|other| other.schedule == schedule);
    (Schedule::ALL.into_iter())
        .filter(|&schedule| !is_candidate(schedule))
        .map(|schedule| (schedule, refusal(work, schedule, workers, selection)))
        .collect()
}

fn refusal(
    work: &Workload<'_>,
    schedule: Schedule,
    workers: &Workers<'_>,
    selection: Selection,
) -> Reason {
    let parts = selection.parts(workers);
    let alone = parts == 1 && !works_alone(schedule) && schedule != Schedule::Serial;
    match (Candidate::new(schedule, work, parts), selection) {
        (Err(reason), _) => reason,
        _ if work.grouping == Grouping::Needed => Reason("all updates are needed together"),
        (Ok(_), Selection::Forced(_)) => Reason("another schedule is forced"),
        (Ok(_), Selection::Small) => Reason("the call is too small for a choice by cost"),
        (Ok(_), Selection::Cheapest) if alone => Reason("there is only one worker"),
        (Ok(_), Selection::Cheapest) => Reason("another schedule is expected to be faster"),
    }
}

/// Repetitions for every worker, else tuples, else columns.
fn for_gather(work: &Workload<'_>, parts: usize) -> (Schedule, usize) {
    let schedule = if parts == 1 {
        Schedule::Serial
    } else if work.repetitions >= parts {
        Schedule::ByBatch
    } else if parts.min(work.columns) > parts.min(work.tuples) {
        Schedule::ByColumn
    } else {
        Schedule::ByTuple
    };
    (schedule, parts)
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

    #[test]
    fn few_destinations_are_near_wherever_they_lie() {
        let variants = Variants::TYPICAL;
        let (few, many) = (Destinations::Narrow(vec![7919; 4096].into()), spread());
        assert_eq!(sums(&few).near_or_far(variants).near_bytes, u64::MAX, "one");
        assert_eq!(sums(&many).near_or_far(variants), variants, "many");
        let gather = Workload {
            direction: Direction::Gather,
            ..sums(&few)
        };
        assert_eq!(gather.near_or_far(variants), variants, "none is written");
    }

    #[test]
    fn windows_that_are_met_again_soon_are_near() {
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
            rows.near_or_far(variants).near_bytes == u64::MAX
        };
        let (short, long) = (variants.near_short_bytes, 64 << 20);
        assert!(rows(&anywhere, 16, short, Order::Unordered), "a line each");
        assert!(!rows(&anywhere, 17, short, Order::Unordered), "longer");
        assert!(!rows(&anywhere, 16, short + 1, Order::Unordered), "farther");
        assert!(rows(&repeated, 64, long, Order::Ascending), "pairs");
        assert!(
            !rows(&repeated, 64, long, Order::Unordered),
            "pairs anywhere"
        );
        assert!(!rows(&apart, 64, long, Order::Increasing), "in order");
    }

    fn chosen(work: &Workload<'_>, workers: usize, forced: Option<Schedule>) -> Candidates {
        let selection = Selection::new(forced, work.sizes().are_small(work.direction));
        let machine = Machine::of(Vendor::Intel, [32 << 10, 1 << 20, 32 << 20]);
        let workers = &Asked(workers);
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
        let cases: [(&str, Workload<'_>, usize, &[Schedule]); 17] = [
            (
                "rows in no order",
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
                    let selection = Selection::new(forced, false);
                    let refused = refusals(&work, &workers, &candidates, selection);
                    assert_eq!(candidates.len() + refused.len(), Schedule::ALL.len());
                }
            }
        }
        let refused = refusals(
            &sums(all_over),
            &Workers::new(&Asked(2), None),
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
