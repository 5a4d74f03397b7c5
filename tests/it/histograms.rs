//! Very many single elements for few destinations, in reductions whose partial
//! results combine to the bits of the loop: workers get copies of their own,
//! with a plan and without.

use std::fmt::Debug;

use crate::common::pools::{Threads, rayon_pool};
use crate::common::random::Random;
use crate::common::request::Request;
use ndscatter::{CallingThread, Element, Index, Layout, Pool, Reduction, Scatter, ScatterError, Schedule, TensorView, TensorViewMut};

/// Enough for copies, and not a multiple of anything.
const TUPLES: usize = 300_007;

struct Case<T, I> {
    data: Vec<T>,
    indices: Vec<I>,
    updates: Vec<T>,
}

impl<T, I> Case<T, I>
where
    T: Element + PartialEq + Debug,
    I: Index + TryFrom<i64, Error: Debug>,
{
    /// One index in so many counts from the end.
    fn new(bins: usize, from_end: usize, value: impl Fn(usize) -> T) -> Self {
        let mut random = Random::new(5);
        let signed = |place: usize| i64::try_from(place).expect("it fits");
        let mut index = || {
            let place = signed(random.zipf(bins));
            let from_end = random.one_in(from_end);
            I::try_from(place - if from_end { signed(bins) } else { 0 }).expect("it fits")
        };
        Self {
            indices: (0..TUPLES).map(|_| index()).collect(),
            data: (0..bins).map(&value).collect(),
            updates: (0..TUPLES).map(|tuple| value(tuple * 7919)).collect(),
        }
    }

    fn scatter(&self, execution: Request<'_>, output: &mut [T]) -> Result<(), ScatterError> {
        let len = output.len();
        execution.of(Scatter::nd()).in_place(
            TensorViewMut::contiguous(output, &[len])?,
            TensorView::contiguous(&self.indices, &[TUPLES, 1])?,
            TensorView::contiguous(&self.updates, &[TUPLES])?,
        )
    }

    fn scatter_into(&self, execution: Request<'_>, output: &mut [T]) -> Result<(), ScatterError> {
        let len = output.len();
        execution.of(Scatter::nd()).write_into(
            TensorView::contiguous(&self.data, &[len])?,
            TensorView::contiguous(&self.indices, &[TUPLES, 1])?,
            TensorView::contiguous(&self.updates, &[TUPLES])?,
            TensorViewMut::contiguous(output, &[len])?,
        )
    }

    /// The same bits on any pool, as `alone` has made them.
    fn check(&self, reduction: Reduction) {
        let alone = Request::new(reduction)
            .pool(&CallingThread)
            .schedule(Schedule::Serial);
        let mut expected = self.data.clone();
        self.scatter(alone, &mut expected).expect("valid indices");
        let len = self.data.len();
        let shape = [len];
        let plan = Scatter::nd()
            .plan(
                Layout::contiguous(&[len]),
                TensorView::contiguous(&self.indices, &[TUPLES, 1]).expect("indices"),
            )
            .expect("valid indices");
        let pools: [&dyn Pool; 4] = [&CallingThread, rayon_pool(2), rayon_pool(7), &Threads(3)];
        for pool in pools {
            let execution = Request::new(reduction).pool(pool);
            let mut output = self.data.clone();
            self.scatter(execution, &mut output).expect("in place");
            assert_eq!(output, expected, "{reduction} in place on {pool:?}");
            output.fill(self.updates[0]);
            (self.scatter_into(execution, &mut output)).expect("an output");
            assert_eq!(output, expected, "{reduction} into an output on {pool:?}");
            for execution in [execution, execution.schedule(Schedule::Private)] {
                output.copy_from_slice(&self.data);
                let target = TensorViewMut::contiguous(&mut output, &shape).expect("an output");
                let updates = TensorView::contiguous(&self.updates, &[TUPLES]).expect("updates");
                (execution.run(&plan).in_place(target, updates)).expect("a run");
                assert_eq!(output, expected, "{reduction} planned on {pool:?}");
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
#[expect(clippy::cast_possible_wrap, reason = "any bits will do")]
mod values {
    pub(crate) fn u8(seed: usize) -> u8 {
        (seed.wrapping_mul(0x9e37_79b9) >> 11) as u8
    }

    pub(crate) fn u32(seed: usize) -> u32 {
        (seed.wrapping_mul(0x9e37_79b9) >> 3) as u32
    }

    pub(crate) fn i32(seed: usize) -> i32 {
        u32(seed) as i32
    }

    pub(crate) fn i64(seed: usize) -> i64 {
        i64::from(i32(seed)) << 20
    }

    pub(crate) fn f32(seed: usize) -> f32 {
        (i32(seed) >> 8) as f32
    }
}

#[test]
fn integers() {
    for bins in [1, 256, 1000, 40_000] {
        Case::<_, i64>::new(bins, usize::MAX, values::u8).check(Reduction::Add);
        Case::<_, i32>::new(bins, usize::MAX, values::u32).check(Reduction::Add);
        Case::<_, i64>::new(bins, 50, values::i64).check(Reduction::Sub);
        Case::<_, i32>::new(bins, 50, values::i32).check(Reduction::Max);
    }
    Case::<_, i32>::new(1000, 50, values::u32).check(Reduction::Mul);
}

#[test]
fn orders_of_floats() {
    for bins in [256, 40_000] {
        Case::<_, i64>::new(bins, 50, values::f32).check(Reduction::Min);
        Case::<_, i32>::new(bins, usize::MAX, values::f32).check(Reduction::Max);
    }
    // Not combined from partial results, which would round elsewhere.
    Case::<_, i64>::new(256, 50, values::f32).check(Reduction::Add);
}

/// The error is that of the first wrong index, whichever worker meets it, and
/// nothing has been written.
#[test]
fn wrong_indices() {
    for wrong in [
        &[0][..],
        &[TUPLES - 1],
        &[TUPLES / 2 + 77, TUPLES - 1],
        &[100_000, 290_000],
        &[299_000, 700],
    ] {
        let mut case = Case::<u32, i64>::new(1000, 50, values::u32);
        for &tuple in wrong {
            case.indices[tuple] = 1000 + i64::try_from(tuple).expect("it fits");
        }
        let alone = Request::new(Reduction::Add).pool(&CallingThread);
        let mut output = case.data.clone();
        let expected = case.scatter(alone, &mut output).expect_err("a wrong index");
        let pools: [&dyn Pool; 3] = [rayon_pool(2), rayon_pool(7), &Threads(3)];
        for pool in pools {
            let execution = Request::new(Reduction::Add).pool(pool);
            let got = case.scatter(execution, &mut output);
            assert_eq!(got.as_ref(), Err(&expected), "in place on {pool:?}");
            assert_eq!(output, case.data, "written before all was read");
            let got = case.scatter_into(execution, &mut output);
            assert_eq!(got.as_ref(), Err(&expected), "into an output on {pool:?}");
            assert_eq!(output, case.data, "written before all was read");
        }
    }
}

/// A pool that leaves a task out is found out before anything is written.
#[test]
fn a_pool_that_skips_a_task() {
    struct Skipping;

    impl Pool for Skipping {
        fn workers(&self) -> Option<usize> {
            Some(3)
        }

        fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
            (1..tasks).for_each(task);
        }
    }

    let case = Case::<u32, i64>::new(1000, 50, values::u32);
    let mut output = case.data.clone();
    let execution = Request::new(Reduction::Add).pool(&Skipping);
    let got = case.scatter(execution, &mut output);
    assert!(
        matches!(got, Err(ScatterError::PoolFailed { .. })),
        "{got:?}"
    );
    assert_eq!(output, case.data, "nothing was combined");
}
