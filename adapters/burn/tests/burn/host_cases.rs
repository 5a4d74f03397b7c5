//! The cases of burn's own tests of its scatters, as data. Each case runs on ours and on burn.
//!
//! The inputs and the expected values are those of the tests with the same names in burn's
//! repository, folder `crates/burn-backend-tests/tests`. Values: `tensor/float/ops/gather_scatter.rs`
//! (commit 07f0644), `gather_scatter_nd.rs` (2711e50), `select.rs` (014219f). Gradients:
//! `autodiff/gather_scatter.rs` (07f0644), `gather_scatter_nd.rs` (3bff8bd), `select.rs` (095f7ca).
//! Panics: the unit tests of `src/ops/gather_scatter.rs` in burn-flex 0.22.1.

use burn_autodiff::Autodiff;
use burn_backend::AutodiffBackend;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::IndexingUpdateOp;
use burn_flex::{Flex, FlexTensor};
use ndscatter::{Reduction, ScatterError};
use ndscatter_burn::{Error, ScatterBackend};

use crate::layouts::{row_major, values};
use crate::reference::Array;
use crate::reference::Place::{self, Along, Elements, Nd};

/// A tensor: its shape and its values.
type Given<T> = (&'static [usize], &'static [T]);

struct Case {
    name: &'static str,
    place: Place,
    reduction: Reduction,
    data: Given<f32>,
    indices: Given<i64>,
    updates: Given<f32>,
    expected: &'static [f32],
}

fn tensor<T: burn_backend::Element + bytemuck::Pod>((shape, values): Given<T>) -> FlexTensor {
    row_major(&Array::new(shape, values.iter().copied()))
}

fn update_of(reduction: Reduction) -> IndexingUpdateOp {
    match reduction {
        Reduction::None => IndexingUpdateOp::Assign,
        Reduction::Add => IndexingUpdateOp::Add,
        Reduction::Mul => IndexingUpdateOp::Mul,
        Reduction::Min => IndexingUpdateOp::Min,
        Reduction::Max => IndexingUpdateOp::Max,
        other => unreachable!("burn does not have {other}"),
    }
}

/// Runs burn's own operation on any of its backends.
fn burn<B: FloatTensorOps<B> + burn_backend::Backend>(
    place: Place,
    reduction: Reduction,
    data: B::FloatTensorPrimitive,
    indices: B::IntTensorPrimitive,
    updates: B::FloatTensorPrimitive,
) -> B::FloatTensorPrimitive {
    let update = update_of(reduction);
    match place {
        Nd => B::float_scatter_nd(data, indices, updates, update),
        Along(axis) => B::float_select_assign(data, axis, indices, updates, update),
        Elements(axis) => B::float_scatter(axis, data, indices, updates, update),
    }
}

#[test]
fn values_are_those_of_burn() {
    for case in CASES {
        let [data, updates] = [tensor(case.data), tensor(case.updates)];
        let indices = tensor(case.indices);
        let theirs = burn::<Flex>(
            case.place,
            case.reduction,
            data.clone(),
            indices.clone(),
            updates.clone(),
        );
        assert_eq!(
            values::<f32>(&theirs).values,
            case.expected,
            "burn: {}",
            case.name
        );
        let scatter = case.place.scatter(case.reduction);
        let ours = Flex::float_nd_scatter(&scatter, data, indices, updates).expect(case.name);
        assert_eq!(values::<f32>(&ours).values, case.expected, "{}", case.name);
    }
}

const ONES: Given<f32> = (&[3, 3], &[1.0; 9]);
const ZEROS: Given<f32> = (&[2, 3], &[0.0; 6]);
const SIX: &[f32] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const TENS: Given<f32> = (&[2, 3], &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);

