//! The examples of the operators' specifications, as values: ONNX ScatterND, ScatterElements and
//! TensorScatter; OpenVINO ScatterNDUpdate-3 and 15, ScatterUpdate-3, ScatterElementsUpdate-12.

use crate::common::by_hand::Case;
use crate::common::elements::{Palette, Ref, compare};
use crate::common::harness::{Operator, Options};
use crate::common::random::Random;
use crate::common::{Tensor, ndindex};
use ndscatter::{
    CacheMode, Reduction, Scatter, TensorView, TensorViewMut, scatter_elements, scatter_nd,
    scatter_update, tensor_scatter,
};

/// One example. `expected` is the result that the specification prints.
struct Example<'e> {
    operator: Operator,
    data: (&'e [f32], &'e [usize]),
    indices: (&'e [i64], &'e [usize]),
    updates: (&'e [f32], &'e [usize]),
    expected: &'e [f32],
}

impl Example<'_> {
    fn check(&self) {
        let data = TensorView::contiguous(self.data.0, self.data.1).expect("the example's data");
        let indices =
            TensorView::contiguous(self.indices.0, self.indices.1).expect("the example's indices");
        let updates =
            TensorView::contiguous(self.updates.0, self.updates.1).expect("the example's updates");
        let mut in_place = self.data.0.to_vec();
        let output = TensorViewMut::contiguous(&mut in_place, self.data.1)
            .expect("an output with the shape of data");
        let allocated = match self.operator {
            Operator::Nd => {
                scatter_nd(output, indices, updates, Reduction::None)
                    .expect("the example is valid");
                Scatter::nd().allocate(data, indices, updates)
            }
            Operator::Update { axis } => {
                scatter_update(output, indices, updates, axis, Reduction::None)
                    .expect("the example is valid");
                Scatter::along(axis).allocate(data, indices, updates)
            }
            Operator::Elements { axis } => {
                scatter_elements(output, indices, updates, axis, Reduction::None)
                    .expect("the example is valid");
                Scatter::elements(axis).allocate(data, indices, updates)
            }
            Operator::Cache { axis, mode, .. } => {
                tensor_scatter(output, Some(indices), updates, axis, mode)
                    .expect("the example is valid");
                Scatter::cache(axis, mode).allocate(data, indices, updates)
            }
            Operator::Paged => {
                let paged = Scatter::paged();
                paged
                    .in_place(output, indices, updates)
                    .expect("the example is valid");
                paged.allocate(data, indices, updates)
            }
        };
        assert_eq!(in_place, self.expected, "{:?}, in place", self.operator);
        let allocated = allocated.expect("the example is valid");
        assert_eq!(
            allocated[..],
            *self.expected,
            "{:?}, allocated",
            self.operator
        );
    }
}

