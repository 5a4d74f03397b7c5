//! Tuples that are out of bounds and skipped, or clamped. Each schedule and each set of
//! instructions must give the bits of the loop over the other tuples, in order.
//!
//! The lists are long enough for several blocks of every buffer that collects the other tuples.

use std::fmt::Debug;

use ndscatter::{
    Bounds, Element, Execution, InstructionSet, Layout, Machine, Reduction, Scatter, Schedule,
    TensorView, TensorViewMut,
};

use crate::common::elements::is_enabled;
use crate::common::pools::rayon_pool;
use crate::common::random::Random;

const TUPLES: usize = 5000;

/// Numbers of bins: many tuples for each bin, and many bins for each tuple.
const BINS: [usize; 2] = [700, 60_000];

/// Returns positions, and one of `every` tuples out of bounds on either side. `0`: none.
fn indices(bins: usize, every: usize) -> Vec<i64> {
    let mut random = Random::new(bins as u64 + every as u64);
    let end = i64::try_from(bins).expect("a small number");
    (0..TUPLES)
        .map(|tuple| match random.below(every.max(1)) {
            0 if every > 0 && tuple % 2 == 0 => end + 7,
            0 if every > 0 => -end - 1,
            _ => i64::try_from(random.below(bins)).expect("a position"),
        })
        .collect()
}

/// Returns the position that a call uses. `None`: the tuple is skipped.
fn position(index: i64, bins: usize, bounds: Bounds) -> Option<usize> {
    match usize::try_from(index)
        .ok()
        .filter(|&position| position < bins)
    {
        None if bounds == Bounds::Clamp => Some(if index < 0 { 0 } else { bins - 1 }),
        position => position,
    }
}

/// Compares all ways to run a call with the loop, for windows of `width` elements. Compares nothing
/// if the build does not have the feature that the reduction needs.
fn check<T: Element + Copy + Debug + PartialEq>(
    width: usize,
    reduction: Reduction,
    value: impl Fn(usize) -> T,
    combine: impl Fn(T, T) -> T,
) where
    for<'v> TensorView<'v, T>: Into<ndscatter::AnyView<'v>>,
{
    if !is_enabled(reduction, T::DTYPE) {
        return;
    }
    for (bins, every, bounds) in [
        (BINS[0], 0, Bounds::Skip),
        (BINS[0], 1000, Bounds::Skip),
        (BINS[0], 10, Bounds::Skip),
        (BINS[1], 10, Bounds::Skip),
        (BINS[1], 1, Bounds::Skip),
        (BINS[0], 10, Bounds::Clamp),
        (BINS[1], 1, Bounds::Clamp),
    ] {
        let indices = indices(bins, every);
        let updates: Vec<T> = (0..TUPLES * width).map(&value).collect();
        let data: Vec<T> = (0..bins * width).map(&value).collect();
        let mut expected = data.clone();
        for (tuple, &index) in indices.iter().enumerate() {
            let Some(position) = position(index, bins, bounds) else {
                continue;
            };
            for column in 0..width {
                let element = &mut expected[position * width + column];
                *element = combine(*element, updates[tuple * width + column]);
            }
        }
        let (shape, listed) = ([bins, width], [TUPLES, width]);
        let run = |execution: Execution<'_>, is_kept: bool| {
            let scatter = Scatter::along(0)
                .reduction(reduction)
                .bounds(bounds)
                .execution(execution);
            let mut output = data.clone();
            let view = TensorViewMut::contiguous(&mut output, &shape).expect("an output");
            let updates = TensorView::contiguous(&updates, &listed).expect("updates");
            let list = TensorView::from(&indices[..]);
            if is_kept {
                let plan = scatter.plan(Layout::contiguous(&shape), list);
                let plan = plan.expect("a plan");
                let run = plan.run().reduction(reduction).execution(execution);
                run.in_place(view, updates).expect("a planned call");
            } else {
                scatter.in_place(view, list, updates).expect("a call");
            }
            output
        };
        // On the first machine, one worker makes the plan. On the second machine, all workers do.
        let machines = [usize::MAX, 1000].map(|tuples| -> Machine {
            let text = format!("numbered_tuples = {tuples}");
            text.parse().expect("a machine")
        });
        for workers in [1, 2, 3, 8] {
            let schedules = Schedule::ALL.into_iter().map(Some).chain([None]);
            for (schedule, &set) in schedules.zip(InstructionSet::available().iter().cycle()) {
                let mut execution = Execution::new()
                    .pool(rayon_pool(workers))
                    .force_instruction_set(set);
                if let Some(schedule) = schedule {
                    execution = execution.force_schedule(schedule);
                }
                for is_kept in [false, true] {
                    let machine = &machines[(workers + usize::from(is_kept)) % 2];
                    let execution = execution.machine(machine);
                    let case = format!(
                        "{bins} bins, one of {every}, {bounds:?}, {workers} workers, \
                         {schedule:?}, {set}, kept: {is_kept}"
                    );
                    assert!(run(execution, is_kept) == expected, "{case}");
                }
            }
        }
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number % 251).expect("a small number")
}

