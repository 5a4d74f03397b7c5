//! Errors that are found late, in long lists of indices or in the last tasks. The reported error is
//! the first one, and nothing has been written.

use ndscatter::{CallingThread, Pool, Reduction, ScatterError};

use crate::common::Tensor;
use crate::common::api::{Methods, Options, Request};
use crate::common::elements::Ref;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Operator;
use crate::common::pools::{OmitsOne, Threads, rayon_pool};
use crate::common::random::Random;

/// A sum of single elements: data, indices and updates.
struct Sums<T> {
    data: Strided<T>,
    indices: Vec<i64>,
    updates: Strided<T>,
}

impl<T: Ref> Sums<T> {
    fn new(bins: usize, indices: Vec<i64>, value: T) -> Self {
        let place = |count| {
            let tensor = Tensor::new(&[count], vec![value; count]);
            Strided::new(&tensor, Arrangement::Contiguous, 1, T::sentinel())
        };
        Self {
            data: place(bins),
            updates: place(indices.len()),
            indices,
        }
    }

    /// Returns the error of a call in place and of a call into an output. Neither call may write.
    fn refused(&self, pool: &dyn Pool) -> Option<ScatterError> {
        let tensor = Tensor::new(&[self.indices.len(), 1], self.indices.clone());
        let indices = Strided::new(&tensor, Arrangement::Contiguous, 0, 0);
        let options = Options::new(Operator::Nd, Request::new(Reduction::Add).pool(pool));
        let updates = self.updates.view();
        let mut output = self.data.clone();
        let in_place = indices.in_place(&options, output.view_mut(), updates);
        assert_eq!(output.buffer, self.data.buffer, "in place on {pool:?}");
        let data = self.data.view();
        let into = indices.write_into(&options, data, updates, output.view_mut());
        assert_eq!(
            output.buffer, self.data.buffer,
            "into an output on {pool:?}"
        );
        assert_eq!(in_place, into, "in place, and into an output on {pool:?}");
        in_place.err()
    }
}

fn out_of_bounds(tuple: usize, index: i64, size: usize) -> ScatterError {
    ScatterError::IndexOutOfBounds {
        tuple,
        axis: 0,
        index: index.into(),
        size,
    }
}

/// Errors in thousands of tuples, which may be applied block by block.
#[test]
fn of_a_long_list() {
    for wrong in [0, 1, 511, 512, 1700, 2999] {
        for index in [8, -9, i64::MIN] {
            let mut indices: Vec<i64> = (0..3000).map(|tuple| tuple % 8).collect();
            indices[wrong] = index;
            let sums = Sums::new(8, indices, 1.0_f32);
            let expected = Some(out_of_bounds(wrong, index, 8));
            assert_eq!(sums.refused(&CallingThread), expected);
            assert_eq!(sums.refused(rayon_pool(3)), expected);
        }
    }
}

/// An output without elements has no valid index.
#[test]
fn of_an_output_without_elements() {
    let sums = Sums::new(0, vec![0; 600], 1.0_f32);
    let expected = Some(out_of_bounds(0, 0, 0));
    assert_eq!(sums.refused(&CallingThread), expected);
}

/// Returns enough tuples that workers have private copies of the output.
fn counts() -> Vec<i64> {
    let mut random = Random::new(5);
    let mut index = || i64::try_from(random.zipf(1000)).expect("the value fits i64");
    (0..300_007).map(|_| index()).collect()
}

/// The first wrong index is reported, at any distribution among workers.
#[test]
fn of_workers_with_copies() {
    for wrong in [
        &[0][..],
        &[300_006],
        &[150_080, 300_006],
        &[100_000, 290_000],
        &[299_000, 700],
    ] {
        let mut indices = counts();
        let signed = |tuple: usize| 1000 + i64::try_from(tuple).expect("the value fits i64");
        for &tuple in wrong {
            indices[tuple] = signed(tuple);
        }
        let sums = Sums::new(1000, indices, 7_u32);
        let first = *wrong.iter().min().expect("one or more");
        let expected = Some(out_of_bounds(first, signed(first), 1000));
        let pools: [&dyn Pool; 4] = [&CallingThread, rayon_pool(2), rayon_pool(7), &Threads(3)];
        for pool in pools {
            assert_eq!(sums.refused(pool), expected, "{wrong:?} on {pool:?}");
        }
    }
}

/// A pool that leaves out a task is detected before anything is written.
#[test]
fn of_a_task_that_never_ran() {
    let refused = Sums::new(1000, counts(), 7_u32).refused(&OmitsOne);
    let is_detected = matches!(refused, Some(ScatterError::PoolFailed { .. }));
    assert!(is_detected, "{refused:?}");
}
