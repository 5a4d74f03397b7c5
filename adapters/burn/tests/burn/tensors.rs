//! The method of burn's tensors: kinds, devices, and the context of autodiff.

use burn_tensor::{Bool, DType, Device, Int, Tensor};
use ndscatter::{Bounds, Reduction, Scatter};
use ndscatter_burn::NdScatter;

#[test]
fn floats_integers_and_booleans_are_scattered() {
    let device = Device::flex();
    let rows = || Tensor::<1, Int>::from_ints([2, 0, 2], &device);
    let add = Scatter::along(0).reduction(Reduction::Add);

    let floats = Tensor::<2>::zeros([3, 2], &device);
    let updates = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &device);
    let sums = floats.nd_scatter(&add, rows(), updates).expect("floats");
    assert_eq!(
        sums.to_data().try_to_vec::<f32>().expect("f32"),
        [3.0, 4.0, 0.0, 0.0, 6.0, 8.0]
    );

    let counts = Tensor::<1, Int>::zeros([3], (&device, DType::I64));
    let ones = Tensor::<1, Int>::ones([3], (&device, DType::I64));
    let counts = counts.nd_scatter(&add, rows(), ones).expect("integers");
    assert_eq!(
        counts.to_data().try_to_vec::<i64>().expect("i64"),
        [1, 0, 2]
    );

    let flags = Tensor::<1, Bool>::from_data([false, true, false], &device);
    let updates = Tensor::<1, Bool>::from_data([false, false, true], &device);
    let flags = flags.nd_scatter(&add, rows(), updates).expect("booleans");
    assert_eq!(
        flags.to_data().try_to_vec::<bool>().expect("bool"),
        [false, true, true]
    );
}

#[test]
fn tensors_may_be_permuted_and_flipped() {
    let device = Device::flex();
    let table = Tensor::<2>::from_floats([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &device);
    let updates = Tensor::<1>::from_floats([10.0, 20.0], &device).flip([0]);
    let indices = Tensor::<2, Int>::from_ints([[0, 2], [1, 0]], &device).transpose();
    // The transposed table has the shape [3, 2]. The tuples are [0, 1] and [2, 0].
    let result = table
        .transpose()
        .nd_scatter(&Scatter::nd(), indices, updates)
        .expect("valid");
    assert_eq!(
        result.to_data().try_to_vec::<f32>().expect("f32"),
        [1.0, 20.0, 2.0, 5.0, 10.0, 6.0]
    );
}

#[test]
fn a_tensor_without_autodiff_is_a_constant() {
    let plain = Device::flex();
    let device = plain.clone().autodiff();
    let updates = Tensor::<1>::from_floats([5.0, 7.0], &device).require_grad();
    let data = Tensor::<1>::zeros([2], &plain);
    let at = Tensor::<1, Int>::from_ints([1, 1], &plain);
    let mean = Scatter::along(0)
        .reduction(Reduction::Mean)
        .include_self(false);
    let output = data.nd_scatter(&mean, at, updates.clone()).expect("valid");
    assert_eq!(
        output.to_data().try_to_vec::<f32>().expect("f32"),
        [0.0, 6.0]
    );
    let gradient = updates.grad(&output.sum().backward()).expect("a gradient");
    assert_eq!(
        gradient.to_data().try_to_vec::<f32>().expect("f32"),
        [0.5, 0.5]
    );
}

#[test]
fn integers_on_an_autodiff_device_stay_there() {
    let device = Device::flex().autodiff();
    let counts = Tensor::<1, Int>::zeros([2], &device);
    let ones = Tensor::<1, Int>::ones([3], &device);
    let keys = Tensor::<1, Int>::from_ints([1, 7, 1], &device);
    let count = Scatter::along(0)
        .reduction(Reduction::Add)
        .bounds(Bounds::Skip);
    let counts = counts.nd_scatter(&count, keys, ones).expect("valid");
    assert_eq!(counts.device(), device, "the device");
    assert_eq!(
        counts.to_data().try_to_vec_as::<i64>().expect("integers"),
        [0, 2]
    );
}

/// Gradient checkpointing records the same step.
#[test]
fn gradient_checkpointing_gives_the_same_gradient() {
    let gradient = |device: Device| {
        let data = Tensor::<1>::from_floats([1.0, 2.0], &device).require_grad();
        let updates = Tensor::<1>::from_floats([3.0, 4.0], &device).require_grad();
        let at = Tensor::<1, Int>::from_ints([1, 1], &device);
        let product = Scatter::along(0).reduction(Reduction::Mul);
        let output = (data.clone() * 2.0)
            .nd_scatter(&product, at, updates.clone())
            .expect("valid");
        let gradients = output.sum().backward();
        [data, updates].map(|leaf| {
            let gradient = leaf.grad(&gradients).expect("a gradient");
            gradient.to_data().try_to_vec::<f32>().expect("f32")
        })
    };
    let device = Device::flex().autodiff();
    let expected = [vec![2.0, 24.0], vec![16.0, 12.0]];
    assert_eq!(gradient(device.clone()), expected, "without");
    assert_eq!(gradient(device.gradient_checkpointing()), expected, "with");
}
