//! Conversions from and to `ndarray` views, in every layout of `ndarray`.

use ndarray::{
    ArcArray, Array, Array2, ArrayD, ArrayRef1, ArrayRef2, ArrayViewMutD, Axis, CowArray,
    Dimension, IxDyn, ShapeBuilder, Slice, array, s,
};
use ndscatter::{
    Cloned, Forward, Gather, Gradients, Indices, Reduction, Scatter, ScatterError, TensorView,
    TensorViewMut, scatter_nd,
};

use crate::common::random::Random;

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

/// A call takes an array or a mutable view of `ndarray` as its output.
#[test]
fn calls_write_arrays_without_a_view() {
    let rows = array![2_i64, 0, 2];
    let updates = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let add = Scatter::along(0).reduction(Reduction::Add);
    let expected = array![[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]];

    let mut table = Array2::zeros((3, 2));
    add.in_place(&mut table, &rows, (&updates).into())
        .expect("an owned array");
    assert_eq!(table, expected, "in place");

    let zeros = Array2::zeros((3, 2));
    let mut output = Array2::from_elem((3, 2), 9.0).into_dyn();
    add.write_into((&zeros).into(), &rows, (&updates).into(), &mut output)
        .expect("an array of dynamic rank");
    assert_eq!(output, expected.clone().into_dyn(), "write into");

    // A view by value, with reversed columns.
    let mut wide = Array2::zeros((3, 4));
    let columns = wide.slice_mut(s![.., 2..;-1]);
    add.in_place(columns, &rows, (&updates).into())
        .expect("a view");
    assert_eq!(wide.slice(s![.., 2..;-1]), expected, "the view");
    assert_eq!(wide.slice(s![.., ..2]).sum(), 0.0, "the other columns");

    let mut picked = Array2::zeros((3, 2));
    let reference: &mut ArrayRef2<f64> = &mut picked;
    Gather::along(0)
        .write_into((&expected).into(), &rows, reference)
        .expect("a reference to any array");
    assert_eq!(picked.row(0), expected.row(2), "a gather");

    let mut grad_table = Array2::from_elem((3, 2), 9.0);
    Gather::along(0)
        .backward_into((&updates).into(), &rows, 1.0, &mut grad_table)
        .expect("a gradient");
    assert_eq!(grad_table, expected, "the gradient of the gather");

    let (mut grad_data, mut grad_updates) = (Array2::zeros((3, 2)), Array2::zeros((3, 2)));
    let wanted = Gradients::new(grad_data.view_mut(), grad_updates.view_mut());
    add.backward_into((&expected).into(), Forward::none(), &rows, 1.0, wanted)
        .expect("gradients");
    assert_eq!(grad_data, expected, "the gradient for data");
    assert_eq!(
        grad_updates.row(1),
        expected.row(0),
        "the gradient for updates"
    );

    // An error leaves the array unchanged.
    let refused = add.in_place(&mut table, &array![3_u8, 0, 0], (&updates).into());
    assert!(refused.is_err(), "row 3 does not exist");
    assert_eq!(table, expected, "unchanged");
}

/// `ArrayRef` is the type of the arguments of functions that take any array.
#[test]
fn references_to_any_array_convert() {
    fn add_rows(
        table: &mut ArrayRef2<i32>,
        rows: &ArrayRef1<i16>,
        updates: &ArrayRef2<i32>,
    ) -> Result<(), ScatterError> {
        Scatter::along(0).reduction(Reduction::Add).in_place(
            TensorViewMut::try_from(table)?,
            rows,
            updates.into(),
        )
    }
    let (mut table, updates) = (Array2::zeros((3, 2)), array![[1, 2], [3, 4]]);
    let mut columns_swapped = table.slice_mut(s![.., ..;-1]);
    add_rows(&mut columns_swapped, &array![2, -1], &updates).expect("the call is valid");
    assert_eq!(
        table,
        array![[0, 0], [0, 0], [6, 4]],
        "two updates of row 2"
    );
}

#[test]
fn shared_elements_are_copied_before_a_write() {
    let scatter = |data: Result<TensorViewMut<'_, i32>, ScatterError>| {
        let data = data.expect("no overlap");
        Scatter::along(0).in_place(data, &array![1_u8], (&array![9]).into())
    };
    let expected = array![4, 9, 6];

    let mut shared = ArcArray::from(vec![4, 5, 6]);
    let other = shared.clone();
    scatter((&mut shared).try_into()).expect("the call is valid");
    assert_eq!(shared, expected, "the array of the call");
    assert_eq!(other, array![4, 5, 6], "the other owner");
    let place = shared.as_ptr();
    scatter((&mut shared).try_into()).expect("the call is valid");
    assert_eq!(shared.as_ptr(), place, "one owner, so nothing is copied");

    let original = array![4, 5, 6];
    let mut borrowed = CowArray::from(&original);
    scatter((&mut borrowed).try_into()).expect("the call is valid");
    assert_eq!(borrowed, expected, "the array of the call");
    assert_eq!(original, array![4, 5, 6], "the original");
}

#[test]
fn indices_are_arrays_of_any_integer_rank_and_layout() {
    let data = array![10, 20, 30];
    let gather = |indices: Indices<'_>| {
        let rows = Gather::along(0).allocate(TensorView::from(&data), indices);
        rows.expect("the call is valid").into_ndarray()
    };
    let expected = array![30, 10].into_dyn();
    assert_eq!(gather((&array![-1_i32, 0]).into()), expected, "i32");
    assert_eq!(gather((&array![2_usize, 0]).into()), expected, "usize");
    let reversed = array![0_u16, 2];
    let reversed = reversed.slice(s![..;-1]);
    assert_eq!(gather((&reversed).into()), expected, "stride -1");
    let one = ndarray::arr0(1_i64);
    let scalar = gather((&one).into());
    assert_eq!(scalar, ndarray::arr0(20).into_dyn(), "rank 0");
    let repeated = one.broadcast((1, 2)).expect("one element for all");
    assert_eq!(
        gather((&repeated).into()),
        array![[20, 20]].into_dyn(),
        "stride 0"
    );
    let none = ArrayD::<u8>::default(IxDyn(&[2, 0, 3]));
    assert_eq!(gather((&none).into()).shape(), [2, 0, 3], "no element");
}

