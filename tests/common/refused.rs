//! Checks calls that must fail: each method returns the expected error and writes nothing.

use ndscatter::{Layout, ScatterError};

use super::Tensor;
use super::api::{Indices, Methods, Options, in_place, write_into};
use super::elements::{Palette, Ref};
use super::layouts::{Arrangement, Strided};
use super::random::Random;

fn place<T: Copy>(tensor: &Tensor<T>, mark: T) -> Strided<T> {
    Strided::new(tensor, Arrangement::Contiguous, 2, mark)
}

/// Creates a contiguous tensor of this shape with random values and margins.
pub(crate) fn filled<T: Ref>(shape: &[usize]) -> Strided<T> {
    let mut random = Random::new(1);
    place(
        &Tensor::generate(shape, || T::sample(Palette::Ordinary, &mut random)),
        T::sentinel(),
    )
}

/// Creates a contiguous tensor of these values without margins.
pub(crate) fn numbers<I: Copy>(shape: &[usize], values: &[I]) -> Strided<I> {
    Strided::new(
        &Tensor::new(shape, values.to_vec()),
        Arrangement::Contiguous,
        0,
        values[0],
    )
}

/// Checks every one-shot method: each must return `expected` and write nothing.
pub(crate) fn check_refused<T: Ref>(
    options: &Options<'_>,
    data: &[usize],
    indices: &dyn Indices,
    updates: &[usize],
    expected: &ScatterError,
) {
    let what = format!("{:?}, data {data:?}, updates {updates:?}", options.operator);
    let (data, updates) = (filled::<T>(data), filled::<T>(updates));
    let mut output = data.clone();
    let check = |method: &str, got: Result<(), ScatterError>, output: &Strided<T>| {
        assert_eq!(got.as_ref(), Err(expected), "{method}: {what}");
        assert_eq!(
            output.buffer, data.buffer,
            "{method} wrote to the output: {what}"
        );
    };
    let got = indices.in_place(options, output.view_mut(), updates.view());
    check("in place", got, &output);
    let got = indices.write_into(options, data.view(), updates.view(), output.view_mut());
    check("write into", got, &output);
    let got = indices.allocate(options, data.view(), updates.view());
    check("allocate", got.map(drop), &output);
    let view = output.view_mut().into();
    let got = in_place(options, view, indices.any(), updates.view().into());
    check("any, in place", got, &output);
    let (data_view, view) = (data.view().into(), output.view_mut().into());
    let got = write_into(
        options,
        data_view,
        indices.any(),
        updates.view().into(),
        view,
    );
    check("any, write into", got, &output);
}

/// Runs [`check_refused`], and checks that making a plan returns the same error. It is for errors
/// that a plan can detect.
pub(crate) fn check_indices_refused<T: Ref>(
    options: &Options<'_>,
    data: &[usize],
    indices: &dyn Indices,
    updates: &[usize],
    expected: &ScatterError,
) {
    check_refused::<T>(options, data, indices, updates, expected);
    let planned = indices.plan(options, Layout::contiguous(data)).err();
    assert_eq!(
        planned.as_ref(),
        Some(expected),
        "planned: {:?}, data {data:?}",
        options.operator
    );
}
