//! Each memory allocation of ndscatter, and each one of the adapter for elements, fails once during a
//! call. The call returns an error, and no tensor has changed, or the result is right.

#[path = "../../refusals/refusals.rs"]
mod refusals;

use candle_core::{Device, Result, Tensor, Var};
use ndscatter_candle::{CacheMode, GatherOp, Reduction, ScatterOp};

/// Crates whose allocations fail, and the smallest size of such an allocation. The smaller allocations
/// of the adapter are shapes in the types of candle, which end the process if there is no memory.
const WATCHED: [(&str, usize); 2] = [("ndscatter", 0), ("ndscatter_candle", 256)];

/// Returns a tensor of `dims` with values from 0 to `end - 1`, in an order without a pattern.
fn values(dims: &[usize], end: usize) -> Result<Tensor> {
    let mixed = |at: usize| (at.wrapping_mul(0x9E37_79B9) >> 7) % end;
    let values: Vec<i64> = (0..dims.iter().product())
        .map(|at| i64::try_from(mixed(at)).expect("a small number"))
        .collect();
    Tensor::from_vec(values, dims, &Device::Cpu)
}

fn floats(dims: &[usize]) -> Result<Tensor> {
    values(dims, 1000)?.to_dtype(candle_core::DType::F32)
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    let numbers = tensor
        .flatten_all()
        .and_then(|tensor| tensor.to_vec1::<f32>());
    let numbers = numbers.expect("a tensor of f32");
    numbers.into_iter().map(f32::to_bits).collect()
}

/// Runs a scatter with new memory and in place.
fn scatters(op: ScatterOp, data: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<()> {
    let expected = bits(&op.apply(data, indices, updates)?);
    let before = bits(data);
    let apply = |(): ()| op.apply(data, indices, updates);
    refusals::each(|| (), apply, |found| bits(found) == expected);
    assert_eq!(bits(data), before, "the data have changed");
    let in_place = |target: Tensor| {
        let result = op.apply_set(&target, indices, updates);
        let unchanged = result.is_ok() || bits(&target) == before;
        assert!(unchanged, "the data have changed before an error");
        result.map(|()| target)
    };
    let copy = || data.copy().expect("a copy");
    refusals::each(copy, in_place, |found| bits(found) == expected);
    Ok(())
}

fn gathers(op: GatherOp, data: &Tensor, indices: &Tensor) -> Result<()> {
    let expected = bits(&op.apply(data, indices)?);
    let apply = |(): ()| op.apply(data, indices);
    refusals::each(|| (), apply, |found| bits(found) == expected);
    Ok(())
}

/// Runs the backward pass of a scatter.
fn gradients(op: ScatterOp, data: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<()> {
    let [data, updates] = [data, updates].map(Var::from_tensor);
    let [data, updates] = [data?, updates?];
    let loss = || op.apply(&data, indices, &updates)?.sqr()?.sum_all();
    let backward = |loss: Tensor| {
        let grads = loss.backward()?;
        let of = |var: &Var| bits(grads.get(var).expect("a gradient"));
        Ok::<_, candle_core::Error>([of(&data), of(&updates)])
    };
    let expected = backward(loss()?)?;
    let forward = || loss().expect("memory");
    refusals::each(forward, backward, |found| *found == expected);
    Ok(())
}

#[test]
fn each_allocation_of_ndscatter_can_fail() -> Result<()> {
    use Reduction::{Add, Max, Mean, Mul, None};
    for (rank, rows, count) in refusals::TABLES {
        let shape = |rows| refusals::table(rank, rows);
        let rows = usize::from(rows);
        let data = floats(&shape(rows))?;
        let updates = floats(&shape(count))?;
        let along = values(&[count], rows)?;
        let elements = values(&shape(count), rows)?;
        for reduction in [None, Add, Mul, Max, Mean] {
            let op = ScatterOp::along(0).reduction(reduction);
            scatters(op, &data, &along, &updates)?;
            let without_data = op.include_self(false);
            scatters(without_data, &data, &along, &updates)?;
            // candle's sums have at most 8 dimensions.
            if rank <= 8 {
                gradients(op, &data, &along, &updates)?;
            }
            let op = ScatterOp::elements(0).reduction(reduction);
            scatters(op, &data, &elements, &updates)?;
        }
        gathers(GatherOp::along(0), &data, &along)?;
        gathers(GatherOp::elements(0), &data, &elements)?;
        gathers(GatherOp::nd(0), &data, &along.reshape((count, 1))?)?;
        let cache = ScatterOp::cache(-1, CacheMode::Circular);
        let step = data.narrow(rank - 1, 0, 1)?;
        scatters(cache, &data, &values(&[rows], 8)?, &step)?;
    }
    refusals::assert_that_all_crates_failed();
    Ok(())
}