#[test]
fn elements_of_each_size() {
    let sum = |a: u8, b: u8| a.wrapping_add(b);
    check(1, Reduction::Add, small, sum);
    check(1, Reduction::None, |at| u16::from(small(at)), |_, b| b);
    // Sums in another order have other bits.
    check(
        1,
        Reduction::Add,
        |at| f32::from(small(at)) * 0.37,
        |a, b| a + b,
    );
    check(1, Reduction::None, |at| f64::from(small(at)), |_, b| b);
    check(
        1,
        Reduction::Add,
        |at| f64::from(small(at)) * 0.37,
        |a, b| a + b,
    );
}

/// Elements of 16 bytes are too wide for the filter of values.
#[cfg(feature = "complex")]
#[test]
fn elements_of_16_bytes() {
    let pair = |at| num_complex::Complex::new(f64::from(small(at)) * 0.37, 1.0);
    check(1, Reduction::Add, pair, |a, b| a + b);
    check(1, Reduction::None, pair, |_, b| b);
}

#[test]
fn rows() {
    check(
        3,
        Reduction::Add,
        |at| f32::from(small(at)) * 0.37,
        |a, b| a + b,
    );
    check(24, Reduction::None, |at| i64::from(small(at)), |_, b| b);
}

/// A list for the schedule by partition whose partitions are dense: the next region is prefetched
/// while one is applied. The parts of the list end inside lines of gathered entries.
#[test]
fn dense_partitions() {
    const BINS: usize = 300_000;
    const DENSE: usize = 100_003;
    let mut random = Random::new(5);
    for spread in [BINS / 20, BINS] {
        let indices: Vec<i64> = (0..DENSE)
            .map(|_| i64::try_from(random.below(spread)).expect("a position"))
            .collect();
        let updates: Vec<f32> = (0..DENSE).map(|at| f32::from(small(at)) * 0.37).collect();
        let mut expected = vec![1.0_f32; BINS];
        for (&index, &update) in indices.iter().zip(&updates) {
            expected[usize::try_from(index).expect("a position")] += update;
        }
        for workers in [1, 2, 3, 5, 8] {
            let execution = Execution::new()
                .pool(rayon_pool(workers))
                .force_schedule(Schedule::ByPartition);
            let scatter = Scatter::along(0)
                .reduction(Reduction::Add)
                .execution(execution);
            let list = || TensorView::from(&indices[..]);
            let plan = scatter.plan(Layout::contiguous(&[BINS]), list());
            let plan = plan.expect("a plan");
            let planned = plan.run().reduction(Reduction::Add).execution(execution);
            for is_kept in [false, true, true] {
                let mut output = vec![1.0_f32; BINS];
                let view = TensorViewMut::from(&mut output[..]);
                let updates = TensorView::from(&updates[..]);
                let result = match is_kept {
                    false => scatter.in_place(view, list(), updates),
                    true => planned.in_place(view, updates),
                };
                result.expect("a call");
                let is_same = output
                    .iter()
                    .zip(&expected)
                    .all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(is_same, "{spread}, {workers} workers, kept: {is_kept}");
            }
        }
    }
}
