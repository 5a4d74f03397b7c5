//! Long lists of single elements that several workers apply, each to a range of the elements. Each
//! element must get its updates in order, from one worker.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndscatter::{
    AnyViewMut, CallingThread, DType, Element, Execution, InstructionSet, Layout, Machine, Pool,
    Reduction, Route, Scatter, ScatterError, TensorView, TensorViewMut,
};

use crate::common::pools::{OmitsOne, Sequential, Threads, rayon_pool};
use crate::common::random::Random;

/// The smallest list and the smallest output for which workers get ranges, on [`machine`].
const TUPLES: usize = 3000;
const BYTES: usize = 2048;

/// Returns a machine with these limits. It prefetches indices or not.
fn machine(prefetch: usize) -> Machine {
    let text = format!(
        "caches = 32768 1048576 33554432\nindex_prefetch = {prefetch}\n\
         ranged_tuples = {TUPLES}\nranged_bytes = {BYTES}"
    );
    text.parse().expect("a machine")
}

/// A pool that counts the tasks of a call, and runs them in descending order.
struct Counting {
    workers: usize,
    tasks: AtomicUsize,
}

impl Counting {
    fn new(workers: usize) -> Self {
        let tasks = AtomicUsize::new(0);
        Self { workers, tasks }
    }
}

impl Pool for Counting {
    fn workers(&self) -> Option<usize> {
        Some(self.workers)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.tasks.fetch_add(tasks, Ordering::Relaxed);
        (0..tasks).rev().for_each(task);
    }
}

/// How a call gets its output.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    InPlace,
    IntoNewMemory,
    OutOfPlace,
}

const WAYS: [Way; 3] = [Way::InPlace, Way::IntoNewMemory, Way::OutOfPlace];

/// A call with `data`, one update per index, or one update for all.
struct Call<'a, T, I> {
    reduction: Reduction,
    data: &'a [T],
    indices: &'a [I],
    updates: &'a [T],
}

impl<T: Element + Copy + Debug, I: Element> Call<'_, T, I>
where
    for<'v> TensorView<'v, I>: Into<ndscatter::AnyView<'v>>,
{
    /// Returns the result, and the output after the call.
    fn run(&self, execution: Execution<'_>, way: Way) -> (Result<(), ScatterError>, Vec<T>) {
        let scatter = Scatter::nd().reduction(self.reduction).execution(execution);
        let count = self.indices.len();
        let (tuples, listed) = ([count, 1], [count]);
        let list = TensorView::contiguous(self.indices, &tuples).expect("a list");
        let updates = match self.updates.len() {
            1 => TensorView::strided(self.updates, 0, &listed, &[0]),
            _ => TensorView::contiguous(self.updates, &listed),
        };
        let updates = updates.expect("updates");
        let mut output = self.data.to_vec();
        let shape = [output.len()];
        let view = TensorViewMut::contiguous(&mut output, &shape).expect("an output");
        let view = AnyViewMut::from(view);
        let (list, updates) = (list.into(), updates.into());
        let result = match way {
            Way::InPlace => scatter.in_place(view, list, updates),
            Way::IntoNewMemory => scatter.in_place(view.of_new_memory(), list, updates),
            Way::OutOfPlace => {
                let data = TensorView::contiguous(self.data, &shape).expect("data");
                scatter.write_into(data.into(), list, updates, view)
            }
        };
        (result, output)
    }
}

/// Returns `count` positions of `bins`: spread evenly, ascending, and with few frequent ones.
fn lists(count: usize, bins: usize) -> [Vec<usize>; 3] {
    let mut random = Random::new(3);
    let even: Vec<usize> = (0..count).map(|_| random.below(bins)).collect();
    let mut ascending = even.clone();
    ascending.sort_unstable();
    let frequent = (0..count).map(|_| random.zipf(bins)).collect();
    [even, ascending, frequent]
}

fn signed(position: usize) -> i64 {
    i64::try_from(position).expect("a small number")
}

