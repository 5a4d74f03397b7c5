//! The examples of the operators' specification pages, as values: ONNX
//! ScatterND, OpenVINO ScatterNDUpdate-3 and ScatterUpdate-3.

mod common;

use common::elements::{Palette, Ref, compare};
use common::harness::Operator;
use common::random::Random;
use common::{Tensor, ndindex};
use ndscatter::{
    Reduction, ScatterNd, ScatterUpdate, TensorView, TensorViewMut, scatter_nd, scatter_update,
};

/// One example: `expected` is what the page prints.
struct Example<'e> {
    operator: Operator,
    data: (&'e [f32], &'e [usize]),
    indices: (&'e [i64], &'e [usize]),
    updates: (&'e [f32], &'e [usize]),
    expected: &'e [f32],
}

impl Example<'_> {
    fn check(&self) {
        let data = TensorView::contiguous(self.data.0, self.data.1).expect("the page's data");
        let indices = TensorView::contiguous(self.indices.0, self.indices.1).expect("its indices");
        let updates = TensorView::contiguous(self.updates.0, self.updates.1).expect("its updates");
        let mut in_place = self.data.0.to_vec();
        let output = TensorViewMut::contiguous(&mut in_place, self.data.1).expect("as data");
        let allocated = match self.operator {
            Operator::Nd => {
                scatter_nd(output, indices, updates, Reduction::None)
                    .expect("the example is valid");
                ScatterNd::new().allocate(data, indices, updates)
            }
            Operator::Update { axis } => {
                scatter_update(output, indices, updates, axis, Reduction::None)
                    .expect("the example is valid");
                ScatterUpdate::new(axis).allocate(data, indices, updates)
            }
        };
        assert_eq!(in_place, self.expected, "{:?}, in place", self.operator);
        let allocated = allocated.expect("the example is valid");
        assert_eq!(allocated, self.expected, "{:?}, allocated", self.operator);
    }
}

#[test]
fn scatter_nd_update_four_single_elements() {
    // Example 1 of all three OpenVINO pages.
    let example = Example {
        operator: Operator::Nd,
        data: (&[1., 2., 3., 4., 5., 6., 7., 8.], &[8]),
        indices: (&[4, 3, 1, 7], &[4, 1]),
        updates: (&[9., 10., 11., 12.], &[4]),
        expected: &[1., 11., 3., 10., 9., 6., 7., 12.],
    };
    example.check();
}

/// `[[1, 2, 3, 4], [5, 6, 7, 8], [8, 7, 6, 5], [4, 3, 2, 1]]`
const UP: [f32; 16] = [
    1., 2., 3., 4., 5., 6., 7., 8., 8., 7., 6., 5., 4., 3., 2., 1.,
];
/// `[[8, 7, 6, 5], [4, 3, 2, 1], [1, 2, 3, 4], [5, 6, 7, 8]]`
const DOWN: [f32; 16] = [
    8., 7., 6., 5., 4., 3., 2., 1., 1., 2., 3., 4., 5., 6., 7., 8.,
];

/// A 4x4 slice whose rows are filled with these values.
fn rows(values: [f32; 4]) -> [f32; 16] {
    std::array::from_fn(|i| values[i / 4])
}

#[test]
fn scatter_nd_update_two_slices() {
    // Example 2 of all three OpenVINO pages.
    let first = rows([5., 6., 7., 8.]);
    let second = rows([1., 2., 3., 4.]);
    let example = Example {
        operator: Operator::Nd,
        data: (&[UP, UP, DOWN, DOWN].concat(), &[4, 4, 4]),
        indices: (&[0, 2], &[2, 1]),
        updates: (&[first, second].concat(), &[2, 4, 4]),
        expected: &[first, UP, second, DOWN].concat(),
    };
    example.check();
}

#[test]
fn scatter_update_along_axis_1() {
    // Example 2 of the ScatterUpdate page.
    let data = [
        -1., 1., -1., 3., 4., -1., 6., -1., 8., 9., -1., 11., 1., 13., 14.,
    ];
    let example = Example {
        operator: Operator::Update { axis: 1 },
        data: (&data, &[3, 5]),
        indices: (&[0, 2], &[2]),
        updates: (&[1., 1., 1., 1., 1., 2.], &[3, 2]),
        expected: &[
            1., 1., 1., 3., 4., 1., 6., 1., 8., 9., 1., 11., 2., 13., 14.,
        ],
    };
    example.check();
}