#[rustfmt::skip] // A table.
const CASES: &[Case] = &[
    Case { name: "should_scatter_add_1d", place: Elements(0), reduction: Reduction::Add,
        data: (&[3], &[0.0; 3]), indices: (&[3], &[1, 0, 2]), updates: (&[3], &[5.0, 4.0, 3.0]),
        expected: &[4.0, 5.0, 3.0] },
    Case { name: "should_scatter_assign_1d", place: Elements(0), reduction: Reduction::None,
        data: (&[4], &[10.0, 20.0, 30.0, 40.0]), indices: (&[2], &[1, 3]), updates: (&[2], &[7.0, 50.0]),
        expected: &[10.0, 7.0, 30.0, 50.0] },
    Case { name: "should_scatter_assign_2d_dim0", place: Elements(0), reduction: Reduction::None,
        data: TENS, indices: (&[2, 3], &[1, 0, 1, 0, 1, 0]), updates: (&[2, 3], SIX),
        expected: &[4.0, 2.0, 6.0, 1.0, 5.0, 3.0] },
    Case { name: "should_scatter_mul_1d", place: Elements(0), reduction: Reduction::Mul,
        data: (&[4], &[10.0, 20.0, 30.0, 40.0]), indices: (&[2], &[1, 3]), updates: (&[2], &[7.0, 50.0]),
        expected: &[10.0, 140.0, 30.0, 2000.0] },
    Case { name: "should_scatter_mul_2d_dim0", place: Elements(0), reduction: Reduction::Mul,
        data: TENS, indices: (&[2, 3], &[1, 0, 1, 0, 1, 0]), updates: (&[2, 3], SIX),
        expected: &[40.0, 40.0, 180.0, 40.0, 250.0, 180.0] },
    Case { name: "should_scatter_add_2d_dim0", place: Elements(0), reduction: Reduction::Add,
        data: ZEROS, indices: (&[2, 3], &[1, 0, 1, 1, 1, 0]), updates: (&[2, 3], SIX),
        expected: &[0.0, 2.0, 6.0, 5.0, 5.0, 3.0] },
    Case { name: "should_scatter_add_2d_dim1", place: Elements(1), reduction: Reduction::Add,
        data: ZEROS, indices: (&[2, 3], &[1, 0, 2, 1, 2, 0]), updates: (&[2, 3], SIX),
        expected: &[2.0, 1.0, 3.0, 6.0, 4.0, 5.0] },
    Case { name: "should_scatter_add_3d_dim1", place: Elements(1), reduction: Reduction::Add,
        data: (&[2, 2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]),
        indices: (&[2, 2, 3], &[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1]),
        updates: (&[2, 2, 3], &[12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0]),
        expected: &[15.0, 14.0, 33.0, 15.0, 20.0, 5.0, 45.0, 26.0, 8.0, 9.0, 32.0, 54.0] },
    Case { name: "should_scatter_add_2d_dim1_diff_shape", place: Elements(1), reduction: Reduction::Add,
        data: ZEROS, indices: (&[2, 1], &[1, 2]), updates: (&[2, 1], &[1.0, 4.0]),
        expected: &[0.0, 1.0, 0.0, 0.0, 0.0, 4.0] },
    Case { name: "should_scatter_add_3d_dim0_with_index_view", place: Elements(0), reduction: Reduction::Add,
        data: (&[4, 1, 1], &[1.0, 2.0, 3.0, 4.0]), indices: (&[2, 1, 1], &[2, 0]),
        updates: (&[2, 1, 1], &[10.0, 20.0]), expected: &[21.0, 2.0, 13.0, 4.0] },
    Case { name: "test_scatter_nd_assign_2d", place: Nd, reduction: Reduction::None,
        data: (&[3, 3], &[0.0; 9]), indices: (&[2, 2], &[0, 1, 2, 0]), updates: (&[2], &[10.0, 20.0]),
        expected: &[0.0, 10.0, 0.0, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0] },
    Case { name: "test_scatter_nd_add_2d", place: Nd, reduction: Reduction::Add,
        data: ONES, indices: (&[2, 2], &[0, 1, 2, 0]), updates: (&[2], &[10.0, 20.0]),
        expected: &[1.0, 11.0, 1.0, 1.0, 1.0, 1.0, 21.0, 1.0, 1.0] },
    Case { name: "test_scatter_nd_add_duplicate_indices", place: Nd, reduction: Reduction::Add,
        data: ZEROS, indices: (&[2, 2], &[0, 1, 0, 1]), updates: (&[2], &[5.0, 3.0]),
        expected: &[0.0, 8.0, 0.0, 0.0, 0.0, 0.0] },
    Case { name: "test_scatter_nd_3d_slices", place: Nd, reduction: Reduction::None,
        data: ZEROS, indices: (&[2, 1], &[0, 1]), updates: TENS,
        expected: &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0] },
    Case { name: "test_scatter_nd_mul", place: Nd, reduction: Reduction::Mul,
        data: (&[2, 3], &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), indices: (&[2, 2], &[0, 1, 1, 2]),
        updates: (&[2], &[10.0, 2.0]), expected: &[2.0, 30.0, 4.0, 5.0, 6.0, 14.0] },
    Case { name: "test_scatter_nd_min", place: Nd, reduction: Reduction::Min,
        data: (&[2, 2], &[5.0, 10.0, 15.0, 20.0]), indices: (&[2, 2], &[0, 0, 1, 1]),
        updates: (&[2], &[3.0, 25.0]), expected: &[3.0, 10.0, 15.0, 20.0] },
    Case { name: "test_scatter_nd_max", place: Nd, reduction: Reduction::Max,
        data: (&[2, 2], &[5.0, 10.0, 15.0, 20.0]), indices: (&[2, 2], &[0, 0, 1, 1]),
        updates: (&[2], &[3.0, 25.0]), expected: &[5.0, 10.0, 15.0, 25.0] },
    Case { name: "test_scatter_nd_batch", place: Nd, reduction: Reduction::None,
        data: (&[3, 3], &[0.0; 9]), indices: (&[3, 1], &[0, 2, 1]),
        updates: (&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
        expected: &[1.0, 2.0, 3.0, 7.0, 8.0, 9.0, 4.0, 5.0, 6.0] },
    Case { name: "test_scatter_nd_single_element", place: Nd, reduction: Reduction::None,
        data: (&[3], &[1.0, 2.0, 3.0]), indices: (&[1, 1], &[2]), updates: (&[1], &[99.0]),
        expected: &[1.0, 2.0, 99.0] },
    Case { name: "test_scatter_nd_k1_high_rank", place: Nd, reduction: Reduction::None,
        data: (&[2, 2, 2], &[0.0; 8]), indices: (&[1, 1], &[1]),
        updates: (&[1, 2, 2], &[10.0, 20.0, 30.0, 40.0]),
        expected: &[0.0, 0.0, 0.0, 0.0, 10.0, 20.0, 30.0, 40.0] },
    Case { name: "test_scatter_nd_empty_indices", place: Nd, reduction: Reduction::None,
        data: (&[2, 2], &[1.0, 2.0, 3.0, 4.0]), indices: (&[0, 2], &[]), updates: (&[0], &[]),
        expected: &[1.0, 2.0, 3.0, 4.0] },
    Case { name: "should_select_add_1d", place: Along(0), reduction: Reduction::Add,
        data: (&[3], &[0.0, 1.0, 2.0]), indices: (&[5], &[1, 1, 0, 1, 2]),
        updates: (&[5], &[5.0, 4.0, 3.0, 2.0, 1.0]), expected: &[3.0, 12.0, 3.0] },
    Case { name: "should_select_assign_2d_dim0", place: Along(0), reduction: Reduction::None,
        data: (&[3, 2], &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]), indices: (&[2], &[2, 0]),
        updates: (&[2, 2], &[5.0, 70.0, 80.0, 1.0]), expected: &[80.0, 1.0, 30.0, 40.0, 5.0, 70.0] },
    Case { name: "should_select_assign_2d_dim1", place: Along(1), reduction: Reduction::None,
        data: TENS, indices: (&[2], &[2, 0]), updates: (&[2, 2], &[7.0, 8.0, 9.0, 10.0]),
        expected: &[8.0, 20.0, 7.0, 10.0, 50.0, 9.0] },
    Case { name: "should_select_assign_mul_2d_dim0", place: Along(0), reduction: Reduction::Mul,
        data: (&[3, 2], &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]), indices: (&[2], &[2, 0]),
        updates: (&[2, 2], &[5.0, 70.0, 80.0, 1.0]), expected: &[800.0, 20.0, 30.0, 40.0, 250.0, 4200.0] },
    Case { name: "should_select_assign_mul_2d_dim1", place: Along(1), reduction: Reduction::Mul,
        data: (&[2, 3], &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), indices: (&[2], &[2, 0]),
        updates: (&[2, 2], &[10.0, 20.0, 30.0, 40.0]), expected: &[40.0, 3.0, 40.0, 200.0, 6.0, 210.0] },
    Case { name: "should_select_add_2d_dim0", place: Along(0), reduction: Reduction::Add,
        data: (&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), indices: (&[2], &[1, 0]), updates: (&[2, 3], SIX),
        expected: &[4.0, 6.0, 8.0, 4.0, 6.0, 8.0] },
    Case { name: "should_select_add_2d_dim1", place: Along(1), reduction: Reduction::Add,
        data: (&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), indices: (&[3], &[1, 0, 2]), updates: (&[2, 3], SIX),
        expected: &[2.0, 2.0, 5.0, 8.0, 8.0, 11.0] },
];

