//! Refused calls. A refused call changes no tensor that another owner can read.

use burn_backend::{Bytes, DType, Shape};
use burn_flex::{Flex, FlexTensor, Layout};
use burn_tensor::{Bool, Device, Int, Tensor};
use ndscatter::{Duplicates, Reduction, Scatter, ScatterError};
use ndscatter_burn::{Error, NdScatter, ScatterBackend};

use crate::layouts::{row_major, values};
use crate::reference::Array;

fn floats(shape: &[usize]) -> FlexTensor {
    row_major(&Array::new(shape, std::iter::repeat(1.0_f32)))
}

fn indices(values: &[i64]) -> FlexTensor {
    row_major(&Array::new(&[values.len()], values.iter().copied()))
}

#[test]
fn a_refused_call_changes_no_other_owner() {
    let add = Scatter::along(0).reduction(Reduction::Add);
    let unique = add.clone().duplicates(Duplicates::Reject);
    let i64s = row_major(&Array::new(&[2, 2], [1_i64; 4]));
    let doubles = row_major(&Array::new(&[2, 2], [1.0_f64; 4]));
    type Refused<'a> = (&'a str, &'a Scatter<'a>, FlexTensor, FlexTensor);
    let cases: [Refused<'_>; 7] = [
        ("index", &add, indices(&[0, 3]), floats(&[2, 2])),
        ("negative index", &add, indices(&[0, -4]), floats(&[2, 2])),
        ("updates", &add, indices(&[0, 1]), floats(&[2, 3])),
        ("duplicates", &unique, indices(&[1, 1]), floats(&[2, 2])),
        ("integers as updates", &add, indices(&[0, 1]), i64s),
        ("other floats as updates", &add, indices(&[0, 1]), doubles),
        ("floats as indices", &add, floats(&[2]), floats(&[2, 2])),
    ];
    for (name, scatter, indices, updates) in cases {
        let data = floats(&[3, 2]);
        let shared = data.clone();
        let result = Flex::float_nd_scatter(scatter, shared, indices.clone(), updates.clone());
        let allocating = result.expect_err(name);
        assert_eq!(
            values::<f32>(&data).values,
            [1.0; 6],
            "{name}: the owner sees no change"
        );
        let in_place = Flex::float_nd_scatter(scatter, data, indices, updates).expect_err(name);
        assert_eq!(
            allocating, in_place,
            "{name}: both forms report the same error"
        );
    }
}

#[test]
fn types_without_a_kernel_are_refused() {
    let flex32 = FlexTensor::new(
        Bytes::from_elems(vec![0.0_f32; 2]),
        Layout::contiguous(Shape::new([2])),
        DType::Flex32,
    );
    let scatter = Scatter::along(0);
    let result = Flex::float_nd_scatter(&scatter, flex32, indices(&[0]), floats(&[1]));
    let expected = Error::DType {
        tensor: "data",
        dtype: DType::Flex32,
    };
    assert_eq!(result.map(|_| ()), Err(expected.clone()), "Flex32");
    assert!(
        expected
            .to_string()
            .starts_with("`data` has elements of type Flex32"),
        "{expected}"
    );
}

#[test]
fn layouts_outside_of_their_memory_are_refused() {
    let outside = |shape: [usize; 1], stride: isize, offset: usize| {
        let layout = Layout::new(Shape::new(shape), vec![stride], offset);
        FlexTensor::new(Bytes::from_elems(vec![0.0_f32; 4]), layout, DType::F32)
    };
    let layouts = [
        ([4], 1, 1),
        ([4], 2, 0),
        ([4], -1, 2),
        ([4], -1, 4),
        ([2], isize::MIN, 3),
        ([2], isize::MAX, 0),
        ([4], 1, usize::MAX / 4 - 2),
        ([4], 0, 4),
    ];
    for (shape, stride, offset) in layouts {
        let context = format!("{shape:?}, stride {stride}, offset {offset}");
        let given = outside(shape, stride, offset);
        let scatter = Scatter::along(0);
        let shared = given.clone();
        let updates = Flex::float_nd_scatter(&scatter, floats(&[4]), indices(&[0]), given.clone());
        assert!(updates.is_err(), "updates: {context}");
        let data = Flex::float_nd_scatter(&scatter, given, indices(&[0]), floats(&[1]));
        assert!(data.is_err(), "a shared tensor: {context}");
        let data = Flex::float_nd_scatter(&scatter, shared, indices(&[0]), floats(&[1]));
        assert!(data.is_err(), "in place: {context}");
    }
}

