//! Compares two arrays bit for bit, and finds their first difference.

use crate::array::Array;

/// A difference between a result and the expected array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Difference {
    #[error("it is {actual}, expected {expected}")]
    Kind { actual: String, expected: String },

    #[error("element {index:?} is {actual}, expected {expected}")]
    Element {
        index: Vec<usize>,
        actual: String,
        expected: String,
    },
}

/// Returns the first difference in row-major order. The storage order of the files (C or
/// Fortran) makes no difference. All NaNs are equal.
pub(crate) fn difference(actual: &Array, expected: &Array) -> Option<Difference> {
    if actual.dtype() != expected.dtype() || actual.shape() != expected.shape() {
        return Some(Difference::Kind {
            actual: actual.to_string(),
            expected: expected.to_string(),
        });
    }
    // Fast path for equal arrays: `same_file` compares the bytes of both arrays. For equal arrays,
    // no element is converted to text, as the loop below does for every element.
    if same_file(actual, expected) {
        return None;
    }
    row_major(actual.shape()).find_map(|index| {
        let (actual, expected) = (actual.text(&index), expected.text(&index));
        (actual != expected).then_some(Difference::Element {
            index,
            actual,
            expected,
        })
    })
}

/// Checks whether `a` and `b`, written as `.npy` files to memory, have the same bytes.
fn same_file(a: &Array, b: &Array) -> bool {
    let (mut a_file, mut b_file) = (Vec::new(), Vec::new());
    a.write(&mut a_file).is_ok() && b.write(&mut b_file).is_ok() && a_file == b_file
}

/// Returns every index of `shape` in row-major order.
fn row_major(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..shape.iter().product()).map(move |number| {
        let mut rest = number;
        let mut index = vec![0; shape.len()];
        for (coordinate, &size) in index.iter_mut().zip(shape).rev() {
            *coordinate = rest % size;
            rest /= size;
        }
        index
    })
}