/// Compares calls with the loop, which is `combine` of each element and its updates in order.
fn check<T: Element + Copy + Debug + PartialEq>(
    reduction: Reduction,
    value: impl Fn(usize) -> T,
    combine: impl Fn(T, T) -> T,
) {
    let bins = 5000;
    let data: Vec<T> = (0..bins).map(&value).collect();
    let updates: Vec<T> = (0..2 * TUPLES + 7).map(|at| value(at * 31 + 5)).collect();
    let (updates, one) = (&updates[..], &updates[..1]);
    let machines = [0, 1].map(machine);
    // The list is longer than four times the output, so that calls in place need no plan either.
    let repeat = 4;
    let updates = &updates.repeat(repeat)[..];
    for positions in lists(updates.len(), bins) {
        let narrow: Vec<i32> = positions
            .iter()
            .map(|&at| at.try_into().expect("i32"))
            .collect();
        // Every third index counts from the end.
        let from_end = |(tuple, &at): (usize, &usize)| match tuple % 3 {
            0 => signed(at) - signed(bins),
            _ => signed(at),
        };
        let wide: Vec<i64> = positions.iter().map(|&at| signed(at)).collect();
        let mixed: Vec<i64> = positions.iter().enumerate().map(from_end).collect();
        for updates in [updates, one] {
            let mut expected = data.clone();
            for (tuple, &at) in positions.iter().enumerate() {
                let update = updates[tuple % updates.len()];
                expected[at] = combine(expected[at], update);
            }
            let data = &data[..];
            for workers in 1..=8 {
                let prefetching = &machines[workers % 2];
                let sets = InstructionSet::available();
                let set = sets[sets.len() - 1 - workers / 6 % sets.len()];
                let pools: [&dyn Pool; 3] = [
                    rayon_pool(workers),
                    &Threads(workers),
                    &Counting::new(workers),
                ];
                let pool = pools[workers % 3];
                let execution = Execution::new().pool(pool).machine(prefetching);
                let execution = execution.force_instruction_set(set);
                for way in WAYS {
                    macro_rules! check_call {
                        ($indices:expr) => {{
                            let indices = &$indices[..];
                            let call = Call {
                                reduction,
                                data,
                                indices,
                                updates,
                            };
                            let (result, output) = call.run(execution, way);
                            let case = format!("{reduction}, {workers} workers, {set}, {way:?}");
                            assert_eq!(result, Ok(()), "{case}");
                            assert!(output == expected, "the bits differ: {case}");
                        }};
                    }
                    check_call!(narrow);
                    check_call!(wide);
                    check_call!(mixed);
                }
            }
        }
    }
}

/// Sums whose bits depend on the order of updates.
#[test]
fn sums_have_the_bits_of_the_loop() {
    check(
        Reduction::Add,
        |at| 0.1 + (at % 1013) as f32 * 1e3,
        |a, b| a + b,
    );
    check(
        Reduction::Add,
        |at| 0.1 + (at % 1013) as f64 * 1e9,
        |a, b| a + b,
    );
}

#[test]
fn the_last_update_stays() {
    fn number<T: TryFrom<usize>>(at: usize) -> T {
        T::try_from(at % 127).unwrap_or_else(|_| panic!("{at} modulo 127 fits"))
    }
    check(Reduction::None, number::<u8>, |_, b| b);
    check(Reduction::None, number::<i16>, |_, b| b);
    check(Reduction::None, number::<u32>, |_, b| b);
    check(Reduction::None, number::<i64>, |_, b| b);
}

#[cfg(feature = "half")]
#[test]
fn halves_are_rounded_after_each_update() {
    let value = |at: usize| half::f16::from_f32(0.1 + (at % 37) as f32);
    let sum = |a: half::f16, b: half::f16| half::f16::from_f32(a.to_f32() + b.to_f32());
    check(Reduction::Add, value, sum);
}

/// Complex numbers of 16 bytes have no filter, and one worker applies them.
#[cfg(feature = "complex")]
#[test]
fn wide_elements_have_the_bits_of_the_loop() {
    type Complex = num_complex::Complex<f64>;
    let value = |at: usize| Complex::new(0.1 + at as f64, 1e9 - at as f64);
    check(Reduction::Add, value, |a, b| a + b);
}

/// Whether lists are divided on this machine. Only AVX-512 has a fast filter.
fn are_divided() -> bool {
    InstructionSet::best() >= InstructionSet::Avx512
}

/// Returns whether a sum of `f32` runs on several workers.
fn is_divided(positions: &[usize], bins: usize, way: Way) -> bool {
    let indices: Vec<i64> = positions.iter().map(|&at| signed(at)).collect();
    let call = Call {
        reduction: Reduction::Add,
        data: &vec![0.0_f32; bins],
        indices: &indices,
        updates: &vec![1.0; indices.len()],
    };
    let (machine, pool) = (machine(0), Counting::new(2));
    let execution = Execution::new().pool(&pool).machine(&machine);
    let (result, output) = call.run(execution, way);
    assert_eq!(result, Ok(()), "a sum");
    let sum: f32 = output.iter().sum();
    assert!(
        sum == indices.len() as f32,
        "{sum} of {} tuples",
        indices.len()
    );
    let tasks = pool.tasks.into_inner();
    assert!(tasks == 0 || tasks == 2, "{tasks} tasks");
    tasks == 2
}

#[test]
fn lists_are_divided_from_these_sizes_on() {
    if !are_divided() {
        return;
    }
    let bins = BYTES / size_of::<f32>();
    for way in WAYS {
        let [even, ascending, _] = &lists(TUPLES, bins);
        assert!(is_divided(even, bins, way), "the shortest list, {way:?}");
        assert!(is_divided(ascending, bins, way), "ascending, {way:?}");
        let shorter = &even[1..];
        assert!(!is_divided(shorter, bins, way), "a shorter list, {way:?}");
        let [smaller, ..] = &lists(TUPLES, bins - 1);
        assert!(
            !is_divided(smaller, bins - 1, way),
            "a smaller output, {way:?}"
        );
    }
}