#[test]
fn scatter_nd_update_four_single_elements() {
    // Example 1 of all three OpenVINO specifications.
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

/// Returns a 4x4 slice. Row i is filled with value i.
fn rows(values: [f32; 4]) -> [f32; 16] {
    std::array::from_fn(|i| values[i / 4])
}

#[test]
fn scatter_nd_update_two_slices() {
    // Example 2 of all three OpenVINO specifications.
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
    // Example 2 of ScatterUpdate.
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
    // The three formulas of ScatterUpdate for axis 0.
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
    // output[indices[idx]] = f(output[indices[idx]], updates[idx]). The second update of index 1 is
    // applied after the first. Index -1 counts from the end.
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
    // The specification says: "If expected `updates` rank is 0D it can be a tensor with single
    // element."
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

/// XML examples 1 to 4 of ScatterNDUpdate-15. The results for none and prod follow the
/// specification's rule. The specification prints `[50, 20, 20, 4]` and `[500, 3600, 40, 4]`, which
/// contradict the rule. The printed results of sum and sub are right. The specification's indices
/// have rank 1.
#[test]
fn scatter_nd_update_15_with_every_reduction() {
    let cases = [
        (Reduction::None, [50., 40., 20., 4.]),
        (Reduction::Add, [61., 72., 23., 4.]),
        (Reduction::Sub, [-59., -68., -17., 4.]),
        (Reduction::Mul, [500., 2400., 60., 4.]),
    ];
    for (reduction, expected) in cases {
        let case = Case {
            data: (&[4], &[1_f64, 2., 3., 4.]),
            indices: (&[5, 1], &[0, 2, -3, -3, 0]),
            updates: (&[5], &[10., 20., 30., 40., 50.]),
            expected: &expected,
        };
        case.check(reduction, &Options::new(Operator::Nd, reduction));
    }
}

/// Example 1 of ScatterNDUpdate-15. The specification's printed result leaves position 4 unchanged.
#[test]
fn scatter_nd_update_15_counts_from_the_end() {
    let case = Case {
        data: (&[8], &[1, 2, 3, 4, 5, 6, 7, 8]),
        indices: (&[6, 1], &[4, 3, 1, 7, -2, -4]),
        updates: (&[6], &[9, 10, 11, 12, 13, 14]),
        expected: &[1, 11, 3, 10, 14, 6, 13, 12],
    };
    case.check(
        Reduction::None,
        &Options::new(Operator::Nd, Reduction::None),
    );
}

/// Examples 1 to 5 of ScatterElementsUpdate-12.
#[test]
fn scatter_elements_update_with_and_without_self() {
    let mut options = Options::new(Operator::Elements { axis: 0 }, Reduction::Add);
    let line = Case {
        data: (&[4], &[2, 3, 4, 6]),
        indices: (&[6], &[1, 0, 0, -2, -1, 2]),
        updates: (&[6], &[10, 20, 30, 40, 70, 60]),
        expected: &[52, 13, 104, 76],
    };
    line.check(Reduction::Add, &options);
    options.include_self = false;
    let line = Case {
        indices: (&[6], &[1, 0, 0, 2, 3, 2]),
        expected: &[50, 10, 100, 70],
        ..line
    };
    line.check(Reduction::Add, &options);

    let options = Options::new(Operator::Elements { axis: 1 }, Reduction::None);
    let cases: [(Reduction, i32, [i64; 4], [i32; 12]); 3] = [
        (
            Reduction::None,
            0,
            [1, 2, 0, 3],
            [0, 11, 12, 0, 13, 0, 0, 14, 0, 0, 0, 0],
        ),
        (
            Reduction::Add,
            1,
            [1, 1, 0, 3],
            [1, 24, 1, 1, 14, 1, 1, 15, 1, 1, 1, 1],
        ),
        (
            Reduction::Mul,
            2,
            [1, 1, 0, 3],
            [2, 264, 2, 2, 26, 2, 2, 28, 2, 2, 2, 2],
        ),
    ];
    for (reduction, start, indices, expected) in cases {
        let case = Case {
            data: (&[3, 4], &[start; 12]),
            indices: (&[2, 2], &indices),
            updates: (&[2, 2], &[11, 12, 13, 14]),
            expected: &expected,
        };
        case.check(reduction, &options);
    }
}

/// The examples of ONNX ScatterElements.
#[test]
fn scatter_elements_along_both_axes() {
    let example = Example {
        operator: Operator::Elements { axis: 0 },
        data: (&[0.; 9], &[3, 3]),
        indices: (&[1, 0, 2, 0, 2, 1], &[2, 3]),
        updates: (&[1., 1.1, 1.2, 2., 2.1, 2.2], &[2, 3]),
        expected: &[2., 1.1, 0., 1., 0., 2.2, 0., 2.1, 1.2],
    };
    example.check();
    let example = Example {
        operator: Operator::Elements { axis: 1 },
        data: (&[1., 2., 3., 4., 5.], &[1, 5]),
        indices: (&[1, 3], &[1, 2]),
        updates: (&[1.1, 2.1], &[1, 2]),
        expected: &[1., 1.1, 3., 2.1, 5.],
    };
    example.check();
}

/// A step of the loop in the specification of ONNX TensorScatter, in both modes.
#[test]
fn tensor_scatter_writes_a_cache() {
    for (mode, index, expected) in [
        (CacheMode::Linear, 1, [0., 7., 8., 0.]),
        (CacheMode::Circular, 3, [8., 0., 0., 7.]),
    ] {
        let example = Example {
            operator: Operator::Cache {
                axis: 1,
                mode,
                len: 2,
            },
            data: (&[0.; 4], &[1, 4]),
            indices: (&[index], &[1]),
            updates: (&[7., 8.], &[1, 2]),
            expected: &expected,
        };
        example.check();
    }
}

fn small_values<T: Ref>(shape: &[usize], random: &mut Random) -> Tensor<T> {
    Tensor::generate(shape, || T::sample(Palette::Ordinary, random))
}

/// Runs a layer of the specifications. The indices are drawn at random.
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
        i64::try_from(random.below(axes[coordinate].1)).expect("the index fits i64")
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
        Operator::Nd => Scatter::nd().allocate(data, indices, updates),
        Operator::Update { axis } => Scatter::along(axis).allocate(data, indices, updates),
        other => panic!("the specifications have no layer of {other:?}"),
    };
    let output = output.expect("the layer is valid");
    compare(&output, &expected.values, true).expect("the layer's output");
}

#[test]
fn scatter_nd_update_layer_at_full_size() {
    check_layer(Operator::Nd, &[1000, 256, 10, 15], &[25, 125, 3]);
}

#[test]
fn scatter_update_layer_with_20_instead_of_1000() {
    check_layer(Operator::Update { axis: 1 }, &[20, 256, 10, 15], &[125, 20]);
}