#[test]
fn arrays_of_strings_are_cloned() {
    let names = array![["a", "b"], ["c", "d"]].mapv(String::from);
    let transposed = names.t();
    let picked = Gather::along(0)
        .allocate(Cloned(TensorView::from(&transposed)), &array![1, 1, 0])
        .expect("the call is valid");
    let expected = array![["b", "d"], ["b", "d"], ["a", "c"]].mapv(String::from);
    assert_eq!(
        picked.into_ndarray(),
        expected.into_dyn(),
        "rows of columns"
    );
}

#[test]
fn shapes_at_the_limits_convert() {
    const LARGEST: usize = isize::MAX.unsigned_abs();
    // No element exists, whatever the other sizes and the strides are.
    let empty = TensorView::<u64>::strided(&[], 0, &[LARGEST, 0], &[isize::MIN, isize::MAX]);
    let empty = empty.expect("no element is outside");
    assert_eq!(empty.to_ndarray().shape(), [LARGEST, 0], "no element");
    let splat = TensorView::splat(&7_u64, &[LARGEST, 1]).expect("one element for all");
    assert_eq!(splat.to_ndarray()[[LARGEST - 1, 0]], 7, "most elements");
    let deep = [1; 12];
    let deep = TensorView::contiguous(&[7_u8], &deep).expect("one element");
    assert_eq!(deep.to_ndarray().ndim(), 12, "rank");
}

/// How a view lies in a larger array: the view is every `steps`-th element of its permuted axes.
struct Placement {
    order: Vec<usize>,
    steps: Vec<isize>,
}

impl Placement {
    fn random(rank: usize, random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..rank).collect();
        for axis in 1..rank {
            order.swap(axis, random.below(axis + 1));
        }
        let steps = (0..rank).map(|_| random.pick(&[-2, -1, 1, 1, 3]));
        let steps = steps.collect();
        Self { order, steps }
    }

    /// Returns an array of random values in which a view of `shape` lies.
    fn around(&self, shape: &[usize], random: &mut Random) -> ArrayD<i32> {
        let sizes = self.order.iter();
        let sizes: Vec<usize> = sizes
            .map(|&axis| shape[axis] * self.steps[axis].unsigned_abs())
            .collect();
        ArrayD::from_shape_simple_fn(sizes, || {
            i32::try_from(random.below(100)).expect("the value is small")
        })
    }

    fn view<'a>(&self, array: &'a mut ArrayD<i32>) -> ArrayViewMutD<'a, i32> {
        let rank = self.order.len();
        let mut axes = vec![0; rank];
        (0..rank).for_each(|axis| axes[self.order[axis]] = axis);
        let mut view = array.view_mut().permuted_axes(axes);
        view.slice_each_axis_inplace(|axis| Slice::new(0, None, self.steps[axis.axis.index()]));
        view
    }
}

/// Adds each slice of `updates` to the slice of `data` that its index selects.
fn add_along(
    data: &mut ArrayViewMutD<'_, i32>,
    axis: usize,
    indices: &ArrayD<i64>,
    updates: &ArrayViewMutD<'_, i32>,
) {
    for (position, &index) in indices.indexed_iter() {
        let size = i64::try_from(data.len_of(Axis(axis))).expect("the size is small");
        let row = usize::try_from(index.rem_euclid(size)).expect("a remainder");
        let mut update = updates.view();
        for &coordinate in position.as_array_view() {
            update = update.index_axis_move(Axis(axis), coordinate);
        }
        let mut target = data.index_axis_mut(Axis(axis), row);
        target += &update;
    }
}

#[test]
fn random_slices_scatter_as_a_loop() {
    let mut random = Random::new(40);
    for case in 0..500 {
        let rank = 1 + random.below(4);
        let shape: Vec<usize> = (0..rank).map(|_| 1 + random.below(4)).collect();
        let axis = random.below(rank);
        let index_shape: Vec<usize> = (0..random.below(3)).map(|_| random.below(4)).collect();
        let size = i128::try_from(shape[axis]).expect("the size is small");
        let indices = ArrayD::from_shape_simple_fn(index_shape.clone(), || {
            i64::try_from(random.between(-size, size - 1)).expect("the index is small")
        });
        let update_shape = [&shape[..axis], &index_shape, &shape[axis + 1..]].concat();
        let placed = Placement::random(rank, &mut random);
        let updates_placed = Placement::random(update_shape.len(), &mut random);
        let mut data = placed.around(&shape, &mut random);
        let mut updates = updates_placed.around(&update_shape, &mut random);
        let updates = updates_placed.view(&mut updates);

        let mut expected = data.clone();
        add_along(&mut placed.view(&mut expected), axis, &indices, &updates);
        let mut view = placed.view(&mut data);
        Scatter::along(isize::try_from(axis).expect("the axis is small"))
            .reduction(Reduction::Add)
            .in_place(
                TensorViewMut::try_from(&mut view).expect("no overlap"),
                &indices,
                TensorView::from(&updates),
            )
            .expect("the call is valid");
        assert_eq!(data, expected, "case {case}: {shape:?}, axis {axis}");
    }
}
