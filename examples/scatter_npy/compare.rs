//! Whether two arrays are the same to the bit, and where they are not.

use crate::array::Array;

/// How a result differs from what was expected.
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

/// The first difference, in row-major order. The order of the files does not
/// matter, nor which NaN a NaN is.
pub(crate) fn difference(actual: &Array, expected: &Array) -> Option<Difference> {
    if actual.dtype() != expected.dtype() || actual.shape() != expected.shape() {
        return Some(Difference::Kind {
            actual: actual.to_string(),
            expected: expected.to_string(),
        });
    }
    // The common case, at the speed of a copy.
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

/// Whether both would make the same file.
fn same_file(a: &Array, b: &Array) -> bool {
    let (mut a_file, mut b_file) = (Vec::new(), Vec::new());
    a.write(&mut a_file).is_ok() && b.write(&mut b_file).is_ok() && a_file == b_file
}

/// Every index of `shape`, the last axis fastest.
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
