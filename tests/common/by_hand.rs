//! Cases with values computed by hand. They check the reference and the crate.

use ndscatter::{InstructionSet, Reduction, Schedule};

use super::Tensor;
use super::api::{Indices, Method, Methods, Options, Request};
use super::arithmetic::How;
use super::elements::{Ref, is_enabled, is_exact, same};
use super::harness::{Problem, Round};
use super::layouts::{Arrangement, Strided};
use super::operators::Operator;

/// A shape and its values.
pub(crate) type Values<'v, T> = (&'v [usize], &'v [T]);

/// Stores values contiguously, with one mark before and after them.
pub(crate) fn contiguous<T: Copy>((shape, values): Values<'_, T>, mark: T) -> Strided<T> {
    let tensor = Tensor::new(shape, values.to_vec());
    Strided::new(&tensor, Arrangement::Contiguous, 1, mark)
}

/// One scatter and its result.
pub(crate) struct Case<'v, T> {
    pub(crate) data: Values<'v, T>,
    pub(crate) indices: Values<'v, i64>,
    pub(crate) updates: Values<'v, T>,
    /// Values of the result. Its shape is the shape of data.
    pub(crate) expected: &'v [T],
}

impl<T: Ref> Case<'_, T> {
    /// Checks the reference, then every method of the crate. Checks nothing if the build does not
    /// have the feature that the reduction needs.
    pub(crate) fn check(&self, reduction: Reduction, options: &Options<'_>) {
        if !is_enabled(reduction, T::DTYPE) {
            return;
        }
        let mut options = *options;
        options.execution.reduction = reduction;
        let indices = contiguous(self.indices, 77);
        let problem = Problem {
            indices: &indices,
            rounds: vec![Round {
                data: contiguous(self.data, T::sentinel()),
                updates: contiguous(self.updates, T::sentinel()),
            }],
            output: Arrangement::Contiguous,
            margin: 1,
        };
        let reference = problem.expected(&options, 1);
        let values = &reference[0].values;
        let agrees = |(&a, &b): (&T, &T)| same(a, b, is_exact(reduction));
        let all = values.iter().zip(self.expected).all(agrees);
        assert!(all, "{options:?}: the reference computes {values:?}");
        for method in Method::ALL {
            problem
                .check_against(method, &options, &reference)
                .unwrap_or_else(|difference| panic!("{options:?}: {difference}"));
        }
    }
}

/// Row lengths: 1 uses the path for single elements, 67 uses whole vectors and a tail.
const LENGTHS: [usize; 2] = [1, 67];

/// Checks the result of one element with `updates`: as a single element, and as every element of a
/// row. Neighbouring rows must keep their values. Checks nothing if the build does not have the
/// feature that the reduction needs.
pub(crate) fn check_updates<T: Ref>(how: impl Into<How>, current: T, updates: &[T], expected: T) {
    let how = how.into();
    if !is_enabled(how.reduction, T::DTYPE) {
        return;
    }
    let agrees = |got: T| same(got, expected, is_exact(how.reduction));
    let reference = T::reduce(how, current, updates);
    assert!(
        agrees(reference),
        "reference: {how:?} of {current:?}, {updates:?} is {reference:?}, not {expected:?}"
    );
    for &set in InstructionSet::available() {
        for schedule in [None, Some(Schedule::Serial), Some(Schedule::Grouped)] {
            let execution = Request::new(how.reduction).instruction_set(set);
            let execution = schedule.map_or(execution, |forced| execution.schedule(forced));
            for len in LENGTHS {
                check_row(how, execution, len, current, updates, expected);
            }
        }
    }
}

/// Scatters into the second of three rows of `len` elements.
fn check_row<T: Ref>(
    how: How,
    execution: Request<'_>,
    len: usize,
    current: T,
    updates: &[T],
    expected: T,
) {
    let mut options = Options::new(Operator::Update { axis: 0 }, execution);
    options.include_self = how.include_self;
    options.accumulate = how.accumulate;
    let mut data = contiguous((&[3, len], &vec![current; 3 * len]), T::sentinel());
    let mut wanted = data.read();
    wanted.values[len..2 * len].fill(expected);
    let rows: Vec<T> = updates.iter().flat_map(|&u| vec![u; len]).collect();
    let updates = contiguous((&[updates.len(), len], &rows), T::sentinel());
    let indices = vec![1; updates.read().shape[0]];
    let indices = contiguous((&[indices.len()], &indices), 77);
    let done = indices.in_place(&options, data.view_mut(), updates.view());
    done.unwrap_or_else(|error| panic!("{options:?}: {error}"));
    let got = data.read();
    for (row, (got, wanted)) in got.values.iter().zip(&wanted.values).enumerate() {
        let exact = is_exact(how.reduction) || row / len != 1;
        assert!(
            same(*got, *wanted, exact),
            "{options:?}, {len} elements: {got:?} in row {}, not {wanted:?}",
            row / len
        );
    }
}