/// burn panics in `scatter_should_panic_on_mismatch_of_shapes`,
/// `should_panic_select_add_negative_dim_out_of_bounds`, `test_scatter_nd_checks_negative_coordinate`
/// and `test_gather_nd_checks_each_coordinate_bound`. Here these cases are errors.
#[test]
fn panics_of_burn_are_errors() {
    let run = |scatter: &ndscatter::Scatter<'_>,
               data: Given<f32>,
               indices: Given<i64>,
               updates: Given<f32>| {
        Flex::float_nd_scatter(scatter, tensor(data), tensor(indices), tensor(updates)).map(|_| ())
    };
    let elements = Elements(0).scatter(Reduction::Add);
    let shapes = run(
        &elements,
        (&[3], &[0.0; 3]),
        (&[3], &[1, 0, 2]),
        (&[2], &[5.0, 4.0]),
    );
    assert!(
        matches!(
            shapes,
            Err(Error::Scatter(ScatterError::UpdatesShape { .. }))
        ),
        "{shapes:?}"
    );

    let along = ndscatter::Scatter::along(-3).reduction(Reduction::Add);
    let axis = run(
        &along,
        (&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        (&[1], &[0]),
        (&[2, 1], &[5.0, 6.0]),
    );
    assert!(
        matches!(
            axis,
            Err(Error::Scatter(ScatterError::AxisOutOfRange { .. }))
        ),
        "{axis:?}"
    );

    let nd = Nd.scatter(Reduction::None).negative_indices(false);
    for (tuple, wrong) in [(&[0, -1], -1), (&[0, 5], 5)] {
        let error = run(&nd, ZEROS, (&[1, 2], tuple), (&[1], &[9.0]));
        let expected = ScatterError::IndexOutOfBounds {
            tuple: 0,
            axis: 1,
            index: wrong,
            size: 3,
        };
        assert_eq!(
            error,
            Err(Error::Scatter(expected)),
            "one coordinate is out of bounds"
        );
    }
}

/// A gradient of the sum of the weighted output.
struct Gradient {
    name: &'static str,
    place: Place,
    reduction: Reduction,
    data: Given<f32>,
    indices: Given<i64>,
    updates: Given<f32>,
    weights: &'static [f32],
    of_data: &'static [f32],
    of_updates: &'static [f32],
}

const NINE: Given<f32> = (&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
const FOUR: Given<f32> = (&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
const FIRST_ROW: Given<f32> = (&[1, 3], &[1.0, 2.0, 3.0]);
const TEN_ROW: Given<f32> = (&[1, 3], &[10.0, 20.0, 30.0]);
const CROSS: Given<i64> = (&[2, 2], &[0, 1, 1, 0]);
const MIDDLE: Given<i64> = (&[1, 1], &[1]);
const ALL: &[f32] = &[1.0; 9];

#[rustfmt::skip] // A table.
const GRADIENTS: &[Gradient] = &[
    Gradient { name: "test_scatter_nd_add_grad", place: Nd, reduction: Reduction::Add,
        data: NINE, indices: MIDDLE, updates: TEN_ROW, weights: ALL,
        of_data: ALL, of_updates: &[1.0; 3] },
    Gradient { name: "test_scatter_nd_assign_grad", place: Nd, reduction: Reduction::None,
        data: NINE, indices: MIDDLE, updates: TEN_ROW, weights: ALL,
        of_data: &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], of_updates: &[1.0; 3] },
    Gradient { name: "test_scatter_nd_add_grad_k_equals_d", place: Nd, reduction: Reduction::Add,
        data: FOUR, indices: CROSS, updates: (&[2], &[10.0, 20.0]), weights: &[1.0; 4],
        of_data: &[1.0; 4], of_updates: &[1.0; 2] },
    Gradient { name: "test_scatter_nd_mul_grad", place: Nd, reduction: Reduction::Mul,
        data: NINE, indices: MIDDLE, updates: TEN_ROW, weights: ALL,
        of_data: &[1.0, 1.0, 1.0, 10.0, 20.0, 30.0, 1.0, 1.0, 1.0], of_updates: &[4.0, 5.0, 6.0] },
    Gradient { name: "test_scatter_nd_max_grad_data_wins", place: Nd, reduction: Reduction::Max,
        data: NINE, indices: MIDDLE, updates: FIRST_ROW, weights: ALL,
        of_data: ALL, of_updates: &[0.0; 3] },
    Gradient { name: "test_scatter_nd_max_grad_values_win", place: Nd, reduction: Reduction::Max,
        data: NINE, indices: MIDDLE, updates: TEN_ROW, weights: ALL,
        of_data: &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], of_updates: &[1.0; 3] },
    Gradient { name: "test_scatter_nd_min_grad", place: Nd, reduction: Reduction::Min,
        data: NINE, indices: MIDDLE, updates: FIRST_ROW, weights: ALL,
        of_data: &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], of_updates: &[1.0; 3] },
    Gradient { name: "test_scatter_nd_max_grad_k_equals_d", place: Nd, reduction: Reduction::Max,
        data: FOUR, indices: CROSS, updates: (&[2], &[10.0, 1.0]), weights: &[1.0; 4],
        of_data: &[1.0, 0.0, 1.0, 1.0], of_updates: &[1.0, 0.0] },
    Gradient { name: "test_scatter_nd_mul_grad_k_equals_d", place: Nd, reduction: Reduction::Mul,
        data: FOUR, indices: CROSS, updates: (&[2], &[10.0, 20.0]), weights: &[1.0; 4],
        of_data: &[1.0, 10.0, 20.0, 1.0], of_updates: &[2.0, 3.0] },
    Gradient { name: "test_scatter_nd_assign_grad_k_equals_d", place: Nd, reduction: Reduction::None,
        data: FOUR, indices: CROSS, updates: (&[2], &[10.0, 20.0]), weights: &[1.0; 4],
        of_data: &[1.0, 0.0, 0.0, 1.0], of_updates: &[1.0; 2] },
    Gradient { name: "test_scatter_assign_grad", place: Elements(1), reduction: Reduction::None,
        data: (&[2, 4], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), indices: (&[2, 2], &[2, 0, 3, 1]),
        updates: (&[2, 2], &[10.0, 20.0, 30.0, 40.0]), weights: &[1.0; 8],
        of_data: &[0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0], of_updates: &[1.0; 4] },
    Gradient { name: "test_scatter_mul_grad", place: Elements(1), reduction: Reduction::Mul,
        data: (&[2, 4], &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), indices: (&[2, 2], &[3, 0, 1, 2]),
        updates: (&[2, 2], &[10.0, 20.0, 30.0, 40.0]), weights: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        of_data: &[20.0, 2.0, 3.0, 40.0, 5.0, 180.0, 280.0, 8.0], of_updates: &[20.0, 2.0, 42.0, 56.0] },
    Gradient { name: "test_select_assign_grad", place: Along(1), reduction: Reduction::None,
        data: (&[2, 4], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), indices: (&[2], &[3, 1]),
        updates: (&[2, 2], &[10.0, 20.0, 30.0, 40.0]), weights: &[1.0; 8],
        of_data: &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], of_updates: &[1.0; 4] },
    Gradient { name: "test_select_assign_mul_grad", place: Along(1), reduction: Reduction::Mul,
        data: (&[2, 3], &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), indices: (&[2], &[2, 0]),
        updates: (&[2, 2], &[10.0, 20.0, 30.0, 40.0]), weights: SIX,
        of_data: &[20.0, 2.0, 30.0, 160.0, 5.0, 180.0], of_updates: &[12.0, 2.0, 42.0, 20.0] },
];

