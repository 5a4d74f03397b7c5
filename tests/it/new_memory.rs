//! Outputs of new memory, which are not read unless the call succeeds. The crate writes them while
//! indices are still being checked.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]

use ndscatter::{AnyViewMut, CallingThread, Execution, Gather, Index, Pool, Reduction, Scatter};
use ndscatter::{ScatterError, TensorView, TensorViewMut};

use crate::common::pools::Threads;
use crate::common::random::Random;

/// Lengths of lists: two for one worker and one for several. None is a multiple of a block.
const LENGTHS: [usize; 3] = [513, 5003, 140_007];

const ROWS: usize = 41;
const COLUMNS: usize = 3;

fn pools() -> [&'static dyn Pool; 2] {
    [&CallingThread, &Threads(3)]
}

/// Gathers into new memory.
fn gathered<I: Index>(
    data: &[u16],
    shape: &[usize],
    tuples: &[I],
    pool: &dyn Pool,
) -> Result<Vec<u16>, ScatterError> {
    let count = tuples.len() / shape.len();
    let mut result = vec![7; count];
    let output = TensorViewMut::from(&mut result[..]);
    let gather = Gather::nd(0).execution(Execution::new().pool(pool));
    gather.write_into(
        TensorView::contiguous(data, shape)?.into(),
        TensorView::contiguous(tuples, &[count, shape.len()])?,
        AnyViewMut::from(output).of_new_memory(),
    )?;
    Ok(result)
}

fn data() -> Vec<u16> {
    (0..).take(ROWS * COLUMNS).map(|at| at * 31).collect()
}

/// Draws coordinates. Some of them count from the end.
fn coordinates(count: usize, sizes: &[usize]) -> Vec<i64> {
    let mut random = Random::new(count as u64);
    let mut tuples = Vec::new();
    for _ in 0..count {
        for &size in sizes {
            let position = random.below(size) as i64;
            let wraps = random.below(200) == 0;
            tuples.push(position - if wraps { size as i64 } else { 0 });
        }
    }
    tuples
}

#[test]
fn long_gathers_follow_every_index() {
    let data = data();
    for (count, pool) in LENGTHS
        .into_iter()
        .flat_map(|count| pools().map(|pool| (count, pool)))
    {
        for shape in [&[ROWS * COLUMNS][..], &[ROWS, COLUMNS]] {
            let tuples = coordinates(count, shape);
            let number = |tuple: &[i64]| {
                let wrapped = tuple.iter().zip(shape);
                let wrapped = wrapped.map(|(&at, &size)| at.rem_euclid(size as i64) as usize);
                wrapped
                    .zip(shape)
                    .fold(0, |all, (at, &size)| all * size + at)
            };
            let expected: Vec<u16> = tuples
                .chunks(shape.len())
                .map(|t| data[number(t)])
                .collect();
            assert_eq!(gathered(&data, shape, &tuples, pool), Ok(expected.clone()));
            let narrow: Vec<i32> = tuples.iter().map(|&at| at as i32).collect();
            assert_eq!(gathered(&data, shape, &narrow, pool), Ok(expected.clone()));
            let short: Vec<i8> = tuples.iter().map(|&at| at as i8).collect();
            assert_eq!(gathered(&data, shape, &short, pool), Ok(expected));
        }
    }
}

#[test]
fn the_first_wrong_index_is_reported_at_every_number_of_workers() {
    let data = data();
    let size = data.len();
    for (count, pool) in LENGTHS
        .into_iter()
        .flat_map(|count| pools().map(|pool| (count, pool)))
    {
        let mut tuples = coordinates(count, &[size]);
        for wrong in [count - 1, count / 2, 100, 0] {
            tuples[wrong] = size as i64 + wrong as i64;
            let expected = ScatterError::IndexOutOfBounds {
                tuple: wrong,
                axis: 0,
                index: tuples[wrong].into(),
                size,
            };
            assert_eq!(gathered(&data, &[size], &tuples, pool), Err(expected));
        }
    }
}

#[test]
fn data_without_elements_have_no_index() {
    let tuples = vec![0_u32; 600];
    let refused = gathered(&[], &[0], &tuples, &CallingThread);
    assert!(matches!(
        refused,
        Err(ScatterError::IndexOutOfBounds { tuple: 0, .. })
    ));
}

/// A sum into new memory is applied to the output itself, block by block. For the shorter lists, it
/// has fewer tuples per element than an application in a copy requires.
#[test]
fn long_lists_are_applied_in_new_memory() {
    const BINS: usize = 4001;
    for (count, pool) in LENGTHS
        .into_iter()
        .flat_map(|count| pools().map(|pool| (count, pool)))
    {
        let mut bins = coordinates(count, &[BINS]);
        let weights: Vec<f64> = (0..count).map(|at| 0.1 + (at % 1013) as f64).collect();
        let mut expected = vec![0.0; BINS];
        for (&bin, weight) in bins.iter().zip(&weights) {
            expected[bin.rem_euclid(BINS as i64) as usize] += weight;
        }
        let sum = |bins: &[i64], sums: &mut [f64]| {
            let output = AnyViewMut::from(TensorViewMut::from(sums)).of_new_memory();
            let scatter = Scatter::along(0).reduction(Reduction::Add);
            let scatter = scatter.execution(Execution::new().pool(pool));
            scatter.in_place(
                output,
                TensorView::from(bins),
                TensorView::from(&weights[..]).into(),
            )
        };
        let mut sums = vec![0.0; BINS];
        assert_eq!(sum(&bins, &mut sums), Ok(()));
        assert!(sums == expected, "the bits differ");
        bins[count / 2] = BINS as i64;
        let refused = sum(&bins, &mut sums);
        let tuple_of = |refused| match refused {
            Err(ScatterError::IndexOutOfBounds { tuple, .. }) => Some(tuple),
            _ => None,
        };
        assert_eq!(tuple_of(refused), Some(count / 2));
    }
}
