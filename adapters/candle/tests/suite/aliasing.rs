//! Tensors that share a storage.

use candle_core::{DType, Device, Result, Tensor, Var};
use ndscatter_candle::{GatherOp, NdScatter, Reduction, ScatterOp};

#[test]
fn a_target_that_is_an_input_is_refused() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::arange(0_u32, 4, cpu)?;
    let (at, updates) = (
        Tensor::new(&[0_u32, 1, 2, 3], cpu)?,
        Tensor::ones(4, DType::U32, cpu)?,
    );
    let sum = ScatterOp::along(0).reduction(Reduction::Add);
    let view = data.narrow(0, 1, 3)?;
    for (target, indices, updates) in [
        (&data, &at, &data),
        (&data, &data, &updates),
        (&data, &data, &data),
        // Other views of the same storage.
        (
            &data.narrow(0, 0, 1)?,
            &at.narrow(0, 0, 1)?,
            &data.narrow(0, 3, 1)?,
        ),
        (&view, &at.narrow(0, 0, 3)?, &data.narrow(0, 0, 3)?),
    ] {
        let error = sum
            .apply_set(target, indices, updates)
            .unwrap_err()
            .to_string();
        assert!(error.contains("shares storage"), "{error}");
    }
    assert_eq!(data.to_vec1::<u32>()?, [0, 1, 2, 3]);
    // Two inputs may be one tensor.
    sum.apply_set(&data, &at, &at)?;
    assert_eq!(data.to_vec1::<u32>()?, [0, 2, 4, 6]);
    Ok(())
}

#[test]
fn inputs_may_be_one_tensor() -> Result<()> {
    let data = Tensor::new(&[3_u32, 0, 0, 1], &Device::Cpu)?;
    let sum = ScatterOp::along(0).reduction(Reduction::Add);
    assert_eq!(
        sum.apply(&data, &data, &data)?.to_vec1::<u32>()?,
        [3, 1, 0, 4]
    );
    assert_eq!(
        GatherOp::along(0).apply(&data, &data)?.to_vec1::<u32>()?,
        [1, 3, 3, 0]
    );
    // Gradients: data, updates and the gradient are one variable.
    let var = Var::new(&[1_f32, 2.], &Device::Cpu)?;
    let at = Tensor::new(&[0_u32, 0], &Device::Cpu)?;
    let product = ScatterOp::along(0)
        .reduction(Reduction::Mul)
        .apply(&var, &at, &var)?;
    assert_eq!(product.to_vec1::<f32>()?, [2., 2.]);
    // The result is [x * x * y, y].
    let grads = product.sum_all()?.backward()?;
    let grad = grads.get(&var).expect("a gradient");
    assert_eq!(grad.to_vec1::<f32>()?, [4., 2.]);
    Ok(())
}

/// The result of `apply` has its own storage, and `apply_set` is seen by all views.
#[test]
fn storages() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::zeros((2, 2), DType::F32, cpu)?;
    let (shared, at) = (data.clone(), Tensor::new(&[[0_u32]], cpu)?);
    let updates = Tensor::ones((1, 2), DType::F32, cpu)?;
    let result = data.nd_scatter_add(&at, &updates)?;
    assert_eq!(shared.to_vec2::<f32>()?, [[0.; 2]; 2]);
    result.nd_scatter_set(&at, &updates, Reduction::Add)?;
    assert_eq!(shared.to_vec2::<f32>()?, [[0.; 2]; 2]);
    data.nd_scatter_set(&at, &updates, Reduction::Add)?;
    assert_eq!(shared.to_vec2::<f32>()?, [[1.; 2], [0.; 2]]);
    assert_eq!(result.to_vec2::<f32>()?, [[2.; 2], [0.; 2]]);
    Ok(())
}

/// Threads that write two tensors, each with the other as updates, do not wait for each other
/// forever.
#[test]
fn crossed_writes_do_not_deadlock() -> Result<()> {
    let cpu = &Device::Cpu;
    let (a, b) = (
        Tensor::ones(64, DType::F32, cpu)?,
        Tensor::ones(64, DType::F32, cpu)?,
    );
    let at = Tensor::arange(0_u32, 64, cpu)?;
    let write = |target: &Tensor, updates: &Tensor| {
        (0..2000).try_for_each(|_| ScatterOp::along(0).apply_set(target, &at, updates))
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| write(&a, &b)), scope.spawn(|| write(&b, &a))];
        threads
            .map(|thread| thread.join().expect("no panic"))
            .into_iter()
            .collect::<Result<()>>()
    })
}
