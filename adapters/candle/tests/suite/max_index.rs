//! candle's rule that the maximum of an index type is skipped.

use candle_core::{DType, Device, Result, Tensor};
use ndscatter_candle::{CacheMode, GatherOp, Reduction, ScatterOp};

use crate::random::Random;
use crate::reference::{Operator, scatter, values};
use crate::types::{Case, op};

/// Random scatters of all operators, with skipped indices, against the reference loop.
#[test]
fn the_maximum_is_skipped() -> Result<()> {
    let random = &mut Random::new(4);
    for number in 0..300 {
        let (dtype, max) = [
            (DType::U8, i64::from(u8::MAX)),
            (DType::U32, i64::from(u32::MAX)),
            (DType::I16, i64::from(i16::MAX)),
            (DType::I32, i64::from(i32::MAX)),
            (DType::I64, i64::MAX),
        ][number % 5];
        let case = Case::new(random, DType::F32, dtype, Some(max))?;
        let reduction = if matches!(case.operator, Operator::Cache(..)) {
            Reduction::None
        } else {
            Reduction::Add
        };
        let op = op(case.operator).reduction(reduction).skip_max();
        let mut expected = values::<f32>(&case.data)?;
        scatter(
            &mut expected,
            &case.destinations,
            &values(&case.updates)?,
            reduction,
            true,
        );
        let result = op.apply(&case.data, &case.indices, &case.updates)?;
        assert_eq!(values::<f32>(&result)?, expected, "{op:?} {dtype:?}");
        op.apply_set(&case.data, &case.indices, &case.updates)?;
        assert_eq!(
            values::<f32>(&case.data)?,
            expected,
            "in place: {op:?} {dtype:?}"
        );
    }
    Ok(())
}

/// As in candle, an index of 255 in `u8` is skipped even if the axis has such a position.
#[test]
fn the_maximum_is_no_position() -> Result<()> {
    let cpu = &Device::Cpu;
    let (at, updates) = (
        Tensor::new(&[255_u8, 254, 255], cpu)?,
        Tensor::new(&[1_f32, 2., 3.], cpu)?,
    );
    // An axis whose last position is 255, and a longer one.
    for len in [256, 300] {
        let data = Tensor::zeros(len, DType::F32, cpu)?;
        let candle = data.index_add(&at, &updates, 0)?.to_vec1::<f32>()?;
        let ours = ScatterOp::index_add(0).apply(&data, &at, &updates)?;
        let ours = ours.to_vec1::<f32>()?;
        assert_eq!(ours, candle);
        assert_eq!((ours[254], ours[255]), (2., 0.));
        // Without the option, 255 is a position.
        let sum = ScatterOp::along(0).reduction(Reduction::Add);
        assert_eq!(sum.apply(&data, &at, &updates)?.to_vec1::<f32>()?[255], 4.);
        let picked = GatherOp::index_select(0).apply(&data.ones_like()?, &at)?;
        assert_eq!(picked.to_vec1::<f32>()?, [0., 1., 0.]);
    }
    Ok(())
}

#[test]
fn other_indices_out_of_bounds_are_errors() -> Result<()> {
    let cpu = &Device::Cpu;
    let (data, updates) = (
        Tensor::zeros(300, DType::F32, cpu)?,
        Tensor::ones(3, DType::F32, cpu)?,
    );
    let small = data.narrow(0, 0, 3)?;
    let sum = ScatterOp::index_add(0);
    for (data, at) in [
        (&small, Tensor::new(&[0_u8, 255, 3], cpu)?),
        (&small, Tensor::new(&[3_u8, 255, 0], cpu)?),
        (&small, Tensor::new(&[0_i64, i64::MAX, -1], cpu)?),
        (&small, Tensor::new(&[0_i64, i64::MAX, i64::MIN], cpu)?),
        (&small, Tensor::new(&[0_i64, i64::MAX, 1 << 40], cpu)?),
        (&data, Tensor::new(&[255_i32, -1, 0], cpu)?),
    ] {
        let error = sum.apply(data, &at, &updates).unwrap_err().to_string();
        assert!(error.contains("out of bounds for axis 0"), "{error}");
        assert!(sum.apply_set(data, &at, &updates).is_err(), "in place");
    }
    assert_eq!(data.sum_all()?.to_scalar::<f32>()?, 0.);
    // Negative indices count from the end if the option allows them.
    let at = Tensor::new(&[-1_i64, i64::MAX, -3], cpu)?;
    let result = sum.negative_indices(true).apply(&small, &at, &updates)?;
    assert_eq!(result.to_vec1::<f32>()?, [1., 0., 1.]);
    let tuples = Tensor::new(&[[0_u32, u32::MAX], [2, 9]], cpu)?;
    let matrix = data.reshape((30, 10))?;
    let op = ScatterOp::nd().skip_max();
    let result = op.apply(&matrix, &tuples, &Tensor::ones(2, DType::F32, cpu)?)?;
    assert_eq!(result.sum_all()?.to_scalar::<f32>()?, 1.);
    let tuples = Tensor::new(&[[30_u32, u32::MAX], [2, 9]], cpu)?;
    let error = op
        .apply(&matrix, &tuples, &Tensor::ones(2, DType::F32, cpu)?)
        .unwrap_err();
    assert!(error.to_string().contains("index 30 of tuple 0"), "{error}");
    Ok(())
}

#[test]
fn idle_sequences_of_a_cache() -> Result<()> {
    let cpu = &Device::Cpu;
    let starts = Tensor::new(&[1_u32, u32::MAX, 2], cpu)?;
    let new = Tensor::new(&[[1_f32], [2.], [3.]], cpu)?;
    for mode in [CacheMode::Linear, CacheMode::Circular] {
        let cache = Tensor::zeros((3, 3), DType::F32, cpu)?;
        ScatterOp::cache(1, mode)
            .skip_max()
            .apply_set(&cache, &starts, &new)?;
        assert_eq!(
            cache.to_vec2::<f32>()?,
            [[0., 1., 0.], [0.; 3], [0., 0., 3.]]
        );
    }
    let cache = Tensor::zeros((3, 3), DType::F32, cpu)?;
    let late = Tensor::new(&[1_u32, u32::MAX, 3], cpu)?;
    assert!(
        ScatterOp::cache(1, CacheMode::Linear)
            .skip_max()
            .apply_set(&cache, &late, &new)
            .is_err()
    );
    let negative = Tensor::new(&[1_i64, i64::MAX, -1], cpu)?;
    assert!(
        ScatterOp::cache(1, CacheMode::Linear)
            .skip_max()
            .apply_set(&cache, &negative, &new)
            .is_err()
    );
    assert_eq!(cache.sum_all()?.to_scalar::<f32>()?, 0.);
    Ok(())
}
