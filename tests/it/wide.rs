//! Destinations beyond 32 bits. The output has more than five thousand million bytes. Only the
//! memory pages that are written exist physically.

use crate::common::elements::is_enabled;
use crate::common::pools::Workers;
use crate::common::random::Random;
use crate::common::request::Request;
use ndscatter::{
    DType, Duplicates, Reduction, Scatter, ScatterError, Schedule, TensorView, TensorViewMut,
};

/// Number of bytes of the output, more than a `u32` can count.
const LEN: usize = 5 << 30;

/// Tuples are in two clusters of this many bytes. The second cluster begins at `FAR`. Positions in
/// both clusters are equal when truncated to 32 bits.
const CLUSTER: usize = 5000;
const FAR: usize = 1 << 32;

/// Allocates zeros, which the system provides page by page. Returns `None` if the system cannot.
fn zeros() -> Option<Vec<u8>> {
    bytemuck::allocation::try_zeroed_vec(LEN).ok()
}

/// Returns the bytes that a test may write.
fn clusters(buffer: &[u8]) -> Vec<u8> {
    [&buffer[..CLUSTER], &buffer[FAR..][..CLUSTER]].concat()
}

fn clear(buffer: &mut [u8]) {
    buffer[..CLUSTER].fill(0);
    buffer[FAR..][..CLUSTER].fill(0);
}

/// Draws positions in the clusters, with duplicates.
fn positions(tuples: usize) -> Vec<usize> {
    let mut random = Random::new(1);
    let mut position = || random.zipf(CLUSTER) + FAR * random.below(2);
    std::iter::repeat_with(&mut position).take(tuples).collect()
}

fn updates(tuples: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().skip(1).take(tuples).collect()
}

/// Computes the expected clusters with the sequential loop.
fn expected(reduction: Reduction, positions: &[usize], updates: &[u8]) -> Vec<u8> {
    let mut clusters = vec![0_u8; 2 * CLUSTER];
    for (&position, &update) in positions.iter().zip(updates) {
        let far = position >= FAR;
        let current = &mut clusters[if far {
            position - FAR + CLUSTER
        } else {
            position
        }];
        *current = match reduction {
            Reduction::None => update,
            _ => current.wrapping_add(update),
        };
    }
    clusters
}

/// Numbers of tuples for each way of storing them and of dividing them among workers.
const TUPLES: [usize; 5] = [3, 40, 400, 5_000, 140_000];

/// Calls `check` with each schedule, pool and reduction.
fn for_each_execution(check: &(dyn Fn(Request<'_>, Reduction, &str) + Sync)) {
    let reductions = [Reduction::Add, Reduction::None].into_iter();
    for reduction in reductions.filter(|&reduction| is_enabled(reduction, DType::U8)) {
        for schedule in Schedule::ALL.into_iter().map(Some).chain([None]) {
            for workers in [Workers::CallingThread, Workers::Given(2)] {
                workers.with(|pool| {
                    let execution = Request::new(reduction).pool(pool);
                    let execution = schedule.map_or(execution, |forced| execution.schedule(forced));
                    check(
                        execution,
                        reduction,
                        &format!("{reduction} {schedule:?} {workers:?}"),
                    );
                });
            }
        }
    }
}

/// With one axis, destinations are numbers of slices.
#[test]
fn slices_beyond_32_bits() {
    let Some(buffer) = zeros() else { return };
    let buffer = std::sync::Mutex::new(buffer);
    for tuples in TUPLES {
        let (positions, updates) = (positions(tuples), updates(tuples));
        let indices: Vec<i64> = positions
            .iter()
            .map(|&p| i64::try_from(p).expect("the position fits i64"))
            .collect();
        for_each_execution(&|execution, reduction, what| {
            let mut buffer = buffer.lock().expect("the first failure ends the test");
            (execution.of(Scatter::nd()))
                .in_place(
                    TensorViewMut::contiguous(&mut buffer, &[LEN]).expect("data"),
                    TensorView::contiguous(&indices, &[tuples, 1]).expect("indices"),
                    TensorView::contiguous(&updates, &[tuples]).expect("updates"),
                )
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let expected = expected(reduction, &positions, &updates);
            assert!(clusters(&buffer) == expected, "{what}, {tuples} tuples");
            clear(&mut buffer);
        });
    }
}

/// Two axes that cannot be merged into one stride, so destinations are offsets.
#[test]
fn offsets_beyond_32_bits() {
    let Some(buffer) = zeros() else { return };
    let buffer = std::sync::Mutex::new(buffer);
    let (shape, strides) = ([2, CLUSTER], [FAR.cast_signed(), 1]);
    for tuples in TUPLES {
        let (positions, updates) = (positions(tuples), updates(tuples));
        let split = |&position: &usize| [position / FAR, position % FAR];
        let indices: Vec<u64> = positions.iter().flat_map(split).map(|i| i as u64).collect();
        for_each_execution(&|execution, reduction, what| {
            let mut buffer = buffer.lock().expect("the first failure ends the test");
            (execution.of(Scatter::nd()))
                .in_place(
                    TensorViewMut::strided(&mut buffer, 0, &shape, &strides).expect("data"),
                    TensorView::contiguous(&indices, &[tuples, 2]).expect("indices"),
                    TensorView::contiguous(&updates, &[tuples]).expect("updates"),
                )
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let expected = expected(reduction, &positions, &updates);
            assert!(clusters(&buffer) == expected, "{what}, {tuples} tuples");
            clear(&mut buffer);
        });
    }
}

/// Positions that differ by 2^32 are not duplicates. Equal positions beyond 2^32 are.
#[test]
fn duplicates_beyond_32_bits() {
    let Some(mut buffer) = zeros() else { return };
    let scatter = Scatter::nd().duplicates(Duplicates::Reject);
    for padding in [0, 100, 1000] {
        let mut indices: Vec<u64> = (10..10 + padding).collect();
        let far = FAR as u64;
        indices.extend([7, far + 7, 8, far + 8]);
        let tuples = indices.len();
        let run = |buffer: &mut [u8], indices: &[u64]| {
            scatter.in_place(
                TensorViewMut::contiguous(buffer, &[LEN]).expect("data"),
                TensorView::contiguous(indices, &[tuples, 1]).expect("indices"),
                TensorView::contiguous(&vec![1; tuples], &[tuples]).expect("updates"),
            )
        };
        assert_eq!(
            run(&mut buffer, &indices),
            Ok(()),
            "all differ, {tuples} tuples"
        );
        clear(&mut buffer);
        indices[tuples - 1] = far + 7;
        let (tuple, earlier) = (tuples - 1, tuples - 3);
        let expected = Err(ScatterError::DuplicateIndex { tuple, earlier });
        assert_eq!(run(&mut buffer, &indices), expected, "{tuples} tuples");
        assert!(
            clusters(&buffer).iter().all(|&byte| byte == 0),
            "the output was written before the error"
        );
    }
}
