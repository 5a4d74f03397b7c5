//! Long lists of single elements, which are applied block by block. One machine prefetches indices,
//! in blocks of another length. The other machine does not.

use ndscatter::{CallingThread, Execution, Machine, Pool, Reduction, Scatter, ScatterError};
use ndscatter::{TensorView, TensorViewMut};

use crate::common::pools::Threads;
use crate::common::random::Random;

/// The bins are larger than a first-level cache. The tuples are not a multiple of a block.
const BINS: usize = 20_003;
const TUPLES: usize = 270_007;

/// Returns a machine that does not prefetch indices, and one that does.
fn machines() -> [Machine; 2] {
    [0, 1].map(|prefetch| {
        let text = format!("caches = 32768 1048576 33554432\nindex_prefetch = {prefetch}");
        text.parse().expect("a machine")
    })
}

/// Returns lists in random order, in ascending order, and with alternating parts of both. In the
/// last, blocks of both lengths follow one another.
fn lists() -> [Vec<i64>; 3] {
    let mut random = Random::new(11);
    let mut anywhere = || i64::try_from(random.below(BINS)).expect("the index fits");
    let scattered: Vec<i64> = (0..TUPLES).map(|_| anywhere()).collect();
    let mut sorted = scattered.clone();
    sorted.sort_unstable();
    let by_turns = (0..TUPLES).map(|tuple| match tuple / 1111 % 2 {
        0 => scattered[tuple],
        _ => sorted[tuple],
    });
    let by_turns = by_turns.collect();
    [scattered, sorted, by_turns]
}

fn sum(
    data: &mut [f32],
    indices: &[i64],
    updates: &[f32],
    machine: &Machine,
    pool: &dyn Pool,
) -> Result<(), ScatterError> {
    let execution = Execution::new().pool(pool).machine(machine);
    let scatter = Scatter::nd().reduction(Reduction::Add).execution(execution);
    scatter.in_place(
        TensorViewMut::contiguous(data, &[BINS])?,
        TensorView::contiguous(indices, &[TUPLES, 1])?,
        TensorView::contiguous(updates, &[TUPLES])?,
    )
}

#[test]
fn indices_that_are_prefetched_are_applied_in_order() {
    let updates: Vec<f32> = (0..TUPLES).map(|at| 0.1 + (at % 1013) as f32).collect();
    for indices in lists() {
        let mut expected = vec![0.5_f32; BINS];
        for (&index, update) in indices.iter().zip(&updates) {
            expected[usize::try_from(index).expect("the index fits")] += update;
        }
        for machine in &machines() {
            let mut data = vec![0.5_f32; BINS];
            sum(&mut data, &indices, &updates, machine, &CallingThread).expect("a call");
            assert!(data == expected, "the bits differ: {machine:?}");
        }
    }
}

#[test]
fn the_first_wrong_index_is_reported_with_any_prefetch() {
    let updates = vec![1.0_f32; TUPLES];
    for mut indices in lists() {
        for wrong in [TUPLES - 1, 140_000, 300, 0] {
            indices[wrong] = 1_000_000 + i64::try_from(wrong).expect("the index fits");
            for machine in &machines() {
                for pool in [&CallingThread as &dyn Pool, &Threads(3)] {
                    let mut data = vec![0.5_f32; BINS];
                    let refused = sum(&mut data, &indices, &updates, machine, pool);
                    let expected = ScatterError::IndexOutOfBounds {
                        tuple: wrong,
                        axis: 0,
                        index: indices[wrong].into(),
                        size: BINS,
                    };
                    assert_eq!(refused, Err(expected));
                    assert!(data.iter().all(|&value| value == 0.5), "nothing is written");
                }
            }
        }
    }
}