/// Tensors without elements may have any offset. Bytes may end in the middle of an element.
#[test]
fn a_result_that_is_too_large_is_an_error() {
    let device = Device::flex();
    let data = Tensor::<1, Bool>::from_data([false], &device).expand([1_usize << 44]);
    let updates = Tensor::<1, Bool>::from_data([true], &device);
    let at = Tensor::<1, Int>::from_ints([0], &device);
    let result = data.nd_scatter(&Scatter::along(0), at, updates);
    assert!(
        matches!(
            result.map(|_| ()),
            Err(Error::Scatter(ScatterError::OutOfMemory { .. }))
        ),
        "16 TiB"
    );
}

#[test]
fn odd_memory_is_no_panic() {
    let empty = |dtype, memory| {
        let layout = Layout::new(Shape::new([0]), vec![1], 99);
        FlexTensor::new(memory, layout, dtype)
    };
    let none = || row_major(&Array::new(&[0], std::iter::empty::<i64>()));
    let scatter = Scatter::along(0);
    let floats_of = || empty(DType::F32, Bytes::from_elems(vec![0.0_f32; 4]));
    assert!(
        Flex::float_nd_scatter(&scatter, floats_of(), none(), floats_of()).is_ok(),
        "floats"
    );
    let store = DType::Bool(burn_backend::BoolStore::Native);
    let booleans = || empty(store, Bytes::from_elems(vec![0_u8; 4]));
    assert!(
        Flex::bool_nd_scatter(&scatter, booleans(), none(), booleans()).is_ok(),
        "booleans"
    );

    let layout = Layout::contiguous(Shape::new([1]));
    let cut = FlexTensor::new(Bytes::from_bytes_vec(vec![0; 7]), layout, DType::F32);
    let result = Flex::float_nd_scatter(&scatter, cut, indices(&[0]), floats(&[1]));
    assert!(
        matches!(
            result,
            Err(Error::Scatter(ScatterError::BytesLength { .. }))
        ),
        "7 bytes"
    );
}

#[test]
fn an_error_of_the_forward_pass_is_no_panic() {
    let device = Device::flex().autodiff();
    let data = Tensor::<1>::zeros([3], &device).require_grad();
    let updates = Tensor::<1>::ones([1], &device).require_grad();
    let at = Tensor::<1, Int>::from_ints([3], &device);
    let result = data.nd_scatter(&Scatter::along(0), at, updates);
    let expected = ScatterError::IndexOutOfBounds {
        tuple: 0,
        axis: 0,
        index: 3,
        size: 3,
    };
    assert_eq!(
        result.map(|_| ()).expect_err("refused"),
        Error::from(expected),
        "index"
    );
}

#[test]
fn strategies_for_checkpoints_must_agree() {
    let device = Device::flex().autodiff();
    let other = device.clone().gradient_checkpointing();
    let data = Tensor::<1>::zeros([3], &device);
    let updates = Tensor::<1>::ones([1], &other);
    let at = |device| Tensor::<1, Int>::from_ints([0], device);
    let refused = |data: Tensor<1>, at, updates| {
        let result = data.nd_scatter(&Scatter::along(0), at, updates);
        let error = result.map(|_| ()).expect_err("refused");
        assert_eq!(error, Error::Checkpointing, "strategies");
    };
    refused(data.clone(), at(&device), updates);
    refused(data, at(&other), Tensor::ones([1], &device));
}
