//! Random comparisons with candle's own kernels, on contiguous tensors, for which candle is right.

use candle_core::{DType, Device, Result, Tensor, WithDType};
use half::{bf16, f16};
use ndscatter_candle::{GatherOp, NdScatter, ScatterOp};

use crate::random::Random;
use crate::reference::values;

/// Returns a random axis, dims, and indices for it: one for each position of a new axis, and one for
/// each element. Some of the indices are the maximum of their type.
fn indices(random: &mut Random, dtype: DType) -> Result<(usize, Vec<usize>, Tensor, Tensor)> {
    let rank = 1 + random.below(4);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + random.below(5)).collect();
    let (axis, count) = (random.below(rank), 1 + random.below(6));
    let max = match dtype {
        DType::U8 => u8::MAX.into(),
        DType::U32 => u32::MAX.into(),
        _ => i64::MAX,
    };
    let mut make = |dims_of_indices: Vec<usize>| {
        let count = dims_of_indices.iter().product::<usize>();
        let indices: Vec<i64> = (0..count)
            .map(|_| {
                if random.below(5) == 0 {
                    max
                } else {
                    random.below(dims[axis]) as i64
                }
            })
            .collect();
        Tensor::from_vec(indices, dims_of_indices, &Device::Cpu)?.to_dtype(dtype)
    };
    let rows = make(vec![count])?;
    let mut of_elements = dims.clone();
    of_elements[axis] = count;
    let elements = make(of_elements)?;
    Ok((axis, dims, rows, elements))
}

fn check<T: WithDType + PartialEq + std::fmt::Debug>(random: &mut Random) -> Result<()> {
    for number in 0..100 {
        let index = [DType::U8, DType::U32, DType::I64][number % 3];
        let (axis, dims, rows, elements) = indices(random, index)?;
        let dim = isize::try_from(axis).expect("a small axis");
        let data = random.tensor(&dims, T::DTYPE)?;
        let updates = random.tensor(elements.dims(), T::DTYPE)?;
        let same = |ours: &Tensor, candle: &Tensor| {
            assert_eq!(ours.dims(), candle.dims(), "shapes of {dims:?} {rows}");
            assert_eq!(
                values::<T>(ours)?,
                values::<T>(candle)?,
                "{:?} {dims:?} {rows}",
                T::DTYPE
            );
            Ok::<(), candle_core::Error>(())
        };
        same(
            &data.nd_index_add(&rows, &updates, axis)?,
            &data.index_add(&rows, &updates, axis)?,
        )?;
        let (add, set) = (ScatterOp::scatter_add(dim), ScatterOp::scatter(dim));
        let expected = data.scatter_add(&elements, &updates, axis)?;
        same(&add.apply(&data, &elements, &updates)?, &expected)?;
        let target = data.copy()?;
        add.apply_set(&target, &elements, &updates)?;
        same(&target, &expected)?;
        let expected = data.scatter(&elements, &updates, axis)?;
        same(&set.apply(&data, &elements, &updates)?, &expected)?;
        same(
            &GatherOp::gather(dim).apply(&data, &elements)?,
            &data.gather(&elements, axis)?,
        )?;
        same(
            &GatherOp::index_select(dim).apply(&data, &rows)?,
            &data.index_select(&rows, axis)?,
        )?;
        // Strided tensors, which candle refuses or copies.
        let (data, updates) = (random.relaid(&data)?, random.relaid(&updates)?);
        let elements = random.relaid(&elements)?;
        same(&set.apply(&data, &elements, &updates)?, &expected)?;
        same(
            &GatherOp::gather(dim).apply(&data, &elements)?,
            &data.contiguous()?.gather(&elements.contiguous()?, axis)?,
        )?;
    }
    Ok(())
}

#[test]
fn candle_gives_the_same() -> Result<()> {
    let random = &mut Random::new(5);
    check::<u8>(random)?;
    check::<u32>(random)?;
    check::<i16>(random)?;
    check::<i32>(random)?;
    check::<i64>(random)?;
    check::<f16>(random)?;
    check::<bf16>(random)?;
    check::<f32>(random)?;
    check::<f64>(random)
}

/// GatherND is a lookup of rows by row numbers.
#[test]
fn tuples_select_slices() -> Result<()> {
    let data = Random::new(6).tensor(&[3, 4, 5], DType::F32)?;
    let tuples = Tensor::new(&[[2_i64, 3], [0, -4], [-3, 1]], &Device::Cpu)?;
    let rows = Tensor::new(&[11_u32, 0, 1], &Device::Cpu)?;
    let expected = data.reshape((12, 5))?.index_select(&rows, 0)?;
    assert_eq!(
        data.nd_gather(&tuples)?.to_vec2::<f32>()?,
        expected.to_vec2::<f32>()?
    );
    let batched = GatherOp::nd(1).apply(&data, &Tensor::new(&[[3_u8], [0], [1]], &Device::Cpu)?)?;
    let expected = Tensor::stack(
        &[
            data.get(0)?.get(3)?,
            data.get(1)?.get(0)?,
            data.get(2)?.get(1)?,
        ],
        0,
    )?;
    assert_eq!(batched.to_vec2::<f32>()?, expected.to_vec2::<f32>()?);
    Ok(())
}

/// Indices that are shorter than data along other axes.
#[test]
fn shorter_indices_of_a_gather() -> Result<()> {
    let data = Tensor::arange(0_f32, 18., &Device::Cpu)?.reshape((2, 3, 3))?;
    let indices = Tensor::new(&[[[0_u32, 1], [1, 0]]], &Device::Cpu)?;
    let result = GatherOp::gather(0).apply(&data, &indices)?;
    // Element [0, j, k] is data[indices[0, j, k], j, k].
    assert_eq!(result.to_vec3::<f32>()?, [[[0., 10.], [12., 4.]]]);
    Ok(())
}
