//! Conversions from and to `ndarray` views, in every layout of `ndarray`.

use ndarray::{Array, Array2, ArrayD, Axis, IxDyn, ShapeBuilder, array, s};
use ndscatter::{Reduction, Scatter, TensorView, TensorViewMut, scatter_nd};

fn rows() -> Array2<i32> {
    Array::from_shape_fn((3, 4), |(i, j)| {
        i32::try_from(10 * i + j).expect("the value is small")
    })
}

#[test]
fn views_have_the_values_of_ndarray() {
    let contiguous = rows();
    let columns_first = Array::from_shape_fn((3, 4).f(), |index| contiguous[index]);
    let views = [
        contiguous.view(),
        columns_first.view(),
        contiguous.slice(s![..;-1, ..;-1]),
        contiguous.slice(s![1.., ..;2]),
    ];
    for view in views {
        let there = TensorView::from(&view);
        assert_eq!(there.shape(), view.shape(), "shape");
        assert_eq!(there.to_ndarray(), view.into_dyn(), "values");
    }
    let scalar = ndarray::arr0(5);
    assert_eq!(
        TensorView::from(&scalar).to_ndarray().into_dimensionality(),
        Ok(scalar.view()),
        "rank 0"
    );
    let repeated = ndarray::arr1(&[1, 2]);
    let repeated = repeated.broadcast((3, 2)).expect("rows that repeat");
    assert_eq!(
        TensorView::from(&repeated).to_ndarray(),
        repeated.into_dyn(),
        "stride 0"
    );
}

#[test]
fn scatters_into_any_layout() {
    let updates = array![[1, 2, 3, 4]];
    let indices = array![[-1_i64]];
    let mut expected = rows();
    expected.row_mut(2).assign(&updates.row(0));
    let scatter = |mut data: ndarray::ArrayViewMut2<'_, i32>| {
        let data = TensorViewMut::try_from(&mut data).expect("no overlap");
        scatter_nd(data, &indices, (&updates).into(), Reduction::None)
    };

    let mut columns_first = Array::from_shape_fn((3, 4).f(), |index| rows()[index]);
    scatter(columns_first.view_mut()).expect("the call is valid");
    assert_eq!(columns_first, expected, "columns first");

    let mut reversed = rows();
    reversed.invert_axis(Axis(0));
    scatter(reversed.view_mut()).expect("the call is valid");
    expected = rows();
    expected.invert_axis(Axis(0));
    expected.row_mut(2).assign(&updates.row(0));
    assert_eq!(reversed, expected, "reversed");
}

#[test]
fn fills_from_a_broadcast_view() {
    let zero = ndarray::arr0(7_u8);
    let data = zero.broadcast(IxDyn(&[2, 3])).expect("one element for all");
    let (indices, updates) = (array![[1_u8, 2]], array![9_u8]);
    let output = Scatter::nd()
        .allocate(
            TensorView::from(&data),
            &indices,
            TensorView::from(&updates),
        )
        .map(ndscatter::Tensor::into_vec);
    assert_eq!(output, Ok(vec![7, 7, 7, 7, 7, 9]), "a fill");
}

#[test]
fn outputs_go_back_to_ndarray() {
    let mut data = ArrayD::<f32>::zeros(IxDyn(&[2, 2]));
    let mut view = TensorViewMut::try_from(&mut data).expect("no overlap");
    scatter_nd(
        view.reborrow(),
        &array![[1_i32]],
        (&array![[5.0_f32, 6.0]]).into(),
        Reduction::Add,
    )
    .expect("the call is valid");
    let back = view.into_ndarray();
    assert_eq!(
        back,
        array![[0.0, 0.0], [5.0, 6.0]].into_dyn(),
        "the same memory"
    );
}
