//! Errors: a call returns them, and no tensor has changed.

use candle_core::{DType, Device, Result, Tensor};
use ndscatter_candle::{Bounds, CacheMode, GatherOp, NdScatter, Reduction, ScatterOp};

/// Checks that a scatter fails in both forms with a message that contains `text`, and that data does
/// not change.
fn fails(
    op: ScatterOp,
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    text: &str,
) -> Result<()> {
    let before = format!("{data}");
    let [first, second] = [
        op.apply(data, indices, updates).map(|_| ()),
        op.apply_set(data, indices, updates),
    ]
    .map(|result| result.expect_err(text).to_string());
    assert!(first.contains(text), "{first}");
    assert!(second.contains(text), "{second}");
    assert_eq!(format!("{data}"), before, "data has changed");
    Ok(())
}

#[test]
fn indices_out_of_bounds() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::arange(0_f32, 6., cpu)?.reshape((3, 2))?;
    let updates = Tensor::ones((3, 2), DType::F32, cpu)?;
    let rows = |rows: [i64; 3]| Tensor::new(&rows, cpu);
    let along = ScatterOp::along(0).reduction(Reduction::Add);
    fails(
        along,
        &data,
        &rows([0, 1, 3])?,
        &updates,
        "index 3 of tuple 2 is out of bounds",
    )?;
    fails(
        along,
        &data,
        &rows([0, -4, 1])?,
        &updates,
        "index -4 of tuple 1",
    )?;
    fails(
        along,
        &data,
        &rows([0, i64::MIN, 1])?,
        &updates,
        "out of bounds",
    )?;
    fails(
        along,
        &data,
        &rows([0, 1, i64::MAX])?,
        &updates,
        "out of bounds",
    )?;
    let strict = along.negative_indices(false);
    fails(
        strict,
        &data,
        &rows([0, -1, 1])?,
        &updates,
        "index -1 of tuple 1",
    )?;
    let cache = ScatterOp::cache(1, CacheMode::Linear);
    let short = Tensor::ones((3, 1), DType::F32, cpu)?;
    fails(cache, &data, &rows([0, 1, 2])?, &short, "write index 2")?;
    fails(cache, &data, &rows([0, -1, 0])?, &short, "write index -1")
}

#[test]
fn the_rule_for_bounds_is_an_option() -> Result<()> {
    let cpu = &Device::Cpu;
    let (data, at) = (
        Tensor::zeros(3, DType::F32, cpu)?,
        Tensor::new(&[0_i32, 7, -9], cpu)?,
    );
    let updates = Tensor::new(&[1_f32, 2., 4.], cpu)?;
    let sum = ScatterOp::along(0).reduction(Reduction::Add);
    let skipped = sum.bounds(Bounds::Skip).apply(&data, &at, &updates)?;
    assert_eq!(skipped.to_vec1::<f32>()?, [1., 0., 0.]);
    let clamped = sum.bounds(Bounds::Clamp).apply(&data, &at, &updates)?;
    assert_eq!(clamped.to_vec1::<f32>()?, [5., 0., 2.]);
    // The last call counts.
    assert!(
        sum.bounds(Bounds::Skip)
            .skip_max()
            .apply(&data, &at, &updates)
            .is_err()
    );
    let last = sum
        .skip_max()
        .bounds(Bounds::Skip)
        .apply(&data, &at, &updates)?;
    assert_eq!(last.to_vec1::<f32>()?, [1., 0., 0.]);
    Ok(())
}

#[test]
fn shapes() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::zeros((3, 2), DType::F32, cpu)?;
    let rows = Tensor::new(&[0_u32, 1], cpu)?;
    for dims in [vec![2], vec![2, 1], vec![3, 2], vec![2, 2, 1]] {
        let updates = Tensor::ones(dims, DType::F32, cpu)?;
        fails(ScatterOp::along(0), &data, &rows, &updates, "updates")?;
    }
    let updates = Tensor::ones((2, 2), DType::F32, cpu)?;
    for axis in [2, -3, isize::MAX, isize::MIN] {
        fails(ScatterOp::along(axis), &data, &rows, &updates, "axis")?;
        fails(
            ScatterOp::along(axis).skip_max(),
            &data,
            &rows,
            &updates,
            "axis",
        )?;
    }
    assert!(data.nd_index_add(&rows, &updates, 2).is_err(), "dim 2");
    let scalar = Tensor::new(1_f32, cpu)?;
    let index = Tensor::new(0_u32, cpu)?;
    assert!(
        ScatterOp::nd().apply(&scalar, &index, &scalar).is_err(),
        "indices of rank 0"
    );
    assert!(
        ScatterOp::along(0).apply(&scalar, &index, &scalar).is_err(),
        "data of rank 0"
    );
    assert!(
        ScatterOp::index_add(0)
            .apply(&scalar, &index, &scalar)
            .is_err(),
        "data of rank 0"
    );
    let tuples = Tensor::zeros((2, 3), DType::U32, cpu)?;
    fails(ScatterOp::nd(), &data, &tuples, &updates, "coordinates")?;
    fails(
        ScatterOp::nd().skip_max(),
        &data,
        &tuples,
        &updates,
        "coordinates",
    )
}

#[test]
fn types() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::zeros(3, DType::F32, cpu)?;
    let at = Tensor::new(&[0_u32], cpu)?;
    fails(
        ScatterOp::along(0),
        &data,
        &at,
        &Tensor::new(&[1_f64], cpu)?,
        "dtype mismatch",
    )?;
    let floats = Tensor::new(&[0_f32], cpu)?;
    fails(
        ScatterOp::along(0),
        &data,
        &floats,
        &floats.copy()?,
        "integer type",
    )?;
    fails(
        ScatterOp::along(0).skip_max(),
        &data,
        &floats,
        &floats.copy()?,
        "integer type",
    )?;
    let small = data.to_dtype(DType::F8E4M3)?;
    let update = Tensor::new(&[1_f32], cpu)?.to_dtype(DType::F8E4M3)?;
    fails(
        ScatterOp::along(0),
        &small,
        &at,
        &update,
        "unsupported dtype F8E4M3 for op nd-scatter",
    )?;
    let error = GatherOp::along(0)
        .apply(&small, &at)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("unsupported dtype F8E4M3 for op nd-gather"),
        "{error}"
    );
    let bad = data.narrow(0, 0, 1)?.to_dtype(DType::F8E4M3)?;
    assert!(
        ScatterOp::along(0).apply(&data, &bad, &update).is_err(),
        "types of indices"
    );
    assert!(
        GatherOp::along(0).apply(&data, &bad).is_err(),
        "types of indices"
    );
    Ok(())
}

#[test]
fn options_that_an_operator_lacks() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::zeros((2, 3), DType::F32, cpu)?;
    let (starts, rows) = (
        Tensor::new(&[0_u32, 1], cpu)?,
        Tensor::ones((2, 1), DType::F32, cpu)?,
    );
    let cache = ScatterOp::cache(1, CacheMode::Linear);
    fails(
        cache.reduction(Reduction::Add),
        &data,
        &starts,
        &rows,
        "reduction",
    )?;
    fails(cache.bounds(Bounds::Clamp), &data, &starts, &rows, "bounds")
}
