//! The pool that runs the tasks does not change the result. The pools are entered or passed, report
//! no number of workers, report more workers than any machine has, or limit the number of workers.

use ndscatter::{Pool, Rayon, Reduction, Schedule};

use super::cases::{self, Case, Size};
use super::runner::{Call, Drawn, Subject};
use crate::common::api::Method;
use crate::common::destinations::Destinations;
use crate::common::elements::{Ref, is_enabled};
use crate::common::pools::{Workers, rayon_pool};

/// Returns the numbers of workers of small cases.
fn numbers() -> impl Iterator<Item = usize> {
    Size::Small.workers().iter().copied()
}

/// Calls `check` with the case and a schedule: each schedule forced, and none. Calls nothing if the
/// build does not have the feature that the reduction needs.
fn for_each_schedule<T: Ref>(
    case: &Case,
    reduction: Reduction,
    check: impl Fn(&Subject<'_, T>, Option<Schedule>),
) {
    if !is_enabled(reduction, T::DTYPE) {
        return;
    }
    let drawn = Drawn::new(case);
    let subject = Subject::<T>::new(&drawn, reduction);
    for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
        check(&subject, schedule);
    }
}

#[test]
fn every_kind_of_pool() {
    let drawn = Drawn::new(&cases::MORE_ROWS);
    let subject = Subject::<f32>::new(&drawn, Reduction::Add);
    let plan = subject.plan(subject.request(None));
    for workers in Workers::ALL {
        for method in Method::ALL {
            workers.with(|pool| {
                let plan = method.is_planned().then_some(&plan);
                let call = Call {
                    plan,
                    ..method.into()
                };
                subject.run(subject.request(None).pool(pool), call);
            });
        }
    }
    // `max_workers` limits the workers that are requested from a pool of eight.
    for most in [1, 2, 5, 100] {
        rayon_pool(8).install(|| {
            let request = subject.request(None).pool(&Rayon).max_workers(most);
            subject.run(request, Method::InPlace);
        });
    }
}

/// Calls on a thread of a rayon pool. A thread that waits for tasks works on other tasks.
#[test]
fn calls_inside_a_pool() {
    fn check<T: Ref>(case: &Case, reduction: Reduction) {
        for_each_schedule::<T>(case, reduction, |subject, schedule| {
            for workers in numbers() {
                rayon_pool(workers).install(|| {
                    let request = subject.request(schedule).pool(&Rayon);
                    subject.run(request, Method::InPlace);
                    subject.run(request, Method::WriteInto);
                });
            }
        });
    }
    check::<f32>(&cases::ROWS, Reduction::Add);
    check::<f32>(&cases::ELEMENTS, Reduction::None);
    check::<i32>(&cases::HISTOGRAM, Reduction::Add);
}

/// A pool that reports any number of workers and runs tasks in order on the calling thread.
#[derive(Clone, Copy, Debug)]
struct Claims {
    workers: usize,
    backwards: bool,
}

impl Pool for Claims {
    fn workers(&self) -> Option<usize> {
        Some(self.workers)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if self.backwards {
            (0..tasks).rev().for_each(task);
        } else {
            (0..tasks).for_each(task);
        }
    }
}

/// Numbers of workers beyond any machine, and beyond the crate's limit.
#[test]
fn pools_that_claim_any_number_of_workers() {
    fn check<T: Ref>(case: &Case, reduction: Reduction) {
        for_each_schedule::<T>(case, reduction, |subject, schedule| {
            for workers in [0, 64, 65, 200, 1000, 1023, 1024, 1025, usize::MAX] {
                for backwards in [false, true] {
                    let pool = Claims { workers, backwards };
                    let request = subject.request(schedule).pool(&pool);
                    subject.run(request, Method::InPlace);
                    subject.run(request, Method::WriteInto);
                }
            }
        });
    }
    check::<f32>(&cases::ROWS, Reduction::Add);
    check::<i16>(&cases::ROWS, Reduction::None);
    check::<f32>(&cases::SHORT_ROWS, Reduction::Mean);
    check::<f32>(&cases::SCATTERED_WINDOWS, Reduction::Add);
    check::<f32>(&cases::FEW_ROWS, Reduction::Sub);
    check::<f32>(&cases::ELEMENTS, Reduction::Add);
    check::<u8>(&cases::HISTOGRAM, Reduction::Mul);
    check::<f32>(&cases::DISTINCT_ELEMENTS, Reduction::None);
    check::<f32>(&cases::FEW_BATCHES, Reduction::Add);
    check::<f32>(&cases::ALONG_ROWS, Reduction::Add);
    check::<f32>(&cases::CACHE, Reduction::None);
}

/// Limits of the workers in a pool of 64.
#[test]
fn a_limit_of_workers() {
    let sorted = Case {
        destinations: Destinations::Together,
        ..cases::ROWS
    };
    for case in [cases::ROWS, sorted] {
        for_each_schedule::<f32>(&case, Reduction::Add, |subject, schedule| {
            let plan = subject.plan(subject.request(schedule));
            for most in numbers().chain([0, 65, usize::MAX]) {
                let request = (subject.request(schedule))
                    .pool(rayon_pool(64))
                    .max_workers(most);
                let (_, tasks) = subject.explain(request, &plan, true);
                assert!(
                    tasks <= most.max(1),
                    "{schedule:?}, at most {most}: {tasks} tasks"
                );
                subject.run(request, Method::InPlace);
                subject.run(request, Method::WriteInto);
            }
        });
    }
}
