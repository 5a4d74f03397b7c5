//! Compares two arrays, and finds their first difference. Elements are equal if their bits are
//! equal or both are NaN.

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

/// Returns the first difference of two arrays, in the row-major order of their indices. Elements
/// with the same index are compared, even if one array is stored in C order and the other in
/// Fortran order. All NaNs are equal.
pub(crate) fn difference(actual: &Array, expected: &Array) -> Option<Difference> {
    if actual.dtype() != expected.dtype() || actual.shape() != expected.shape() {
        return Some(Difference::Kind {
            actual: actual.to_string(),
            expected: expected.to_string(),
        });
    }
    // Fast path: if `same_file` finds equal bytes, the arrays are equal. Otherwise, the loop below
    // converts elements to text, which is slower.
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

/// Checks whether the `.npy` files of `a` and `b` would have the same bytes. Writes both files to
/// memory.
fn same_file(a: &Array, b: &Array) -> bool {
    let (mut a_file, mut b_file) = (Vec::new(), Vec::new());
    a.write(&mut a_file).is_ok() && b.write(&mut b_file).is_ok() && a_file == b_file
}

/// Returns the indices of all elements of an array with this shape, in row-major order.
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