/// The cases of `test_scatter_nd_max_grad_tie` and `test_scatter_nd_min_grad_tie`, with the gradients
/// of this crate: the two equal values share the gradient. In burn, each of them gets all of it.
#[rustfmt::skip] // A table.
const TIES: [Gradient; 2] = [
    Gradient { name: "test_scatter_nd_max_grad_tie", place: Nd, reduction: Reduction::Max,
        data: NINE, indices: MIDDLE, updates: (&[1, 3], &[1.0, 5.0, 10.0]), weights: ALL,
        of_data: &[1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 1.0, 1.0, 1.0], of_updates: &[0.0, 0.5, 1.0] },
    Gradient { name: "test_scatter_nd_min_grad_tie", place: Nd, reduction: Reduction::Min,
        data: NINE, indices: MIDDLE, updates: (&[1, 3], &[1.0, 5.0, 10.0]), weights: ALL,
        of_data: &[1.0, 1.0, 1.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0], of_updates: &[1.0, 0.5, 0.0] },
];

type Recorded = Autodiff<Flex>;

#[test]
fn gradients_are_those_of_burn() {
    for case in GRADIENTS {
        check(case, "burn", |data, indices, updates| {
            burn::<Recorded>(case.place, case.reduction, data, indices, updates)
        });
        check(case, "ndscatter", |data, indices, updates| {
            let scatter = case.place.scatter(case.reduction);
            Recorded::float_nd_scatter(&scatter, data, indices, updates).expect(case.name)
        });
    }
}

