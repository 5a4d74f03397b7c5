//! Whose memory a result has.

use burn_autodiff::Autodiff;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{AutodiffBackend, Shape};
use burn_flex::{Flex, FlexTensor, Layout};
use ndscatter::{Reduction, Scatter};
use ndscatter_burn::ScatterBackend;

use crate::layouts::{row_major, values};
use crate::reference::Array;

type A = Autodiff<Flex>;

fn line(numbers: &[f32]) -> FlexTensor {
    row_major(&Array::new(&[numbers.len()], numbers.iter().copied()))
}

fn at(index: i64) -> FlexTensor {
    row_major(&Array::new(&[1], [index]))
}

#[test]
fn a_view_is_changed_in_place_and_keeps_its_layout() {
    let whole = line(&[1.0, 2.0, 3.0, 4.0]);
    let memory = whole.bytes().as_ptr();
    let view = whole.narrow(0, 1, 2);
    drop(whole);
    let result = Flex::float_nd_scatter(&Scatter::along(0), view, at(-1), line(&[9.0]));
    let result = result.expect("valid");
    assert_eq!(result.bytes().as_ptr(), memory, "no copy");
    assert_eq!(values::<f32>(&result).values, [2.0, 9.0], "the view");
    assert_eq!(
        result.storage::<f32>(),
        [1.0, 2.0, 9.0, 4.0],
        "the rest of the memory"
    );
}

/// Shared data of at most 16 KiB is copied first. Larger data is copied and changed in one pass.
#[test]
fn shared_data_may_have_any_size() {
    for len in [1_usize, 4095, 4096, 4097, 50_000] {
        let data = line(&vec![2.0; len]);
        let last = i64::try_from(len - 1).expect("a small number");
        let result =
            Flex::float_nd_scatter(&Scatter::along(0), data.clone(), at(last), line(&[9.0]));
        let mut expected = vec![2.0; len];
        assert_eq!(
            values::<f32>(&data).values,
            expected,
            "data of {len} elements"
        );
        expected[len - 1] = 9.0;
        assert_eq!(
            values::<f32>(&result.expect("valid")).values,
            expected,
            "{len} elements"
        );
    }
}

#[test]
fn a_broadcast_tensor_gets_memory_of_its_own() {
    let one = line(&[7.0]);
    let expanded = one
        .clone()
        .with_layout(Layout::new(Shape::new([3]), vec![0], 0));
    drop(one);
    let result = Flex::float_nd_scatter(&Scatter::along(0), expanded, at(1), line(&[9.0]));
    let result = result.expect("valid");
    assert_eq!(values::<f32>(&result).values, [7.0, 9.0, 7.0], "values");
    assert!(result.is_contiguous(), "a new tensor");
}

#[test]
fn overlapping_windows_get_memory_of_their_own() {
    let windows =
        line(&[1.0, 2.0, 3.0]).with_layout(Layout::new(Shape::new([2, 2]), vec![1, 1], 0));
    let updates = row_major(&Array::new(&[1, 2], [8.0_f32, 9.0]));
    let result = Flex::float_nd_scatter(&Scatter::along(0), windows, at(0), updates);
    assert_eq!(
        values::<f32>(&result.expect("valid")).values,
        [8.0, 9.0, 2.0, 3.0],
        "values"
    );
}

#[test]
fn updates_may_be_the_data() {
    let data = line(&[1.0, 2.0]);
    let indices = row_major(&Array::new(&[2], [1_i64, 0]));
    let add = Scatter::along(0).reduction(Reduction::Add);
    let result = Flex::float_nd_scatter(&add, data.clone(), indices, data).expect("valid");
    assert_eq!(
        values::<f32>(&result).values,
        [3.0, 3.0],
        "the old values are the updates"
    );
}

/// Under autodiff, a scatter is in place if its gradient does not read data.
#[test]
fn recorded_scatters_are_in_place_if_the_gradient_allows_it() {
    let cases = [
        (Reduction::None, true, true),
        (Reduction::Add, true, true),
        (Reduction::Mean, true, true),
        (Reduction::Max, true, false),
        (Reduction::Max, false, true),
        (Reduction::Mul, true, false),
    ];
    for (reduction, includes_self, in_place) in cases {
        let data = A::from_inner(line(&[1.0, 2.0, 3.0]));
        let memory = data.primitive().bytes().as_ptr();
        let updates = A::float_set_require_grad(A::from_inner(line(&[9.0])), true);
        let scatter = Scatter::along(0)
            .reduction(reduction)
            .include_self(includes_self);
        let output = A::float_nd_scatter(&scatter, data, at(1), updates).expect("valid");
        let same = output.primitive().bytes().as_ptr() == memory;
        assert_eq!(
            same, in_place,
            "{reduction}, with the existing value: {includes_self}"
        );
    }
}

/// A scatter without a gradient is in place for every reduction.
#[test]
fn scatters_without_a_gradient_are_in_place() {
    let data = A::from_inner(line(&[1.0, 2.0, 3.0]));
    let memory = data.primitive().bytes().as_ptr();
    let updates = A::from_inner(line(&[9.0]));
    let max = Scatter::along(0).reduction(Reduction::Max);
    let output = A::float_nd_scatter(&max, data, at(1), updates).expect("valid");
    assert_eq!(
        output.primitive().bytes().as_ptr(),
        memory,
        "no gradient reads data"
    );
}