/// Every worker checks all indices of a divided list. Many workers share the checks of a plan.
#[test]
fn many_workers_use_a_plan() {
    let bins = 1000;
    let [positions, ..] = lists(4 * TUPLES, bins);
    let indices: Vec<i64> = positions.iter().map(|&at| signed(at)).collect();
    let machine = machine(0);
    for (workers, reduction, expected) in [
        (6, Reduction::Add, Route::Stream),
        (7, Reduction::Add, Route::Planned),
        // Workers with private copies share the checks.
        (7, Reduction::Max, Route::Stream),
    ] {
        let pool = Counting::new(workers);
        let execution = Execution::new().pool(&pool).machine(&machine);
        let call = Call {
            reduction,
            data: &vec![0.0_f32; bins],
            indices: &indices,
            updates: &vec![1.0; indices.len()],
        };
        let (result, output) = call.run(execution, Way::InPlace);
        assert_eq!(result, Ok(()), "{workers} workers");
        let alone = call.run(Execution::new().pool(&CallingThread), Way::InPlace);
        assert_eq!(output, alone.1, "{workers} workers");
        let (shape, list) = ([bins], [indices.len(), 1]);
        let list = TensorView::contiguous(&indices, &list).expect("a list");
        let explained = Scatter::nd()
            .reduction(reduction)
            .execution(execution)
            .explain(Layout::contiguous(&shape), list, DType::F32, true)
            .expect("a valid call");
        assert_eq!(explained.route(), expected, "{workers} workers");
    }
}

/// One worker would have most of the tuples.
#[test]
fn lists_with_a_frequent_element_are_not_divided() {
    if !are_divided() {
        return;
    }
    let bins = 1000;
    let [mut positions, ..] = lists(4 * TUPLES, bins);
    assert!(
        is_divided(&positions, bins, Way::InPlace),
        "no frequent element"
    );
    // Three of four tuples, at distances that differ.
    for (tuple, position) in positions.iter_mut().enumerate() {
        if tuple * tuple % 7 != 2 {
            *position = 700;
        }
    }
    assert!(
        !is_divided(&positions, bins, Way::InPlace),
        "one frequent element"
    );
}

/// The first invalid index is reported. Nothing is written, except to new memory.
#[test]
fn the_first_wrong_index_is_reported() {
    let (bins, count) = (1000, 4 * TUPLES);
    let [positions, ..] = lists(count, bins);
    let machines = [0, 1].map(machine);
    let updates = vec![1.0_f32; count];
    for wrong in [
        &[0][..],
        &[count - 1],
        &[count / 2, count - 2],
        &[511, 512],
        &[700, 40],
    ] {
        let mut indices: Vec<i64> = positions.iter().map(|&at| signed(at)).collect();
        for &tuple in wrong {
            indices[tuple] = 1_000_000 + signed(tuple);
        }
        let first = *wrong.iter().min().expect("one or more");
        let expected = ScatterError::IndexOutOfBounds {
            tuple: first,
            axis: 0,
            index: indices[first].into(),
            size: bins,
        };
        let call = Call {
            reduction: Reduction::Add,
            data: &vec![0.5; bins],
            indices: &indices,
            updates: &updates,
        };
        let pools: [&dyn Pool; 5] = [
            &CallingThread,
            &Sequential,
            rayon_pool(2),
            rayon_pool(8),
            &Threads(3),
        ];
        for (pool, machine) in pools.into_iter().zip(machines.iter().cycle()) {
            for way in WAYS {
                let (result, output) = call.run(Execution::new().pool(pool).machine(machine), way);
                assert_eq!(result, Err(expected.clone()), "{wrong:?}, {way:?}");
                let is_unchanged = output.iter().all(|&value| value == 0.5);
                assert!(
                    is_unchanged || way == Way::IntoNewMemory,
                    "{wrong:?}, {way:?}"
                );
            }
        }
    }
}

/// A pool that leaves out a task is detected before anything is written.
#[test]
fn a_task_that_never_ran_is_detected() {
    if !are_divided() {
        return;
    }
    let [positions, ..] = lists(4 * TUPLES, 1000);
    let indices: Vec<i64> = positions.iter().map(|&at| signed(at)).collect();
    let call = Call {
        reduction: Reduction::Add,
        data: &vec![0.5_f32; 1000],
        indices: &indices,
        updates: &vec![1.0; indices.len()],
    };
    let machine = machine(0);
    let (result, output) = call.run(
        Execution::new().pool(&OmitsOne).machine(&machine),
        Way::InPlace,
    );
    assert!(
        matches!(result, Err(ScatterError::PoolFailed { .. })),
        "{result:?}"
    );
    assert!(
        output.iter().all(|&value| value == 0.5),
        "nothing is written"
    );
}