#[test]
fn equal_values_share_the_gradient() {
    for case in &TIES {
        check(case, "ndscatter", |data, indices, updates| {
            let scatter = case.place.scatter(case.reduction);
            Recorded::float_nd_scatter(&scatter, data, indices, updates).expect(case.name)
        });
    }
}

type Float = <Recorded as burn_backend::BackendTypes>::FloatTensorPrimitive;

fn check(case: &Gradient, who: &str, run: impl FnOnce(Float, FlexTensor, Float) -> Float) {
    let leaf = |given| Recorded::float_set_require_grad(Recorded::from_inner(tensor(given)), true);
    let (data, updates) = (leaf(case.data), leaf(case.updates));
    let output = run(data.clone(), tensor(case.indices), updates.clone());
    let weights = Recorded::from_inner(tensor((case.data.0, case.weights)));
    let loss = Recorded::float_sum(Recorded::float_mul(output, weights));
    let gradients = Recorded::backward(loss);
    let gradient = |leaf| {
        let gradient = Recorded::grad(leaf, &gradients).expect("a gradient");
        values::<f32>(&gradient)
    };
    let of_data = Array::new(case.data.0, case.of_data.iter().copied());
    assert_eq!(gradient(&data), of_data, "{who}: {}", case.name);
    let of_updates = Array::new(case.updates.0, case.of_updates.iter().copied());
    assert_eq!(gradient(&updates), of_updates, "{who}: {}", case.name);
}