#[test]
fn scatter_update_with_indices_of_every_rank() {
    // The three formulas of the ScatterUpdate page for axis 0.
    let data = (&[0., 1., 10., 11., 20., 21.][..], &[3, 2][..]);
    let examples = [
        // 0-D: data[indices, ...] = updates[...]
        Example {
            operator: Operator::Update { axis: 0 },
            data,
            indices: (&[2], &[]),
            updates: (&[5., 6.], &[2]),
            expected: &[0., 1., 10., 11., 5., 6.],
        },
        // 1-D: data[indices[i], ...] = updates[i, ...]
        Example {
            operator: Operator::Update { axis: 0 },
            data,
            indices: (&[1, 0], &[2]),
            updates: (&[5., 6., 7., 8.], &[2, 2]),
            expected: &[7., 8., 5., 6., 20., 21.],
        },
        // N-D: data[indices[i, ..., j], ...] = updates[i, ..., j, ...]
        Example {
            operator: Operator::Update { axis: 0 },
            data,
            indices: (&[2, 0], &[1, 2]),
            updates: (&[5., 6., 7., 8.], &[1, 2, 2]),
            expected: &[7., 8., 10., 11., 5., 6.],
        },
    ];
    examples.iter().for_each(Example::check);
}

#[test]
fn scatter_nd_reduces_as_onnx_defines() {
    // output[indices[idx]] = f(output[indices[idx]], updates[idx]), the second
    // update of index 1 on top of the first; -1 counts from the end.
    let cases = [
        (Reduction::None, [1., 5., 3., 7.]),
        (Reduction::Add, [1., 2. + 6. + 5., 3., 4. + 7.]),
        (Reduction::Mul, [1., 2. * 6. * 5., 3., 4. * 7.]),
        (Reduction::Max, [1., 6., 3., 7.]),
        (Reduction::Min, [1., 2., 3., 4.]),
    ];
    for (reduction, expected) in cases {
        let mut data = [1_f32, 2., 3., 4.];
        scatter_nd(
            TensorViewMut::contiguous(&mut data, &[4]).expect("four elements"),
            TensorView::contiguous(&[1_i64, 1, -1], &[3, 1]).expect("three tuples"),
            TensorView::contiguous(&[6., 5., 7.], &[3]).expect("three updates"),
            reduction,
        )
        .expect("the case is valid");
        assert_eq!(data, expected, "{reduction}");
    }
}

#[test]
fn one_element_serves_where_updates_are_0d() {
    // "If expected `updates` rank is 0D it can be a tensor with single element."
    for shape in [&[][..], &[1], &[1, 1, 1]] {
        let updates = TensorView::contiguous(&[9_i32], shape).expect("one element");
        let mut data = [0; 6];
        scatter_nd(
            TensorViewMut::contiguous(&mut data, &[2, 3]).expect("six elements"),
            TensorView::contiguous(&[1_i32, 2], &[2]).expect("one tuple"),
            updates,
            Reduction::None,
        )
        .unwrap_or_else(|error| panic!("updates of shape {shape:?}: {error}"));
        assert_eq!(data, [0, 0, 0, 0, 0, 9], "updates of shape {shape:?}");
    }
}

fn small_values<T: Ref>(shape: &[usize], random: &mut Random) -> Tensor<T> {
    Tensor::generate(shape, || T::sample(Palette::Ordinary, random))
}

/// Runs a layer of the pages at its size; indices are drawn at random.
fn check_layer(operator: Operator, shape: &[usize], indices_shape: &[usize]) {
    let mut random = Random::new(1);
    let data = small_values::<f32>(shape, &mut random);
    let axes = operator.axes(shape, indices_shape);
    let indices = ndindex(indices_shape).map(|index| {
        let coordinate = if axes.len() == 1 {
            0
        } else {
            *index.last().expect("tuples")
        };
        i64::try_from(random.below(axes[coordinate].1)).expect("sizes fit")
    });
    let indices = Tensor::new(indices_shape, indices.collect());
    let updates_shape = operator.updates_shape(shape, indices_shape);
    let updates = small_values::<f32>(&updates_shape, &mut Random::new(2));

    let logical = indices.values.iter().copied().map(i128::from).collect();
    let logical = Tensor::new(indices_shape, logical);
    let expected = operator.expected(Reduction::None, &data, &logical, &updates);

    let data = TensorView::contiguous(&data.values, shape).expect("data");
    let indices = TensorView::contiguous(&indices.values, indices_shape).expect("indices");
    let updates = TensorView::contiguous(&updates.values, &updates_shape).expect("updates");
    let output = match operator {
        Operator::Nd => ScatterNd::new().allocate(data, indices, updates),
        Operator::Update { axis } => ScatterUpdate::new(axis).allocate(data, indices, updates),
    };
    let output = output.expect("the layer is valid");
    compare(&output, &expected.values, true).expect("the layer's output");
}

#[test]
fn scatter_nd_update_layer_at_full_size() {
    check_layer(Operator::Nd, &[1000, 256, 10, 15], &[25, 125, 3]);
}

#[test]
fn scatter_update_layer_with_1000_cut_to_20() {
    check_layer(Operator::Update { axis: 1 }, &[20, 256, 10, 15], &[125, 20]);
}
