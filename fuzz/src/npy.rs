//! Reads any bytes as `.npy` files, with the reader of the command-line tool.
//!
//! The bytes are one to three files: a file begins at each magic string of the format.
//!
//! - No file causes a panic, and an array is not larger than its file. Run this target with
//!   `-malloc_limit_mb=64`, so that a larger allocation is a failure too.
//! - The reason for refusing a file is one line of text.
//! - An array that was read is written as a file. npyz reads the same shape and the same order from
//!   the written file. The elements have the bytes of the first file, in the byte order of this
//!   machine.
//! - Three arrays are data, indices and updates of a scatter. The result in place equals the result
//!   out of place. Two arrays are data and indices of a gather.

use crate::array::Array;
use ndscatter::{Bounds, CallingThread, Execution, Gather, Scatter, ScatterError};
use npyz::{NpyFile, Order};

/// The bytes with which each `.npy` file begins.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(data: &[u8]) {
    let arrays: Vec<_> = files(data).into_iter().filter_map(read).collect();
    match &arrays[..] {
        [data, indices, updates] => scatter(data, indices, updates),
        [data, indices] => gather(data, indices),
        _ => {}
    }
}

/// Divides the bytes at each magic string into at most three files.
fn files(data: &[u8]) -> Vec<&[u8]> {
    let (mut files, mut rest) = (Vec::new(), data);
    while files.len() < 2 {
        let later = rest.windows(MAGIC.len()).skip(1);
        let Some(at) = later.clone().position(|bytes| bytes == MAGIC) else {
            break;
        };
        let (file, others) = rest.split_at(at + 1);
        files.push(file);
        rest = others;
    }
    files.push(rest);
    files
}

/// Reads a file, and checks the array or the reason for refusing the file.
fn read(file: &[u8]) -> Option<Array> {
    let array = match Array::read(file) {
        Ok(array) => array,
        Err(reason) => {
            let reason = reason.to_string();
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
            return None;
        }
    };
    assert!(
        array.bytes() <= file.len(),
        "{array} of {} bytes",
        file.len()
    );
    let mut written = Vec::new();
    array.write(&mut written).expect("memory is written");
    let (before, after) = (Stored::of(file), Stored::of(&written));
    assert_eq!(before.shape, after.shape);
    assert_eq!(before.order, after.order);
    let bytes = before.elements(array.bytes(), array.dtype().alignment());
    assert!(bytes == after.elements, "the elements of {array}");
    let again = Array::read(&written[..]).expect("a written file is read");
    assert!(
        crate::compare::difference(&array, &again).is_none(),
        "{array}"
    );
    let mut position = vec![0; array.shape().len()];
    if array.bytes() > 0 {
        assert!(!array.text(&position).is_empty(), "the first element");
        (position.iter_mut().zip(array.shape())).for_each(|(last, size)| *last = size - 1);
        assert!(!array.text(&position).is_empty(), "the last element");
    }
    Some(array)
}

/// A file as npyz reads it: its header, and its elements as bytes.
struct Stored<'a> {
    shape: Vec<u64>,
    order: Order,
    is_big_endian: bool,
    elements: &'a [u8],
}

impl<'a> Stored<'a> {
    fn of(file: &'a [u8]) -> Self {
        let npy = NpyFile::new(file).expect("the file was read before");
        Self {
            shape: npy.shape().to_vec(),
            order: npy.order(),
            is_big_endian: npy.dtype().descr().starts_with("'>"),
            elements: npy.into_inner(),
        }
    }

    /// Returns the first `bytes` bytes of the elements, in the byte order of this machine. A number
    /// has `size` bytes. A complex element has two numbers.
    fn elements(&self, bytes: usize, size: usize) -> Vec<u8> {
        let mut elements = self.elements[..bytes].to_vec();
        if self.is_big_endian != cfg!(target_endian = "big") {
            elements.chunks_mut(size).for_each(<[u8]>::reverse);
        }
        elements
    }
}

/// Returns the settings of all calls: one thread.
fn execution() -> Execution<'static> {
    Execution::new().pool(&CallingThread)
}

/// Returns an array with the elements of `array`.
fn copy(array: &Array) -> Array {
    let mut copy = array.blank(array.shape()).expect("a shape that was read");
    copy.copy_from(array);
    copy
}

fn scatter(data: &Array, indices: &Array, updates: &Array) {
    for scatter in [Scatter::nd(), Scatter::along(0), Scatter::elements(-1)] {
        let scatter = scatter.bounds(Bounds::Skip).execution(execution());
        let (mut in_place, mut output) = (copy(data), copy(data));
        let run = |output: &mut Array| -> Result<(), ScatterError> {
            scatter.in_place(output.view_mut()?, indices.view()?, updates.view()?)
        };
        let first = run(&mut in_place);
        let second = (|| {
            let output = output.view_mut()?;
            scatter.write_into(data.view()?, indices.view()?, updates.view()?, output)
        })();
        assert_eq!(first, second, "in place and out of place");
        let difference = crate::compare::difference(&in_place, &output);
        assert!(difference.is_none(), "{difference:?}");
    }
}

fn gather(data: &Array, indices: &Array) {
    for gather in [Gather::nd(0), Gather::along(0), Gather::elements(-1)] {
        let gather = gather.bounds(Bounds::Skip).execution(execution());
        let shape = gather.output_shape(data.shape(), indices.shape());
        // A large result is possible, because many indices may share one row.
        let Some(shape) = shape.ok().filter(|shape| fits(shape)) else {
            continue;
        };
        let mut output = data.blank(&shape).expect("a small shape");
        let (Ok(view), Ok(from), Ok(at)) = (output.view_mut(), data.view(), indices.view()) else {
            panic!("arrays that were read have views");
        };
        let written = gather.write_into(from, at, view);
        let made = gather.allocate(from, at);
        assert_eq!(written.err(), made.err(), "written and allocated");
    }
}

/// Whether a tensor of this shape has at most 65536 elements.
fn fits(shape: &[usize]) -> bool {
    let count = shape
        .iter()
        .try_fold(1_usize, |count, &size| count.checked_mul(size));
    count.is_some_and(|count| count <= 1 << 16)
}
